//! `shadow`: what a cache could serve, found out on requests that are all passed on.

use millstream_tests::client::{self, Client};
use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::process::Running;
use millstream_tests::server::{Server, binary};
use millstream_tests::{ports, wait};
use rustix::process::Signal;
use serde_json::Value;
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

const CLIENTS: u8 = 40;

/// `/items/N` is the same for everybody, `/me` is the client's own.
fn api() -> Origin {
    Origin::start(|request| match request.target() {
        "/me" => answer(200, &[], format!("{{\"name\":\"{}\"}}", name_of(request)).as_bytes()),
        target => answer(
            200,
            &[("Content-Type", "application/json")],
            format!("{{\"item\":\"{target}\"}}").as_bytes(),
        ),
    })
}

fn name_of(request: &Request) -> String {
    let cookie = request.field("cookie").unwrap_or_default();
    cookie.trim_start_matches("session=").to_owned()
}

/// Clients with addresses and sessions of their own; each asks for all items and for its own page.
fn visit(port: u16, group: u8, rounds: usize) {
    let one = move |number: u8| {
        let address = Ipv4Addr::new(127, 0, group, number + 1);
        let mut client = Client::connect_from(address, port).expect("it listens");
        let session = format!("session=s{group}-{number}");
        // One in four has no session.
        let has_session = number % 4 != 0;
        let fields = if has_session { vec![("Cookie", session.as_str())] } else { Vec::new() };
        for round in 0..rounds {
            for item in 0..10 {
                let target = format!("/items/{}", 100 + (item + round + usize::from(number)) % 10);
                let got = client.get_with(&target, &fields).expect("an answer").text();
                assert_eq!(got, format!("{{\"item\":\"{target}\"}}"));
            }
            let own = client.get_with("/me", &fields).expect("an answer").text();
            let name = if has_session { format!("s{group}-{number}") } else { String::new() };
            assert_eq!(own, format!("{{\"name\":\"{name}\"}}"), "nobody gets another's page");
        }
    };
    thread::scope(|scope| (0..CLIENTS).for_each(|number| _ = scope.spawn(move || one(number))));
}

fn route<'r>(report: &'r Value, name: &str) -> &'r Value {
    let routes = report["routes"].as_array().expect("routes");
    routes.iter().find(|route| route["route"] == name).unwrap_or_else(|| panic!("{name} in {report:#}"))
}

#[test]
fn what_all_clients_share_is_found_and_what_is_each_ones_own_is_not_and_the_configuration_keeps_to_it() {
    skip_on_nginx!();
    let (origin, port, folder) = (api(), ports::free(), Prefix::new());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (json, config, html) = (path("report.json"), path("cache.conf"), path("report.html"));
    let listen = format!("127.0.0.1:{port}");
    let url = format!("http://{}", origin.address());
    let arguments = ["shadow", &url, "--listen", &listen, "--dashboard", "off"];
    let files = ["--json", &json, "--config", &config, "--html", &html];
    let mut shadow = Running::start(
        Command::new(binary())
            .args(arguments)
            .args(files)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null()),
    )
    .expect("the binary runs");
    wait::until("it listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    visit(port, 1, 24);
    shadow.signal(Signal::INT);
    assert!(shadow.wait(Duration::from_secs(10)).is_some_and(|status| status.success()), "Ctrl-C ends it");
    let report: Value = serde_json::from_slice(&std::fs::read(&json).expect("the report")).expect("JSON");
    let (items, own) = (route(&report, "/items/{id}"), route(&report, "/me"));
    assert_eq!(items["leaks"], 0, "{report:#}");
    assert!(items["keep_seconds"].as_u64().is_some_and(|seconds| seconds >= 1), "{report:#}");
    assert!(own["keep_seconds"].is_null() && own["varies_by"][0] == "cookie session", "{report:#}");
    assert_eq!(report["totals"]["requests"], origin.count(), "all were passed on");
    let page = std::fs::read_to_string(&html).expect("the page");
    assert!(page.contains("/items/{id}") && page.contains("cookie session"));

    let mut cache = Running::start(
        Command::new(binary()).args(["-c", &config]).stdin(Stdio::null()).stderr(Stdio::null()),
    )
    .expect("the binary runs");
    wait::until("it listens where shadow did", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let before = origin.count();
    visit(port, 2, 2);
    let asked = origin.count() - before;
    assert!(asked < usize::from(CLIENTS) * 2 + 30, "{asked} requests: only /me is asked for each time");
    assert!(cache.ended().is_none());
}

#[test]
fn a_location_with_shadow_on_is_observed_and_its_report_goes_on_over_a_reload() {
    skip_on_nginx!();
    let origin = api();
    let template = site! {
        http "proxy_cache_path memory keys_zone=one:1m memory=8m; shadow on;"
        server "location / { proxy_pass http://@ORIGIN@; }
            location /items/ { proxy_pass http://@ORIGIN@; proxy_cache one; proxy_cache_valid 1h; }
            location /api { api; }"
    };
    let server = Server::start(template, &[("ORIGIN", &origin.address())]);
    for number in 0..30 {
        server.get_with("/me", &[("Cookie", &format!("session=s{number}"))]);
        server.get("/items/1");
    }
    let report = server.get("/api/9/shadow").json();
    assert_eq!(report["totals"]["requests"], 30, "the location with a cache is not observed: {report:#}");
    assert_eq!(report["locations"][0], "localhost /", "{report:#}");
    server.reload();
    server.get("/me");
    assert_eq!(server.get("/api/9/shadow").json()["totals"]["requests"], 31);
    assert_eq!(server.get("/api/9/shadow?stale_budget=1%25").json()["stale_budget"], 0.01);
    assert_eq!(server.get("/api/9/shadow?stale_budget=much").status, 400);
}

#[test]
fn without_an_observed_location_there_is_no_report() {
    skip_on_nginx!();
    let server = Server::start(site! { server "location /api { api; } location / { return 204; }" }, &[]);
    let refused = server.get("/api/9/shadow");
    assert!(refused.status == 404 && refused.text().contains("shadow on;"), "{}", refused.text());
}

#[test]
fn streams_and_large_and_cut_responses_pass_unchanged_while_they_are_observed() {
    skip_on_nginx!();
    let large = vec![b'x'; 3 << 20];
    let sent = large.clone();
    let origin = Origin::start(move |request| match request.target() {
        "/large" => answer(200, &[], &sent),
        "/cut" => vec![Step::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf".to_vec()), Step::Close],
        _ => answer(200, &[("Content-Type", "text/event-stream")], b"data: 1\n\n"),
    });
    let template = site! { server "shadow on; location / { proxy_pass http://@ORIGIN@; }" };
    let server = Server::start(template, &[("ORIGIN", &origin.address())]);
    assert_eq!(server.get("/large").body, large);
    assert_eq!(client::get(server.port(), "/events").text(), "data: 1\n\n");
    let mut client = server.client();
    client.send("GET /cut HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    let cut = client.head().expect("a head");
    assert_eq!(cut.status, 200);
    assert!(client.body("GET", &cut).is_err(), "a cut response never looks whole");
}
