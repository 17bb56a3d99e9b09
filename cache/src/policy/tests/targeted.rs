//! `CDN-Cache-Control` (RFC 9213).

use super::*;
use crate::samples::conf;

#[test]
fn a_valid_targeted_field_takes_the_place_of_cache_control_and_expires() {
    for (targeted, others, expected) in [
        ("max-age=60", "", Ok(60)),
        ("max-age=60", "Cache-Control: max-age=1", Ok(60)),
        ("max-age=1", "Cache-Control: max-age=60", Ok(1)),
        ("max-age=60", "Expires: 0", Ok(60)),
        ("max-age=60", "Age: 20", Ok(40)),
        ("max-age=0", "Expires: Sat, 21 Nov 2026 11:00:00 GMT", Err(Reason::Expired)),
        ("max-age=60", "Cache-Control: no-store", Ok(60)),
        ("max-age=60", "Cache-Control: private", Ok(60)),
        ("no-store", "Cache-Control: max-age=60", Err(Reason::NoStore)),
        ("private", "Cache-Control: max-age=60", Err(Reason::Private)),
        ("no-cache", "Cache-Control: max-age=60", Err(Reason::NoCache)),
        ("foobar", "Cache-Control: max-age=60", Err(Reason::NoLifetime)),
        ("s-maxage=30, max-age=60", "", Ok(30)),
        ("max-age=60", "X-Accel-Expires: 5", Ok(5)),
    ] {
        check_of(&apart(), 200, &format!("CDN-Cache-Control: {targeted}\n{others}"), expected);
    }
}

#[test]
fn one_that_is_no_structured_field_counts_for_nothing() {
    for targeted in ["max-age=60, &&&&&", "max-age=\"60\"", "max-age =60", "MaX-aGe=60", "", "max-age=60,"] {
        check(&format!("CDN-Cache-Control: {targeted}\nCache-Control: max-age=1"), Ok(1));
        check(&format!("CDN-Cache-Control: {targeted}\nCache-Control: no-store"), Err(Reason::NoStore));
    }
}

#[test]
fn proxy_ignore_headers_cache_control_means_both() {
    let ignore = IgnoreHeaders { cache_control: true, ..IgnoreHeaders::default() };
    let lines = "CDN-Cache-Control: no-store\nExpires: Sat, 21 Nov 2026 11:00:00 GMT";
    assert_eq!(seconds(&conf(), &ignore, get(), 200, lines), Ok(3600));
}

#[test]
fn credentials_are_shared_by_its_word_alone() {
    let request = RequestFacts { has_authorization: true, ..get() };
    let plain = IgnoreHeaders::default();
    let lines = "CDN-Cache-Control: max-age=60\nCache-Control: public";
    assert_eq!(seconds(&conf(), &plain, request, 200, lines), Err(Reason::Authorization));
    let lines = "CDN-Cache-Control: max-age=60, public";
    assert_eq!(seconds(&conf(), &plain, request, 200, lines), Ok(60));
}
