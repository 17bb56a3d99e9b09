//! gRPC as its own libraries speak it: `grpc_pass` between clients and servers in Go and in Python, which judge what they get.
//!
//! All of it holds for nginx too, but where a test says otherwise (`MILLSTREAM_BINARY`). What servers do to calls is in `grpc/servers`,
//! many calls at once in `grpc/crowds`.

mod crowds;
mod servers;

use std::path::Path;

use millstream_tests::judges::{JudgeServer, approve, judged, judged_by_python};
use millstream_tests::ports;
use millstream_tests::prefix::Prefix;
use millstream_tests::server::{Server, is_nginx};

const SITE: &str =
    "worker_processes 2; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events { worker_connections 8192; }
    http {
        access_log @DIR@/access.log; client_max_body_size 0; http2_max_concurrent_streams 2000; keepalive_requests 1000000;
        ssl_certificate @DIR@/server.pem; ssl_certificate_key @DIR@/server.key;
        upstream judges { @SERVERS@ keepalive 64; }
        server {
            listen 127.0.0.1:@PORT@ http2; listen 127.0.0.1:@TLS@ ssl http2;
            location / { grpc_pass @SCHEME@://judges; }
            location = /generation { return 200 @GENERATION@; }
        }
        server {
            listen 127.0.0.1:@ODD@ http2; underscores_in_headers on; ignore_invalid_headers off;
            location / { grpc_pass @SCHEME@://judges; }
        }
    }";

struct Proxy {
    server: Server,
    servers: String,
    scheme: &'static str,
    tls: u16,
    odd: u16,
}

impl Proxy {
    /// `servers` are lines of an `upstream`.
    fn before(servers: String, scheme: &'static str) -> Proxy {
        let (tls, odd) = (ports::free(), ports::free());
        let (tls_port, odd_port) = (tls.to_string(), odd.to_string());
        let values =
            [("SERVERS", servers.as_str()), ("SCHEME", scheme), ("TLS", &tls_port), ("ODD", &odd_port)];
        let values = [&values[..], &[("GENERATION", "0")]].concat();
        let server = Server::start_in(Prefix::with_certificate("localhost"), SITE, &values);
        Proxy { server, servers, scheme, tls, odd }
    }

    fn of(server: &JudgeServer) -> Proxy {
        Proxy::before(format!("server {};", server.address()), "grpc")
    }

    fn rewrite(&self, generation: usize) {
        let (tls, odd, generation) = (self.tls.to_string(), self.odd.to_string(), generation.to_string());
        let values =
            [("SERVERS", self.servers.as_str()), ("SCHEME", self.scheme), ("TLS", &tls), ("ODD", &odd)];
        self.server.rewrite(SITE, &[&values[..], &[("GENERATION", &generation)]].concat());
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.server.port())
    }

    fn tls_address(&self) -> String {
        format!("127.0.0.1:{}", self.tls)
    }

    fn certificate(&self) -> String {
        self.server.prefix().join("server.pem").display().to_string()
    }
}

fn approve_all(about: &str, options: &[&str], subcommands: &[&str], address: &str) {
    for subcommand in subcommands {
        let words: Vec<&str> = subcommand.split(' ').collect();
        approve(
            &format!("{about}: {subcommand}"),
            &judged(&[options, words.as_slice(), &[address]].concat()),
        );
    }
}

const KINDS: &[&str] = &["unary", "streams", "metadata", "large"];

#[test]
fn the_judges_find_no_fault_with_each_other_where_nothing_is_between_them() {
    let Some(go) = JudgeServer::go(&[]) else { return };
    let python = JudgeServer::python(&[]);
    approve_all("Go of Go", &[], KINDS, &go.address());
    approve_all("Go of Go", &[], &["errors", "deadline", "cancel", "metadata -odd"], &go.address());
    approve_all("Go of Go", &[], &["many -n 1000", "slow", "hold"], &go.address());
    approve_all("Go of Python", &[], KINDS, &python.address());
    approve("Python of Go", &judged_by_python(&[&go.address()]));
    approve("Python of Python", &judged_by_python(&[&python.address()]));
    assert_eq!(go.end()["most"], 1000);
}

#[test]
fn calls_and_streams_of_all_kinds_pass_between_go_and_python() {
    let Some(go) = JudgeServer::go(&[]) else { return };
    for (about, server) in [("Go", go), ("Python", JudgeServer::python(&[]))] {
        let proxy = Proxy::of(&server);
        approve_all(&format!("Go of {about}"), &[], KINDS, &proxy.address());
        approve_all(&format!("Go of {about}, over TLS"), &["-tls"], KINDS, &proxy.tls_address());
        approve(&format!("Python of {about}"), &judged_by_python(&[&proxy.address()]));
        let secured = ["--authority", &proxy.certificate(), &proxy.tls_address()];
        approve(&format!("Python of {about}, over TLS"), &judged_by_python(&secured));
    }
}

#[test]
fn servers_behind_tls_are_asked_over_it() {
    let pair = Prefix::with_certificate("localhost");
    let (certificate, key) = (pair.join("server.pem"), pair.join("server.key"));
    let named = |path: &Path| path.display().to_string();
    let Some(go) = JudgeServer::go(&["-cert", &named(&certificate), "-key", &named(&key)]) else { return };
    for (about, server) in [("Go", go), ("Python", JudgeServer::python(&[&certificate, &key]))] {
        let proxy = Proxy::before(format!("server {};", server.address()), "grpcs");
        approve_all(&format!("Go of {about}"), &[], KINDS, &proxy.address());
        approve_all(&format!("Go of {about}, TLS on both sides"), &["-tls"], KINDS, &proxy.tls_address());
        approve(&format!("Python of {about}"), &judged_by_python(&[&proxy.address()]));
    }
}

#[test]
fn codes_and_messages_of_any_alphabet_arrive_as_they_were_sent() {
    let Some(go) = JudgeServer::go(&[]) else { return };
    let proxy = Proxy::of(&go);
    approve("in clear", &judged(&["errors", &proxy.address()]));
    approve("over TLS", &judged(&["-tls", "errors", &proxy.tls_address()]));
}

#[test]
fn deadlines_reach_the_server_and_calls_given_up_end_there() {
    let Some(go) = JudgeServer::go(&[]) else { return };
    let proxy = Proxy::of(&go);
    approve("deadlines", &judged(&["deadline", &proxy.address()]));
    approve("deadlines over TLS", &judged(&["-tls", "deadline", &proxy.tls_address()]));
    approve("calls given up", &judged(&["cancel", &proxy.address()]));
}

#[test]
fn metadata_with_unusual_names_passes_where_the_file_lets_it() {
    let Some(go) = JudgeServer::go(&[]) else { return };
    let proxy = Proxy::of(&go);
    approve("let through", &judged(&["metadata", "-odd", &format!("127.0.0.1:{}", proxy.odd)]));
    let kept = judged(&["metadata", "-odd", &proxy.address()]);
    let names = ["under_score", "with.dot"];
    let wrong = kept["wrong"].as_array().map_or(0, Vec::len);
    assert_eq!((wrong, names.iter().all(|name| kept.to_string().contains(name))), (2, true), "{kept}");
}

#[test]
fn where_no_server_answers_clients_hear_that_it_is_unavailable() {
    if millstream_tests::judges::programs().is_none() {
        return;
    }
    let proxy = Proxy::before(format!("server 127.0.0.1:{};", ports::free()), "grpc");
    for address in [["down", &proxy.address()].to_vec(), ["-tls", "down", &proxy.tls_address()].to_vec()] {
        let told = judged(&address);
        assert_eq!((&told["code"], &told["stream"]), (&14.into(), &14.into()), "{told}");
        let message = told["message"].as_str().unwrap_or_default();
        // nginx answers with its page, and its clients make that status of 502.
        assert!(!message.is_empty() && (is_nginx() || message == "502 Bad Gateway"), "{told}");
    }
    let log = proxy.server.prefix().read("access.log");
    assert!(log.contains(" HTTP/2.0\" 502 "), "{log}");
}
