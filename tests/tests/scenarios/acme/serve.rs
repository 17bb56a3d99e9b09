//! `serve URL --domain`: one command, from nothing to a certificate.

use super::*;

fn serve(prefix: &Prefix, arguments: &[&str]) -> Running {
    let output = fs::File::create(prefix.join("output")).expect("own directory");
    let mut command = Command::new(binary());
    command.args(["serve", "--dashboard", "off"]).args(arguments).env("XDG_RUNTIME_DIR", prefix.path());
    Running::start(command.stderr(output)).expect("the binary runs")
}

#[test]
fn one_command_leads_from_nothing_to_a_certificate_and_a_second_start_needs_no_authority() {
    let ports = Ports::new();
    let Some(mut authority) = Authority::start(&ports.plan()) else { return };
    authority.name("a.test");
    let origin = Origin::start(|request| {
        let proto = request.field("x-forwarded-proto").unwrap_or_default().to_owned();
        answer(200, &[], format!("hello {proto}").as_bytes())
    });
    let prefix = Prefix::new();
    let state = prefix.join("state");
    let (https, http) = (format!("127.0.0.1:{}", ports.tls), format!("127.0.0.1:{}", ports.http));
    let (uri, trusted) = (authority.uri(), authority.trusted());
    let api = origin.address();
    let arguments = [
        api.as_str(),
        "--domain",
        "a.test",
        "--https",
        &https,
        "--http",
        &http,
        "--acme-server",
        &uri,
        "--acme-ca",
        &trusted,
        "--acme-state",
        state.to_str().expect("plain"),
        "--contact",
        "admin@a.test",
    ];
    let mut serving = serve(&prefix, &arguments);
    let root = authority.root(0);
    wait::until("the API answers over TLS", || {
        assert!(serving.ended().is_none(), "it ended: {}", prefix.read("output"));
        ask(&root, "a.test", ports.tls).is_some_and(|told| told == "hello https")
    });
    for (host, led) in [("a.test", "https://a.test/x?y=z"), ("evil.test", "https://a.test/x?y=z")] {
        let told = client::get_with(ports.http, "/x?y=z", &[("Host", host)]);
        assert_eq!((told.status, told.field("location")), (301, Some(led)), "{host}");
    }
    wait::until("it says so", || prefix.read("output").contains("was issued"));
    assert!(prefix.read("output").contains("for https://a.test"));
    serving.signal(Signal::TERM);
    serving.wait(Duration::from_secs(10)).expect("it ends");
    authority.end();
    let mut serving = serve(&prefix, &arguments);
    wait::until("the API answers without the authority", || {
        assert!(serving.ended().is_none(), "it ended: {}", prefix.read("output"));
        ask(&root, "a.test", ports.tls).is_some()
    });
}

#[test]
fn a_port_that_cannot_be_had_is_told_with_what_is_needed() {
    let ports = Ports::new();
    let taken = std::net::TcpListener::bind(("127.0.0.1", ports.http)).expect("a free port");
    let prefix = Prefix::new();
    let (https, http) = (format!("127.0.0.1:{}", ports.tls), format!("127.0.0.1:{}", ports.http));
    let state = prefix.join("state");
    let arguments = [
        "http://127.0.0.1:1",
        "--domain",
        "a.test",
        "--https",
        &https,
        "--http",
        &http,
        "--acme-state",
        state.to_str().expect("plain"),
    ];
    let mut serving = serve(&prefix, &arguments);
    let status = serving.wait(Duration::from_secs(20)).expect("it ends");
    assert!(!status.success());
    let said = prefix.read("output");
    assert!(said.contains("another process listens there already"), "{said}");
    let needed = "stop the process that listens there, or use --https 8443 --http 8080";
    assert_eq!(said.matches(needed).count(), 1, "{said}");
    assert!(!state.exists(), "nothing is made");
    drop(taken);
}
