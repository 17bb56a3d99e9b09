//! The field, by RFC 9211 §2.

use super::*;

#[test]
fn the_field_says_what_happened() {
    let hit = CacheReport { ttl: Some(60), ..CacheReport::default() };
    let of = |forward| CacheReport { forward: Some(forward), ..CacheReport::default() };
    for (report, status, expected) in [
        (
            CacheReport { key: Some(b"http://a/\"x\""[..].into()), ..hit.clone() },
            200,
            "millstream; hit; ttl=60; key=\"http://a/\\\"x\\\"\"",
        ),
        (CacheReport { ttl: Some(-3), ..hit }, 200, "millstream; hit; ttl=-3"),
        (
            CacheReport { forward_status: Some(200), stored: true, ttl: Some(5), ..of(Forward::Miss) },
            200,
            "millstream; fwd=miss; stored; ttl=5",
        ),
        (
            CacheReport { forward_status: Some(304), stored: true, ..of(Forward::Stale) },
            200,
            "millstream; fwd=stale; fwd-status=304; stored",
        ),
        (CacheReport { collapsed: true, ..of(Forward::Miss) }, 200, "millstream; fwd=miss; collapsed"),
        (
            CacheReport { detail: Some("no_store"), ..of(Forward::Miss) },
            200,
            "millstream; fwd=miss; detail=no_store",
        ),
        (of(Forward::Method), 200, "millstream; fwd=method"),
        (of(Forward::Bypass), 200, "millstream; fwd=bypass"),
        (of(Forward::Request), 200, "millstream; fwd=request"),
    ] {
        let mut out = Vec::new();
        report.write(&mut out, status);
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }
}
