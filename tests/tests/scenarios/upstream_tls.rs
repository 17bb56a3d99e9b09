//! TLS to upstream servers: names, sessions, kept connections and certificates.

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
