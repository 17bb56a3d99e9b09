//! HTTP/2 to clients: how it is agreed on, what requests tell of it, and who does not get it.
//!
//! What bodies, floods, clients and ends of connections come to is in the files below.

mod clients;
mod downloads;
mod ends;
mod floods;
mod interplay;
mod malformed;
mod odd;
mod uploads;
mod websockets;

use std::process::Command;

use millstream_tests::frames::{End, Frames};
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use millstream_tests::{client, ports, wait};

const SITE: &str = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events { }
    http {
        log_format seen '$server_protocol|$http2|$ssl_alpn_protocol|$request';
        access_log @DIR@/access.log; access_log @DIR@/seen.log seen;
        ssl_certificate @DIR@/server.pem; ssl_certificate_key @DIR@/server.key;
        server {
            listen 127.0.0.1:@PORT@; listen 127.0.0.1:@TLS@ ssl; server_name a; http2 on;
            location / { return 200 \"$server_protocol|$http2|$ssl_alpn_protocol|$scheme\"; }
            location /length { return 200 $request_length; }
        }
        server { listen 127.0.0.1:@PORT@; server_name b; location / { return 200 b; } }
        server { listen 127.0.0.1:@OLD@ ssl http2; location / { return 200 $server_protocol; } }
        server { listen 127.0.0.1:@NEITHER@ ssl; location / { return 200 $server_protocol; } }
    }";

/// The ports for TLS: with `http2 on`, with `listen … http2`, with neither.
fn start() -> (Server, [u16; 3]) {
    let ports = [ports::free(), ports::free(), ports::free()];
    let [tls, old, neither] = ports.map(|port| port.to_string());
    let values = [("TLS", tls.as_str()), ("OLD", &old), ("NEITHER", &neither)];
    (Server::start_in(Prefix::with_certificate("localhost"), SITE, &values), ports)
}

fn curl(arguments: &[&str]) -> String {
    let output = Command::new("curl").args(["-sk", "--max-time", "20"]).args(arguments).output();
    String::from_utf8_lossy(&output.expect("curl is installed").stdout).into_owned()
}

#[test]
fn it_is_agreed_on_where_the_file_says_so_and_nowhere_else() {
    skip_on_nginx!();
    let (server, [tls, old, neither]) = start();
    let url = |scheme: &str, port: u16| format!("{scheme}://127.0.0.1:{port}/");
    let plain = url("http", server.port());
    for (arguments, url, expected) in [
        (["--http2", "-f"], url("https", tls), "HTTP/2.0|h2|h2|https"),
        (["--http1.1", "-f"], url("https", tls), "HTTP/1.1||http/1.1|https"),
        (["--no-alpn", "-f"], url("https", tls), "HTTP/1.1|||https"),
        (["--http2", "-f"], url("https", old), "HTTP/2.0"),
        (["--http2", "-f"], url("https", neither), "HTTP/1.1"),
        (["--http2-prior-knowledge", "-f"], plain.clone(), "HTTP/2.0|h2c||http"),
        // An upgrade is not answered (RFC 9113 §3.1), and the request is served as it stands.
        (["--http2", "-f"], plain.clone(), "HTTP/1.1|||http"),
        (["--http1.1", "-f"], plain, "HTTP/1.1|||http"),
    ] {
        assert_eq!(curl(&[&arguments[..], &[&url]].concat()), expected, "{arguments:?} {url}");
    }
    wait::until("the log has all that it saw", || {
        let seen = server.prefix().read("seen.log");
        seen.lines().filter(|line| *line == "HTTP/2.0|h2|h2|GET / HTTP/2.0").count() == 2
            && server.prefix().read("access.log").matches("\"GET / HTTP/2.0\" 200").count() == 3
    });
}

#[test]
fn one_port_has_clients_of_both_and_a_server_without_it_sends_them_elsewhere() {
    skip_on_nginx!();
    let (server, _) = start();
    let mut frames = Frames::connect(server.port());
    let mut old = server.client();
    assert_eq!(old.get("/").expect("an answer").text(), "HTTP/1.1|||http");
    assert_eq!(frames.whole("/").text(), "HTTP/2.0|h2c||http");
    let number = frames.take_number();
    let lines = [(":method", "GET"), (":scheme", "http"), (":authority", "b"), (":path", "/")];
    frames.send(&millstream_tests::frames::headers(number, &millstream_tests::frames::block(&lines)));
    let answer = frames.answer(number);
    assert_eq!((answer.status, answer.end), (421, End::Whole));
    assert_eq!(frames.whole("/").status, 200, "the connection goes on");
    assert_eq!(client::get_with(server.port(), "/", &[("Host", "b")]).text(), "b");
}

#[test]
fn the_length_of_a_request_is_what_its_header_block_has_on_the_wire() {
    skip_on_nginx!();
    let (server, _) = start();
    let mut frames = Frames::connect(server.port());
    let block = millstream_tests::frames::request("GET", "/length", &[]);
    let length: usize = frames.whole("/length").text().parse().expect("a number");
    assert!((block.len()..=block.len() + 9).contains(&length), "{length} of {}", block.len());
}
