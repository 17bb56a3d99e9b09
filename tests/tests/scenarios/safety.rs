//! What one client cannot do to another through the cache: nothing it sends decides, unseen by the key, what others are
//! answered. The property that no answer goes astray is in `safety/sharing`, that no request body
//! does in `safety/uploads`.

mod random;
mod sharing;
mod promises;
mod uploads;

use millstream_tests::origin::{Origin, answer};
use millstream_tests::server::Server;
use millstream_tests::wait;
use rustix::process::Signal;

/// Trusts what frameworks trust: host, scheme, path and method by header fields.
fn believing() -> Origin {
    Origin::start(|request| {
        let field = |name: &str| request.field(name).unwrap_or("-").to_owned();
        let link = format!(
            "{} {} {} {} {}",
            field("x-forwarded-host"),
            field("x-forwarded-proto"),
            field("x-original-url"),
            field("x-http-method-override"),
            field("accept-language"),
        );
        let body = format!("{link} body={}", String::from_utf8_lossy(&request.body));
        answer(200, &[("Cache-Control", "max-age=60")], body.as_bytes())
    })
}

fn start(origin: &Origin, directives: &str) -> Server {
    let template = site! {
        main "worker_processes 2;"
        http "proxy_cache_path @DIR@/cache levels=1:2 keys_zone=zone:1m;
            upstream api { server @ORIGIN@; keepalive 8; }"
        server "add_header X-Cache-Status $upstream_cache_status;
            location / { proxy_pass http://api; proxy_cache zone; @DIRECTIVES@ }
            location /free/ { proxy_pass http://api; }"
    };
    Server::start(template, &[("ORIGIN", &origin.address()), ("DIRECTIVES", directives)])
}

const EVIL: [(&str, &str); 4] = [
    ("X-Forwarded-Host", "evil.example"),
    ("X-Forwarded-Proto", "gopher"),
    ("X-Original-URL", "/admin"),
    ("X-HTTP-Method-Override", "DELETE"),
];

#[test]
fn nobody_decides_by_unkeyed_fields_what_others_are_answered() {
    skip_on_nginx!("it passes them on and stores what comes of it");
    let origin = believing();
    let server = start(&origin, "");
    let first = server.get_with("/page", &EVIL);
    assert_eq!((first.text().as_str(), first.cache_status()), ("- - - - - body=", "MISS"));
    let second = server.get("/page");
    assert_eq!((second.text(), second.cache_status()), (first.text(), "HIT"));
    // Where nothing is cached nothing is held back, and neither is it from a method that is not cached.
    assert_eq!(server.get_with("/free/", &EVIL).text(), "evil.example gopher /admin DELETE - body=");
    let post = server.request("POST", "/page", &EVIL);
    assert_eq!(post.text(), "evil.example gopher /admin DELETE - body=");
}

#[test]
fn a_page_in_a_form_that_nobody_named_is_not_given_to_others() {
    skip_on_nginx!("it stores what comes of it");
    let origin = Origin::start(|request| {
        let form = if request.field("rsc").is_some() { "components" } else { "page" };
        let vary = if request.target() == "/told" { "RSC" } else { "Accept" };
        answer(200, &[("Cache-Control", "max-age=60"), ("Vary", vary)], form.as_bytes())
    });
    let server = start(&origin, "");
    for path in ["/told", "/untold"] {
        assert_eq!(server.get_with(path, &[("RSC", "1")]).text(), "components");
        assert_eq!(server.get(path).text(), "page", "{path}");
        assert_eq!(server.get(path).cache_status(), "HIT", "{path}");
    }
    assert_eq!(server.get_with("/told", &[("RSC", "1")]).cache_status(), "HIT");
}

#[test]
fn a_field_that_the_key_names_reaches_the_api_and_has_an_entry_of_its_own() {
    let origin = believing();
    let server = start(&origin, "proxy_cache_key $uri$http_x_forwarded_host;");
    for expected in ["MISS", "HIT"] {
        for host in ["a.example", "b.example"] {
            let answer = server.get_with("/", &[("X-Forwarded-Host", host)]);
            assert_eq!((answer.text(), answer.cache_status()), (format!("{host} - - - - body="), expected));
        }
    }
}

#[test]
fn a_value_with_the_key_s_separator_does_not_get_another_request_s_answer() {
    skip_on_nginx!("there both are one entry");
    let origin =
        Origin::start(|request| answer(200, &[("Cache-Control", "max-age=60")], request.target().as_bytes()));
    let mut server = start(&origin, "proxy_cache_key $arg_user-$arg_page;");
    for target in ["/?user=a&page=b-admin", "/?user=a-b&page=admin"] {
        assert_eq!(server.get(target).text(), target);
    }
    for target in ["/?user=a&page=b-admin", "/?user=a-b&page=admin"] {
        let answer = server.get(target);
        assert_eq!((answer.text().as_str(), answer.cache_status()), (target, "HIT"));
    }
    // Both have the one name of the text's MD5 on disk; the file belongs to the one whose key it states.
    wait::until("one of them is on disk", || server.prefix().count_files("cache") > 0);
    assert!(server.stop(Signal::QUIT).is_some());
    server.run().expect("it starts again");
    for target in ["/?user=a&page=b-admin", "/?user=a-b&page=admin"] {
        assert_eq!(server.get(target).text(), target);
    }
}

#[test]
fn a_get_with_a_body_is_neither_answered_from_the_cache_nor_stored() {
    skip_on_nginx!();
    for directives in ["", "proxy_cache_methods POST;"] {
        let origin = believing();
        let server = start(&origin, directives);
        let fat = |body: &str| {
            let head = format!("GET /p HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            server.ask(head)
        };
        let first = fat("evil");
        assert_eq!((first.text().as_str(), first.cache_status()), ("- - - - - body=evil", "BYPASS"));
        assert_eq!(server.get("/p").text(), "- - - - - body=");
        assert_eq!(server.get("/p").cache_status(), "HIT");
        assert_eq!(fat("other").text(), "- - - - - body=other");
        assert_eq!(server.get("/p").text(), "- - - - - body=");
    }
}

#[test]
fn a_field_that_connection_takes_from_the_api_does_not_choose_the_entry() {
    skip_on_nginx!("it passes on what Connection names");
    let origin = believing();
    let server = start(&origin, "proxy_cache_key $uri$http_accept_language;");
    let hidden = [("Accept-Language", "de"), ("Connection", "keep-alive, Accept-Language")];
    let first = server.get_with("/", &hidden);
    assert_eq!((first.text().as_str(), first.cache_status()), ("- - - - - body=", "BYPASS"));
    let german = server.get_with("/", &[("Accept-Language", "de")]);
    assert_eq!((german.text().as_str(), german.cache_status()), ("- - - - de body=", "MISS"));
}

#[test]
fn conditions_and_ranges_of_one_client_do_not_shape_what_is_stored_for_all() {
    let origin = Origin::start(|request| {
        let asked =
            ["range", "if-range", "if-none-match", "if-modified-since", "if-match", "if-unmodified-since"];
        let some = asked.iter().any(|name| request.field(name).is_some());
        let fields = [("Cache-Control", "max-age=60"), ("ETag", "\"one\"")];
        answer(if some { 304 } else { 200 }, &fields, if some { b"" } else { b"0123456789" })
    });
    let server = start(&origin, "");
    let date = "Sat, 21 Nov 2026 10:26:00 GMT";
    for (at, (name, value)) in [
        ("Range", "bytes=0-1"),
        ("If-None-Match", "\"other\""),
        ("If-Modified-Since", "Sat, 01 Jan 2000 00:00:00 GMT"),
        ("If-Range", "\"one\""),
        ("If-Unmodified-Since", date),
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/{at}");
        server.get_with(&path, &[(name, value)]);
        let after = server.get(&path);
        assert_eq!((after.status, after.text().as_str()), (200, "0123456789"), "{name}");
        assert_eq!(after.cache_status(), "HIT", "{name}");
    }
}

#[test]
fn a_key_too_long_to_keep_is_answered_by_the_api_each_time() {
    skip_on_nginx!();
    let origin = believing();
    let server = start(&origin, "proxy_cache_key $uri$uri$uri;");
    let path = format!("/{}", "x".repeat(3000));
    for _ in 0..2 {
        let answer = server.get(&path);
        assert_eq!((answer.status, answer.cache_status()), (200, "BYPASS"));
    }
    assert_eq!(origin.count(), 2);
}
