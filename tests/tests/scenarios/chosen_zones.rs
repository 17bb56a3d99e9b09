//! `proxy_cache` with variables: which zone a request is cached in, and what that leaves untouched.

use std::sync::atomic::{AtomicUsize, Ordering};

use millstream_tests::client::Answer;
use millstream_tests::origin::{Origin, answer};
use millstream_tests::server::Server;
use millstream_tests::wait;

fn start(origin: &Origin, choice: &str) -> Server {
    let template = site! {
        main "worker_processes 1;"
        http "proxy_cache_purge_allow local;
            proxy_cache_path @DIR@/one keys_zone=one:1m;
            proxy_cache_path @DIR@/two keys_zone=two:1m;
            @CHOICE@"
        server "location / {
                proxy_pass http://@ORIGIN@;
                proxy_cache $zone;
                proxy_cache_key $uri;
                proxy_cache_valid 1m;
                add_header X-Cache-Status $upstream_cache_status;
                if ($arg_marked) { add_header X-Marked yes; add_header X-Cache-Status $upstream_cache_status; }
            }"
    };
    Server::start(template, &[("ORIGIN", &origin.address()), ("CHOICE", choice)])
}

const BY_ARGUMENT: &str = "map $arg_zone $zone { default $arg_zone; }";

fn numbered() -> Origin {
    let count = AtomicUsize::new(0);
    Origin::start(move |_| {
        answer(200, &[], format!("answer {}", count.fetch_add(1, Ordering::SeqCst)).as_bytes())
    })
}

fn told(answer: &Answer) -> (String, &str) {
    (answer.text(), answer.cache_status())
}

fn ask(server: &Server, method: &str, target: &str) -> Answer {
    server.request(method, target, &[])
}

#[test]
fn a_request_is_cached_in_the_zone_that_it_names_and_in_none_where_it_names_none() {
    let origin = numbered();
    let server = start(&origin, BY_ARGUMENT);
    for (target, expected) in [
        ("/?zone=one", ("answer 0", "MISS")),
        ("/?zone=one", ("answer 0", "HIT")),
        ("/?zone=two", ("answer 1", "MISS")),
        ("/?zone=two&marked=1", ("answer 1", "HIT")),
        ("/?zone=one&marked=1", ("answer 0", "HIT")),
        ("/", ("answer 2", "none")),
        ("/?zone=off", ("answer 3", "none")),
        ("/?zone=off&marked=1", ("answer 4", "none")),
        ("/?zone=two", ("answer 1", "HIT")),
    ] {
        let answer = server.get(target);
        assert_eq!(answer.field("x-marked").is_some(), target.contains("marked"), "{target}");
        let (text, status) = told(&answer);
        assert_eq!((text.as_str(), status), expected, "{target}");
    }
}

#[test]
fn a_name_that_no_zone_has_is_an_error_where_the_cache_would_be_asked() {
    let origin = numbered();
    let server = start(&origin, BY_ARGUMENT);
    assert_eq!(server.get("/?zone=three").status, 500);
    wait::until("the error is told", || server.log().contains("cache \"three\" not found"));
    // Nobody looks for the answer to a POST.
    assert_eq!(ask(&server, "POST", "/?zone=three").status, 200);
}

#[test]
fn an_unsafe_request_takes_out_what_is_stored_for_its_target_in_every_zone() {
    let origin = numbered();
    let server =
        start(&origin, "map $request_method:$arg_zone $zone { ~^GET:(?<named>.*) $named; default off; }");
    for zone in ["one", "two"] {
        let target = format!("/?zone={zone}");
        assert_eq!(
            [&server.get(&target), &server.get(&target)].map(|answer| told(answer).1.to_owned()),
            ["MISS", "HIT"]
        );
    }
    assert_eq!(told(&ask(&server, "POST", "/?zone=one")).1, "none");
    for zone in ["one", "two"] {
        assert_eq!(told(&server.get(&format!("/?zone={zone}"))).1, "MISS", "{zone}");
    }
}

#[test]
fn a_purge_goes_through_every_zone_that_requests_may_choose() {
    let origin = numbered();
    let server = start(&origin, BY_ARGUMENT);
    for purge in ["/", "/?zone=one", "/?zone=off"] {
        for zone in ["one", "two"] {
            server.get(&format!("/?zone={zone}"));
            assert_eq!(told(&server.get(&format!("/?zone={zone}"))).1, "HIT");
        }
        assert_eq!(ask(&server, "PURGE", purge).status, 200, "{purge}");
        for zone in ["one", "two"] {
            assert_eq!(told(&server.get(&format!("/?zone={zone}"))).1, "MISS", "{purge} {zone}");
        }
    }
}
