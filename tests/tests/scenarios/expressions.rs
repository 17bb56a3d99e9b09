//! Regular expressions in configurations: they match what they match in nginx, and one that cannot be decided lets nobody in.

use std::process::{Command, Stdio};

use millstream_tests::origin::{Origin, answer};
use millstream_tests::ports;
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
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
            location ~ "^/x/(?:a|aa)+(?![bc])c?(?:\.git|\.hg)$" { return 403; }
        }
        server {
            listen 127.0.0.1:@PORT@;
            server_name "~^(?:a|aa)+(?![bc])c?\.example$";
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
    skip_on_nginx!("it closes the connection where it cannot tell the server");
    let answer = server.get_with("/", &[("Host", &format!("{long}c.example"))]);
    assert_eq!(answer.status, 500);
}

/// Each expression comes before one that matches everything.
const UNDECIDED: &str = r#"pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http {
        access_log off;
        server {
            listen 127.0.0.1:@PORT@;
            location / {
                proxy_pass http://@ORIGIN@;
                proxy_redirect "~^http://internal/(?:a|aa)+(?![bc])c?(?:\.git|\.hg)$" http://hidden/;
                proxy_redirect ~^http://internal/(.*)$ http://public/$1;
            }
        }
        server {
            listen 127.0.0.1:@TLS@ ssl default_server;
            ssl_certificate @DIR@/server.pem; ssl_certificate_key @DIR@/server.key;
            return 200 "the default one";
        }
        server {
            listen 127.0.0.1:@TLS@ ssl;
            server_name "~^(?:a|aa)+(?![bc])c?\.example$";
            ssl_certificate @DIR@/server.pem; ssl_certificate_key @DIR@/server.key;
            return 200 "by name";
        }
    }"#;

#[test]
fn a_redirect_that_an_expression_cannot_decide_about_reveals_nothing() {
    let origin = Origin::start(|request| {
        let location = format!("http://internal{}", request.target());
        answer(302, &[("Location", &location)], b"")
    });
    let prefix = Prefix::with_certificate("localhost");
    let tls = ports::free().to_string();
    let server = Server::start_in(prefix, UNDECIDED, &[("ORIGIN", &origin.address()), ("TLS", &tls)]);
    assert_eq!(server.get("/aaa.git").field("location"), Some("http://hidden/"));
    assert_eq!(server.get("/aaa.svn").field("location"), Some("http://public/aaa.svn"));
    let answer = server.get(&format!("/{}c.git", "a".repeat(60)));
    assert_eq!((answer.status, answer.field("location")), (500, None), "{}", answer.head);
    wait::until("the error log says why", || {
        server.log().lines().any(|line| line.contains("[alert]") && line.contains("backtracking"))
    });
}

#[test]
fn a_name_that_an_expression_cannot_decide_about_gets_no_certificate() {
    let origin = Origin::fixed(200, &[], b"");
    let port = ports::free();
    let values = [("ORIGIN", origin.address()), ("TLS", port.to_string())];
    let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
    let _server = Server::start_in(Prefix::with_certificate("localhost"), UNDECIDED, &values);
    let shake_hands = |name: &str| {
        let output = Command::new("openssl")
            .args(["s_client", "-connect", &format!("127.0.0.1:{port}"), "-servername", name])
            .stdin(Stdio::null())
            .output()
            .expect("openssl is installed");
        String::from_utf8_lossy(&output.stdout).contains("BEGIN CERTIFICATE")
    };
    assert!(shake_hands("aaa.example") && shake_hands("other.example"));
    assert!(!shake_hands(&format!("{}c.example", "a".repeat(50))), "nobody knows whose certificate it is");
}
