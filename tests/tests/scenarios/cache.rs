//! The cache as a client and an API see it: what is shared with whom, for how long, and who waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::server::{Server, is_nginx};
use millstream_tests::{client, wait};

fn start(origin: &Origin, directives: &str) -> Server {
    let template = site! {
        main "worker_processes 2;"
        http "proxy_cache_path @DIR@/cache levels=1:2 keys_zone=answers:1m;
            upstream api { server @ORIGIN@; keepalive 8; }"
        server "location / {
                proxy_pass http://api;
                proxy_http_version 1.1;
                proxy_set_header Connection \"\";
                proxy_cache answers;
                proxy_cache_key $uri$is_args$args;
                add_header X-Cache-Status $upstream_cache_status;
                @DIRECTIVES@
            }"
    };
    Server::start(template, &[("ORIGIN", &origin.address()), ("DIRECTIVES", directives)])
}

/// Numbers its responses, so that a test sees which one it got.
fn numbered(fields: &'static [(&'static str, &'static str)]) -> Origin {
    let count = AtomicUsize::new(0);
    Origin::start(move |_| {
        answer(200, fields, format!("answer {}", count.fetch_add(1, Ordering::SeqCst)).as_bytes())
    })
}

#[test]
fn each_variant_that_vary_names_is_an_entry_of_its_own() {
    let origin = Origin::start(|request| {
        let language = request.field("accept-language").unwrap_or("none").to_owned();
        answer(200, &[("Cache-Control", "max-age=60"), ("Vary", "Accept-Language")], language.as_bytes())
    });
    let server = start(&origin, "");
    let ask = |language: &str| server.get_with("/", &[("Accept-Language", language)]);
    for expected in ["MISS", "HIT"] {
        for language in ["de", "fr"] {
            let answer = ask(language);
            assert_eq!((answer.text().as_str(), answer.cache_status()), (language, expected));
        }
    }
    assert_eq!(origin.count(), 2);
}

#[test]
fn a_client_that_has_the_entry_gets_304_from_the_cache() {
    let origin = numbered(&[("Cache-Control", "max-age=60"), ("ETag", "\"one\"")]);
    let server = start(&origin, "proxy_cache_lock on;");
    assert_eq!(server.get("/").status, 200);
    let mut client = server.client();
    for (tag, expected) in
        [("\"one\"", 304), ("W/\"one\"", 304), ("\"other\", \"one\"", 304), ("\"other\"", 200), ("*", 304)]
    {
        let answer = client.get_with("/", &[("If-None-Match", tag)]).expect("an answer");
        assert_eq!(answer.status, expected, "If-None-Match: {tag}");
        assert_eq!(answer.field("etag"), Some("\"one\""));
    }
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_head_request_is_answered_from_what_a_get_stored() {
    let origin = numbered(&[("Cache-Control", "max-age=60")]);
    let server = start(&origin, "proxy_cache_lock on;");
    assert_eq!(server.get("/").text(), "answer 0");
    let head = server.request("HEAD", "/", &[]);
    assert_eq!((head.status, head.cache_status(), head.field("content-length")), (200, "HIT", Some("8")));
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_post_is_never_answered_from_the_cache_and_makes_the_entry_stale() {
    let origin = numbered(&[("Cache-Control", "max-age=60")]);
    let server = start(&origin, "");
    assert_eq!(server.get("/").text(), "answer 0");
    assert_eq!(
        server.ask("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx").text(),
        "answer 1"
    );
    let after = server.get("/").text();
    // RFC 9111 §4.4; nginx goes on serving the old one.
    assert_eq!(after, if is_nginx() { "answer 0" } else { "answer 2" });
}

#[test]
fn an_answer_to_a_credential_is_shared_only_where_the_api_says_so() {
    skip_on_nginx!("it shares it: one of the differences on purpose");
    let private = numbered(&[("Cache-Control", "max-age=60")]);
    let server = start(&private, "");
    let by = |server: &Server, name: &str| server.get_with("/", &[("Authorization", name)]).text();
    assert_ne!(by(&server, "Basic b25l"), by(&server, "Basic dHdv"), "RFC 9111 §3.5");
    let public = numbered(&[("Cache-Control", "public, max-age=60")]);
    let server = start(&public, "");
    assert_eq!(by(&server, "Basic b25l"), by(&server, "Basic dHdv"));
}

#[test]
fn the_old_answer_is_served_when_the_api_fails() {
    let origin = Origin::start({
        let count = AtomicUsize::new(0);
        move |_| match count.fetch_add(1, Ordering::SeqCst) {
            0 => answer(200, &[("Cache-Control", "max-age=1")], b"the good one"),
            _ => answer(503, &[], b"out of order"),
        }
    });
    let server = start(&origin, "proxy_cache_use_stale error timeout http_503;");
    assert_eq!(server.get("/").text(), "the good one");
    wait::until("the entry is stale and the API was asked", || {
        origin.count() > 1 || {
            assert_eq!(server.get("/").text(), "the good one");
            false
        }
    });
    let answer = server.get("/");
    assert_eq!(
        (answer.status, answer.text().as_str(), answer.cache_status()),
        (200, "the good one", "STALE")
    );
}

#[test]
fn nobody_waits_for_a_refresh_in_the_background() {
    let gate = Arc::new(Gate::default());
    let origin = Origin::start({
        let (count, gate) = (AtomicUsize::new(0), Arc::clone(&gate));
        move |_| {
            let number = count.fetch_add(1, Ordering::SeqCst);
            let body = format!("answer {number}");
            let mut steps = answer(200, &[("Cache-Control", "max-age=1")], body.as_bytes());
            if number > 0 {
                steps.insert(0, Step::Pass(Arc::clone(&gate)));
            }
            steps
        }
    });
    let server = start(&origin, "proxy_cache_use_stale updating; proxy_cache_background_update on;");
    let mut client = server.client();
    assert_eq!(client.get("/").expect("an answer").text(), "answer 0");
    let mut answers = |text: &str| client.get("/").expect("an answer").text() == text;
    wait::until("a refresh has begun", || {
        // nginx holds up the connection whose request started it.
        assert!(answers("answer 0") || is_nginx());
        origin.count() == 2
    });
    for _ in 0..20 {
        assert!(answers("answer 0") || is_nginx());
    }
    assert_eq!(origin.count(), 2, "one refreshes for all");
    assert!(gate.open() || is_nginx(), "somebody waited for it");
    wait::until("the refreshed answer is there", || answers("answer 1"));
}

#[test]
fn those_who_come_during_a_fill_get_its_bytes_as_they_arrive() {
    let gate = Arc::new(Gate::default());
    let first = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\nfirst";
    let origin = Origin::in_two(first, &gate, b" half");
    let server = start(&origin, "proxy_cache_lock on;");
    let mut leader = server.client();
    leader.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
    wait::until("the API has the request", || origin.count() == 1);
    let mut follower = server.client();
    follower.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
    if is_nginx() {
        gate.open(); // It has followers wait for the whole, and after five seconds ask themselves.
    }
    assert_eq!(follower.head().expect("the head").status, 200);
    if !is_nginx() {
        assert_eq!(follower.exactly(5).expect("the first half"), b"first");
        assert!(gate.open(), "it waited for the whole");
        assert_eq!(follower.exactly(5).expect("the second half"), b" half");
    }
    assert_eq!(leader.answer().expect("the leader's answer").text(), "first half");
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_fill_that_breaks_off_reaches_nobody_as_a_whole_answer_and_the_next_request_asks_again() {
    let origin = Origin::start({
        let count = AtomicUsize::new(0);
        move |_| match count.fetch_add(1, Ordering::SeqCst) {
            0 => vec![
                Step::Send(
                    b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\nfirst"
                        .to_vec(),
                ),
                Step::Pause(Duration::from_millis(300)),
                Step::Close,
            ],
            _ => answer(200, &[("Cache-Control", "max-age=60")], b"whole"),
        }
    });
    let server = start(&origin, "proxy_cache_lock on;");
    let port = server.port();
    let both: Vec<_> =
        (0..2).map(|_| std::thread::spawn(move || client::Client::connect(port)?.get("/"))).collect();
    for reader in both {
        let cut = match reader.join().expect("no panic") {
            Ok(answer) => answer.text() == "whole",
            Err(_) => true,
        };
        assert!(cut, "half an answer looked like a whole one");
    }
    assert_eq!(server.get("/").text(), "whole");
}

#[test]
fn the_api_decides_by_x_accel_expires_before_anything_else() {
    let origin = Origin::start(|request: &Request| match request.target() {
        "/no" => answer(200, &[("X-Accel-Expires", "0"), ("Cache-Control", "max-age=60")], b"no"),
        _ => answer(200, &[("X-Accel-Expires", "60"), ("Cache-Control", "no-store")], b"yes"),
    });
    let server = start(&origin, "");
    let twice = |path: &str| (server.get(path), server.get(path));
    let (_, no) = twice("/no");
    assert_eq!(
        (no.cache_status(), no.field("x-accel-expires")),
        ("MISS", None),
        "the field is for the proxy alone"
    );
    let (_, yes) = twice("/yes");
    assert_eq!(yes.cache_status(), "HIT");
}

#[test]
fn bypass_and_no_cache_go_by_what_the_request_carries() {
    let origin = numbered(&[("Cache-Control", "max-age=60")]);
    let server =
        start(&origin, "proxy_cache_bypass $arg_fresh $http_x_fresh; proxy_no_cache $http_x_secret;");
    assert_eq!(server.get("/").text(), "answer 0");
    let bypassed = server.get_with("/", &[("X-Fresh", "1")]);
    assert_eq!((bypassed.text().as_str(), bypassed.cache_status()), ("answer 1", "BYPASS"));
    wait::until("what a bypass brought is stored", || server.get("/").text() == "answer 1");
    for expected in ["answer 2", "answer 3"] {
        assert_eq!(server.get_with("/secret", &[("X-Secret", "1")]).text(), expected);
    }
}

#[test]
fn many_clients_on_a_cold_key_are_one_request_to_the_api() {
    let origin = Origin::start(|_| {
        let mut steps = vec![Step::Pause(Duration::from_millis(300))];
        steps.extend(answer(200, &[("Cache-Control", "max-age=60")], &[b'x'; 100_000]));
        steps
    });
    let server = start(&origin, "proxy_cache_lock on;");
    let (port, whole) = (server.port(), Arc::new(AtomicUsize::new(0)));
    std::thread::scope(|scope| {
        for _ in 0..50 {
            scope.spawn(|| {
                if client::get(port, "/").body.len() == 100_000 {
                    whole.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!((whole.load(Ordering::SeqCst), origin.count()), (50, 1));
}
