//! The bounds of all that is kept, and what is not sampled.

use super::*;
use crate::fixture;
use crate::report::{Report, STALE_BUDGET};
use crate::sample::{MOST_BYTES, MOST_KEYS};

/// Memory for everything, in bytes.
const MOST: usize = 32 << 20;

fn request<'a>(method: &'a str, path: &'a str, client: u8) -> Request<'a> {
    Request { method: method.as_bytes(), path: path.as_bytes(), ..fixture::request(None, client) }
}

fn letters(mut number: usize) -> String {
    let mut text = String::new();
    for _ in 0..3 {
        text.push(char::from(b'a' + (number % 26) as u8));
        number /= 26;
    }
    text
}

#[test]
fn the_most_of_everything_fits_into_the_memory() {
    let mut shadow = Shadow::new(Key::from_seed(1), Limits { sampled_per_second: u32::MAX });
    let names: Vec<String> = (0..60).map(|number| format!("x-name-{number}")).collect();
    for number in 0..120_000_usize {
        let path = format!("/{}/{}/{}", letters(number % 30), letters(number / 30 % 25), number / 2_250);
        let value = format!("{}", number % 3_001);
        let fields: Vec<(&[u8], &[u8])> =
            names.iter().map(|name| (name.as_bytes(), value.as_bytes())).collect();
        let now = 1_700_000_000_000 + number as u64;
        let request = request("GET", &path, (number % 200) as u8);
        if let Some(mut sampled) = shadow.sent(&request, fields.iter().copied(), now) {
            let head = [(&b"content-type"[..], &b"application/json"[..])];
            sampled.response(200, head.into_iter(), now);
            for place in 0..20 {
                sampled.piece(if place == 0 { b"{" } else { b"," });
                sampled.piece(format!("\"a{place}\":\"kR7xQ2mZp9LwT5vB{number}\"").as_bytes());
            }
            sampled.piece(b"}");
            shadow.ended(*sampled, Ending::Whole, now);
        }
    }
    assert_eq!(shadow.routes.len(), MOST_ROUTES);
    assert!(shadow.sample.entries.len() <= MOST_KEYS);
    assert!(shadow.sample.entries.values().map(Entry::bytes).sum::<usize>() <= MOST_BYTES + 8_192);
    assert!(shadow.bytes() <= MOST, "{}", shadow.bytes());
}

#[test]
fn only_whole_get_requests_of_known_routes_within_the_rate_are_sampled() {
    let none = || std::iter::empty::<(&[u8], &[u8])>();
    let mut shadow = Shadow::new(Key::from_seed(1), Limits { sampled_per_second: 2 });
    let now = 1_700_000_000_000;
    for _ in 0..3 {
        assert!(shadow.sent(&request("GET", "/a", 1), none(), now).is_none(), "not yet a route");
    }
    let range = [(&b"Range"[..], &b"bytes=0-1"[..])];
    assert!(shadow.sent(&request("GET", "/a", 1), range.into_iter(), now).is_none());
    assert!(shadow.sent(&request("HEAD", "/a", 1), none(), now).is_none());
    assert!(shadow.sent(&request("GET", "/%61", 1), none(), now).is_none());
    assert!(shadow.sent(&request("GET", "/a", 1), none(), now).is_some());
    assert!(shadow.sent(&request("GET", "/a", 1), none(), now).is_none(), "more than two in a second");
    assert!(shadow.sent(&request("GET", "/a", 1), none(), now + 1_000).is_some());
}

#[test]
fn one_client_alone_proves_nothing_and_a_report_hides_its_paths() {
    let mut shadow = Shadow::new(Key::from_seed(1), Limits::default());
    for number in 0..20_000_u64 {
        let now = 1_700_000_000_000 + number * 200;
        let none = std::iter::empty::<(&[u8], &[u8])>();
        if let Some(mut sampled) = shadow.sent(&request("GET", "/reset/secretword", 1), none.clone(), now) {
            sampled.response(200, [(&b"content-type"[..], &b"text/plain"[..])].into_iter(), now);
            sampled.piece(b"the same for all");
            shadow.ended(*sampled, Ending::Whole, now);
        }
    }
    let report = Report::of(&shadow, "0", STALE_BUDGET);
    let route = &report.routes[0];
    assert_eq!((route.keep_seconds, route.clients), (None, 1));
    assert!(route.needs.is_some_and(|needs| needs.clients > 0), "{:?}", route.needs);
    assert!(!report.json().contains("secretword"));
}

#[test]
fn a_stream_that_never_ends_is_known_by_its_head() {
    let mut shadow = Shadow::new(Key::from_seed(1), Limits::default());
    let now = 1_700_000_000_000;
    for client in 0..30 {
        let none = std::iter::empty::<(&[u8], &[u8])>();
        if let Some(mut sampled) = shadow.sent(&request("GET", "/events", client), none, now) {
            sampled.response(200, [(&b"content-type"[..], &b"text/event-stream"[..])].into_iter(), now);
            assert!(sampled.is_stream());
            shadow.streams(*sampled, now);
        }
    }
    let report = Report::of(&shadow, "0", STALE_BUDGET);
    assert_eq!((report.routes[0].keep_seconds, report.routes[0].reason.as_str()), (None, "a stream"));
}

#[test]
fn a_coded_response_for_which_there_is_no_decoder_left_is_no_evidence() {
    let mut shadow = Shadow::new(Key::from_seed(1), Limits::default());
    let now = 1_700_000_000_000;
    let mut open = Vec::new();
    for number in 0..100 {
        let none = std::iter::empty::<(&[u8], &[u8])>();
        if let Some(mut sampled) = shadow.sent(&request("GET", "/a", number), none, now) {
            let head = [(&b"content-type"[..], &b"application/json"[..]), (b"content-encoding", b"gzip")];
            sampled.response(200, head.into_iter(), now);
            open.push(sampled);
        }
    }
    assert_eq!(open.len(), 97);
    open.into_iter().for_each(|sampled| shadow.ended(*sampled, Ending::Whole, now));
    assert_eq!(shadow.routes[1].tally.sampled as usize, crate::decoding::MOST);
}

#[test]
fn where_every_client_has_a_cookie_probes_show_what_it_lets_through() {
    for probes in [false, true] {
        let mut shadow = Shadow::new(Key::from_seed(1), Limits::default());
        if probes {
            shadow.allow_probes(100);
        }
        let head = [(&b"content-type"[..], &b"text/plain"[..])];
        let mut probed = 0;
        for number in 0..2_000_u64 {
            let now = 1_700_000_000_000 + number * 10;
            let cookie = format!("session=s{}", number % 24);
            let fields = [(&b"cookie"[..], cookie.as_bytes())];
            let path = if number % 3 == 0 { "/members" } else { "/page" };
            let request = request("GET", path, (number % 24) as u8);
            let Some(mut sampled) = shadow.sent(&request, fields.into_iter(), now) else { continue };
            if let Some(mut probe) = sampled.take_probe() {
                assert!(now >= probed + 100, "they are spread");
                probed = now;
                probe.response(if path == "/page" { 200 } else { 401 }, head.into_iter(), now);
                probe.piece(b"the same for all");
                shadow.probed(*probe, Ending::Whole, now + 1);
            }
            sampled.response(200, head.into_iter(), now);
            sampled.piece(b"the same for all");
            shadow.ended(*sampled, Ending::Whole, now + 2);
        }
        let report = Report::of(&shadow, "0", STALE_BUDGET);
        let verdict = |name: &str| {
            let route = report.routes.iter().find(|route| route.route == name).expect("a known route");
            assert!(route.keep_seconds.is_none(), "nothing that only members got is stored");
            (route.shares.clone(), route.reason.clone())
        };
        let needs = "needs requests without cookie session".to_owned();
        let shared = if probes { vec!["cookie session".to_owned()] } else { vec![] };
        assert_eq!(verdict("/page"), (shared, needs.clone()));
        let guarded = if probes { "responses differ by cookie session".to_owned() } else { needs };
        assert_eq!(verdict("/members"), (vec![], guarded));
    }
}
