//! `serve` in front of an API that nobody described to it: whose answer a client gets, what is stored, how stale, and
//! who can take it out.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use millstream_tests::client::{self, Client};
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::process::Running;
use millstream_tests::wait;

/// Fields by which an API may know who asks, or for whom, or in what form.
const CREDENTIALS: [&str; 10] = [
    "Cookie",
    "Authorization",
    "Proxy-Authorization",
    "X-Api-Key",
    "Api-Key",
    "X-Auth-Token",
    "X-Access-Token",
    "Private-Token",
    "X-Shop-Session",
    "Client-Secret",
];

/// Not credentials, but they may change a response.
const OTHERS: [&str; 6] =
    ["X-Tenant", "Accept-Language", "Accept", "X-Requested-With", "Tenant-Id", "Origin"];

/// So that nothing expires while a test runs.
const MICROCACHE: [&str; 2] = ["--microcache", "60s"];

fn serve(origin: &Origin, options: &[&str]) -> (u16, Running) {
    let url = format!("http://{}", origin.address());
    let arguments: Vec<&str> = [url.as_str()].into_iter().chain(options.iter().copied()).collect();
    super::serve_url::serve(&arguments)
}

/// Responds by the value of a field, which the path names.
fn personal(fields: &'static [(&'static str, &'static str)], pause: Duration) -> Origin {
    Origin::start(move |request| {
        let name = request.target().trim_start_matches('/');
        let said = request.field(name).unwrap_or("nobody").to_owned();
        let mut lines = fields.to_vec();
        if let Some(origin) = request.field("origin") {
            lines.push(("Access-Control-Allow-Origin", origin));
        }
        let mut steps = vec![Step::Pause(pause)];
        steps.extend(answer(200, &lines, said.as_bytes()));
        steps
    })
}

fn ask(port: u16, name: &str, value: Option<&str>) -> String {
    let fields: Vec<_> = value.map(|value| (name, value)).into_iter().collect();
    client::get_with(port, &format!("/{name}"), &fields).text()
}

#[test]
fn one_user_s_answer_is_never_another_s() {
    skip_on_nginx!();
    let fresh: &'static [(&str, &str)] = &[("Cache-Control", "max-age=60")];
    let credentials = CREDENTIALS.iter().chain(&["Origin"]).copied().collect::<Vec<_>>();
    let all = CREDENTIALS.iter().chain(&OTHERS).copied().collect::<Vec<_>>();
    for (fields, options, names) in
        [(fresh, &[][..], credentials), (&[], &MICROCACHE[..], all.clone()), (fresh, &MICROCACHE[..], all)]
    {
        let origin = personal(fields, Duration::ZERO);
        let (port, _process) = serve(&origin, options);
        for name in names {
            for said in [None, Some("alice"), Some("bob"), Some("alice"), None] {
                let got = ask(port, name, said);
                assert_eq!(got, said.unwrap_or("nobody"), "{name} with {options:?} and {fields:?}");
            }
        }
        // What names nobody is still cached.
        let before = origin.count();
        for _ in 0..3 {
            assert_eq!(ask(port, "plain", None), "nobody");
        }
        assert_eq!(origin.count() - before, 1, "{options:?}");
    }
}

#[test]
fn those_who_ask_at_once_get_their_own_too() {
    skip_on_nginx!();
    let origin = personal(&[], Duration::from_millis(100));
    let (port, _process) = serve(&origin, &MICROCACHE);
    for name in CREDENTIALS.into_iter().chain(OTHERS) {
        let start = Arc::new(Barrier::new(6));
        let asking = [None, Some("alice"), Some("bob"), None, Some("alice"), Some("bob")].map(|said| {
            let start = Arc::clone(&start);
            thread::spawn(move || {
                start.wait();
                (said, ask(port, name, said))
            })
        });
        for one in asking {
            let (said, got) = one.join().expect("no panic");
            assert_eq!(got, said.unwrap_or("nobody"), "{name}");
        }
    }
}

#[test]
fn what_says_itself_that_it_is_for_all_is_shared_with_credentials_too() {
    skip_on_nginx!();
    for control in ["public, max-age=60", "s-maxage=60"] {
        let origin = Origin::start(move |_| answer(200, &[("Cache-Control", control)], b"for all"));
        let (port, _process) = serve(&origin, &[]);
        for name in CREDENTIALS {
            for value in ["alice", "bob"] {
                assert_eq!(client::get_with(port, "/", &[(name, value)]).text(), "for all");
            }
        }
        assert_eq!(origin.count(), 1, "{control}");
    }
}

#[test]
fn a_user_s_conditions_and_ranges_reach_the_api_where_nothing_is_shared() {
    skip_on_nginx!();
    let origin = Origin::start(|request| match (request.field("if-none-match"), request.field("range")) {
        (Some("\"1\""), _) => vec![Step::Send(b"HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n".to_vec())],
        (_, Some(_)) => answer(206, &[("Content-Range", "bytes 0-1/4"), ("ETag", "\"1\"")], b"an"),
        _ => answer(200, &[("ETag", "\"1\"")], b"answ"),
    });
    let (port, _process) = serve(&origin, &MICROCACHE);
    let cookie = ("Cookie", "session=alice");
    assert_eq!(client::get_with(port, "/", &[cookie, ("If-None-Match", "\"1\"")]).status, 304);
    let part = client::get_with(port, "/", &[cookie, ("Range", "bytes=0-1")]);
    assert_eq!((part.status, part.text().as_str()), (206, "an"));
    assert_eq!(client::get(port, "/").text(), "answ", "and nobody else gets what came of them");
}

#[test]
fn a_purge_of_a_url_reaches_the_variants_of_fields_that_nobody_listed() {
    skip_on_nginx!();
    let origin = Origin::numbered(move |_, number| answer(200, &[], number.to_string().as_bytes()));
    let (port, _process) = serve(&origin, &[&MICROCACHE[..], &["--purge", "local"]].concat());
    let tenants = [None, Some(("X-Tenant", "a")), Some(("X-Tenant", "b"))];
    let ask = |tenant: Option<(&str, &str)>| client::get_with(port, "/p", tenant.as_slice()).text();
    let before = tenants.map(ask);
    assert_eq!(tenants.map(ask), before, "each is stored");
    let purged = Client::connect(port).and_then(|mut client| client.request("PURGE", "/p", &[]));
    assert_eq!(purged.expect("an answer").status, 200);
    let after = tenants.map(ask);
    assert!(before.iter().zip(&after).all(|(before, after)| before != after), "{before:?} {after:?}");
}

#[test]
fn a_stream_is_neither_stored_nor_shared() {
    skip_on_nginx!();
    for kind in [
        "text/event-stream",
        "Text/Event-Stream; charset=utf-8",
        "multipart/x-mixed-replace; boundary=x",
        "application/x-ndjson",
        "application/grpc",
    ] {
        let origin = Origin::numbered(move |_, number| {
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n");
            let events = format!("1\r\n{number}\r\n0\r\n\r\n");
            vec![Step::Send(head.into_bytes()), Step::Send(events.into_bytes())]
        });
        let (port, _process) = serve(&origin, &MICROCACHE);
        for number in 0..3 {
            assert_eq!(client::get(port, "/events").text(), number.to_string(), "{kind}");
        }
    }
}

#[test]
fn nobody_waits_behind_an_event_stream() {
    skip_on_nginx!();
    let gate = Arc::new(Gate::default());
    let origin = Origin::start({
        let gate = Arc::clone(&gate);
        move |_| {
            let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n6\r\ndata\n\n\r\n";
            vec![Step::Send(head.to_vec()), Step::Pass(Arc::clone(&gate)), Step::Send(b"0\r\n\r\n".to_vec())]
        }
    });
    let (port, _process) = serve(&origin, &MICROCACHE);
    let mut clients: Vec<_> = (0..4).map(|_| Client::connect(port).expect("it listens")).collect();
    for client in &mut clients {
        client.send("GET /events HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
        assert_eq!(client.head().expect("a head").status, 200);
    }
    assert_eq!(origin.count(), 4, "a stream for each");
    assert!(gate.open(), "nobody waited for the end of another's");
}

fn pass(since: Instant, time: Duration) {
    wait::until("the time has come", || since.elapsed() >= time);
}

#[test]
fn what_is_stale_is_answered_no_longer_than_it_was_fresh() {
    skip_on_nginx!();
    for (options, control) in [(&[][..], "max-age=1"), (&["--microcache", "1s"][..], "x")] {
        let count = AtomicUsize::new(0);
        let origin = Origin::start(move |_| {
            let number = count.fetch_add(1, Ordering::SeqCst).to_string();
            answer(200, &[("Cache-Control", control)], number.as_bytes())
        });
        let (port, _process) = serve(&origin, options);
        let begun = Instant::now();
        assert_eq!(client::get(port, "/").text(), "0");
        pass(begun, Duration::from_millis(2500));
        assert_eq!(
            client::get(port, "/").text(),
            "1",
            "a second fresh, a second stale, then anew ({options:?})"
        );
    }
}

#[test]
fn a_refresh_that_a_credential_began_gives_nobody_else_what_it_brought_and_stops_no_other() {
    skip_on_nginx!();
    let origin = Origin::start(|request| match request.field("cookie") {
        Some(cookie) => answer(200, &[("Cache-Control", "private, max-age=60")], cookie.as_bytes()),
        None => answer(200, &[("Cache-Control", "public, max-age=1")], b"for all"),
    });
    let (port, _process) = serve(&origin, &[]);
    let begun = Instant::now();
    for path in ["/", "/old"] {
        assert_eq!(client::get(port, path).text(), "for all");
    }
    pass(begun, Duration::from_millis(1100));
    // Stale, and refreshed behind the answer: with the cookie, where that one comes first.
    for count in 3..6 {
        // A request that comes while the refresh before it is still under way begins none.
        wait::until("it was asked", || {
            let got = client::get_with(port, "/", &[("Cookie", "user=1")]).text();
            assert!(got == "for all" || got == "user=1", "{got}");
            origin.count() >= count
        });
    }
    assert_eq!(client::get(port, "/").text(), "for all");
    pass(begun, Duration::from_millis(2500));
    assert_eq!(client::get_with(port, "/old", &[("Cookie", "user=2")]).text(), "user=2");
    assert_eq!(client::get(port, "/old").text(), "for all");
}

#[test]
fn on_errors_what_is_stale_stands_in_for_as_long_as_the_option_says() {
    skip_on_nginx!();
    // Nothing, or one of the statuses that RFC 5861 §4 calls an error.
    for (limit, failure, expected) in [
        ("10m", 0, (200, "good")),
        ("1s", 0, (502, "")),
        ("10m", 500, (200, "good")),
        ("10m", 503, (200, "good")),
        ("1s", 503, (503, "")),
        ("10m", 404, (404, "")),
    ] {
        let count = AtomicUsize::new(0);
        let origin = Origin::start(move |_| match (count.fetch_add(1, Ordering::SeqCst), failure) {
            (0, _) => answer(200, &[("Cache-Control", "max-age=1")], b"good"),
            (_, 0) => vec![Step::Close],
            (_, status) => answer(status, &[], b"bad"),
        });
        let (port, _process) = serve(&origin, &["--stale-if-error", limit]);
        let begun = Instant::now();
        assert_eq!(client::get(port, "/").text(), "good");
        pass(begun, Duration::from_millis(2500));
        let got = client::get(port, "/");
        assert_eq!(got.status, expected.0, "{limit} {failure}");
        assert!(got.status != 200 || got.text() == expected.1);
    }
}

#[test]
fn anybody_s_posts_take_an_answer_out_once_a_second_and_the_last_one_counts() {
    skip_on_nginx!();
    let (reads, writes) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let origin = Origin::start({
        let (reads, writes) = (Arc::clone(&reads), Arc::clone(&writes));
        move |request: &Request| {
            if request.head.starts_with("GET") {
                reads.fetch_add(1, Ordering::SeqCst);
                let version = writes.load(Ordering::SeqCst).to_string();
                answer(200, &[("Cache-Control", "max-age=600")], version.as_bytes())
            } else {
                writes.fetch_add(1, Ordering::SeqCst);
                answer(200, &[], b"")
            }
        }
    });
    let (port, _process) = serve(&origin, &[]);
    // Who writes sees each change at once, at the cost of its own requests; what others get is what the bound is for.
    let mut writer = Client::connect(port).expect("it listens");
    let mut reader = Client::connect_from(Ipv4Addr::new(127, 0, 0, 2), port).expect("it listens");
    let begun = Instant::now();
    assert_eq!(reader.get("/").expect("an answer").text(), "0");
    for method in ["POST", "DELETE", "FROBNICATE"].into_iter().cycle().take(60) {
        assert_eq!(writer.request(method, "/", &[]).expect("an answer").status, 200);
        assert_eq!(reader.get("/").expect("an answer").status, 200);
    }
    let most = 3 + begun.elapsed().as_secs() as usize;
    let asked = reads.load(Ordering::SeqCst);
    assert!((2..=most).contains(&asked), "the API was asked {asked} times, {most} at the most");
    wait::until("the last change is seen", || reader.get("/").expect("an answer").text() == "60");
    assert!(reads.load(Ordering::SeqCst) <= 3 + begun.elapsed().as_secs() as usize);
}

#[test]
fn a_request_whose_connection_takes_a_field_away_neither_gets_nor_stores_a_response() {
    skip_on_nginx!();
    let origin = Origin::start(|request| {
        let said = request.field("accept-language").unwrap_or("none").to_owned();
        answer(200, &[("Cache-Control", "max-age=60"), ("Vary", "Accept-Language")], said.as_bytes())
    });
    let (port, _process) = serve(&origin, &[]);
    let german = [("Accept-Language", "de"), ("User-Agent", "x")];
    assert_eq!(client::get_with(port, "/", &german).text(), "de");
    for (hidden, expected, asked) in [
        ("keep-alive, User-Agent", "de", 2),
        ("Accept-Language", "none", 3),
        ("accept-language", "none", 4),
        ("keep-alive", "de", 4),
    ] {
        let fields = [german[0], german[1], ("Connection", hidden)];
        assert_eq!(client::get_with(port, "/", &fields).text(), expected, "{hidden}");
        assert_eq!(origin.count(), asked, "{hidden}");
        assert_eq!(client::get_with(port, "/", &german).text(), "de");
    }
    assert_eq!(origin.count(), 4);
}
