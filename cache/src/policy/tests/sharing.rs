//! What an API that nobody described may have shared of its answers, what of them is stored, and how stale they may be.

use super::*;
use crate::policy::Asker::{Anybody, Known};
use crate::samples::conf;
use millstream_conf::model::{CacheVary, StaleWhile};

#[test]
fn what_somebody_with_a_credential_is_answered_is_stored_only_where_it_says_that_it_is_for_all() {
    let known = RequestFacts { asker: Known, ..get() };
    let plain = IgnoreHeaders::default();
    let valid = ProxyCache {
        valid: vec![Valid { status: ValidStatus::Any, time: Duration::from_secs(9) }],
        ..conf()
    };
    for (lines, expected) in [
        ("", Err(Reason::Credentials)),
        ("Cache-Control: max-age=60", Err(Reason::Credentials)),
        ("Cache-Control: max-age=60, must-revalidate", Err(Reason::Credentials)),
        ("X-Accel-Expires: 60", Err(Reason::Credentials)),
        ("Cache-Control: public", Ok(9)),
        ("Cache-Control: public, max-age=60", Ok(60)),
        ("Cache-Control: s-maxage=60", Ok(60)),
        ("Cache-Control: public, private", Err(Reason::Private)),
        ("Cache-Control: private\nCDN-Cache-Control: public, max-age=60", Ok(60)),
    ] {
        assert_eq!(seconds(&valid, &plain, known, 200, lines), expected, "{lines}");
    }
    let ignoring = IgnoreHeaders { cache_control: true, ..plain };
    assert_eq!(seconds(&valid, &ignoring, known, 200, "Cache-Control: public"), Err(Reason::Credentials));
}

#[test]
fn an_answer_says_for_whom_it_is() {
    let lifetime =
        |conf: &ProxyCache, lines| terms(conf, &IgnoreHeaders::default(), get(), 200, lines).expect("stored");
    let strict = ProxyCache { vary: CacheVary { origin: true, unlisted: true, address: false }, ..conf() };
    for (stored_by, lines, asked_of, asker, expected) in [
        (&conf(), "Cache-Control: max-age=60", &conf(), Anybody, true),
        (&conf(), "Cache-Control: max-age=60", &conf(), Known, false),
        (&conf(), "Cache-Control: max-age=60, public", &conf(), Known, true),
        // Before a reload the same zone was used under laxer rules.
        (&conf(), "Cache-Control: max-age=60, public", &strict, Anybody, false),
        (&strict, "Cache-Control: max-age=60", &strict, Anybody, true),
        (&strict, "Cache-Control: max-age=60", &strict, Known, false),
        (&strict, "Cache-Control: s-maxage=60", &conf(), Known, true),
    ] {
        let meets = lifetime(stored_by, lines).meets(Needs::of(asked_of, asker));
        assert_eq!(meets, expected, "{lines} {asker:?}");
    }
}

#[test]
fn streams_are_not_stored() {
    let control = "Cache-Control: max-age=60";
    for kind in [
        "text/event-stream",
        "TEXT/Event-Stream ; charset=utf-8",
        "multipart/x-mixed-replace; boundary=a",
        "application/grpc",
        "application/grpc-web+proto",
    ] {
        check(&format!("Content-Type: {kind}\n{control}"), Err(Reason::Streaming));
    }
    for kind in ["text/event-streams", "multipart/byteranges", "application/json", "application/x-ndjson"] {
        check(&format!("Content-Type: {kind}\n{control}"), Ok(60));
    }
    check(&format!("{control}\nX-Accel-Buffering: no"), Err(Reason::Streaming));
    let ignoring = IgnoreHeaders { x_accel_buffering: true, ..IgnoreHeaders::default() };
    let lines = format!("{control}\nX-Accel-Buffering: no");
    assert_eq!(seconds(&conf(), &ignoring, get(), 200, &lines), Ok(60));
}

#[test]
fn records_of_which_nobody_knows_the_end_are_stored_only_where_they_have_a_lifetime_of_their_own() {
    let valid = ProxyCache {
        valid: vec![Valid { status: ValidStatus::Any, time: Duration::from_secs(9) }],
        ..conf()
    };
    for (lines, expected) in [
        ("Content-Type: application/x-ndjson\nTransfer-Encoding: chunked", Err(Reason::Streaming)),
        ("Content-Type: application/jsonl\nConnection: close", Err(Reason::Streaming)),
        ("Content-Type: application/x-ndjson\nContent-Length: 5", Ok(9)),
        ("Content-Type: application/json\nTransfer-Encoding: chunked", Ok(9)),
        ("Content-Type: application/json-seq\nTransfer-Encoding: chunked\nCache-Control: max-age=7", Ok(7)),
    ] {
        check_of(&valid, 200, lines, expected);
    }
}

#[test]
fn an_answer_is_stale_no_longer_than_the_bound_has_it_unless_it_says_itself_how_long() {
    let use_stale = UseStale { error: true, updating: true, http_503: true, ..UseStale::default() };
    let bounded = |percent, longest| ProxyCache {
        use_stale,
        stale_while_updating: Some(StaleWhile { percent, longest: Duration::from_secs(longest) }),
        stale_if_error: Some(Duration::from_secs(600)),
        ..conf()
    };
    let (short, fixed) = (bounded(Some(100), 10), bounded(None, 30));
    let (updating, error, away) = (StaleCause::Updating, StaleCause::Error, StaleCause::Status(503));
    for (conf, control, cause, at, expected) in [
        (&short, "max-age=5", updating, 9, true),
        (&short, "max-age=5", updating, 10, false),
        (&short, "max-age=60", updating, 69, true),
        (&short, "max-age=60", updating, 70, false),
        (&fixed, "max-age=5", updating, 34, true),
        (&fixed, "max-age=5", updating, 35, false),
        (&short, "max-age=5", error, 604, true),
        (&short, "max-age=5", error, 605, false),
        (&short, "max-age=5", away, 605, false),
        // RFC 5861: its own word, longer or shorter.
        (&short, "max-age=5, stale-while-revalidate=60", updating, 64, true),
        (&short, "max-age=5, stale-while-revalidate=1", updating, 6, false),
        (&short, "max-age=5, stale-if-error=3600", error, 3604, true),
        (&short, "max-age=5, stale-if-error=1", error, 7, false),
        (&short, "max-age=5, must-revalidate", updating, 6, false),
    ] {
        let lifetime =
            terms(conf, &IgnoreHeaders::default(), get(), 200, &format!("Cache-Control: {control}"))
                .expect("stored");
        let then = now().after(Duration::from_secs(at));
        assert_eq!(lifetime.may_serve_stale(cause, conf, NOW * 1000, then), expected, "{control} at {at}");
    }
    // As long as it was fresh here: what had an age when it came has been fresh for less.
    let lifetime = terms(&short, &IgnoreHeaders::default(), get(), 200, "Cache-Control: max-age=5\nAge: 3")
        .expect("stored");
    let at = |seconds| now().after(Duration::from_secs(seconds));
    assert!(lifetime.may_serve_stale(updating, &short, NOW * 1000, at(3)));
    assert!(!lifetime.may_serve_stale(updating, &short, NOW * 1000, at(4)));
}
