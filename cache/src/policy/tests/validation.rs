//! What is stored to be asked about (RFC 9111 §4.3, §5.2.2.4).

use super::*;
use crate::samples::conf;

fn always(conf: &ProxyCache, lines: &str) -> Result<bool, Reason> {
    let terms = terms(conf, &IgnoreHeaders::default(), get(), 200, lines)?;
    assert!(!terms.always_validate || !terms.is_fresh(now()), "{lines}");
    Ok(terms.always_validate)
}

#[test]
fn no_cache_is_stored_where_it_can_be_validated() {
    for (lines, expected) in [
        ("Cache-Control: no-cache\nETag: \"a\"", Ok(true)),
        ("Cache-Control: no-cache, max-age=60\nETag: \"a\"", Ok(true)),
        ("Cache-Control: no-cache\nLast-Modified: Sat, 21 Nov 2026 09:00:00 GMT", Ok(true)),
        ("Cache-Control: no-cache, max-age=60", Err(Reason::NoCache)),
        ("Cache-Control: no-cache=\"a\", max-age=60", Ok(false)),
        ("Cache-Control: no-cache, no-store\nETag: \"a\"", Err(Reason::NoStore)),
        ("Cache-Control: max-age=60\nETag: \"a\"", Ok(false)),
        ("Cache-Control: max-age=0\nETag: \"a\"", Ok(true)),
        ("Cache-Control: max-age=0", Err(Reason::Expired)),
        ("Cache-Control: max-age=0, stale-if-error=5\nETag: \"a\"", Ok(false)),
        ("Expires: 0\nETag: \"a\"", Ok(true)),
        ("ETag: \"a\"", Err(Reason::NoLifetime)),
    ] {
        assert_eq!(always(&revalidating(), lines), expected, "{lines}");
    }
    for (lines, expected) in [
        ("Cache-Control: no-cache\nETag: \"a\"", Err(Reason::NoCache)),
        ("Cache-Control: max-age=0\nETag: \"a\"", Err(Reason::Expired)),
    ] {
        assert_eq!(always(&conf(), lines), expected, "{lines}");
    }
}

#[test]
fn what_is_validated_at_every_use_is_never_served_stale() {
    let use_stale = UseStale { error: true, updating: true, http_503: true, ..UseStale::default() };
    let all = ProxyCache { use_stale, ..conf() };
    for lines in [
        "Cache-Control: no-cache, stale-if-error=60, stale-while-revalidate=60\nETag: \"a\"",
        "Cache-Control: max-age=0\nETag: \"a\"",
    ] {
        let terms = terms(&revalidating(), &IgnoreHeaders::default(), get(), 200, lines).expect("stored");
        for cause in [StaleCause::Updating, StaleCause::Error, StaleCause::Status(503)] {
            assert!(!terms.may_serve_stale(cause, &all, NOW * 1000, now()), "{lines} {cause:?}");
        }
    }
}
