//! `serve URL`: a cache in front of an API without any file, and the file that says the same.

use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use millstream_tests::client::{self, Client};
use millstream_tests::load;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::process::Running;
use millstream_tests::server::{Server, binary};
use millstream_tests::{ports, wait};

pub(super) fn serve(arguments: &[&str]) -> (u16, Running) {
    let port = ports::free();
    let process = Running::start(
        Command::new(binary())
            .arg("serve")
            .args(arguments)
            .args(["--listen", &format!("127.0.0.1:{port}"), "--dashboard", "off"])
            .stdin(Stdio::null())
            .stderr(Stdio::null()),
    )
    .expect("the binary runs");
    wait::until("it accepts connections", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    (port, process)
}

fn api() -> Origin {
    Origin::start(|request| match request.target() {
        "/fresh" => answer(
            200,
            &[("Cache-Control", "max-age=60"), ("Content-Type", "application/json")],
            b"{\"fresh\":true}",
        ),
        "/slow" => {
            let mut steps = vec![Step::Pause(Duration::from_millis(200))];
            steps.extend(answer(200, &[], b"slow"));
            steps
        }
        _ => answer(200, &[], b"says nothing of caching"),
    })
}

#[test]
fn an_api_behind_one_url_is_cached_as_its_own_header_fields_allow() {
    skip_on_nginx!();
    let origin = api();
    let (port, _process) = serve(&[&format!("http://{}", origin.address())]);
    for _ in 0..5 {
        assert_eq!(client::get(port, "/fresh").text(), "{\"fresh\":true}");
    }
    assert_eq!(origin.count(), 1, "a minute's freshness is kept");
    for _ in 0..3 {
        assert_eq!(client::get(port, "/silent").status, 200);
    }
    assert_eq!(origin.count(), 4, "what says nothing is not cached without --microcache");
}

#[test]
fn the_api_gets_the_clients_host_or_its_own_and_may_vary_by_it() {
    skip_on_nginx!();
    let fields = [("Cache-Control", "public, max-age=60"), ("Vary", "Host")];
    let origin = Origin::start(move |request| {
        answer(200, &fields, request.field("host").unwrap_or("none").as_bytes())
    });
    let (port, _process) = serve(&[&format!("http://{}", origin.address())]);
    let own = origin.address();
    for (lines, host) in
        [("", own.as_str()), ("Host: a.example\r\n", "a.example"), ("Host: b:81\r\n", "b:81")]
    {
        for version in ["1.0", "1.1"] {
            if lines.is_empty() && version == "1.1" {
                continue;
            }
            let mut client = Client::connect(port).expect("it listens");
            assert_eq!(
                client.ask(format!("GET / HTTP/{version}\r\n{lines}\r\n")).text(),
                host,
                "{lines:?} {version}"
            );
        }
    }
    assert_eq!(origin.count(), 3, "each host has a response of its own, which is stored");
}

#[test]
fn a_microcache_collapses_many_clients_into_about_one_request_a_second() {
    skip_on_nginx!();
    let origin = api();
    let (port, _process) = serve(&[&format!("http://{}", origin.address()), "--microcache", "1s"]);
    let report = load::run(port, "/slow", 10, Duration::from_secs(3));
    assert!(report.failures.is_empty() && report.answered > 300, "{report:?}");
    assert!(origin.count() <= 5, "{} requests reached the API", origin.count());
    let before = origin.count();
    let mut client = Client::connect(port).expect("it listens");
    for fields in [&[("Cookie", "a=b")][..], &[("Authorization", "Basic b25l")]] {
        for _ in 0..2 {
            assert_eq!(client.get_with("/slow", fields).expect("an answer").status, 200);
        }
    }
    assert_eq!(origin.count() - before, 4, "cookies and credentials go to the API each time");
}

#[test]
fn the_printed_configuration_says_the_same_and_runs() {
    skip_on_nginx!();
    let origin = api();
    let port = ports::free().to_string();
    let output = Command::new(binary())
        .args([
            "serve",
            &format!("http://{}", origin.address()),
            "--listen",
            &format!("127.0.0.1:{port}"),
            "--dashboard",
            "off",
            "--print-config",
        ])
        .output()
        .expect("the binary runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("proxy_pass"), "{text}");
    // The harness brings its own `daemon off`, and knows a start by the pid file and the port.
    let text = format!("pid @DIR@/nginx.pid;\n{}", text.replace("daemon off;", "").replace(&port, "@PORT@"));
    let server = Server::start(&text, &[]);
    for _ in 0..3 {
        assert_eq!(server.get("/fresh").status, 200);
    }
    assert_eq!(origin.count(), 1);
}

#[test]
fn without_a_url_it_serves_a_demo_api_of_its_own() {
    skip_on_nginx!();
    let (port, _process) = serve(&[]);
    assert_eq!(client::get(port, "/").status, 200);
}

/// TLS under `api.example`; its response says how it was asked.
const SECURE_API: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log info; worker_processes 1; events {}
    http {
        access_log off;
        ssl_certificate @DIR@/server.pem; ssl_certificate_key @DIR@/server.key;
        server { listen 127.0.0.1:@PORT@; return 200; }
        server {
            listen 127.0.0.1:@TLSPORT@ ssl; server_name _;
            location / {
                add_header Cache-Control max-age=60;
                return 200 \"$host [$ssl_server_name] $http_x_forwarded_host $http_x_forwarded_proto\";
            }
            location /moved { return 301 https://api.example/there; }
        }
    }";

#[test]
fn an_https_api_is_verified_and_asked_under_its_own_name() {
    skip_on_nginx!();
    let prefix = Prefix::with_certificate("api.example");
    let (ca, tls) = (prefix.join("server.pem").display().to_string(), ports::free().to_string());
    let _api = Server::start_in(prefix, SECURE_API, &[("TLSPORT", &tls)]);
    let url = format!("https://127.0.0.1:{tls}");
    let name = ["--upstream-name", "api.example"];
    let (port, _process) = serve(&[&[url.as_str(), "--upstream-ca", &ca][..], &name].concat());
    for _ in 0..2 {
        let told = client::get(port, "/").text();
        assert_eq!(
            told, "api.example [api.example] localhost http",
            "its own name, and whom the client asked"
        );
    }
    let moved = client::get(port, "/moved");
    let to = moved.field("location").unwrap_or_default().to_owned();
    assert_eq!((moved.status, to), (301, "/there".to_owned()), "it leads back here");
    // Two URLs share the load under one name, and a certificate that no known authority issued is refused unless all are taken.
    let again = format!("{url}/");
    let (port, _both) = serve(&[&[url.as_str(), &again, "--upstream-ca", &ca][..], &name].concat());
    assert_eq!(client::get(port, "/").status, 200);
    let (port, _unknown) = serve(&[&[url.as_str()][..], &name].concat());
    assert_eq!(client::get(port, "/").status, 502);
    let (port, _wrong) = serve(&[&url, "--upstream-ca", &ca]);
    assert_eq!(client::get(port, "/").status, 502, "the certificate has another name");
    let (port, _any) = serve(&[&url, "--insecure-upstream"]);
    assert_eq!(client::get(port, "/").text(), "localhost []  http", "an address gets the client's Host");
}
