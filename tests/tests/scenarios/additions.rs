//! What other paths answer stands before and behind an answer: files, upstreams and the cache alike, each part asked as any request is.
//! All but one line of it holds for nginx as well (`MILLSTREAM_BINARY=/usr/sbin/nginx`).

use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::server::{Server, is_nginx};
use millstream_tests::wait;
use std::sync::Arc;

const START: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log notice; worker_processes 1; events { worker_connections 64; }
    http { access_log @DIR@/access.log; log_subrequest on;
    types { text/html html; text/plain txt; } default_type text/html;
    proxy_cache_path @DIR@/cache keys_zone=z:1m; proxy_cache_valid 200 1h; add_header X-Cache $upstream_cache_status;";

fn served(origin: &Origin, locations: &str) -> Server {
    let prefix = Prefix::new();
    std::fs::create_dir(prefix.join("www")).expect("it can be made");
    for (name, text) in [("a.html", "body"), ("a.txt", "body"), ("top", "<"), ("end", ">")] {
        prefix.write(&format!("www/{name}"), text);
    }
    let template = format!(
        "{START} server {{ listen 127.0.0.1:@PORT@; server_name localhost; root @DIR@/www; {locations} }} }}"
    );
    Server::start_in(prefix, &template, &[("ORIGIN", &origin.address())])
}

#[test]
fn what_is_added_stands_around_an_answer_from_wherever_that_comes() {
    let origin = Origin::start(|request| {
        let fields = [("Content-Type", "text/html"), ("ETag", "\"tag\"")];
        match request.target() {
            "/long" => answer(200, &fields, "0123456789".repeat(30_000).as_bytes()),
            "/part" => answer(200, &fields, "part".repeat(30_000).as_bytes()),
            "/missing" => answer(404, &fields, b"missing"),
            _ => answer(200, &fields, b"body"),
        }
    });
    let server = served(
        &origin,
        "add_before_body /top; add_after_body /end;
        location /none/ { alias @DIR@/www/; add_before_body \"\"; add_after_body \"\"; }
        location /all/ { alias @DIR@/www/; addition_types text/plain; }
        location /pass { proxy_pass http://@ORIGIN@; }
        location /missing { proxy_pass http://@ORIGIN@; }
        location /cached { proxy_pass http://@ORIGIN@; proxy_cache z; }
        location /zipped { proxy_pass http://@ORIGIN@; gzip on; gzip_min_length 1; }
        location /long { proxy_pass http://@ORIGIN@; proxy_cache z; add_after_body /part; }
        location /part { internal; proxy_pass http://@ORIGIN@; proxy_cache z; gzip on; }
        location /self { add_after_body /self; return 200 self; }
        location /absent { add_after_body /nowhere; return 200 x; }
        location /guarded { add_after_body /closed; return 200 x; }
        location /closed { deny all; alias @DIR@/www/end; }
        location /filtered { sub_filter body other; alias @DIR@/www/a.html; }",
    );
    for (path, expected) in [
        ("/a.html", "<body>"),
        ("/a.txt", "body"),
        ("/all/a.txt", "<body>"),
        ("/none/a.html", "body"),
        ("/pass", "<body>"),
        ("/missing", "missing"),
        ("/cached", "<body>"),
        ("/cached", "<body>"),
        ("/self", "<selfself"),
        ("/guarded", "<x>"),
        ("/filtered", "<other>"),
    ] {
        assert_eq!(server.get(path).text(), expected, "{path}");
    }
    assert!(server.get("/absent").text().contains("404 Not Found"), "a page of an error is a part as well");
    for _ in 0..2 {
        let long = format!("<{}{}", "0123456789".repeat(30_000), "part".repeat(30_000));
        let fields = [("Accept-Encoding", "gzip")];
        assert_eq!(server.get_with("/long", &fields).text(), long);
    }
    let zipped = server.get_with("/zipped", &[("Accept-Encoding", "gzip")]);
    let mut text = String::new();
    let mut decoder = flate2::read::GzDecoder::new(&zipped.body[..]);
    std::io::Read::read_to_string(&mut decoder, &mut text).expect("it is gzip");
    assert_eq!(text, "<body>");
}

#[test]
fn a_head_says_nothing_that_the_additions_make_untrue() {
    let origin = Origin::start(|_| {
        let fields = [("Content-Type", "text/html"), ("ETag", "\"tag\""), ("Accept-Ranges", "bytes")];
        answer(200, &fields, b"body")
    });
    let server = served(
        &origin,
        "add_after_body /end; location /cached { proxy_pass http://@ORIGIN@; proxy_cache z; }",
    );
    for path in ["/a.html", "/cached", "/cached"] {
        for method in ["GET", "HEAD"] {
            let answer = server.client().request(method, path, &[]).expect("it is answered");
            assert_eq!(answer.field("content-length"), None, "{method} {path}");
            assert_eq!(answer.field("accept-ranges"), None, "{method} {path}");
            assert!(answer.field("etag").is_some_and(|tag| tag.starts_with("W/")), "{method} {path}");
            assert_eq!(answer.text(), if method == "GET" { "body>" } else { "" }, "{method} {path}");
        }
        let part = server.get_with(path, &[("Range", "bytes=0-1")]);
        assert_eq!((part.status, part.text().as_str()), (200, "body>"), "{path}");
    }
    let known = server.get_with("/cached", &[("If-None-Match", "\"tag\"")]);
    assert_eq!((known.status, known.text().as_str()), (304, ""));
    assert_eq!(origin.count(), 1, "what is stored is stored without the addition");
}

#[test]
fn a_part_that_breaks_off_cuts_the_answer_and_one_that_nobody_waits_for_ends() {
    let gate = Arc::new(Gate::default());
    let held = Arc::clone(&gate);
    let origin = Origin::start(move |request| match request.target() {
        "/cut" => {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100\r\n\r\nshort";
            vec![Step::Send(head.into()), Step::Close]
        }
        "/held" => vec![Step::Pass(Arc::clone(&held)), Step::Close],
        _ => answer(200, &[("Content-Type", "text/html")], b"body"),
    });
    let server = served(
        &origin,
        "location /pass { add_after_body /cut; proxy_pass http://@ORIGIN@; }
        location /waits { add_after_body /held; proxy_pass http://@ORIGIN@; }
        location /cut { proxy_pass http://@ORIGIN@; } location /held { proxy_pass http://@ORIGIN@; }",
    );
    let pass = server.client().request("GET", "/pass", &[]);
    assert_eq!(pass.is_err(), !is_nginx(), "a cut answer does not look whole");
    let mut leaving = server.client();
    leaving.send("GET /waits HTTP/1.1\r\nHost: a\r\n\r\n").expect("it is sent");
    wait::until("the part is asked for", || origin.count() == 4);
    drop(leaving);
    if !is_nginx() {
        let lines = || server.prefix().read("access.log").matches("GET /waits").count();
        wait::until("answer and part have ended", || lines() == 2);
    }
    gate.open();
}
