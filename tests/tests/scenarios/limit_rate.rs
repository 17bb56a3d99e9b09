//! How fast answers are sent: never faster than they may be, whole, and without a wait where there is no limit.

use std::time::{Duration, Instant};

use millstream_tests::client;
use millstream_tests::origin::{Origin, answer};
use millstream_tests::server::{Server, is_nginx};

const PACED: &str = site! {
    main "worker_processes 1;" log "info"
    http "proxy_cache_path @DIR@/cache keys_zone=answers:1m;
        proxy_cache_valid 1h;"
    server "location / { proxy_pass http://@ORIGIN@; }
        location /stored { proxy_pass http://@ORIGIN@; proxy_cache answers; limit_rate 20k; }
        location /passed { proxy_pass http://@ORIGIN@; limit_rate 20k; }
        location /unbuffered { proxy_pass http://@ORIGIN@; proxy_buffering off; limit_rate 20k; }
        location /file/ { root @DIR@; limit_rate 20k; }
        location /after { proxy_pass http://@ORIGIN@; limit_rate 10k; limit_rate_after 20k; }
        location /chosen { proxy_pass http://@ORIGIN@; if ($arg_bot) { limit_rate 20k; } }
        location /chosen_after { proxy_pass http://@ORIGIN@; limit_rate 20k; if ($arg_user) { limit_rate_after 40k; } }
        location /asked { proxy_pass http://@ORIGIN@; limit_rate $arg_rate; }
        location /ignored { proxy_pass http://@ORIGIN@; proxy_ignore_headers X-Accel-Limit-Rate; }"
};

/// 40 KiB, of which the first second's are sent at once; at 20 KiB a second the others take one more.
fn body() -> Vec<u8> {
    (0..40 * 1024).map(|at| b'a' + (at % 26) as u8).collect()
}

fn origin() -> Origin {
    let body = body();
    Origin::start(move |request| {
        let fields: &[(&str, &str)] =
            if request.target().contains("accel") { &[("X-Accel-Limit-Rate", "20480")] } else { &[] };
        answer(200, fields, &body)
    })
}

fn time(server: &Server, path: &str) -> Duration {
    let began = Instant::now();
    let answer = client::get(server.port(), path);
    assert_eq!((answer.status, answer.body == body()), (200, true), "{path}");
    began.elapsed()
}

#[test]
fn an_answer_takes_at_least_as_long_as_its_rate_wants_wherever_it_comes_from() {
    let origin = origin();
    let server = Server::start(PACED, &[("ORIGIN", &origin.address())]);
    server.prefix().write("file/a", body());
    // nginx counts whole seconds, so that it may be up to one ahead.
    let least = Duration::from_millis(if is_nginx() { 0 } else { 950 });
    for path in [
        "/stored",
        "/stored",
        "/passed",
        "/unbuffered",
        "/file/a",
        "/after",
        "/asked?rate=20k",
        "/accel",
        "/chosen?bot=1",
        "/chosen_after",
    ] {
        let took = time(&server, path);
        assert!(took >= least, "{path} took {took:?}");
    }
    assert_eq!(origin.requests().iter().filter(|request| request.target() == "/stored").count(), 1);
}

#[test]
fn an_answer_without_a_rate_does_not_wait_for_one() {
    let origin = origin();
    let server = Server::start(PACED, &[("ORIGIN", &origin.address())]);
    for path in ["/asked", "/chosen", "/chosen_after?user=1"] {
        let least = (0..3).map(|_| time(&server, path)).min();
        assert!(least < Some(Duration::from_millis(900)), "{path}: {least:?}");
    }
    let least = (0..3).map(|_| time(&server, "/ignored?accel")).min();
    assert!(least < Some(Duration::from_millis(900)), "{least:?}");
}

#[test]
fn a_paced_client_holds_nobody_up_and_sees_its_bytes_as_they_come() {
    let origin = origin();
    let server = Server::start(PACED, &[("ORIGIN", &origin.address())]);
    let mut paced = server.client();
    paced.send("GET /passed HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    assert_eq!(paced.head().expect("the head comes at once").status, 200);
    assert_eq!(paced.exactly(10 * 1024).expect("and a second's bytes"), body()[..10 * 1024]);
    time(&server, "/");
    assert_eq!(paced.exactly(30 * 1024).expect("the rest"), body()[10 * 1024..]);
}
