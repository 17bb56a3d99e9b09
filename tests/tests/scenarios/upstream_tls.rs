//! TLS to upstream servers: names, sessions, kept connections and certificates.

use millstream_tests::application::{Application, Speaks};
use millstream_tests::ports;
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;

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
