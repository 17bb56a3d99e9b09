//! RFC 9111 and its companions where it takes a server to see them: what is validated, invalidated, keyed by a body,
//! reported, and what clients may ask for. The rules one by one are tests of `cache/policy`; the outside judge is
//! `cargo xtask conformance`.

use std::sync::Mutex;

use millstream_tests::client::Answer;
use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::server::Server;

const FRESH: (&str, &str) = ("Cache-Control", "max-age=60");

fn start(origin: &Origin, directives: &str) -> Server {
    let template = site! {
        http "proxy_cache_path @DIR@/cache levels=1:2 keys_zone=answers:1m;"
        server "location / {
                proxy_pass http://@ORIGIN@;
                proxy_cache answers;
                proxy_cache_revalidate on;
                proxy_cache_credentials public;
                add_header X-Cache-Status $upstream_cache_status;
                @DIRECTIVES@
            }"
    };
    Server::start(template, &[("ORIGIN", &origin.address()), ("DIRECTIVES", directives)])
}

fn numbered(script: impl Fn(&Request, usize) -> Vec<Step> + Send + 'static) -> Origin {
    let state = Mutex::new((0, script));
    Origin::start(move |request| {
        let mut state = state.lock().expect("no script panics");
        state.0 += 1;
        (state.1)(request, state.0)
    })
}

fn counting(fields: &'static [(&'static str, &'static str)]) -> Origin {
    numbered(move |_, number| answer(200, fields, format!("answer {number}").as_bytes()))
}

fn method(request: &Request) -> &str {
    request.head.split(' ').next().unwrap_or_default()
}

fn send(server: &Server, method: &str, path: &str, fields: &str, body: &str) -> Answer {
    let mut client = server.client();
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{fields}Content-Length: {length}\r\n\r\n");
    client.send(head + body).expect("sent");
    client.answer_to(method).expect("an answer")
}

#[test]
fn no_cache_is_stored_and_validated_at_every_use() {
    let origin = numbered(|request, _| match request.field("if-none-match") {
        Some("\"a\"") => answer(304, &[("ETag", "\"a\""), ("X-New", "1")], b""),
        _ => answer(200, &[("Cache-Control", "no-cache, max-age=60"), ("ETag", "\"a\"")], b"body"),
    });
    let server = start(&origin, "");
    let expected = [("MISS", None), ("REVALIDATED", Some("1")), ("REVALIDATED", Some("1"))];
    for (expected, new) in expected {
        let answer = server.get("/");
        assert_eq!(
            (answer.text().as_str(), answer.cache_status(), answer.field("x-new")),
            ("body", expected, new)
        );
    }
    assert_eq!(origin.count(), 3);
}

/// An API that changes what it says with the second answer, and confirms that its body has not changed.
fn changing(later: &'static [(&'static str, &'static str)]) -> Origin {
    numbered(move |request, number| match (number, request.field("if-none-match")) {
        (1, _) => answer(200, &[("Cache-Control", "no-cache, max-age=60"), ("ETag", "\"a\"")], b"body"),
        (_, Some(_)) => answer(304, later, b""),
        (_, None) => answer(200, later, b"body"),
    })
}

#[test]
fn a_304_with_another_vary_holds_for_its_client_and_the_next_gets_a_response_that_is_stored_by_it() {
    let origin = changing(&[("Cache-Control", "max-age=60"), ("ETag", "\"a\""), ("Vary", "X-Foo")]);
    let server = start(&origin, "");
    let all = [("1", "MISS"), ("1", "REVALIDATED"), ("1", "MISS"), ("1", "HIT"), ("2", "MISS"), ("2", "HIT")];
    for (value, expected) in all {
        let answer = server.get_with("/", &[("X-Foo", value)]);
        assert_eq!((answer.text().as_str(), answer.cache_status()), ("body", expected), "X-Foo: {value}");
    }
}

#[test]
fn a_304_that_forbids_to_store_is_obeyed_and_its_client_is_told() {
    let origin =
        changing(&[("Cache-Control", "private, no-store"), ("ETag", "\"a\""), ("Set-Cookie", "session=1")]);
    let server = start(&origin, "");
    assert_eq!(server.get("/").cache_status(), "MISS");
    for (expected, condition) in [("REVALIDATED", Some("\"a\"")), ("MISS", None)] {
        let answer = server.get("/");
        assert_eq!((answer.text().as_str(), answer.cache_status()), ("body", expected));
        let told = (answer.field("cache-control"), answer.field("set-cookie"));
        assert_eq!(told, (Some("private, no-store"), Some("session=1")), "{expected}");
        assert_eq!(origin.requests().last().and_then(|asked| asked.field("if-none-match")), condition);
    }
}

#[test]
fn clients_are_heard_only_where_the_configuration_says_so() {
    for (directive, asked, expected) in [
        ("", "Cache-Control: no-cache\r\n", "HIT"),
        ("proxy_cache_client_control on;", "Cache-Control: no-cache\r\n", "EXPIRED"),
        ("proxy_cache_client_control on;", "Pragma: no-cache\r\n", "EXPIRED"),
        ("proxy_cache_client_control on;", "Cache-Control: min-fresh=70\r\n", "EXPIRED"),
        ("proxy_cache_client_control on;", "Cache-Control: max-age=50\r\n", "HIT"),
    ] {
        let origin = counting(&[FRESH]);
        let server = start(&origin, directive);
        assert_eq!(server.get("/").cache_status(), "MISS");
        let mut client = server.client();
        client.send(format!("GET / HTTP/1.1\r\nHost: localhost\r\n{asked}\r\n")).expect("sent");
        assert_eq!(client.answer().expect("an answer").cache_status(), expected, "{directive} {asked}");
        // What was fetched for one client is there for the next.
        let fetched = if expected == "HIT" { "answer 1" } else { "answer 2" };
        assert_eq!(server.get("/").text(), fetched, "{directive} {asked}");
    }
}

#[test]
fn only_a_stored_200_is_confirmed_by_a_304() {
    for stored in [200, 404, 201] {
        let fields = [("ETag", "\"a\""), ("Cache-Control", "max-age=0")];
        let origin = numbered(move |request, _| match request.field("if-none-match") {
            Some(_) => answer(304, &fields, b""),
            None => answer(stored, &fields, b"whole"),
        });
        let server = start(&origin, "");
        for _ in 0..2 {
            assert_eq!(server.get("/").status, stored);
        }
        let asked = origin.requests().iter().any(|request| request.field("if-none-match").is_some());
        assert_eq!(asked, stored == 200, "{stored}");
    }
}

#[test]
fn only_if_cached_is_answered_by_504_before_the_upstream_is_asked() {
    let origin = counting(&[FRESH]);
    let server = start(&origin, "proxy_cache_client_control on;");
    let ask = || server.get_with("/", &[("Cache-Control", "only-if-cached")]);
    assert_eq!(ask().status, 504);
    assert_eq!(origin.count(), 0);
    assert_eq!(server.get("/").text(), "answer 1");
    assert_eq!(ask().text(), "answer 1");
}

#[test]
fn an_unsafe_request_invalidates_its_target_and_the_locations_its_answer_names() {
    let origin = numbered(|request, number| match method(request) {
        "GET" => answer(200, &[FRESH], format!("answer {number}").as_bytes()),
        "FAIL" => answer(500, &[("Location", "/there")], b""),
        _ => {
            let fields = [
                ("Location", "/there?a=b"),
                ("Content-Location", "here"),
                ("X-Elsewhere", "http://other/elsewhere"),
            ];
            answer(201, &fields, b"")
        }
    });
    let server = start(&origin, "proxy_cache_key $request_method$request_uri;");
    let paths = ["/dir/target", "/there?a=b", "/dir/here", "/there", "/elsewhere"];
    let statuses = || paths.map(|path| server.get(path).cache_status().to_owned());
    for (unsafe_method, expected) in [
        ("FAIL", ["HIT"; 5]),
        ("POST", ["MISS", "MISS", "MISS", "HIT", "HIT"]),
        ("M-SEARCH", ["MISS", "MISS", "MISS", "HIT", "HIT"]),
        ("DELETE", ["MISS", "MISS", "MISS", "HIT", "HIT"]),
    ] {
        statuses();
        send(&server, unsafe_method, "/dir/target", "", "x");
        assert_eq!(statuses(), expected, "{unsafe_method}");
    }
}

/// IANA's safe methods (except PRI, which is no request), and the others.
const SAFE: [&str; 7] = ["HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY"];
const UNSAFE: [&str; 30] = [
    "ACL",
    "BASELINE-CONTROL",
    "BIND",
    "CHECKIN",
    "CHECKOUT",
    "COPY",
    "DELETE",
    "LABEL",
    "LINK",
    "LOCK",
    "MERGE",
    "MKACTIVITY",
    "MKCALENDAR",
    "MKCOL",
    "MKREDIRECTREF",
    "MKWORKSPACE",
    "MOVE",
    "ORDERPATCH",
    "PATCH",
    "POST",
    "PROPPATCH",
    "PUT",
    "REBIND",
    "UNBIND",
    "UNCHECKOUT",
    "UNLINK",
    "UNLOCK",
    "UPDATE",
    "UPDATEREDIRECTREF",
    "VERSION-CONTROL",
];

#[test]
fn only_methods_that_are_not_safe_take_out_what_is_stored() {
    let origin = numbered(|request, number| match method(request) {
        "GET" => answer(200, &[FRESH], format!("answer {number}").as_bytes()),
        _ => answer(if method(request) == "PROPFIND" { 207 } else { 200 }, &[("Location", "/named")], b""),
    });
    let server = start(&origin, "proxy_cache_key $request_uri;");
    let paths = ["/target", "/named"];
    let statuses = || paths.map(|path| server.get(path).cache_status().to_owned());
    let cases = SAFE.map(|method| (method, "HIT")).into_iter().chain(UNSAFE.map(|method| (method, "MISS")));
    for (method, expected) in cases {
        statuses();
        send(&server, method, "/target", "", if method == "HEAD" { "" } else { "x" });
        assert_eq!(statuses(), [expected; 2], "{method}");
    }
}

#[test]
fn an_answer_to_post_that_says_so_is_what_a_get_gets() {
    let origin = numbered(|request, number| {
        let own = match request.target() {
            "/own" => "/own",
            _ => "/other",
        };
        answer(200, &[FRESH, ("Content-Location", own)], format!("answer {number}").as_bytes())
    });
    let server = start(&origin, "");
    send(&server, "POST", "/own", "", "x");
    assert_eq!(server.get("/own").text(), "answer 1");
    send(&server, "POST", "/not-its-own", "", "x");
    assert_eq!(server.get("/not-its-own").text(), "answer 3");
    // The links in an answer may be made from it, and no key names it.
    send(&server, "POST", "/own", "X-Forwarded-Host: evil.example\r\n", "x");
    assert_eq!(server.get("/own").text(), "answer 5");
}

#[test]
fn a_query_is_keyed_by_its_body_and_what_describes_it() {
    let origin = numbered(|_, number| answer(200, &[FRESH], format!("answer {number}").as_bytes()));
    let server = start(&origin, "proxy_cache_methods GET HEAD QUERY;");
    let json = "Content-Type: application/json\r\n";
    let large = "x".repeat(9000);
    for (fields, body, expected) in [
        (json, "{\"a\":1}", "answer 1"),
        (json, "{\"a\":1}", "answer 1"),
        (json, "{\"a\":2}", "answer 2"),
        ("", "{\"a\":1}", "answer 3"),
        ("Content-Type: application/json; v=2\r\n", "{\"a\":1}", "answer 4"),
        (json, "", "answer 5"),
        (json, large.as_str(), "answer 6"),
        (json, large.as_str(), "answer 7"),
        (json, "{\"a\":2}", "answer 2"),
    ] {
        assert_eq!(send(&server, "QUERY", "/", fields, body).text(), expected, "{fields} {}", body.len());
    }
    assert_eq!(server.get("/").text(), "answer 8");
    let bodies: Vec<usize> = origin.requests().iter().map(|request| request.body.len()).collect();
    assert_eq!(bodies, [7, 7, 7, 7, 0, 9000, 9000, 0]);
}

#[test]
fn fields_that_are_not_to_be_stored_go_to_who_asked_alone() {
    let origin = counting(&[
        ("Cache-Control", "max-age=60, private=\"Set-Cookie, X-Mine\""),
        ("Set-Cookie", "a=b"),
        ("X-Mine", "1"),
        ("X-All", "2"),
    ]);
    let server = start(&origin, "");
    let first = server.get("/");
    assert_eq!(
        (first.field("set-cookie"), first.field("x-mine"), first.field("x-all")),
        (Some("a=b"), Some("1"), Some("2"))
    );
    let second = server.get("/");
    assert_eq!(second.cache_status(), "HIT");
    assert_eq!(
        (second.field("set-cookie"), second.field("x-mine"), second.field("x-all")),
        (None, None, Some("2"))
    );
}

#[test]
fn a_head_that_says_something_else_outdates_the_stored_get() {
    let origin = numbered(|request, number| {
        match (method(request), request.target()) {
        ("HEAD", "/same") => vec![Step::Send(
            b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\nX-New: 1\r\nContent-Length: 8\r\n\r\n"
                .to_vec(),
        )],
        ("HEAD", _) => answer(200, &[FRESH, ("ETag", "\"b\"")], b""),
        _ => answer(200, &[FRESH, ("ETag", "\"a\"")], format!("answer {number}").as_bytes()),
    }
    });
    let server = start(&origin, "proxy_cache_convert_head off; proxy_cache_key $request_method$uri;");
    let head = |path: &str| server.request("HEAD", path, &[]);
    for (path, expected, new) in [("/same", "HIT", Some("1")), ("/other", "MISS", None)] {
        assert_eq!(server.get(path).cache_status(), "MISS");
        assert_eq!(head(path).status, 200);
        let after = server.get(path);
        assert_eq!((after.cache_status(), after.field("x-new")), (expected, new), "{path}");
    }
}

#[test]
fn cache_status_says_what_happened() {
    let origin = numbered(|request, _| match request.target() {
        "/stored" => answer(200, &[FRESH, ("Cache-Status", "inner; hit")], b"body"),
        _ => answer(200, &[("Cache-Control", "no-store")], b"body"),
    });
    let server =
        start(&origin, "proxy_cache_explain on; proxy_cache_key $uri; proxy_cache_bypass $http_x_past;");
    let says = |path: &str, fields: &[(&str, &str)]| {
        let answer = server.get_with(path, fields);
        let mut lines = answer.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("cache-status"));
        lines.next_back().map(|(_, value)| value.clone()).unwrap_or_default()
    };
    for (path, fields, expected) in [
        ("/stored", &[][..], "millstream; fwd=miss; stored; ttl=60; key=\"/stored\""),
        ("/stored", &[], "millstream; hit; ttl="),
        ("/stored", &[("X-Past", "1")], "millstream; fwd=bypass; stored; ttl=60; key=\"/stored\""),
        ("/private", &[], "millstream; fwd=miss; key=\"/private\"; detail=no_store"),
    ] {
        let found = says(path, fields);
        assert!(found.starts_with(expected), "{path}: {found}");
    }
    assert_eq!(
        send(&server, "DELETE", "/private", "", "x").field("cache-status"),
        Some("millstream; fwd=method")
    );
}
