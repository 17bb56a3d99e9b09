//! `millstream bench --http2` against a real server: what is measured, and what a server without HTTP/2 is told.

use crate::{bench, millstream};
use millstream_tests::origin::Origin;
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use millstream_tests::{ports, wait};
use rustix::process::Signal;
use serde_json::Value;
use std::process::Stdio;

fn measured(arguments: &[&str]) -> Value {
    let (status, told, complained) = bench(&[&["-k", "--http2", "--json", "-"], arguments].concat());
    assert_eq!(status, 0, "{told}{complained}");
    serde_json::from_str(&told).expect("it is JSON")
}

fn errors(outcome: &Value) -> u64 {
    let errors = outcome["counts"]["errors"].as_object().expect("they are counted");
    errors.values().filter_map(Value::as_u64).sum()
}

const SITE: &str = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events { }
    http {
        access_log off; proxy_cache_path memory keys_zone=z:1m memory=16m; proxy_cache_valid 200 1h;
        ssl_certificate @DIR@/server.pem; ssl_certificate_key @DIR@/server.key;
        server {
            listen 127.0.0.1:@PORT@; listen 127.0.0.1:@TLS@ ssl; http2 on; http2_max_concurrent_streams 3;
            keepalive_requests 100;
            location / { return 200 hello; }
            location /kept { proxy_pass http://@ORIGIN@; proxy_cache z; }
            location /passed { proxy_pass http://@ORIGIN@; }
        }
        server { listen 127.0.0.1:@OLD@; listen 127.0.0.1:@OLDTLS@ ssl; location / { return 200 old; } }
    }";

/// The ports: TLS, and without HTTP/2 plain and TLS.
fn start(origin: &Origin) -> (Server, [u16; 3]) {
    let ports = [ports::free(), ports::free(), ports::free()];
    let [tls, old, old_tls] = ports.map(|port| port.to_string());
    let address = origin.address().to_string();
    let values = [("TLS", tls.as_str()), ("OLD", &old), ("OLDTLS", &old_tls), ("ORIGIN", &address)];
    (Server::start_in(Prefix::with_certificate("localhost"), SITE, &values), ports)
}

#[test]
fn hits_misses_and_posts_are_answered_plain_and_over_tls_and_fewer_streams_are_said() {
    let origin = Origin::fixed(200, &[], b"hello");
    let (server, [tls, ..]) = start(&origin);
    let plain = format!("http://127.0.0.1:{}", server.port());
    let secure = format!("https://127.0.0.1:{tls}");
    let file = server.prefix().write("body", "b".repeat(200_000));
    let body = format!("@{}", file.display());
    for base in [&plain, &secure] {
        for (path, more) in
            [("/kept", &[][..]), ("/passed", &[]), ("/passed", &["-b", &body]), ("/kept", &["--rate", "500"])]
        {
            let url = format!("{base}{path}");
            let run = ["-n", "200", "-c", "2", "-m", "20", "--same-body", &url];
            let outcome = measured(&[&run[..], more].concat());
            assert_eq!(
                (errors(&outcome), outcome["counts"]["answers"].as_u64()),
                (0, Some(200)),
                "{outcome}"
            );
            assert_eq!(outcome["pipeline"].as_u64(), Some(20));
            assert_eq!(outcome["http2"]["allowed"].as_u64(), Some(3));
        }
    }
    assert!(origin.requests().iter().any(|request| request.field("content-length") == Some("200000")));
    let (_, told, _) = bench(&["--http2", "-m", "20", "-n", "50", &plain]);
    assert!(told.contains("HTTP/2 with 20 streams each") && told.contains("allows 3 of the 20"), "{told}");
}

#[test]
fn a_server_without_http_2_is_said_to_be_one() {
    let origin = Origin::fixed(200, &[], b"hello");
    let (_server, [_, old, old_tls]) = start(&origin);
    for url in [format!("http://127.0.0.1:{old}/"), format!("https://127.0.0.1:{old_tls}/")] {
        let (status, told, complained) = bench(&["--http2", "-n", "10", &url]);
        assert_eq!((status, told.as_str()), (1, ""), "{complained}");
        assert!(complained.contains("HTTP/2"), "{complained}");
    }
}

#[test]
fn a_reload_under_load_loses_no_request() {
    let origin = Origin::fixed(200, &[], b"hello");
    let (server, _) = start(&origin);
    let url = format!("http://127.0.0.1:{}/passed", server.port());
    let mut command = millstream();
    command.args(["bench", "-q", "--http2", "--json", "-", "-c", "8", "-m", "3", "-d", "2s", &url]);
    let load = command.stdout(Stdio::piped()).spawn().expect("the binary runs");
    for reached in [500, 1000, 1500] {
        wait::until("requests come", || origin.count() > reached);
        server.signal(Signal::HUP);
    }
    let told = load.wait_with_output().expect("it ends by itself").stdout;
    let outcome: Value = serde_json::from_slice(&told).expect("it is JSON");
    assert_eq!(errors(&outcome), 0, "{outcome}");
    assert!(outcome["http2"]["going_away"].as_u64() > Some(0), "{outcome}");
}

#[test]
fn streams_are_for_http_2_and_bounded() {
    for (arguments, words) in [
        (&["-m", "20", "http://127.0.0.1:1/"][..], "add --http2"),
        (
            &["--http2", "-m", "5000", "-n", "9", "-c", "1", "http://127.0.0.1:1/"],
            "more than the maximum of 1000",
        ),
    ] {
        let (status, _, complained) = bench(arguments);
        assert_eq!(status, 1, "{complained}");
        assert!(complained.contains(words), "{complained}");
    }
}
