//! What holds for some methods only (`limit_except`), and what is stored of a method that is sent as another (`proxy_method`).

use millstream_tests::origin::{Origin, answer};
use millstream_tests::server::Server;
use millstream_tests::wait;

const EXCEPT: &str = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http {
        access_log @DIR@/all.log;
        server {
            listen 127.0.0.1:@PORT@;
            location /read {
                limit_except GET { deny all; }
                proxy_pass http://@ORIGIN@;
            }
            location /write {
                limit_except GET POST {
                    auth_basic closed; auth_basic_user_file @DIR@/users; access_log @DIR@/writes.log;
                }
                add_header X-Place write always;
                proxy_pass http://@ORIGIN@;
            }
            location /elsewhere { limit_except POST { proxy_pass http://@OTHER@; } proxy_pass http://@ORIGIN@; }
            location /script { limit_except GET { allow all; } return 200 script; }
            location /nested { limit_except GET { deny all; } location /nested/open { proxy_pass http://@ORIGIN@; } }
            location /page { error_page 403 = @named; limit_except GET { deny all; } proxy_pass http://@ORIGIN@; }
            location @named { limit_except GET { proxy_pass http://@OTHER@; } proxy_pass http://@ORIGIN@; }
        }
    }";

#[test]
fn a_limit_except_holds_for_all_methods_that_it_does_not_name() {
    let (origin, other) = (Origin::fixed(200, &[], b"usual"), Origin::fixed(200, &[], b"other"));
    let server = Server::start(EXCEPT, &[("ORIGIN", &origin.address()), ("OTHER", &other.address())]);
    server.prefix().write("users", "ann:{PLAIN}secret");
    for (method, path, status, body) in [
        ("GET", "/read", 200, "usual"),
        ("HEAD", "/read", 200, ""),
        ("POST", "/read", 403, "403"),
        ("ODD", "/read", 403, "403"),
        ("GET", "/write", 200, "usual"),
        ("POST", "/write", 200, "usual"),
        ("PUT", "/write", 401, "401"),
        ("POST", "/elsewhere", 200, "usual"),
        ("GET", "/elsewhere", 200, "other"),
        ("GET", "/script", 200, "script"),
        ("PUT", "/script", 405, "405"),
        ("POST", "/nested", 403, "403"),
        ("POST", "/nested/open", 200, "usual"),
        ("POST", "/page", 200, "other"),
    ] {
        let answer = server.request(method, path, &[]);
        assert_eq!(answer.status, status, "{method} {path}");
        assert!(answer.text().contains(body), "{method} {path}: {}", answer.text());
        assert_eq!(answer.field("x-place").is_some(), path == "/write", "{method} {path}");
    }
    let fields = [("Authorization", "Basic YW5uOnNlY3JldA==")];
    assert_eq!(server.request("PUT", "/write", &fields).text(), "usual");
    wait::until("a log of its own", || server.prefix().read("writes.log").matches("PUT /write").count() == 2);
    assert!(!server.prefix().read("all.log").contains("PUT /write"));
}

#[test]
fn a_response_is_stored_for_the_method_of_the_client_whatever_is_sent_in_its_place() {
    let origin = Origin::start(|request| {
        let method = request.head.split(' ').next().unwrap_or_default();
        answer(200, &[("Cache-Control", "max-age=60")], &[method.as_bytes(), b" ", &request.body].concat())
    });
    let server = Server::start(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http { access_log off; proxy_cache_path @DIR@/cache keys_zone=z:1m;
            server { listen 127.0.0.1:@PORT@; proxy_cache z; proxy_cache_key $uri$arg_q; add_header X-Cache $upstream_cache_status;
                location /query { proxy_method POST; proxy_set_body <$arg_q>; proxy_pass http://@ORIGIN@; }
                location /read { proxy_method GET; proxy_pass http://@ORIGIN@; } } }",
        &[("ORIGIN", &origin.address())],
    );
    for (method, path, cache, text) in [
        ("GET", "/query?q=a", "MISS", "POST <a>"),
        ("GET", "/query?q=a", "HIT", "POST <a>"),
        ("GET", "/query?q=b", "MISS", "POST <b>"),
        ("HEAD", "/query?q=a", "HIT", ""),
        ("POST", "/query?q=a", "-", "POST <a>"),
        ("GET", "/query?q=a", "MISS", "POST <a>"),
        ("POST", "/read", "-", "GET "),
        ("GET", "/read", "MISS", "GET "),
        ("GET", "/read", "HIT", "GET "),
    ] {
        let mut client = server.client();
        let length = if method == "POST" { "Content-Length: 0\r\n" } else { "" };
        client.send(format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{length}\r\n")).expect("sent");
        let got = client.answer_to(method).expect("an answer");
        let told = (got.field("x-cache").unwrap_or("-"), got.text());
        assert_eq!(told, (cache, text.to_owned()), "{method} {path}");
    }
}
