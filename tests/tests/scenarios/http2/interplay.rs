//! What the rest of the server makes of streams: cache, limits, subrequests, includes.

use std::sync::Arc;

use millstream_tests::client::Client;
use millstream_tests::frames::{End, Frames};
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::server::Server;
use millstream_tests::wait;

const SITE: &str = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events { }
    http {
        access_log @DIR@/access.log; proxy_http_version 1.1;
        proxy_cache_path memory keys_zone=z:1m memory=64m;
        limit_req_zone $binary_remote_addr zone=slow:1m rate=1r/m; limit_conn_zone $binary_remote_addr zone=few:1m;
        server { listen 127.0.0.1:@PORT@; http2 on;
            location / { proxy_pass http://@ORIGIN@; }
            location /cached { proxy_pass http://@ORIGIN@; proxy_cache z; proxy_cache_valid 200 1h; proxy_cache_lock on; gzip on;
                gzip_min_length 0; add_header X-Cache $upstream_cache_status; }
            location /few { proxy_pass http://@ORIGIN@; limit_conn few 3; }
            location /seldom { proxy_pass http://@ORIGIN@; limit_req zone=slow burst=1 nodelay; }
            location /guarded { auth_request /guard; proxy_pass http://@ORIGIN@; }
            location = /guard { internal; proxy_pass http://@ORIGIN@; }
            location /page { ssi on; ssi_types *; proxy_pass http://@ORIGIN@; } }
    }";

/// Fields independent of how or when a response was sent.
fn lasting(fields: &[(String, String)]) -> Vec<(String, String)> {
    let passing = ["connection", "keep-alive", "date", "age", "transfer-encoding", "content-length"];
    let lower = fields.iter().map(|(name, value)| (name.to_lowercase(), value.clone()));
    let mut fields: Vec<_> = lower.filter(|(name, _)| !passing.contains(&name.as_str())).collect();
    fields.sort();
    fields
}

#[test]
fn a_stored_answer_is_the_same_over_either_whoever_asked_first() {
    skip_on_nginx!();
    let fields =
        [("ETag", "\"v\""), ("X-Mixed-Case", "Kept"), ("Content-Type", "text/html"), ("Set-Cookie2", "a")];
    let body = "<p>many words of a page</p>".repeat(100);
    let origin = Origin::fixed(200, &fields, body.as_bytes());
    let server = Server::start(SITE, &[("ORIGIN", &origin.address())]);
    let mut frames = Frames::connect(server.port());
    let mut old = server.client();
    for (number, gzip) in [(1, "identity"), (2, "gzip")] {
        for new_first in [true, false] {
            let path = format!("/cached/{number}{new_first}");
            let accept = ("accept-encoding", gzip);
            let mut by_streams = Vec::new();
            let mut by_text = Vec::new();
            for is_new in [new_first, !new_first, new_first, !new_first] {
                if is_new {
                    let answer = frames.ask(&path, &[accept]);
                    assert_eq!((answer.status, answer.end), (200, End::Whole));
                    by_streams.push((lasting(&answer.fields), answer.body));
                } else {
                    let answer = old.get_with(&path, &[accept]).expect("an answer");
                    by_text.push((lasting(&answer.fields), answer.body));
                }
            }
            assert_eq!(by_streams[1], by_text[1], "{path}");
            let (first, second) = if new_first { (&by_streams, &by_text) } else { (&by_text, &by_streams) };
            let cache = |(fields, _): &(Vec<(String, String)>, Vec<u8>)| {
                fields.iter().find(|(name, _)| name == "x-cache").map(|(_, value)| value.clone())
            };
            assert_eq!(cache(&first[0]).as_deref(), Some("MISS"));
            assert_eq!(cache(&second[0]).as_deref(), Some("HIT"));
            assert_eq!(first[0].1, second[0].1, "{path}");
        }
    }
    assert_eq!(origin.count(), 4);
}

#[test]
fn a_stampede_by_streams_of_one_connection_asks_once() {
    skip_on_nginx!();
    let gate = Arc::new(Gate::default());
    let closed = Arc::clone(&gate);
    let origin = Origin::start(move |_| {
        let mut steps = vec![Step::Pass(Arc::clone(&closed))];
        steps.extend(answer(200, &[], &[b'x'; 100_000]));
        steps
    });
    let server = Server::start(SITE, &[("ORIGIN", &origin.address())]);
    let mut frames = Frames::connect(server.port());
    frames.round_trip();
    let streams: Vec<u32> = (0..100).map(|_| frames.get("/cached/one")).collect();
    wait::until("the API is asked", || origin.count() > 0);
    // Some leave while they wait, the one that asked among them.
    streams.iter().step_by(10).for_each(|stream| frames.give_up(*stream));
    frames.round_trip();
    assert!(gate.open());
    for (number, stream) in streams.iter().enumerate() {
        if number % 10 != 0 {
            let answer = frames.answer(*stream);
            assert_eq!((answer.status, answer.body.len(), answer.end), (200, 100_000, End::Whole));
        }
    }
    assert_eq!(origin.count(), 1);
}

#[test]
fn limits_count_streams_as_they_count_connections() {
    skip_on_nginx!();
    let gate = Arc::new(Gate::default());
    let closed = Arc::clone(&gate);
    let origin = Origin::start(move |request: &Request| {
        let mut steps = Vec::new();
        if request.target().starts_with("/few") {
            steps.push(Step::Pass(Arc::clone(&closed)));
        }
        steps.extend(answer(200, &[], b"fine"));
        steps
    });
    let server = Server::start(SITE, &[("ORIGIN", &origin.address())]);
    let mut frames = Frames::connect(server.port());
    let streams: Vec<u32> = (0..5).map(|_| frames.get("/few")).collect();
    wait::until("three are let through", || origin.count() == 3);
    frames.until("two are refused", |now| streams[3..].iter().all(|stream| now.has_ended(*stream)));
    gate.open();
    let statuses: Vec<u16> = streams.iter().map(|stream| frames.answer(*stream).status).collect();
    assert_eq!(statuses, [200, 200, 200, 503, 503]);
    let seldom: Vec<u32> = (0..4).map(|_| frames.get("/seldom")).collect();
    let statuses: Vec<u16> = seldom.iter().map(|stream| frames.answer(*stream).status).collect();
    assert_eq!(statuses, [200, 200, 503, 503]);
}

#[test]
fn guards_and_includes_are_asked_by_streams_too() {
    skip_on_nginx!();
    let origin = Origin::start(|request: &Request| match request.target() {
        "/guard" if request.field("x-key") == Some("right") => answer(204, &[], b""),
        "/guard" => answer(401, &[("WWW-Authenticate", "Key")], b""),
        "/page" => {
            let part = "<!--#include virtual=\"/part\" -->";
            answer(200, &[("Content-Type", "text/html")], format!("a {part} b {part} c").as_bytes())
        }
        "/part" => answer(200, &[("Content-Type", "text/html")], b"part"),
        _ => answer(200, &[], request.target().as_bytes()),
    });
    let server = Server::start(SITE, &[("ORIGIN", &origin.address())]);
    let mut frames = Frames::connect(server.port());
    for (key, status) in [("right", 200), ("wrong", 401), ("right", 200)] {
        let stream = frames.request("POST", "/guarded", &[("x-key", key)], false);
        frames.data(stream, b"a body", true);
        let answer = frames.answer(stream);
        assert_eq!((answer.status, answer.end), (status, End::Whole));
        assert_eq!(answer.field("www-authenticate"), (status == 401).then_some("Key"));
    }
    let bodies: Vec<_> =
        origin.requests().into_iter().filter(|request| request.target() == "/guarded").collect();
    assert!(bodies.iter().all(|request| request.body == b"a body"), "{bodies:?}");
    let page = frames.whole("/page");
    assert_eq!(page.text(), "a part b part c");
    let given_up: Vec<u32> = (0..20).map(|_| frames.get("/page")).collect();
    given_up.iter().for_each(|stream| frames.give_up(*stream));
    assert_eq!(frames.whole("/page").text(), "a part b part c");
    let mut old = Client::connect(server.port()).expect("it listens");
    assert_eq!(old.get("/page").expect("an answer").text(), "a part b part c");
    assert!(!server.log().contains("panicked"), "{}", server.log());
}
