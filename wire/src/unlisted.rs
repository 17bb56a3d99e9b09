//! Names of request fields by which `proxy_cache_vary unlisted` tells requests apart: those of which nobody knows that they mean
//! nothing to a response.
//!
//! An API that nobody described may respond by any field: a tenant, a currency, a test group. So the list is of those that
//! may be left out, each for one of the reasons in `Meaningless`; every other field makes a variant of its own. Credentials are
//! left out too: they are the matter of `proxy_cache_credentials`, and a response with `public` would else be stored
//! once for each. Accept, Accept-Language, Accept-Encoding and Origin are compared by their own rules. Next: the cache's `vary`.

use crate::client_address::is_client_address;
use crate::credential::is_credential;
use crate::field_id::FieldId;

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

/// Whether requests that differ in this field alone share responses, or are told apart by a rule of its own.
pub fn is_listed(id: FieldId, name: &[u8]) -> bool {
    // No field has such a name (RFC 9110 §5.1): a note of the configuration counts, that of an address has a rule of its own.
    !name.starts_with(b"=")
        && (meaning(id, name).is_some()
            || name.starts_with(b":")
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
pub fn is_mobile(agent: &[u8]) -> bool {
    agent.windows(4).any(|word| word == b"Mobi")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_lower_case_and_names_each_field_once() {
        for (at, (name, _)) in OTHERS.iter().enumerate() {
            assert_eq!(*name, name.to_ascii_lowercase());
            assert_eq!(FieldId::of(name.as_bytes()), FieldId::Other, "{name}");
            assert!(!OTHERS[..at].iter().any(|(other, _)| other == name), "{name}");
        }
    }
}
