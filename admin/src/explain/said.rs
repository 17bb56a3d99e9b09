//! What the request of a stored answer said in a field that tells variants apart, without giving away who asked.
//!
//! The answers are other users', so a value is told only where the field is known to describe what somebody's program can
//! show; of any other (Cookie, Authorization, a key, a tenant) its length and a mark that is the same for the same value.

use millstream_server::location_text::readable;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// Request fields that identify no one.
const TOLD: [&str; 24] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "access-control-request-headers",
    "access-control-request-method",
    "content-type",
    "device-memory",
    "dnt",
    "downlink",
    "dpr",
    "ect",
    "host",
    "hx-request",
    "origin",
    "range",
    "rtt",
    "save-data",
    "upgrade-insecure-requests",
    "viewport-width",
    "width",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-requested-with",
];
const TOLD_FAMILIES: [&str; 2] = ["sec-ch-", "sec-fetch-"];

/// Random key of the marks, so that a mark cannot be looked up in a precomputed list.
static MARKS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

pub(super) fn said(name: &str, value: Option<&str>) -> String {
    let name = readable(name.as_bytes());
    let Some(value) = value else { return format!("{name}: (absent)") };
    if is_told(&name) {
        return format!("{name}: {}", readable(value.as_bytes()));
    }
    if value.is_empty() {
        return format!("{name}: (empty)");
    }
    // Sixteen bits tell a hundred variants apart and say next to nothing about a password.
    let mark = MARKS.hash_one(value) as u16;
    format!("{name}: (set, {} bytes, #{mark:04x})", value.len())
}

fn is_told(name: &str) -> bool {
    let begins = |family: &&str| {
        name.get(..family.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(family))
    };
    TOLD.iter().any(|told| told.eq_ignore_ascii_case(name)) || TOLD_FAMILIES.iter().any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_told_only_where_it_names_nobody() {
        for (name, value) in
            [("accept-language", "de"), ("Accept-Encoding", "gzip"), ("Sec-CH-UA-Mobile", "?1")]
        {
            assert_eq!(said(name, Some(value)), format!("{name}: {value}"));
        }
        let secret = "session=alice";
        for name in ["cookie", "Authorization", "x-api-key", "x-tenant", "user-agent", "sec-websocket-key"] {
            let told = said(name, Some(secret));
            assert!(
                !told.contains("alice") && told.starts_with(&format!("{name}: (set, 13 bytes, #")),
                "{told}"
            );
            assert_eq!(told, said(name, Some(secret)), "the same value has the same mark");
        }
        assert_eq!(said("cookie", None), "cookie: (absent)");
    }
}
