//! Who is let in: by address, and what that guards.

use millstream_tests::origin::Origin;
use millstream_tests::server::{Server, is_nginx};
use rustix::process::Signal;

const GUARDED: &str = site! {
    main "worker_processes 2;"
    http "proxy_cache_path @DIR@/cache keys_zone=answers:1m;
        proxy_cache_valid 1h;"
    server "location / { proxy_pass http://@ORIGIN@; proxy_cache answers; @RULES@ }
        location /file/ { root @DIR@; @RULES@ }
        location /inherits/ {
            @RULES@
            location /inherits/own/ { proxy_pass http://@ORIGIN@; allow all; }
            location /inherits/same/ { proxy_pass http://@ORIGIN@; }
        }
        location /page/ { error_page 403 /refused; proxy_pass http://@ORIGIN@; @RULES@ }
        location = /refused { return 200 \"you may not\"; }
        location /returns { return 200 \"before the check\"; @RULES@ }
        @MORE@"
};

const API: &str = "location /api { api write=on; @RULES@ }
    location /purge { proxy_cache_purge answers $arg_key; proxy_cache_purge_allow all; @RULES@ }";

fn values<'a>(origin: &'a str, rules: &'a str, more: &'a str) -> [(&'a str, &'a str); 3] {
    [("ORIGIN", origin), ("MORE", more), ("RULES", rules)]
}

#[test]
fn deny_guards_what_is_stored_and_files_and_the_api_as_much_as_what_is_passed_on() {
    let origin = Origin::fixed(200, &[], b"secret");
    let address = origin.address();
    let more = if is_nginx() { "" } else { API };
    let server = Server::start(GUARDED, &values(&address, "allow 127.0.0.1;", more));
    server.prefix().write("file/a", "secret");
    let mut paths = vec!["/stored", "/file/a", "/inherits/same/a"];
    paths.extend((!is_nginx()).then_some("/api/"));
    for path in &paths {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    let asked = origin.count();
    // Every worker has what is stored at hand before nobody may have it any more.
    for _ in 0..8 {
        assert_eq!(server.get("/stored").status, 200);
    }
    assert_eq!(origin.count(), asked, "it is stored");
    server.rewrite(GUARDED, &values(&address, "allow 192.0.2.0/24; deny all;", more));
    server.signal(Signal::HUP);
    millstream_tests::wait::until("the rules are in force", || server.get("/not-stored").status == 403);
    paths.extend((!is_nginx()).then_some("/purge?key=/stored"));
    for path in paths {
        let answer = server.get(path);
        assert_eq!((answer.status, answer.text().contains("secret")), (403, false), "{path}");
    }
    assert_eq!(server.get("/inherits/own/a").status, 200, "a level with rules has none of the level above");
    assert_eq!(server.get("/page/a").text(), "you may not");
    assert_eq!(server.get("/returns").text(), "before the check");
    let told = || server.log().contains("access forbidden by rule, client: 127.0.0.1");
    millstream_tests::wait::until("it is told", told);
}

#[test]
fn a_refused_request_with_a_body_leaves_the_connection_in_step() {
    let origin = Origin::fixed(200, &[], b"");
    let server = Server::start(GUARDED, &values(&origin.address(), "deny all;", ""));
    let mut client = server.client();
    assert_eq!(client.ask("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello").status, 403);
    assert_eq!(client.get("/inherits/own/a").expect("the next answer").status, 200);
}
