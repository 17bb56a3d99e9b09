//! Many clients on one cold entry, and clients beside a refresh: one request to the API, and nobody waits for what is not
//! theirs. `cargo xtask bench stampede` and `bench refresh` measure the same with more clients, beside others.

use std::time::{Duration, Instant};

use millstream_tests::client::Answer;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::process::allow_open_files;
use millstream_tests::server::{Server, is_nginx};
use millstream_tests::stampede::{self, Dribble};
use millstream_tests::wait;

fn start(origin: &Origin, directives: &str) -> Server {
    let template = site! {
        main "worker_processes 2; worker_rlimit_nofile 4096;" events "worker_connections 2048;"
        http "proxy_cache_path @DIR@/cache levels=1:2 keys_zone=answers:1m;
            upstream api { server @ORIGIN@; keepalive 8; }"
        server "location / {
                    proxy_pass http://api;
                    proxy_cache answers;
                    proxy_cache_lock on;
                    add_header X-Cache-Status $upstream_cache_status;
                    @DIRECTIVES@
                }"
    };
    Server::start(template, &[("ORIGIN", &origin.address()), ("DIRECTIVES", directives)])
}

#[test]
fn two_hundred_clients_on_a_cold_entry_are_one_request_and_read_along_while_it_arrives() {
    const CLIENTS: usize = 200;
    assert!(allow_open_files(4 * CLIENTS as u64 + 256));
    let over = Duration::from_millis(1500);
    let dribble = Dribble::start(1 << 20, 32, Duration::from_millis(300), over);
    let server = start(&dribble.origin, "");
    let visits = stampede::ask(server.port(), "/", CLIENTS, Duration::from_secs(20)).expect("clients");
    assert_eq!(dribble.origin.count(), 1);
    let (_, ended) = dribble.moments().expect("it has answered");
    for visit in visits {
        let visit = visit.expect("a whole answer");
        assert_eq!((visit.status, visit.length, visit.checksum), (200, dribble.length, dribble.checksum));
        // nginx's waiters get nothing before the entry is whole.
        assert!(is_nginx() || visit.first < ended, "a waiter had nothing when the API was done");
    }
}

/// The first response is stale after a second; later ones take a second.
fn slow_to_refresh() -> Origin {
    Origin::numbered(move |_, number| {
        let pause = Duration::from_millis(if number == 0 { 0 } else { 1000 });
        let mut steps = vec![Step::Pause(pause)];
        steps.extend(answer(200, &[("Cache-Control", "max-age=1")], format!("answer {number}").as_bytes()));
        steps
    })
}

#[test]
fn requests_behind_the_one_that_starts_a_refresh_are_answered_before_it_is_there() {
    skip_on_nginx!("there they wait until the refresh is through");
    let origin = slow_to_refresh();
    let server = start(&origin, "proxy_cache_use_stale updating; proxy_cache_background_update on;");
    let mut client = server.client();
    assert_eq!(client.get("/").expect("an answer").text(), "answer 0");
    let mut statuses = Vec::new();
    wait::until("the entry is stale", || {
        // Twenty at once: whichever finds it stale first, the others are behind it on the same connection.
        client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(20)).expect("sent");
        statuses = (0..20)
            .map(|_| {
                let answer = client.answer().expect("an answer");
                assert_eq!(answer.text(), "answer 0");
                answer.cache_status().to_owned()
            })
            .collect();
        statuses.iter().any(|status| status == "STALE")
    });
    let at = statuses.iter().position(|status| status == "STALE").expect("it was seen");
    assert!(statuses[at + 1..].iter().all(|status| status == "UPDATING"), "{statuses:?}");
    wait::until("the refresh has arrived", || client.get("/").expect("an answer").text() != "answer 0");
}

fn at_once(server: &Server, clients: usize) -> (Vec<Answer>, Duration) {
    let began = Instant::now();
    let answers = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..clients).map(|_| scope.spawn(|| server.get("/"))).collect();
        asking.into_iter().map(|client| client.join().expect("an answer")).collect()
    });
    (answers, began.elapsed())
}

#[test]
fn an_api_that_fails_slowly_is_not_asked_by_one_after_the_other() {
    const PAUSE: Duration = Duration::from_millis(600);
    for (status, asked) in [(503, 2), (500, 12)] {
        let origin = Origin::start(move |_| {
            let mut steps = vec![Step::Pause(PAUSE)];
            steps.extend(answer(status, &[], b"no"));
            steps
        });
        let server = start(&origin, "proxy_cache_lock_timeout 60s; proxy_cache_lock_age 60s;");
        let (answers, elapsed) = at_once(&server, 12);
        assert!(answers.iter().all(|answer| answer.status == status), "{status}");
        skip_on_nginx!("it has them wait for half a second each time");
        // The first, one more, and where the failure may be the request's own, all others at once.
        assert!(elapsed < 4 * PAUSE, "{status}: {elapsed:?}");
        assert_eq!(origin.count(), asked, "{status}");
        // For a while after it nobody waits for another.
        let (_, elapsed) = at_once(&server, 6);
        assert!(elapsed < 2 * PAUSE, "{status}: {elapsed:?}");
    }
}

#[test]
fn those_who_wait_for_a_failing_api_get_what_is_stale_where_that_is_allowed() {
    skip_on_nginx!();
    let origin = Origin::numbered(move |_, number| match number {
        0 => answer(200, &[("Cache-Control", "max-age=0, stale-if-error=60"), ("ETag", "\"a\"")], b"good"),
        _ => {
            let mut steps = vec![Step::Pause(Duration::from_millis(400))];
            steps.extend(answer(503, &[], b"no"));
            steps
        }
    });
    let directives =
        "proxy_cache_valid 200 1s; proxy_cache_use_stale http_503; proxy_cache_credentials public;";
    let server = start(&origin, directives);
    assert_eq!(server.get("/").text(), "good");
    let (answers, elapsed) = at_once(&server, 8);
    assert!(answers.iter().all(|answer| answer.text() == "good"));
    assert!(elapsed < Duration::from_millis(1600), "{elapsed:?}");
}
