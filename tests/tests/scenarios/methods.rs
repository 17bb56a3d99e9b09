//! What holds for some methods only: `limit_except`.

use millstream_tests::origin::Origin;
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
    std::fs::write(server.prefix().join("users"), "ann:{PLAIN}secret").expect("own directory");
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
        let answer = server.client().request(method, path, &[]).expect("an answer");
        assert_eq!(answer.status, status, "{method} {path}");
        assert!(answer.text().contains(body), "{method} {path}: {}", answer.text());
        assert_eq!(answer.field("x-place").is_some(), path == "/write", "{method} {path}");
    }
    let fields = [("Authorization", "Basic YW5uOnNlY3JldA==")];
    assert_eq!(server.client().request("PUT", "/write", &fields).expect("an answer").text(), "usual");
    wait::until("a log of its own", || server.prefix().read("writes.log").matches("PUT /write").count() == 2);
    assert!(!server.prefix().read("all.log").contains("PUT /write"));
}
