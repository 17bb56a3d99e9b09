//! Who of several servers is asked, beside turns: sessions that stay with their server, times, a slow start, and the queue.

use millstream_tests::client;
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::server::Server;
use millstream_tests::wait;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

const TWO: &str = site! {
    main "worker_processes 2;" log "info"
    http "proxy_cache_path @DIR@/cache keys_zone=c:1m;
        upstream api { @METHOD@ server @ONE@ @FIRST@; server @TWO@ @SECOND@; @STICKY@ }"
    server "add_header X-Addr $upstream_addr always;
        location / { proxy_pass http://api; proxy_next_upstream error timeout http_500; }
        location /cached/ { proxy_pass http://api; proxy_cache c; proxy_cache_valid 1h; }"
};

#[derive(Default, Clone, Copy)]
struct Written {
    method: &'static str,
    first: &'static str,
    second: &'static str,
    sticky: &'static str,
}

impl Written {
    fn values<'a>(&self, one: &'a str, two: &'a str) -> [(&'static str, &'a str); 6]
    where
        'static: 'a,
    {
        [
            ("METHOD", self.method),
            ("FIRST", self.first),
            ("SECOND", self.second),
            ("STICKY", self.sticky),
            ("ONE", one),
            ("TWO", two),
        ]
    }

    fn start(&self, one: &Origin, two: &Origin) -> Server {
        Server::start(TWO, &self.values(&one.address(), &two.address()))
    }

    fn reload(&self, server: &Server, one: &Origin, two: &Origin) {
        server.rewrite(TWO, &self.values(&one.address(), &two.address()));
        server.reload();
    }
}

fn two() -> (Origin, Origin) {
    (Origin::fixed(200, &[], b"one"), Origin::fixed(200, &[], b"two"))
}

#[test]
fn a_cookie_keeps_a_client_at_one_server_and_moves_with_it_when_that_goes_away() {
    let (one, two) = two();
    let sticky = "sticky cookie at expires=1h domain=$arg_d httponly secure samesite=Lax path=/;";
    let server = Written { sticky, ..Written::default() }.start(&one, &two);
    let first = server.get("/?d=a.example");
    let cookie = first.field("set-cookie").expect("a cookie").to_owned();
    let (name, rest) = cookie.split_once("; ").expect("attributes");
    assert!(rest.starts_with("expires="), "{rest}");
    let life = "; max-age=3600; domain=a.example; httponly; secure; samesite=Lax; path=/";
    assert!(rest.ends_with(life), "{rest}");
    assert_eq!(name.len(), "at=".len() + 32, "{name}");
    for _ in 0..10 {
        let again = server.get_with("/", &[("Cookie", name)]);
        assert_eq!(again.text(), first.text());
        assert!(again.field("set-cookie").is_some_and(|cookie| cookie.starts_with(name)));
        assert!(!again.field("set-cookie").is_some_and(|cookie| cookie.contains("domain")));
    }
    let (gone, left) = if first.text() == "one" { (one, two) } else { (two, one) };
    drop(gone);
    let moved = server.get_with("/", &[("Cookie", name)]);
    assert_eq!(moved.field("x-addr").map(|addr| addr.ends_with(&left.address())), Some(true));
    let cookie = moved.field("set-cookie").expect("a cookie");
    assert!(!cookie.starts_with(name), "it names the server that answered: {cookie}");
}

#[test]
fn the_cookie_of_a_session_is_never_stored() {
    let (one, two) = two();
    let server = Written { sticky: "sticky cookie at;", ..Written::default() }.start(&one, &two);
    assert!(server.get("/cached/a").field("set-cookie").is_some(), "whoever asked a server has it");
    for _ in 0..3 {
        let hit = server.get("/cached/a");
        assert_eq!((hit.status, hit.field("set-cookie")), (200, None));
    }
    assert_eq!(one.count() + two.count(), 1);
}

#[test]
fn a_route_names_a_server_and_one_that_drains_keeps_its_sessions() {
    let (one, two) = two();
    let plain = Written {
        first: "route=a",
        second: "route=b",
        sticky: "sticky route $arg_s $cookie_s;",
        ..Written::default()
    };
    let server = plain.start(&one, &two);
    for _ in 0..6 {
        assert_eq!(server.get("/?s=a").text(), "one");
        assert_eq!(server.get_with("/", &[("Cookie", "s=b")]).text(), "two");
    }
    Written { first: "route=a drain", ..plain }.reload(&server, &one, &two);
    for _ in 0..6 {
        assert_eq!(server.get("/?s=a").text(), "one", "a session of its own");
        assert_eq!(server.get("/").text(), "two", "nobody else");
        assert_eq!(server.get("/?s=c").text(), "two");
    }
}

#[test]
fn a_session_that_a_server_begins_is_learned_and_outlives_a_reload() {
    let session = |name: &'static str| Origin::fixed(200, &[("Set-Cookie", name)], name.as_bytes());
    let (one, two) = (session("id=first"), session("id=second"));
    let written = Written {
        sticky: "sticky learn create=$upstream_cookie_id lookup=$cookie_id zone=s:32k timeout=1h;",
        ..Written::default()
    };
    let server = written.start(&one, &two);
    let of = |name: &str| server.get_with("/", &[("Cookie", name)]).text();
    wait::until("both have begun one", || {
        server.get("/");
        one.count() > 0 && two.count() > 0
    });
    let check = || {
        for name in ["id=first", "id=second", "id=second", "id=first", "id=first", "id=second"] {
            assert_eq!(of(name), name);
        }
    };
    check();
    written.reload(&server, &one, &two);
    check();
}

#[test]
fn least_time_asks_the_faster_server() {
    let one = Origin::start(|_| {
        let slow = Step::Pause(Duration::from_millis(120));
        [vec![slow], answer(200, &[], b"slow")].concat()
    });
    let two = Origin::fixed(200, &[], b"fast");
    let server = Written { method: "least_time header;", ..Written::default() }.start(&one, &two);
    wait::until("both are known", || {
        server.get("/");
        one.count() > 0 && two.count() > 1
    });
    for _ in 0..20 {
        assert_eq!(server.get("/").text(), "fast");
    }
    assert_eq!(one.count(), 1);
}

#[test]
fn a_server_that_is_back_starts_slowly() {
    let status = Arc::new(AtomicU16::new(500));
    let told = status.clone();
    let one = Origin::start(move |_| answer(told.load(Ordering::SeqCst), &[], b"one"));
    let two = Origin::fixed(200, &[], b"two");
    let server = Written { first: "slow_start=1h fail_timeout=1s", ..Written::default() }.start(&one, &two);
    wait::until("it has failed", || server.get("/").status == 200 && one.count() > 0);
    status.store(200, Ordering::SeqCst);
    wait::until("it is back", || server.get("/").text() == "one");
    let before = one.count();
    for _ in 0..200 {
        assert_eq!(server.get("/").status, 200);
    }
    assert!(one.count() - before <= 2, "{} of 200", one.count() - before);
}

/// Two gated servers, each for one request at a time.
fn gated() -> (Arc<Gate>, Origin, Origin) {
    let gate = Arc::new(Gate::default());
    let origin = |text: &'static [u8]| {
        let gate = gate.clone();
        Origin::start(move |_| [vec![Step::Pass(gate.clone())], answer(200, &[], text)].concat())
    };
    let (one, two) = (origin(b"one"), origin(b"two"));
    (gate, one, two)
}

const FULL: Written = Written { method: "", first: "max_conns=1", second: "max_conns=1", sticky: "queue 2;" };

#[test]
fn requests_wait_for_a_server_with_room_and_those_that_find_no_place_get_502() {
    let (gate, one, two) = gated();
    let server = FULL.start(&one, &two);
    let port = server.port();
    let (told, answers) = mpsc::channel();
    for _ in 0..5 {
        let told = told.clone();
        std::thread::spawn(move || told.send(client::get(port, "/").status));
    }
    // Two are asked, two wait, and whoever comes last finds no place.
    let answer = || answers.recv_timeout(Duration::from_secs(10)).expect("an answer");
    assert_eq!(answer(), 502);
    wait::until("both are busy", || one.count() == 1 && two.count() == 1);
    assert!(gate.open());
    for _ in 0..4 {
        assert_eq!(answer(), 200);
    }
    assert_eq!(one.count() + two.count(), 4);
}

#[test]
fn nobody_waits_longer_than_the_queues_timeout_and_one_that_left_gives_its_place_back() {
    let (gate, one, two) = gated();
    let server = Written { sticky: "queue 1 timeout=300ms;", ..FULL }.start(&one, &two);
    let port = server.port();
    let held: Vec<_> = (0..2).map(|_| std::thread::spawn(move || client::get(port, "/"))).collect();
    wait::until("both are busy", || one.count() == 1 && two.count() == 1);
    let began = Instant::now();
    assert_eq!(server.get("/").status, 502);
    assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
    let mut left = server.client();
    left.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("it is sent");
    drop(left);
    gate.open();
    for held in held {
        assert_eq!(held.join().expect("it ends").status, 200);
    }
    wait::until("nobody waits", || server.get("/").status == 200);
}
