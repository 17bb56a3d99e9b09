//! `proxy_cache_vary unlisted`: what a request says in fields of which nobody knows that they mean nothing to an answer.
//!
//! An API that nobody described may answer by any field: a tenant, a currency, a test group. So the list is of those that
//! may be left out, each for one of the reasons in [`Meaningless`]; every other field makes a variant of its own. Credentials are
//! left out too: they are the matter of `proxy_cache_credentials`, and an answer that says `public` would else be stored
//! once for each. Accept, Accept-Language, Accept-Encoding and Origin are compared by their own rules. Next: `vary`.

use millstream_wire::client_address::is_client_address;
use millstream_wire::credential::is_credential;
use millstream_wire::{FieldId, Fields};

/// Stands for these fields among the names that a key varies by. No field has such a name (RFC 9110 §5.1).
pub(super) const NAME: &[u8] = b":unlisted";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaningless {
    /// It ends at this hop, or is left out if a response is to be stored.
    StaysHere,
    /// It is in the key, or is compared by a rule of its own.
    Compared,
    /// A wish of the client's own cache or connection.
    Wish,
    /// Different for every request, so no response that is worth storing depends on it.
    Trace,
    /// Which proxies it has passed, and whether it is traced: said by them, and alike for many requests.
    Hop,
    /// From which address or page a client comes, not what it wants: an API that responds by it gives each
    /// client another response and must say so.
    Whence,
    /// Which program asks. Whether it is a telephone's counts, see [`is_mobile`].
    Program,
}

use Meaningless::{Compared, Hop, Program, StaysHere, Trace, Whence, Wish};

/// `None` = it makes a variant.
fn known(id: FieldId) -> Option<Meaningless> {
    Some(match id {
        FieldId::Connection
        | FieldId::KeepAlive
        | FieldId::ProxyConnection
        | FieldId::Te
        | FieldId::Trailer
        | FieldId::TransferEncoding
        | FieldId::Upgrade
        | FieldId::Http2Settings
        | FieldId::ContentLength
        | FieldId::Expect
        | FieldId::Range
        | FieldId::IfRange
        | FieldId::IfMatch
        | FieldId::IfNoneMatch
        | FieldId::IfModifiedSince
        | FieldId::IfUnmodifiedSince
        | FieldId::Forwarded
        | FieldId::XForwardedHost
        | FieldId::XForwardedProto => StaysHere,
        FieldId::Host
        | FieldId::Accept
        | FieldId::AcceptEncoding
        | FieldId::AcceptLanguage
        | FieldId::Origin
        | FieldId::Authorization
        | FieldId::Cookie
        | FieldId::ProxyAuthorization => Compared,
        FieldId::CacheControl | FieldId::Pragma | FieldId::MaxForwards | FieldId::Priority => Wish,
        FieldId::XRequestId => Trace,
        FieldId::Via | FieldId::Date => Hop,
        FieldId::XForwardedFor | FieldId::XRealIp | FieldId::Referer => Whence,
        FieldId::UserAgent => Program,
        _ => return None,
    })
}

/// Other fields that make no variant, in lower case. Those with a client's address ([`is_client_address`])
/// make none either: for them there is `proxy_cache_vary address`.
const OTHERS: &[(&str, Meaningless)] = &[
    ("traceparent", Trace),
    ("tracestate", Trace),
    ("b3", Trace),
    ("x-b3-traceid", Trace),
    ("x-b3-spanid", Trace),
    ("x-b3-parentspanid", Trace),
    ("x-b3-sampled", Hop),
    ("x-b3-flags", Hop),
    ("uber-trace-id", Trace),
    ("sentry-trace", Trace),
    ("newrelic", Trace),
    ("elastic-apm-traceparent", Trace),
    ("x-datadog-trace-id", Trace),
    ("x-datadog-parent-id", Trace),
    ("x-datadog-sampling-priority", Hop),
    ("x-datadog-origin", Hop),
    ("x-datadog-tags", Trace),
    ("x-amzn-trace-id", Trace),
    ("x-cloud-trace-context", Trace),
    ("x-trace-id", Trace),
    ("x-correlation-id", Trace),
    ("correlation-id", Trace),
    ("request-id", Trace),
    ("x-request-start", Trace),
    ("x-queue-start", Trace),
    ("x-amz-cf-id", Trace),
    ("x-vercel-id", Trace),
    ("fly-request-id", Trace),
    ("cf-ray", Trace),
    ("cdn-loop", Hop),
    ("fastly-ff", Hop),
    ("x-varnish", Hop),
    ("x-timer", Trace),
    ("x-azure-ref", Trace),
    ("x-azure-requestchain", Trace),
    ("x-arr-log-id", Trace),
    ("x-ms-request-id", Trace),
    ("x-ms-client-request-id", Trace),
    ("x-nf-request-id", Trace),
    ("x-railway-request-id", Trace),
    ("rndr-id", Trace),
    ("x-appengine-request-log-id", Trace),
    ("x-forwarded-port", StaysHere),
    // Where a request comes from and whether a user made it: what an API refuses by them it refuses, and does not cache.
    ("sec-fetch-site", Whence),
    ("sec-fetch-user", Whence),
    ("sec-ch-ua", Program),
    ("sec-ch-ua-platform", Program),
];

fn meaning(id: FieldId, name: &[u8]) -> Option<Meaningless> {
    let of_other = || OTHERS.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()));
    known(id).or_else(|| of_other().filter(|_| id == FieldId::Other).map(|(_, meaning)| *meaning))
}

fn is_listed(id: FieldId, name: &[u8]) -> bool {
    // A note is told, whatever it is called.
    !name.starts_with(b"=")
        && (meaning(id, name).is_some()
            || name == super::ADDRESS
            || is_credential(id, name)
            || id == FieldId::Other && is_client_address(name))
}

/// Whether requests that differ in this field alone share responses, and a configuration may decide by it: it is neither a
/// credential, nor an address, nor different for every request.
pub fn leaves_out(name: &[u8]) -> bool {
    let id = FieldId::of(name);
    // Forwarded names host and scheme besides.
    let is_address = is_client_address(name) && id != FieldId::Forwarded;
    meaning(id, name).is_some_and(|meaning| meaning != Trace) && !is_credential(id, name) && !is_address
}

/// Whether a telephone's browser asks, by the word that all of them have: pages for these are the one thing
/// that commonly differs by User-Agent without a Vary.
fn is_mobile(request: Fields<'_>) -> bool {
    request.get(FieldId::UserAgent).is_some_and(|agent| agent.windows(4).any(|word| word == b"Mobi"))
}

/// Returns whether the request has any of these fields. Neither name nor value can hold a line end.
pub(super) fn write(request: Fields<'_>, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    if is_mobile(request) {
        out.extend_from_slice(b"user-agent:Mobi\n");
    }
    for (id, name, value) in request.iter() {
        if !is_listed(id, name) {
            out.extend(name.iter().map(u8::to_ascii_lowercase));
            out.push(b':');
            out.extend_from_slice(value);
            out.push(b'\n');
        }
    }
    out.len() > start
}

/// Names and values of what [`write()`] wrote. Values may be secret.
pub(super) fn read(written: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let lines = written.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| {
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        (&line[..colon], line.get(colon + 1..).unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::headers;

    fn said(lines: &[(&str, &str)]) -> String {
        let mut out = Vec::new();
        let anything = write(headers(lines).view(), &mut out);
        assert_eq!(anything, !out.is_empty());
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn fields_that_nobody_listed_are_told_and_no_others() {
        let agent = "Mozilla/5.0 (X11; Linux x86_64) Firefox/131.0";
        for (lines, expected) in [
            (&[("X-Tenant", "a")][..], "x-tenant:a\n"),
            (&[("x-tenant", ""), ("Host", "h")], "x-tenant:\n"),
            (&[("X-Tenant", "a"), ("Currency", "eur")], "x-tenant:a\ncurrency:eur\n"),
            (&[("DNT", "1"), ("Save-Data", "on")], "dnt:1\nsave-data:on\n"),
            (&[("Sec-Fetch-Dest", "empty"), ("Sec-Fetch-Site", "none")], "sec-fetch-dest:empty\n"),
            (&[("Content-Type", "application/json")], "content-type:application/json\n"),
            (&[("User-Agent", agent), ("Referer", "/a"), ("Traceparent", "00-1")], ""),
            (&[("User-Agent", "Mozilla/5.0 (iPhone) Mobile/15E148")], "user-agent:Mobi\n"),
            (&[("Cookie", "a"), ("X-Api-Key", "b"), ("Range", "bytes=0-")], ""),
        ] {
            assert_eq!(said(lines), expected);
        }
    }

    #[test]
    fn a_field_that_is_left_out_is_told_in_a_note() {
        for name in [
            "forwarded",
            "x-forwarded-host",
            "x-forwarded-port",
            "referer",
            "user-agent",
            "accept-encoding",
            "via",
            "fastly-ff",
        ] {
            assert!(leaves_out(name.as_bytes()), "{name}");
            assert_eq!(said(&[(name, "a")]), "", "{name}");
            assert_eq!(said(&[(&format!("={name}"), "a")]), format!("={name}:a\n"));
        }
        for name in ["x-tenant", "authorization", "cookie", "x-forwarded-for", "traceparent", "x-request-id"]
        {
            assert!(!leaves_out(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn what_was_written_is_read_again() {
        let written = said(&[("X-Tenant", "a:b"), ("Currency", "")]);
        let read: Vec<_> = read(written.as_bytes()).collect();
        assert_eq!(read, [(&b"x-tenant"[..], &b"a:b"[..]), (b"currency", b"")]);
    }

    #[test]
    fn the_list_is_in_lower_case_and_names_each_field_once() {
        for (at, (name, _)) in OTHERS.iter().enumerate() {
            assert_eq!(*name, name.to_ascii_lowercase());
            assert_eq!(FieldId::of(name.as_bytes()), FieldId::Other, "{name}");
            assert!(!OTHERS[..at].iter().any(|(other, _)| other == name), "{name}");
        }
    }
}
