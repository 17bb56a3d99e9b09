//! Regular expressions in configurations: they match what they match in nginx, and one that cannot be decided lets nobody in.

use millstream_tests::server::{Server, is_nginx};
use millstream_tests::wait;

const SITE: &str = r#"pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http {
        access_log off; default_type text/plain;
        server {
            listen 127.0.0.1:@PORT@;
            location / { return 200 "none"; }
            location ~ ^/vertical/\v$ { return 200 "it"; }
            location ~ "^/letter/\p{L}$" { return 200 "it"; }
            location ~ ^/octal/\101$ { return 200 "it"; }
            location ~ ^/character/\X$ { return 200 "it"; }
            location ~ ^/control/\cA$ { return 200 "it"; }
            location ~ ^/blank/\h$ { return 200 "it"; }
            location ~ ^/repeated/é+$ { return 200 "it"; }
            location ~ ^/class/[é]$ { return 200 "it"; }
            location ~ (?J)^/same/(?:(?<v>a)|(?<v>b))$ { return 200 "[$v]"; }
            location ~ ^/again/(a)\g1$ { return 200 "it"; }
            location ~ ^/call/(?<n>a|b)(?&n)$ { return 200 "it $n"; }
            location ~ ^/line/\R$ { return 200 "it"; }
            location ~ ^/x/(?:a|aa)+(?!b)(?:\.git|\.hg)$ { return 403; }
        }
        server {
            listen 127.0.0.1:@PORT@;
            server_name "~^(?:a|aa)+(?!b)\.example$";
            return 200 "by name";
        }
    }"#;

#[test]
fn expressions_are_of_bytes_and_have_what_pcre_has() {
    let server = Server::start(SITE, &[]);
    let mut client = server.client();
    for (path, expected) in [
        ("/vertical/%0a", "it"),
        ("/vertical/%0b", "it"),
        ("/vertical/%85", "it"),
        ("/vertical/x", "none"),
        ("/letter/%e9", "it"),
        ("/letter/x", "it"),
        ("/letter/%d7", "none"),
        ("/octal/A", "it"),
        ("/character/%e9", "it"),
        ("/character/%0d%0a", "it"),
        ("/control/%01", "it"),
        ("/blank/%a0", "it"),
        ("/repeated/%c3%a9%a9", "it"),
        ("/repeated/%c3%a9%c3%a9", "none"),
        ("/class/%a9", "it"),
        ("/class/%c3%a9", "none"),
        ("/same/b", "[b]"),
        ("/again/aa", "it"),
        ("/call/ab", "it a"),
        ("/line/%0d%0a", "it"),
        ("/line/%85", "it"),
    ] {
        assert_eq!(client.get(path).expect("an answer").text(), expected, "{path}");
    }
}

#[test]
fn an_expression_that_reaches_its_limit_is_an_error_and_never_no_match() {
    let server = Server::start(SITE, &[]);
    assert_eq!(server.get("/x/aaa.git").status, 403);
    assert_eq!(server.get("/x/aaa.svn").text(), "none");
    let long = "a".repeat(60);
    assert_eq!(server.get(&format!("/x/{long}c.git")).status, 500);
    wait::until("the error log says why", || {
        server.log().lines().any(|line| line.contains("[alert]") && line.contains("GET /x/aaa"))
    });
    if is_nginx() {
        return; // It closes the connection where it cannot tell the server.
    }
    let answer = server.get_with("/", &[("Host", &format!("{long}c.example"))]);
    assert_eq!(answer.status, 500);
}
