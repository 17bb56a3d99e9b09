//! TLS to upstream servers: names, sessions, kept connections and certificates.

use millstream_tests::application::{Application, Speaks};
use millstream_tests::origin::{Origin, Step};
use millstream_tests::ports;
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use std::io::Write as _;
use std::thread;

const SITE: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log info; worker_processes 1; events {}
    http {
        access_log off;
        ssl_certificate @DIR@/server.pem; ssl_certificate_key @DIR@/server.key;
        upstream behind { server 127.0.0.1:@TLSPORT@; }
        server { listen 127.0.0.1:@TLSPORT@ ssl; server_name _;
            return 200 \"$scheme $host [$ssl_server_name] $connection_requests\"; }
        server {
            listen 127.0.0.1:@PORT@;
            location /address { proxy_pass https://127.0.0.1:@TLSPORT@/; proxy_ssl_server_name on; }
            location /group { proxy_pass https://behind; proxy_ssl_server_name on; }
            location /quiet { proxy_pass https://behind; }
            location /named { proxy_pass https://behind; proxy_ssl_server_name on; proxy_ssl_name $arg_name:443; }
            location /verified { proxy_pass https://behind; proxy_ssl_verify on; proxy_ssl_name api.example;
                proxy_ssl_trusted_certificate @DIR@/other.pem; }
        }
    }";

#[test]
fn an_upstream_is_spoken_to_in_tls_under_the_name_that_is_written() {
    let prefix = Prefix::with_certificate("api.example");
    let other = Prefix::with_certificate("other.example");
    let others = std::fs::read_to_string(other.join("server.pem")).expect("a certificate");
    prefix.write("other.pem", &others);
    let tls = ports::free().to_string();
    let server = Server::start_in(prefix, SITE, &[("TLSPORT", &tls)]);
    for (path, answer) in [
        ("/address", "https 127.0.0.1 [] 1"),
        ("/group", "https behind [behind] 1"),
        // A kept connection is used again for the same name and for no other.
        ("/group", "https behind [behind] 2"),
        ("/quiet", "https behind [] 1"),
        ("/quiet", "https behind [] 2"),
        ("/named?name=a.example", "https behind [a.example] 1"),
        ("/named?name=b.example", "https behind [b.example] 1"),
        ("/named?name=a.example", "https behind [a.example] 2"),
    ] {
        assert_eq!(server.get(path).text(), answer, "{path}");
    }
    assert_eq!(server.get("/verified").status, 502, "the authority is not trusted");
}

const APPLICATIONS: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log info; worker_processes 1; events {}
    http {
        access_log off;
        ssl_certificate @DIR@/server.pem; ssl_certificate_key @DIR@/server.key;
        upstream behind { server 127.0.0.1:@TLSPORT@; }
        server { listen 127.0.0.1:@TLSPORT@ ssl; server_name _; add_header X-Name \"[$ssl_server_name]\" always; }
        server {
            listen 127.0.0.1:@PORT@;
            uwsgi_ssl_server_name on;
            location /group { uwsgi_pass suwsgi://behind; }
            location /address { uwsgi_pass suwsgi://127.0.0.1:@TLSPORT@; }
            location /named { uwsgi_pass suwsgi://behind; uwsgi_ssl_name $arg_name; }
            location /evaluated { set $to behind; uwsgi_pass suwsgi://$to; }
            location /whole { set $to suwsgi://behind; uwsgi_pass $to; }
            location /quiet { uwsgi_pass suwsgi://behind; uwsgi_ssl_server_name off; }
            location /verified { uwsgi_pass suwsgi://behind; uwsgi_ssl_verify on; uwsgi_ssl_name api.example;
                uwsgi_ssl_trusted_certificate @DIR@/other.pem; }
            location /trusted { uwsgi_pass suwsgi://behind; uwsgi_ssl_verify on; uwsgi_ssl_name api.example;
                uwsgi_ssl_trusted_certificate @DIR@/server.pem; }
            location /plain { uwsgi_pass uwsgi://@APPLICATION@; }
            location /plain/evaluated { set $to @APPLICATION@; uwsgi_pass uwsgi://$to; }
        }
    }";

#[test]
fn an_application_server_is_spoken_to_in_tls_under_the_name_that_is_written() {
    let prefix = Prefix::with_certificate("api.example");
    let other = Prefix::with_certificate("other.example");
    let others = std::fs::read_to_string(other.join("server.pem")).expect("a certificate");
    prefix.write("other.pem", &others);
    let application = Application::speaking(Speaks::Uwsgi, |_| b"Status: 200 OK\r\n\r\nplain".to_vec());
    let (tls, port) = (ports::free().to_string(), application.port());
    let values = [("TLSPORT", &*tls), ("APPLICATION", &*format!("127.0.0.1:{port}"))];
    let server = Server::start_in(prefix, APPLICATIONS, &values);
    // What decrypts it is a server of HTTP, which refuses it and says under which name it was asked for.
    for (path, status, name) in [
        ("/group", 400, Some("[behind]")),
        ("/address", 400, Some("[]")),
        ("/named?name=a.example", 400, Some("[a.example]")),
        ("/evaluated", 400, Some("[behind]")),
        ("/whole", 400, Some("[behind]")),
        ("/quiet", 400, Some("[]")),
        ("/trusted", 400, Some("[api.example]")),
        ("/verified", 502, None),
        ("/plain", 200, None),
        ("/plain/evaluated", 200, None),
    ] {
        let answer = server.get(path);
        assert_eq!((answer.status, answer.field("X-Name")), (status, name), "{path}");
    }
}

const MISTAKEN: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; worker_processes 1; events {}
    http {
        access_log off;
        ssl_certificate @DIR@/server.pem; ssl_certificate_key @DIR@/server.key;
        upstream checked { zone checked 64k; server 127.0.0.1:@PORT@; }
        server { listen 127.0.0.1:@TLSPORT@ ssl; return 204; }
        server {
            listen 127.0.0.1:@PORT@;
            location /plain/http { proxy_pass https://127.0.0.1:@PORT@; }
            location /plain/unix { proxy_pass https://unix:@DIR@/plain.sock:/; }
            location /plain/page { proxy_pass https://127.0.0.1:@PAGE@; }
            location /plain/http2 { proxy_pass https://127.0.0.1:@SETTINGS@; }
            location /plain/grpc { grpc_pass grpcs://127.0.0.1:@SETTINGS@; }
            location /plain/uwsgi { uwsgi_pass suwsgi://127.0.0.1:@PORT@; }
            location /other { proxy_pass https://127.0.0.1:@SSH@; }
            location /closed { proxy_pass https://127.0.0.1:@CLOSED@; }
            location /tls/http { proxy_pass http://127.0.0.1:@TLSPORT@; }
            location /tls/alert { proxy_pass http://127.0.0.1:@ALERT@; }
            location /tls/http2 { proxy_pass http://127.0.0.1:@ALERT@; proxy_http_version 2; }
            location /tls/grpc { grpc_pass grpc://127.0.0.1:@ALERT@; }
            location /tls/uwsgi { uwsgi_pass uwsgi://127.0.0.1:@RECORD@; }
            location /bad { proxy_pass http://127.0.0.1:@BAD@; }
            location /checked { proxy_pass https://checked; health_check interval=100ms; }
        }
        server { listen unix:@DIR@/plain.sock; }
    }";

#[test]
fn a_url_whose_scheme_is_the_wrong_one_is_named_in_the_log_where_the_upstreams_bytes_prove_it() {
    skip_on_nginx!();
    let first = |bytes: &'static [u8]| {
        let (listener, port) = ports::listener();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                _ = stream.write_all(bytes);
                thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
            }
        });
        port
    };
    let alert = Origin::start(|_| vec![Step::Send(b"\x15\x03\x01\0\x02\x02\x46".to_vec()), Step::Close]);
    let bad = Origin::fixed(400, &[], b"no plain HTTP request can be without a \"q\"");
    let (closed, tls) = (ports::free(), ports::free());
    let values = [
        ("PAGE", first(b"<!DOCTYPE HTML>\n<html>Error code: 400</html>")),
        ("SETTINGS", first(b"\0\0\0\x04\0\0\0\0\0")),
        ("SSH", first(b"SSH-2.0-OpenSSH_9.9\r\n")),
        ("CLOSED", closed),
        ("TLSPORT", tls),
        ("ALERT", alert.port()),
        ("RECORD", first(b"\x15\x03\x01\0\x02\x02\x46")),
        ("BAD", bad.port()),
    ];
    let values = values.map(|(name, port)| (name, port.to_string()));
    let values: Vec<(&str, &str)> = values.iter().map(|(name, port)| (*name, &**port)).collect();
    let server = Server::start_in(Prefix::with_certificate("api.example"), MISTAKEN, &values);
    for (path, status, hint) in [
        ("/plain/http", 502, Some("plain HTTP on this port; use http://)")),
        ("/plain/unix", 502, Some("plain HTTP on this port; use http://)")),
        ("/plain/page", 502, Some("plain HTTP on this port; use http://)")),
        ("/plain/http2", 502, Some("plain HTTP on this port; use http://)")),
        ("/plain/grpc", 502, Some("plain HTTP on this port; use grpc://)")),
        ("/plain/uwsgi", 502, Some("plain HTTP on this port)")),
        ("/other", 502, None),
        ("/closed", 502, None),
        ("/tls/http", 400, Some("TLS on this port; use https://)")),
        ("/tls/alert", 502, Some("TLS on this port; use https://)")),
        ("/tls/http2", 502, Some("TLS on this port; use https://)")),
        ("/tls/grpc", 502, Some("TLS on this port; use grpcs://)")),
        ("/tls/uwsgi", 502, Some("TLS on this port; use suwsgi://)")),
        ("/bad", 400, None),
    ] {
        assert_eq!(server.get(path).status, status, "{path}");
        let request = format!("request: \"GET {path} HTTP/1.1\"");
        let line = || server.log().lines().find(|line| line.contains(&request)).map(str::to_owned);
        match hint {
            Some(hint) => {
                server.says(&request);
                let line = line().unwrap_or_default();
                assert!(line.contains(&format!(" (the upstream speaks {hint}, client: ")), "{path}: {line}");
            }
            None => {
                let line = line().unwrap_or_default();
                assert!(!line.contains("the upstream speaks"), "{path}: {line}");
            }
        }
    }
    server.says("to upstream (the upstream speaks plain HTTP on this port; use http://), health check ");
}
