//! What explaining is told: who decided, and the numbers.

use super::*;
use crate::samples::conf;
use millstream_conf::model::Heuristic;
use millstream_conf::source::{FileId, Span};

fn decided(conf: &ProxyCache, request: RequestFacts, status: u16, lines: &str) -> String {
    let fields = headers(lines);
    let judgement = judge(conf, &IgnoreHeaders::default(), &request, status, fields.view(), now(), false);
    match judgement.because {
        Because::Field(id, value) => format!("{}: {}", id.name(), String::from_utf8_lossy(value)),
        Because::RequestField(id) => format!("request {}", id.name()),
        Because::Directive(name) => format!("directive {name}"),
        Because::Method(method) => format!("method {method:?}"),
        Because::Status(status) => format!("status {status}"),
        Because::Nothing => "nothing".to_owned(),
    }
}

#[test]
fn a_judgement_says_which_field_or_directive_decided() {
    let valid = vec![Valid { status: ValidStatus::Is(200), time: Duration::from_secs(9) }];
    let valid = ProxyCache { valid, ..conf() };
    let credentials = RequestFacts { has_authorization: true, ..get() };
    for (conf, request, status, lines, expected) in [
        (&conf(), get(), 200, "", "nothing"),
        (&valid, get(), 200, "", "directive proxy_cache_valid"),
        (&conf(), get(), 200, "Cache-Control: public, max-age=60", "Cache-Control: public, max-age=60"),
        (&conf(), get(), 200, "Cache-Control: public\nCache-Control: no-store", "Cache-Control: no-store"),
        (&conf(), get(), 200, "CDN-Cache-Control: no-store", "CDN-Cache-Control: no-store"),
        (&conf(), get(), 200, "Expires: 0", "Expires: 0"),
        (&conf(), get(), 200, "X-Accel-Expires: 0", "X-Accel-Expires: 0"),
        (&conf(), get(), 200, "Set-Cookie: a=b", "Set-Cookie: a=b"),
        (&conf(), get(), 200, "Vary: *", "Vary: *"),
        (&conf(), get(), 206, "", "status 206"),
        (&conf(), of(Method::Put), 200, "", "method Put"),
        (&conf(), credentials, 200, "Cache-Control: max-age=60", "request Authorization"),
    ] {
        assert_eq!(decided(conf, request, status, lines), expected, "{lines}");
    }
}

#[test]
fn a_directive_has_its_place_in_the_configuration() {
    let span = Span { file: FileId(0), start: 10, end: 20 };
    let conf = ProxyCache { written: [("proxy_cache_valid", span)].into(), ..conf() };
    assert_eq!(Because::Directive("proxy_cache_valid").place(&conf), Some(&span));
    assert_eq!(Because::Directive("proxy_no_cache").place(&conf), None);
    assert_eq!(Because::Nothing.place(&conf), None);
    assert_eq!(Because::Directive("proxy_cache_valid").place_for(&conf, 404), Some(&span));
    let later = Span { start: 30, end: 40, ..span };
    let time = Duration::from_secs(1);
    let valid = vec![Valid { status: ValidStatus::Is(200), time }, Valid { status: ValidStatus::Any, time }];
    let conf = ProxyCache { valid, valid_spans: [span, later].into(), ..conf };
    assert_eq!(Because::Directive("proxy_cache_valid").place_for(&conf, 200), Some(&span));
    assert_eq!(Because::Directive("proxy_cache_valid").place_for(&conf, 404), Some(&later));
}

#[test]
fn the_arithmetic_is_told_step_by_step() {
    let guessing = ProxyCache {
        heuristic: Some(Heuristic { percent: 10, longest: Duration::from_secs(86_400) }),
        ..conf()
    };
    for (lines, expected) in [
        (
            "Cache-Control: max-age=60",
            "lifetime: 60 s (max-age); age on arrival: 0 s; fresh for 60 s - 0 s = 60 s",
        ),
        (
            "Cache-Control: s-maxage=60\nAge: 20",
            "lifetime: 60 s (s-maxage); age on arrival: 20 s (Age) + 2 s (in transit) = 22 s; fresh for 60 s - 22 s = 38 s",
        ),
        (
            "Expires: Sat, 21 Nov 2026 11:00:00 GMT\nDate: Sat, 21 Nov 2026 10:30:00 GMT",
            "lifetime: 1795258800 (Expires) - 1795257000 (Date) = 1800 s; age on arrival: 0 s; \
             fresh for 1800 s - 0 s = 1800 s",
        ),
        (
            "X-Accel-Expires: 5",
            "lifetime: 5 s (X-Accel-Expires); age: not subtracted from this lifetime; fresh for 5 s",
        ),
        (
            "Last-Modified: Sat, 21 Nov 2026 09:00:00 GMT",
            "lifetime: 10 % of 1795255200 (Date) - 1795251600 (Last-Modified) = 3600 s, at most 86400 s: 360 s \
             (proxy_cache_heuristic); age on arrival: 0 s; fresh for 360 s - 0 s = 360 s",
        ),
    ] {
        let fields = headers(lines);
        let facts = RequestFacts { delay: Duration::from_secs(2), ..get() };
        let judgement = judge(&guessing, &IgnoreHeaders::default(), &facts, 200, fields.view(), now(), false);
        let arithmetic = judgement.arithmetic.expect("it came to numbers");
        assert_eq!(arithmetic.to_string(), expected, "{lines}");
        let later = now().after(Duration::from_secs(1));
        assert_eq!(arithmetic.left(later), arithmetic.left(now()) - 1);
    }
}

#[test]
fn every_reason_has_a_name_of_its_own() {
    let mut names: Vec<_> = Reason::ALL.iter().map(|reason| reason.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Reason::ALL.len());
    assert!(Reason::ALL.iter().enumerate().all(|(index, reason)| *reason as usize == index));
}
