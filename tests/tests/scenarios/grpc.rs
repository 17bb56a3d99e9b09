//! `grpc_pass` with a server and a client that others wrote: calls of all kinds, many at a time, failures, reloads.

use millstream_tests::grpc::{GrpcCaller, GrpcServer, asked};
use millstream_tests::ports;
use millstream_tests::prefix::Prefix;
use millstream_tests::server::{Server, is_nginx};
use millstream_tests::wait;
use rustix::process::Signal;
use serde_json::json;

const SITE: &str = "worker_processes 2; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events { worker_connections 4096; }
    http {
        access_log @DIR@/access.log; client_max_body_size 0; http2_max_concurrent_streams 1024;
        upstream judges { server 127.0.0.1:@BACK@ max_fails=0; server 127.0.0.1:@DEAD@ backup; }
        server { listen 127.0.0.1:@PORT@; http2 on; location / { grpc_pass grpc://judges; } }
        server { listen 127.0.0.1:@ALONE@; http2 on; location / { grpc_pass 127.0.0.1:@DEAD@; } }
    }";

struct Site {
    server: Server,
    values: Vec<(&'static str, String)>,
    _judge: GrpcServer,
}

impl Site {
    fn start(options: &[&str]) -> Site {
        let judge = GrpcServer::start(options);
        let mut values = vec![("BACK", judge.port().to_string())];
        values.extend(["DEAD", "ALONE"].map(|name| (name, ports::free().to_string())));
        let server = Server::start_in(Prefix::new(), SITE, &borrowed(&values));
        Site { server, values, _judge: judge }
    }

    /// How many calls were answered.
    fn calls(&self) -> usize {
        let log = std::fs::read_to_string(self.server.prefix().join("access.log"));
        log.unwrap_or_default().lines().count()
    }

    fn port(&self, name: &str) -> u16 {
        let value = self.values.iter().find(|(known, _)| *known == name);
        value.and_then(|(_, port)| port.parse().ok()).expect("a port")
    }
}

fn borrowed<'v>(values: &'v [(&'static str, String)]) -> Vec<(&'v str, &'v str)> {
    values.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

#[test]
fn calls_of_all_kinds_pass_with_their_metadata() {
    if is_nginx() {
        return;
    }
    let site = Site::start(&[]);
    let expected = json!({ "unary": "hello", "initial": "first", "last": "by a client", "raw": true, "large": 3_000_000,
        "down": [3000, "3000", "1"], "counted": "2000" });
    assert_eq!(asked(site.server.port(), &["kinds"]), expected);
}

#[test]
fn a_thousand_streams_talk_at_once_also_with_a_server_that_takes_few_on_a_connection() {
    if is_nginx() {
        return;
    }
    for options in [&[][..], &["grpc.max_concurrent_streams=20"]] {
        let site = Site::start(options);
        assert_eq!(asked(site.server.port(), &["many", "1000"]), json!({ "whole": 1000 }), "{options:?}");
    }
}

#[test]
fn what_goes_wrong_is_told_in_the_words_of_grpc() {
    if is_nginx() {
        return;
    }
    let site = Site::start(&[]);
    let told = asked(site.server.port(), &["errors"]);
    assert_eq!(told["fail"], json!(["NOT_FOUND", "nö such thing"]), "{told}");
    assert_eq!(told["unknown"][0], "UNIMPLEMENTED", "{told}");
    assert_eq!(told["late"][0], "DEADLINE_EXCEEDED", "{told}");
    assert!(told["took"].as_f64().is_some_and(|took| took < 15.0), "{told}");
    let told = asked(site.port("ALONE"), &["errors"]);
    assert_eq!(told["fail"], json!(["UNAVAILABLE", "502 Bad Gateway"]), "{told}");
    let log = std::fs::read_to_string(site.server.prefix().join("access.log")).unwrap_or_default();
    assert!(log.contains("POST /judge.Judge/Fail HTTP/2.0\" 502"), "{log}");
}

#[test]
fn no_call_is_lost_over_ten_reloads() {
    if is_nginx() {
        return;
    }
    let site = Site::start(&[]);
    let caller = GrpcCaller::start(site.server.port());
    for number in 0..10 {
        let marked = SITE.replace("max_fails=0", &format!("max_fails={number}"));
        site.server.rewrite(&marked, &borrowed(&site.values));
        site.server.signal(Signal::HUP);
        let reloaded = || site.server.log().matches(" is in force").count() > number;
        wait::until("the configuration is read", reloaded);
        let before = site.calls();
        wait::until("calls go on", || site.calls() >= before + 20);
    }
    let (made, lost) = caller.end();
    assert_eq!(lost, json!([]), "of {made}");
    assert!(made > 100, "{made}");
}
