//! `proxy_cache_verify`: hits are compared with what the API responds, and a leak turns the cache of its location off.

use crate::body_filters::gzipped;
use millstream_tests::client::Answer;
use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::server::Server;
use millstream_tests::wait;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SHARED: (&str, &str) = ("Cache-Control", "public, max-age=600");

const TEMPLATE: &str = site! {
    main "worker_processes 2;" log "notice"
    http "proxy_cache_path memory keys_zone=one:1m memory=8m;"
    server "proxy_cache one; proxy_cache_key @KEY@; add_header X-Cache $upstream_cache_status;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        location / { proxy_pass http://@ORIGIN@; @VERIFY@ }
        location /other { proxy_pass http://@ORIGIN@; proxy_cache_key /other; }
        location /api/ { api; }"
};

const ALWAYS: &str = "proxy_cache_verify 100% sample=1000r/s;";

fn start(origin: &Origin, key: &str, verify: &str) -> Server {
    Server::start(TEMPLATE, &[("ORIGIN", &origin.address()), ("KEY", key), ("VERIFY", verify)])
}

fn cookie(request: &Request) -> String {
    request.field("cookie").unwrap_or("no one").to_owned()
}

/// Says that everything is the same for everybody, and greets each by the cookie.
fn leaking() -> Origin {
    Origin::start(|request| {
        let body = format!("{{\"hello\":\"{}\"}}", cookie(request));
        answer(200, &[SHARED, ("Content-Type", "application/json")], body.as_bytes())
    })
}

fn get(server: &Server, path: &str, user: &str) -> Answer {
    server.get_with(path, &[("Cookie", user)])
}

fn is_hit(answer: &Answer) -> bool {
    answer.field("x-cache") == Some("HIT")
}

fn figure(server: &Server, name: &str) -> f64 {
    let text = server.get("/api/metrics").text();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("{name} in {text}")).trim().parse().expect("a number")
}

fn verified(server: &Server, result: &str) -> f64 {
    figure(server, &format!("millstream_cache_verified_total{{result=\"{result}\"}}"))
}

/// Serves hits to clients with cookies of their own until so many checks had this result.
fn until_verified(server: &Server, result: &str, times: f64) {
    let mut user = 0;
    wait::until(&format!("{times} checks say {result}"), || {
        user += 1;
        get(server, "/a", &format!("user=u{}", user % 7));
        verified(server, result) >= times
    });
}

#[test]
fn a_planted_leak_is_found_within_a_thousand_hits_and_the_cache_is_off_within_a_second_of_it() {
    skip_on_nginx!();
    let origin = leaking();
    let server = start(&origin, "$uri", "proxy_cache_verify 1%;");
    assert_eq!(get(&server, "/a", "user=u0").text(), "{\"hello\":\"user=u0\"}");
    get(&server, "/other", "user=u0");
    let before = origin.count();
    let (mut hits, mut found) = (0, None);
    let off = loop {
        let user = format!("user=u{}", 1 + hits % 40);
        let got = get(&server, "/a", &user);
        if found.is_none() && origin.count() > before {
            found = Some((hits, Instant::now()));
        }
        if got.text() == format!("{{\"hello\":\"{user}\"}}") {
            break Instant::now();
        }
        assert!(is_hit(&got), "{}", got.head);
        hits += 1;
        assert!(hits < 100_000, "a leak of each hit is never found");
    };
    let (chosen, at) = found.expect("the API was asked");
    let took = off.saturating_duration_since(at);
    let measured = format!("chosen after {chosen} hits, off after {hits} hits and {took:?}");
    eprintln!("{measured}");
    assert!(hits <= 1_000 && took < Duration::from_secs(1), "{measured}");

    // On each worker, whoever asks.
    for number in 0..20 {
        let user = format!("user=v{number}");
        let got = get(&server, "/a", &user);
        assert_eq!(got.text(), format!("{{\"hello\":\"{user}\"}}"));
        assert_eq!(got.field("x-cache"), Some("BYPASS"));
    }
    assert_eq!(get(&server, "/other", "user=u9").field("x-cache"), Some("MISS"), "the zone is purged");
    assert!(is_hit(&get(&server, "/other", "user=u9")), "the other location goes on");
    assert_eq!(figure(&server, "millstream_cache_verify_off"), 1.0);
    assert!(verified(&server, "leak") >= 1.0);
    server.says("[alert]");
    server.says("proxy_cache_verify found a leak in location / (");
    server.says("/a depends on something that neither the cache key nor Vary contains");
    let url = format!("/api/9/explain?url=http://127.0.0.1:{}/a", server.port());
    let explained = server.get(&url).json();
    assert_eq!(explained["now"]["status"], "BYPASS", "{explained:#}");
    assert!(
        explained["now"]["why"].as_str().is_some_and(|why| why.contains("found a leak")),
        "{explained:#}"
    );

    server.reload();
    get(&server, "/a", "user=u1");
    assert!(is_hit(&get(&server, "/a", "user=u1")), "a reload turns it on again");
    assert_eq!(figure(&server, "millstream_cache_verify_off"), 0.0);
}

#[test]
fn a_client_that_is_refused_what_everyone_gets_turns_no_cache_off() {
    skip_on_nginx!();
    let origin = Origin::start(|request| match cookie(request).as_str() {
        "user=unknown" => answer(401, &[], b"no such user"),
        _ => answer(200, &[SHARED], b"for all"),
    });
    let server = start(&origin, "$uri", ALWAYS);
    get(&server, "/a", "user=known");
    wait::until("it is checked", || {
        assert_eq!(get(&server, "/a", "user=unknown").text(), "for all");
        verified(&server, "same") >= 20.0
    });
    assert_eq!((verified(&server, "leak"), figure(&server, "millstream_cache_verify_off")), (0.0, 0.0));
}

#[test]
fn a_check_asks_with_the_clients_own_request_or_as_no_one_and_never_as_another_client() {
    skip_on_nginx!();
    let origin = leaking();
    let server = start(
        &origin,
        "$uri",
        &format!(
            "{ALWAYS} proxy_set_header X-Real-IP $remote_addr;
        proxy_set_header X-User $cookie_user; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;"
        ),
    );
    get(&server, "/a", "user=filler");
    let fields = [
        ("Cookie", "user=u1"),
        ("Authorization", "Bearer u1"),
        ("X-Forwarded-For", "198.51.100.7"),
        ("If-None-Match", "\"a\""),
        ("Range", "bytes=0-1"),
    ];
    server.get_with("/a", &fields);
    wait::until("the leak is found", || verified(&server, "leak") >= 1.0);
    let requests = origin.requests();
    let (own, bare): (Vec<_>, Vec<_>) =
        requests[1..].iter().partition(|request| request.field("cookie").is_some());
    assert!(own.len() >= 2 && bare.len() >= 2, "{} {}", own.len(), bare.len());
    for request in &own {
        assert_eq!((request.field("cookie"), request.field("x-user")), (Some("user=u1"), Some("u1")));
        assert_eq!(request.field("authorization"), Some("Bearer u1"));
    }
    for request in &bare {
        let head = &request.head;
        assert!(!head.contains("u1") && !head.contains("filler") && !head.contains("198.51.100.7"), "{head}");
        assert_eq!(request.field("x-forwarded-for"), Some("192.0.0.8"), "{head}");
        assert_eq!(request.field("x-real-ip"), Some("192.0.0.8"), "{head}");
    }
    for request in &requests[1..] {
        assert!(
            request.field("if-none-match").is_none() && request.field("range").is_none(),
            "{}",
            request.head
        );
    }
}

#[test]
fn a_newer_response_is_stale_and_no_leak_whatever_the_key_contains() {
    skip_on_nginx!();
    for key in ["$uri", "$uri$cookie_user"] {
        let version = Arc::new(AtomicU64::new(1));
        let now = version.clone();
        let has_user = key.contains("user");
        let origin = Origin::start(move |request| {
            let name = if has_user { cookie(request) } else { String::new() };
            let body = format!("{{\"version\":{},\"for\":\"{name}\"}}", now.load(Ordering::SeqCst));
            answer(200, &[SHARED, ("Content-Type", "application/json")], body.as_bytes())
        });
        let server = start(&origin, key, ALWAYS);
        for user in 0..7 {
            get(&server, "/a", &format!("user=u{user}"));
        }
        version.store(2, Ordering::SeqCst);
        until_verified(&server, "stale", 5.0);
        assert_eq!((verified(&server, "leak"), figure(&server, "millstream_cache_verify_off")), (0.0, 0.0));
        let got = get(&server, "/a", "user=u1");
        assert!(is_hit(&got) && got.text().contains("\"version\":1"), "what is stored stays: {}", got.text());
    }
}

#[test]
fn what_differs_in_each_response_is_noise_and_what_fails_is_no_leak() {
    skip_on_nginx!();
    let count = AtomicU64::new(0);
    let origin = Origin::start(move |_| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        let id = format!("{:016x}{:04x}", number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1 << 63, number);
        let body = format!("{{\"request_id\":\"{id}\",\"views\":{number},\"name\":\"all\"}}");
        answer(200, &[SHARED, ("Content-Type", "application/json")], body.as_bytes())
    });
    let server = start(&origin, "$uri", ALWAYS);
    get(&server, "/a", "user=u0");
    until_verified(&server, "noise", 5.0);
    assert_eq!((verified(&server, "leak"), verified(&server, "stale")), (0.0, 0.0));

    let asked = AtomicU64::new(0);
    let failing = Origin::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => answer(200, &[SHARED], b"a"),
        number if number % 3 == 0 => vec![Step::Close],
        number if number % 3 == 1 => answer(503, &[], b"b"),
        _ => answer(429, &[], b"c"),
    });
    let server = start(&failing, "$uri", ALWAYS);
    get(&server, "/a", "user=u0");
    until_verified(&server, "failed", 5.0);
    assert_eq!(figure(&server, "millstream_cache_verify_off"), 0.0);
}

#[test]
fn with_on_leak_warn_a_leak_is_reported_and_the_cache_stays_on() {
    skip_on_nginx!();
    let origin = leaking();
    let server = start(&origin, "$uri", "proxy_cache_verify 100% on_leak=warn;");
    get(&server, "/a", "user=filler");
    get(&server, "/a", "user=u1");
    wait::until("the leak is found", || verified(&server, "leak") >= 1.0);
    server.says("the location's cache stays on (on_leak=warn)");
    assert!(is_hit(&get(&server, "/a", "user=u2")));
    assert_eq!(figure(&server, "millstream_cache_verify_off"), 0.0);
}

#[test]
fn a_location_without_the_directive_asks_nothing_and_the_rate_bounds_the_checks() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[SHARED], b"the same");
    let server = start(&origin, "$uri", "");
    for number in 0..50 {
        get(&server, "/a", &format!("user=u{number}"));
    }
    assert_eq!(origin.count(), 1);

    let origin = Origin::fixed(200, &[SHARED], b"the same");
    let server = start(&origin, "$uri", "proxy_cache_verify 100% sample=1r/m;");
    for number in 0..50 {
        get(&server, "/a", &format!("user=u{number}"));
    }
    wait::until("one is checked", || verified(&server, "same") >= 1.0);
    assert_eq!(origin.count(), 2);
    let cookies: BTreeSet<String> = origin.requests().iter().map(cookie).collect();
    assert!(cookies.contains("user=u0"), "{cookies:?}");
}

#[test]
fn a_leak_is_found_whatever_the_api_knows_the_client_by() {
    skip_on_nginx!();
    for (field, directives) in [
        ("authorization", ""),
        ("x-tenant", ""),
        ("x-from", "proxy_set_header X-From $http_x_forwarded_for;"),
        ("x-forwarded-for", ""),
        ("x-known-as", "set $user $cookie_user; proxy_set_header X-Known-As $user;"),
    ] {
        for is_encoded in [false, true] {
            let origin = Origin::start(move |request| {
                // Who shows nothing is refused, as by an API that requires a login.
                match request.field(field).filter(|value| *value != "192.0.0.8") {
                    None => answer(403, &[("Cache-Control", "no-store")], b"who?"),
                    Some(_) if !is_encoded => {
                        answer(200, &[SHARED], format!("hello {:?}", request.field(field)).as_bytes())
                    }
                    Some(value) => {
                        let body = gzipped(format!("hello {value}").as_bytes());
                        answer(200, &[SHARED, ("Content-Encoding", "gzip")], &body)
                    }
                }
            });
            let server = start(&origin, "$uri", &format!("{ALWAYS} {directives}"));
            let ask = |user: &str| {
                let fields = [
                    ("Cookie", &*format!("user={user}")),
                    ("Authorization", &*format!("Bearer {user}")),
                    ("X-Tenant", user),
                    ("X-Forwarded-For", user),
                    ("Accept-Encoding", "gzip"),
                ];
                server.get_with("/a", &fields)
            };
            ask("ann");
            ask("bob");
            let what = format!("the leak by {field} is found");
            wait::until(&what, || figure(&server, "millstream_cache_verify_off") == 1.0);
        }
    }
}
