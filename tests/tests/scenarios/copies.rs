//! What comes of a request beside its answer: copies (`mirror`), what follows it (`post_action`), hints before it (`early_hints`), and a body
//! that is read before anything is decided (`client_body_early_read`).

use millstream_tests::frames::Frames;
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::server::{Server, is_nginx};
use millstream_tests::wait;
use std::sync::Arc;

const START: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log info; worker_processes 1; events { worker_connections 64; }
    http { access_log off; client_body_buffer_size 1k; client_body_temp_path @DIR@/bodies;
        server { listen 127.0.0.1:@PORT@; http2 on; server_name localhost;";

fn served(locations: &str, values: &[(&str, &str)]) -> Server {
    Server::start(&format!("{START} {locations} }} }}"), values)
}

fn came(origin: &Origin, target: &str) -> Request {
    let find = || origin.requests().into_iter().find(|request| request.target() == target);
    wait::until("the request comes", || find().is_some());
    find().expect("it came")
}

#[test]
fn a_copy_has_all_of_the_request_and_nobody_waits_for_its_response() {
    let gate = Arc::new(Gate::default());
    let copies = Origin::start({
        let gate = gate.clone();
        move |_| vec![Step::Pass(gate.clone())]
    });
    let origin = Origin::start(|request| answer(200, &[], &request.body));
    let server = served(
        "location / { mirror /copy; proxy_pass http://@ORIGIN@; proxy_request_buffering off; }
        location = /copy { internal; proxy_pass http://@COPIES@$request_uri; }",
        &[("ORIGIN", &origin.address()), ("COPIES", &copies.address())],
    );
    let large = "0123456789".repeat(10_000);
    let mut client = server.client();
    for (target, body) in [("/none?a=1", ""), ("/small?b=2", "small"), ("/large", large.as_str())] {
        for (framing, sent) in [
            ("length", format!("Content-Length: {}\r\n\r\n{body}", body.len())),
            ("chunks", format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len())),
        ] {
            if body.is_empty() && framing == "chunks" {
                continue;
            }
            let target = format!("{target}{}by={framing}", if target.contains('?') { "&" } else { "?" });
            let head =
                format!("PATCH {target} HTTP/1.1\r\nHost: localhost\r\nX-Mine: yes\r\nRange: bytes=0-1\r\n");
            let got = client.ask(head + &sent);
            assert_eq!((got.status, got.text() == body), (200, true), "{target}");
            let copy = came(&copies, &target);
            assert!(copy.head.starts_with("PATCH "), "{}", copy.head);
            assert_eq!((copy.field("x-mine"), copy.field("range")), (Some("yes"), Some("bytes=0-1")));
            assert_eq!(copy.body, body.as_bytes(), "{target}");
        }
    }
    let mut frames = Frames::connect(server.port());
    let stream = frames.request("POST", "/h2", &[], false);
    frames.upload(stream, large.as_bytes());
    assert_eq!(frames.answer(stream).text(), large);
    assert_eq!(came(&copies, "/h2").body, large.as_bytes());
    gate.open();
}

/// A mirror that responds to nothing before its gate opens, and an origin.
fn with_silent_mirror(gate: &Arc<Gate>) -> (Server, Origin, Origin) {
    let mirror = Origin::start({
        let gate = gate.clone();
        move |_| [vec![Step::Pass(gate.clone())], answer(200, &[], b"copied")].concat()
    });
    let origin = Origin::start(|_| answer(200, &[], b"made"));
    let server = served(
        "location / { mirror /copy; try_files /none @text; }
        location @text { return 200 text; }
        location /two { mirror /copy/1; mirror /copy/2; try_files /none @text; }
        location /copy { internal; proxy_pass http://@MIRROR@; }
        location /proxied { proxy_pass http://@ORIGIN@; }",
        &[("MIRROR", &mirror.address()), ("ORIGIN", &origin.address())],
    );
    (server, mirror, origin)
}

/// A quarter of the 56 of 64 connections that may be to upstreams, and half of that for one client.
const ALL_COPIES: usize = 14;
const OWN_COPIES: usize = 7;

#[test]
fn one_client_whose_copies_a_mirror_holds_takes_no_upstream_from_others() {
    for is_http2 in [false, true] {
        for path in ["/", "/two"] {
            let gate = Arc::new(Gate::default());
            let (server, mirror, _origin) = with_silent_mirror(&gate);
            let proxied = || assert_eq!(server.get("/proxied").status, 200, "{path}, http2 {is_http2}");
            let mirrored = || {
                if is_http2 {
                    let mut frames = Frames::connect(server.port());
                    for _ in 0..100 {
                        assert_eq!(frames.whole(path).text(), "text");
                    }
                } else {
                    let mut client = server.client();
                    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").repeat(100)).expect("sent");
                    for _ in 0..100 {
                        assert_eq!(client.answer().expect("an answer at once").text(), "text");
                    }
                }
            };
            mirrored();
            wait::until("the copies come", || mirror.requests().len() == OWN_COPIES);
            proxied();
            mirrored();
            wait::until("the copies of another client come", || mirror.requests().len() == ALL_COPIES);
            mirrored();
            proxied();
            assert_eq!(mirror.requests().len(), ALL_COPIES, "{path}, http2 {is_http2}");
            server.says("dropped: too many copies are in progress");
            let lines = server.log().matches("dropped: ").count();
            assert!(lines < 10, "{lines} lines, though not one for each of hundreds");
            assert!(gate.open());
            let mut client = server.client();
            wait::until("there is room for copies again", || {
                assert_eq!(client.get(path).expect("an answer").text(), "text");
                mirror.requests().len() > ALL_COPIES
            });
        }
    }
}

#[test]
fn a_location_has_the_mirrors_of_its_own_or_those_around_it() {
    let origin = Origin::start(|_| answer(200, &[], b"made"));
    let server = served(
        "mirror /copy/server; proxy_set_header X-Body \"[$request_body]\";
        location / { proxy_pass http://@ORIGIN@; }
        location /off { mirror off; proxy_pass http://@ORIGIN@; }
        location /two { mirror /copy/1; mirror /copy/2; mirror_request_body off; proxy_pass http://@ORIGIN@; }
        location /text { return 200 text; }
        location /denied { deny all; proxy_pass http://@ORIGIN@; }
        location /copy/ { proxy_pass http://@ORIGIN@; }",
        &[("ORIGIN", &origin.address())],
    );
    let posted = |target: &str| {
        let head = format!("POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody");
        server.ask(head).status
    };
    assert_eq!((posted("/off?1"), posted("/text?2"), posted("/denied?3")), (200, 200, 403));
    assert_eq!((posted("/?4"), posted("/two?5")), (200, 200));
    let copy = came(&origin, "/copy/server?4");
    assert_eq!((copy.body.as_slice(), copy.field("x-body")), (&b"body"[..], Some("[body]")));
    for target in ["/copy/1?5", "/copy/2?5"] {
        let copy = came(&origin, target);
        assert!(copy.head.starts_with("POST ") && copy.body.is_empty(), "{}", copy.head);
    }
    let mut all: Vec<String> = origin.requests().iter().map(|request| request.target().to_owned()).collect();
    all.sort();
    assert_eq!(all, ["/?4", "/copy/1?5", "/copy/2?5", "/copy/server?4", "/off?1", "/two?5"]);
}

#[test]
fn a_body_that_is_read_early_decides_about_its_request_and_has_the_bounds_of_both_levels() {
    let origin = Origin::start(|request| answer(200, &[], &request.body));
    let server = served(
        "client_body_early_read $arg_early; client_max_body_size 8k;
        if ($request_body ~ ^secret) { return 403; }
        location / { proxy_pass http://@ORIGIN@; proxy_request_buffering off; }
        location /small { client_max_body_size 10; proxy_pass http://@ORIGIN@; }",
        &[("ORIGIN", &origin.address())],
    );
    let large = "x".repeat(5_000);
    let larger = "x".repeat(9_000);
    for (target, body, status) in [
        ("/", "secret", 200),
        ("/?early=0", "secret", 200),
        ("/?early=1", "secret", 403),
        ("/?early=1", "open", 200),
        ("/?early=1", "", 200),
        ("/?early=1", large.as_str(), 200),
        ("/?early=1", larger.as_str(), 413),
        ("/small?early=1", "0123456789", 200),
        ("/small?early=1", "01234567890", 413),
        ("/small", "01234567890", 413),
    ] {
        for sent in [
            format!("Content-Length: {}\r\n\r\n{body}", body.len()),
            match body {
                "" => "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n".into(),
                body => format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len()),
            },
        ] {
            let head = format!("POST {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
            let got = server.ask(head + &sent);
            assert_eq!(got.status, status, "{target} {}", &sent[..sent.len().min(60)]);
            assert!(status != 200 || got.text() == body, "{target}");
        }
    }
}

#[test]
fn what_follows_a_request_is_asked_for_once_it_is_answered_and_before_the_next_one() {
    let gate = Arc::new(Gate::default());
    let origin = Origin::start({
        let gate = gate.clone();
        move |request| match request.target() {
            "/slow?/page" => [vec![Step::Pass(gate.clone())], answer(200, &[], b"never seen")].concat(),
            _ => answer(201, &[], b"made"),
        }
    });
    let server = served(
        "location / { post_action @done; proxy_pass http://@ORIGIN@; }
        location = /text { post_action /after; return 200 text; }
        location /after { proxy_pass http://@ORIGIN@; }
        location /page { post_action @slow; proxy_pass http://@ORIGIN@; }
        location @slow { proxy_pass http://@ORIGIN@/slow?$uri; }
        location @done { proxy_pass http://@ORIGIN@/done?$uri,$body_bytes_sent,$request_completion; }",
        &[("ORIGIN", &origin.address())],
    );
    let mut client = server.client();
    assert_eq!(client.get("/a").expect("an answer").text(), "made");
    assert_eq!(client.get("/b").expect("an answer").text(), "made");
    came(&origin, "/done?/a,4,OK");
    came(&origin, "/done?/b,4,OK");
    assert_eq!(client.get("/text?x").expect("an answer").text(), "text");
    came(&origin, "/after");
    let mut frames = Frames::connect(server.port());
    assert_eq!((frames.whole("/page").text(), frames.whole("/text").text()), ("made".into(), "text".into()));
    came(&origin, "/slow?/page");
    assert_eq!(client.get("/page").expect("an answer before what follows").text(), "made");
    client.send("GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
    wait::until("what follows is asked for", || {
        origin.requests().iter().filter(|request| request.target() == "/slow?/page").count() == 2
    });
    assert!(origin.requests().iter().all(|request| request.target() != "/next"), "the connection waits");
    assert!(gate.open());
    assert_eq!(client.answer().expect("an answer").text(), "made");
}

#[test]
fn what_copies_of_a_get_with_a_body_are_answered_reaches_no_other_client() {
    skip_on_nginx!();
    let origin = Origin::start(|request| {
        answer(200, &[("Cache-Control", "max-age=60")], &[b"by ", &*request.body].concat())
    });
    let server = served(
        "location / { proxy_cache pages; proxy_cache_key $uri; proxy_pass http://@ORIGIN@;
            location /followed { post_action @after; proxy_pass http://@ORIGIN@; }
            location /copied { mirror /copy; proxy_pass http://@ORIGIN@; }
            location = /copy { internal; proxy_cache_key $request_uri; proxy_pass http://@ORIGIN@$request_uri; } }
        location @after { proxy_cache pages; proxy_cache_key $uri; proxy_pass http://@ORIGIN@; }
        } proxy_cache_path memory keys_zone=pages:1m; server {",
        &[("ORIGIN", &origin.address())],
    );
    for target in ["/followed", "/copied"] {
        let mut client = server.client();
        let sent = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nevil");
        assert_eq!(client.ask(sent).text(), "by evil");
        wait::until("the copy comes", || {
            origin.requests().iter().filter(|request| request.target() == target).count() == 2
        });
        // What follows is done once the connection goes on; a copy, once another one has been answered.
        assert_eq!(client.get(target).expect("an answer").text(), "by ", "{target}");
        assert_eq!(server.get(target).text(), "by ", "{target}");
    }
}

#[test]
fn hints_are_passed_on_where_a_string_says_so() {
    let hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n";
    let origin =
        Origin::start(move |_| [vec![Step::Send(hints.to_vec())], answer(200, &[], b"made")].concat());
    let server = served(
        "location / { early_hints $arg_a $arg_b; proxy_pass http://@ORIGIN@;
            location /inherited { proxy_pass http://@ORIGIN@; }
            location /off { early_hints 0; proxy_pass http://@ORIGIN@; } }
        location /unsaid { proxy_pass http://@ORIGIN@; }",
        &[("ORIGIN", &origin.address())],
    );
    for (target, are_passed) in [
        ("/", false),
        ("/?a=0&b=", false),
        ("/?a=0&b=x", true),
        ("/inherited", false),
        ("/inherited?a=1", true),
        ("/off?a=1", false),
        ("/unsaid", !is_nginx()),
    ] {
        let mut frames = Frames::connect(server.port());
        let stream = frames.get(target);
        let got = frames.answer(stream);
        assert_eq!((got.text().as_str(), !got.interim.is_empty()), ("made", are_passed), "{target}");
        let mut client = server.client();
        client.send(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n")).expect("sent");
        let first = client.head().expect("a head");
        assert_eq!(
            (first.status == 103, first.field("link").is_some()),
            (are_passed, are_passed),
            "{target}"
        );
    }
}
