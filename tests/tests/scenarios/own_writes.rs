//! With `proxy_cache_invalidation rate=` a change is seen late by others, and at once by the client that made it.
//!
//! The rate is one a minute here, so that what a test sees before the turn does not depend on how fast it runs.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use millstream_tests::client::{Answer, Client};
use millstream_tests::frames::Frames;
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::server::Server;
use millstream_tests::wait;

const WRITER: Ipv4Addr = Ipv4Addr::LOCALHOST;
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 7);

/// A version of each URL: anything but GET or HEAD makes the next. `POST /new` makes that of `/made`, and
/// names it.
fn versions() -> Origin {
    held(&Arc::default())
}

/// As [`versions`]; a GET with `X-Wait` gets its response when the gate is opened.
fn held(gate: &Arc<Gate>) -> Origin {
    let (versions, gate) = (Mutex::new(HashMap::<String, u32>::new()), Arc::clone(gate));
    Origin::start(move |request: &Request| {
        let mut versions = versions.lock().expect("no script panics");
        let target = request.target().to_owned();
        let named = if target == "/new" { "/made".to_owned() } else { target };
        let version = versions.entry(named.clone()).or_default();
        if !request.head.starts_with("GET ") && !request.head.starts_with("HEAD ") {
            *version += 1;
            return answer(200, &[("Location", &named)], b"written");
        }
        let max_age = if named == "/short" { "max-age=1" } else { "max-age=60" };
        let made = answer(200, &[("Cache-Control", max_age)], version.to_string().as_bytes());
        match request.field("x-wait") {
            Some(_) => [vec![Step::Pass(gate.clone())], made].concat(),
            None => made,
        }
    })
}

fn start(origin: &Origin, directives: &str) -> Server {
    let template = site! {
        main "worker_processes 2;"
        http "proxy_cache_path @DIR@/cache levels=1:2 keys_zone=zone:1m;"
        server "http2 on;
            location / {
                proxy_pass http://@ORIGIN@; proxy_http_version 1.1; proxy_cache zone; proxy_cache_invalidation rate=1r/m;
                proxy_set_header X-Wait $http_x_wait;
                add_header X-Cache-Status $upstream_cache_status;
                @DIRECTIVES@
            }"
    };
    Server::start(template, &[("ORIGIN", &origin.address()), ("DIRECTIVES", directives)])
}

fn ask(from: Ipv4Addr, port: u16, method: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
    let mut client = Client::connect_from(from, port).expect("it listens");
    client.request(method, path, fields).expect("an answer")
}

/// Uses up the turn of a path: later changes are delayed.
fn use_turn(port: u16, method: &str, path: &str) {
    assert_eq!(ask(STRANGER, port, method, path, &[("Content-Length", "0")]).status, 200);
}

#[test]
fn a_client_reads_its_own_change_at_once_and_others_keep_their_hits() {
    skip_on_nginx!("it takes nothing out");
    for key in
        ["", "proxy_cache_key $uri;", "proxy_cache_key $request_method$request_uri;", "proxy_cache_lock on;"]
    {
        let origin = versions();
        let server = start(&origin, key);
        for method in ["PUT", "POST", "DELETE", "PATCH", "ODD"] {
            let path = format!("/things/{method}?of=all");
            let get = |from| ask(from, server.port(), "GET", &path, &[]);
            assert_eq!(get(STRANGER).text(), "0");
            for round in 1..=8 {
                let written = ask(WRITER, server.port(), method, &path, &[("Content-Length", "0")]);
                assert_eq!(written.text(), "written");
                for _ in 0..3 {
                    assert_eq!(get(WRITER).text(), round.to_string(), "{method} {key}");
                }
                assert_eq!(get(WRITER).cache_status(), "HIT", "what it has read is stored: {method} {key}");
                assert_eq!(get(STRANGER).cache_status(), "HIT", "{method} {key}");
            }
            let is_read = |request: &&Request| request.head.starts_with("GET") && request.target() == path;
            let reads = origin.requests().iter().filter(is_read).count();
            assert_eq!(reads, 9, "one for each change: {method} {key}");
        }
    }
}

#[test]
fn a_change_is_seen_by_head_too_where_the_key_names_the_method() {
    skip_on_nginx!();
    for key in ["", "proxy_cache_key $request_method$request_uri;"] {
        let origin = versions();
        let server = start(&origin, key);
        let head = |from| ask(from, server.port(), "HEAD", "/thing", &[]).cache_status().to_owned();
        assert_eq!([head(STRANGER), head(STRANGER)], ["MISS", "HIT"], "{key}");
        use_turn(server.port(), "PUT", "/thing");
        assert_eq!([head(STRANGER), head(STRANGER)], ["MISS", "HIT"], "{key}");
        ask(WRITER, server.port(), "PUT", "/thing", &[("Content-Length", "0")]);
        assert_eq!(head(STRANGER), "HIT", "it waits for its turn: {key}");
        assert_ne!(head(WRITER), "HIT", "its own change: {key}");
    }
}

#[test]
fn a_change_that_others_have_not_seen_yet_is_seen_on_every_connection_and_over_http_2() {
    skip_on_nginx!();
    let origin = versions();
    let server = start(&origin, "");
    let port = server.port();
    use_turn(port, "PUT", "/thing");
    assert_eq!(ask(STRANGER, port, "GET", "/thing", &[]).text(), "1");
    let mut frames = Frames::connect(port);
    for round in 2..6 {
        let stream = frames.request("PUT", "/thing", &[("content-length", "0")], true);
        assert_eq!(frames.answer(stream).text(), "written");
        assert_eq!(
            ask(STRANGER, port, "GET", "/thing", &[]).text(),
            (round - 1).to_string(),
            "it waits for its turn"
        );
        for _ in 0..4 {
            assert_eq!(ask(WRITER, port, "GET", "/thing", &[]).text(), round.to_string());
        }
        assert_eq!(frames.whole("/thing").text(), round.to_string());
    }
}

#[test]
fn what_the_response_to_a_change_names_is_seen_changed_too() {
    skip_on_nginx!();
    let origin = versions();
    let server = start(&origin, "");
    let port = server.port();
    use_turn(port, "POST", "/new");
    assert_eq!(ask(STRANGER, port, "GET", "/made", &[]).text(), "1");
    assert_eq!(ask(WRITER, port, "POST", "/new", &[("Content-Length", "0")]).status, 200);
    assert_eq!(ask(STRANGER, port, "GET", "/made", &[]).text(), "1");
    assert_eq!(ask(WRITER, port, "GET", "/made", &[]).text(), "2");
}

#[test]
fn what_was_asked_for_before_a_change_is_not_for_the_client_that_made_it() {
    skip_on_nginx!();
    for directives in
        ["proxy_cache_lock on;", "proxy_cache_lock on; proxy_cache_min_uses 1; proxy_cache_valid 200 1m;"]
    {
        let gate = Arc::new(Gate::default());
        let origin = held(&gate);
        let server = start(&origin, directives);
        let port = server.port();
        use_turn(port, "PUT", "/thing");
        let other =
            std::thread::spawn(move || ask(STRANGER, port, "GET", "/thing", &[("X-Wait", "1")]).text());
        wait::until("the other has asked", || origin.count() == 2);
        ask(WRITER, port, "PUT", "/thing", &[("Content-Length", "0")]);
        // Not the answer on its way, which was made before.
        assert_eq!(ask(WRITER, port, "GET", "/thing", &[]).text(), "2");
        assert!(gate.open());
        assert_eq!(other.join().expect("no client panics"), "1");
        for _ in 0..4 {
            assert_eq!(ask(WRITER, port, "GET", "/thing", &[]).text(), "2");
        }
    }
}

#[test]
fn a_refresh_that_began_before_a_change_brings_nothing_for_the_client_that_made_it() {
    skip_on_nginx!();
    let gate = Arc::new(Gate::default());
    let origin = held(&gate);
    let server = start(&origin, "proxy_cache_use_stale updating; proxy_cache_background_update on;");
    let port = server.port();
    let get = |from, fields: &[(&str, &str)]| ask(from, port, "GET", "/short", fields);
    use_turn(port, "PUT", "/short");
    assert_eq!(get(STRANGER, &[]).text(), "1");
    // The refresh, whose answer is made now and comes later.
    wait::until("it is stale", || get(STRANGER, &[("X-Wait", "1")]).cache_status() == "STALE");
    wait::until("the refresh has been asked for", || origin.count() == 3);
    ask(WRITER, port, "PUT", "/short", &[("Content-Length", "0")]);
    assert_eq!(get(WRITER, &[]).text(), "2");
    assert!(gate.open());
    for _ in 0..4 {
        assert_eq!(get(WRITER, &[]).text(), "2");
    }
}

#[test]
fn clients_behind_a_trusted_proxy_are_told_apart() {
    skip_on_nginx!();
    for trust in [
        "set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For;",
        "trusted_proxy 127.0.0.1; proxy_set_header X-Real-IP $forwarded_addr;",
    ] {
        let origin = versions();
        let server = start(&origin, trust);
        let port = server.port();
        let from = |address| [("X-Forwarded-For", address), ("Content-Length", "0")];
        let get = |address| ask(WRITER, port, "GET", "/thing", &from(address)[..1]);
        use_turn(port, "PUT", "/thing");
        assert_eq!(get("192.0.2.7").text(), "1");
        ask(WRITER, port, "PUT", "/thing", &from("2001:db8::1"));
        assert_eq!(
            (get("192.0.2.7").text().as_str(), get("2001:db8:0:1::1").text().as_str()),
            ("1", "1"),
            "{trust}"
        );
        assert_eq!(get("2001:db8::ffff").text(), "2", "the same subscriber: {trust}");
    }
}

#[test]
fn behind_serve_too_a_client_reads_what_it_has_written() {
    skip_on_nginx!();
    for options in [&["--microcache", "60s"][..], &["--microcache", "60s", "--client-address", "hide"], &[]] {
        let origin = versions();
        let url = format!("http://{}", origin.address());
        let (port, _process) = super::serve_url::serve(&[&[url.as_str()], options].concat());
        assert_eq!(ask(STRANGER, port, "GET", "/things/1", &[]).text(), "0");
        for round in 1..=16 {
            ask(WRITER, port, "PUT", "/things/1", &[("Content-Length", "0")]);
            for _ in 0..2 {
                assert_eq!(
                    ask(WRITER, port, "GET", "/things/1", &[]).text(),
                    round.to_string(),
                    "{options:?}"
                );
            }
        }
    }
}
