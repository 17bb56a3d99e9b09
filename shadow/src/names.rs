//! What a name suggests about its value: a request id, a duration, a counter, a secret; a credential or a campaign.
//!
//! A name alone never makes a response cacheable: it only allows a difference to be harmless that was seen between
//! identical requests. Next: `shape`, what the value itself looks like.

use millstream_wire::FieldId;
use millstream_wire::{credential, unlisted};

/// What the name of a place in a response suggests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suggestion {
    RequestId,
    Duration,
    Counter,
    Secret,
    /// The current time as the content of a response, as in an API for clocks.
    Clock,
    Nothing,
}

/// Words anywhere in a name that stand for a secret.
const SECRETS: [&[u8]; 8] =
    [b"csrf", b"nonce", b"password", b"session", b"secret", b"signature", b"token", b"xsrf"];

/// Whole names, without what is neither a letter nor a digit: a part of a longer name may be somebody's own, as in
/// `transactionIds` or `X-Requestor`.
const REQUEST_IDS: [&str; 18] = [
    "requestid",
    "xrequestid",
    "datarequestid",
    "reqid",
    "correlationid",
    "xcorrelationid",
    "invocationid",
    "xinvocationid",
    "traceid",
    "xtraceid",
    "datatraceid",
    "traceparent",
    "spanid",
    "xb3traceid",
    "xb3spanid",
    "xamznrequestid",
    "xamzrequestid",
    "xmsrequestid",
];
const DURATIONS: [&str; 16] = [
    "took",
    "tookms",
    "runtime",
    "querytime",
    "responsetime",
    "processingtime",
    "ms",
    "duration",
    "durationms",
    "durationseconds",
    "elapsed",
    "elapsedms",
    "elapsedtime",
    "elapsedseconds",
    "latency",
    "latencyms",
];
const COUNTERS: [&str; 6] = ["views", "hits", "visits", "requestcount", "sequence", "servedcount"];
const CLOCKS: [&str; 6] = ["now", "time", "datetime", "currenttime", "unixtime", "utc"];

/// Names longer than this suggest nothing.
const LONGEST: usize = 40;

pub(crate) fn suggestion(name: &[u8]) -> Suggestion {
    if name.len() > LONGEST {
        return Suggestion::Nothing;
    }
    let mut plain = [0_u8; LONGEST];
    let mut length = 0;
    for byte in name.iter().filter(|byte| byte.is_ascii_alphanumeric()) {
        plain[length] = byte.to_ascii_lowercase();
        length += 1;
    }
    let plain = &plain[..length];
    // A secret is one whatever else its name has.
    if SECRETS.iter().any(|word| plain.windows(word.len()).any(|part| part == *word)) {
        return Suggestion::Secret;
    }
    let is = |words: &[&str]| words.iter().any(|word| word.as_bytes() == plain);
    match () {
        () if is(&REQUEST_IDS) => Suggestion::RequestId,
        () if is(&CLOCKS) => Suggestion::Clock,
        () if is(&DURATIONS) => Suggestion::Duration,
        () if is(&COUNTERS) => Suggestion::Counter,
        () => Suggestion::Nothing,
    }
}

/// Whether a cookie or request field may identify who asks.
pub(crate) fn is_credential(name: &[u8]) -> bool {
    const MORE: [&[u8]; 6] = [b"tenant", b"sid", b"plan", b"remember", b"tier", b"logged"];
    credential::is_credential(FieldId::of(name), name)
        || credential::is_secret(name)
        || MORE.iter().any(|word| name.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word)))
}

/// Whether a request field may say who asks or from where: a probe is sent without it.
pub fn is_of_the_client(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"cookie") || is_credential(name) || is_address(name)
}

/// Whether an API may respond by the field, as far as its name shows.
pub(crate) fn may_matter(name: &[u8]) -> bool {
    let id = FieldId::of(name);
    matches!(id, FieldId::Accept | FieldId::AcceptLanguage | FieldId::Origin) || is_unlisted(name)
}

/// Whether `$unlisted_fields` names the field.
pub(crate) fn is_unlisted(name: &[u8]) -> bool {
    !unlisted::is_listed(FieldId::of(name), name)
}

/// Whether a cookie counts visits or keeps a choice about that, and lets nobody in.
pub(crate) fn is_of_analytics(name: &[u8]) -> bool {
    const STARTS: [&str; 22] = [
        "_ga",
        "_gid",
        "_gat",
        "_gcl_",
        "_fbp",
        "_fbc",
        "__utm",
        "_pk_",
        "_hj",
        "amplitude_",
        "ajs_",
        "mp_",
        "_uet",
        "_clck",
        "_clsk",
        "_ym_",
        "hubspotutk",
        "__hs",
        "_tt_",
        "_scid",
        "OptanonConsent",
        "CookieConsent",
    ];
    STARTS.iter().any(|start| name.starts_with(start.as_bytes()))
}

/// Whether an argument lets its client in, such as `api_key`, `token` or `sig`.
pub(crate) fn is_credential_argument(name: &[u8]) -> bool {
    credential::is_secret(name)
}

/// Request fields in which a proxy passes on the client's address.
pub(crate) fn is_address(name: &[u8]) -> bool {
    const NAMES: [&str; 8] = [
        "x-forwarded-for",
        "x-real-ip",
        "forwarded",
        "true-client-ip",
        "cf-connecting-ip",
        "x-client-ip",
        "x-cluster-client-ip",
        "fastly-client-ip",
    ];
    NAMES.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name))
}

/// Request fields that are no dimension: those of the connection, of framing and of caches. `Host` is part of the key.
pub(crate) fn is_of_the_message(name: &[u8]) -> bool {
    const NAMES: [&str; 22] = [
        "host",
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "content-length",
        "expect",
        "via",
        "cache-control",
        "pragma",
        "if-none-match",
        "if-modified-since",
        "if-match",
        "if-unmodified-since",
        "if-range",
        "range",
        "priority",
        "max-forwards",
        "cookie",
    ];
    NAMES.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name))
}

/// Response fields that differ without changing the meaning, or that a cache writes itself.
pub(crate) fn is_harmless_in_response(name: &[u8]) -> bool {
    const NAMES: [&str; 22] = [
        "date",
        "age",
        "expires",
        "etag",
        "last-modified",
        "cache-control",
        "content-length",
        "connection",
        "keep-alive",
        "transfer-encoding",
        "server",
        "via",
        "vary",
        "server-timing",
        "x-runtime",
        "x-response-time",
        "x-cache",
        "cf-ray",
        "accept-ranges",
        "alt-svc",
        "traceparent",
        "set-cookie",
    ];
    NAMES.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name))
        || is_id_of_a_response(name)
        || ["x-ratelimit", "ratelimit", "x-rate-limit"].iter().any(|start| {
            let (begin, end) = name.split_at(start.len().min(name.len()));
            begin.eq_ignore_ascii_case(start.as_bytes())
                && LIMITS.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(end))
        })
}

/// What rate limits are told by, after the beginning of the name.
const LIMITS: [&str; 8] =
    ["", "-limit", "-remaining", "-reset", "-policy", "-used", "-reset-after", "-retry-after"];

/// Response fields whose value is new in each response, by their whole names.
fn is_id_of_a_response(name: &[u8]) -> bool {
    const NAMES: [&str; 19] = [
        "x-request-id",
        "request-id",
        "x-requestid",
        "x-correlation-id",
        "x-trace-id",
        "x-b3-traceid",
        "x-b3-spanid",
        "tracestate",
        "x-amz-cf-id",
        "x-amz-id-2",
        "x-amz-request-id",
        "x-amzn-requestid",
        "x-amzn-trace-id",
        "x-cloud-trace-context",
        "x-ms-request-id",
        "x-azure-ref",
        "x-github-request-id",
        "x-vercel-id",
        "fly-request-id",
    ];
    NAMES.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name))
}

/// Words in a path that may stand for the client, or for what is done with it: what `{word}` stands for is none of these.
const OF_THE_CLIENT: [&str; 48] = [
    "me",
    "my",
    "mine",
    "myself",
    "self",
    "own",
    "current",
    "whoami",
    "user",
    "account",
    "accounts",
    "profile",
    "profiles",
    "settings",
    "preferences",
    "admin",
    "administrator",
    "login",
    "logout",
    "signin",
    "signout",
    "signup",
    "register",
    "auth",
    "oauth",
    "session",
    "sessions",
    "password",
    "token",
    "tokens",
    "verify",
    "export",
    "import",
    "download",
    "cart",
    "basket",
    "checkout",
    "billing",
    "invoices",
    "payment",
    "wallet",
    "dashboard",
    "inbox",
    "messages",
    "notifications",
    "favorites",
    "wishlist",
    "private",
];

/// Whether a segment of a path may be about who asks: as a whole, or in one of its parts.
pub(crate) fn may_be_of_the_client(segment: &[u8]) -> bool {
    let is_known =
        |word: &[u8]| OF_THE_CLIENT.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(word));
    let parts = || segment.split(|byte| !byte.is_ascii_alphanumeric());
    parts().any(is_known) || is_known(&parts().flatten().copied().collect::<Vec<u8>>())
}

/// What the names of several arguments of campaigns begin with.
pub(crate) const CAMPAIGN_PREFIXES: [&str; 4] = ["utm_", "mtm_", "hsa_", "gad_"];

/// The number of the prefix that a name has.
pub(crate) fn campaign_prefix(name: &[u8]) -> Option<usize> {
    CAMPAIGN_PREFIXES.iter().position(|prefix| {
        name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
    })
}

/// Arguments by which campaigns are counted.
pub(crate) fn is_campaign(name: &[u8]) -> bool {
    const NAMES: [&str; 12] = [
        "gclid", "fbclid", "msclkid", "dclid", "gbraid", "wbraid", "mc_cid", "mc_eid", "igshid", "twclid",
        "ttclid", "yclid",
    ];
    campaign_prefix(name).is_some() || NAMES.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_suggest_what_their_values_are() {
        for (name, expected) in [
            ("request_id", Suggestion::RequestId),
            ("X-Request-Id", Suggestion::RequestId),
            ("traceId", Suggestion::RequestId),
            ("csrf_token", Suggestion::Secret),
            ("took", Suggestion::Duration),
            ("elapsed_ms", Suggestion::Duration),
            ("views", Suggestion::Counter),
            ("now", Suggestion::Clock),
            ("price", Suggestion::Nothing),
            ("transactionId", Suggestion::Nothing),
            ("transactionIds", Suggestion::Nothing),
            ("data-transaction-id", Suggestion::Nothing),
            ("requestIdOfUser", Suggestion::Nothing),
            ("X-Requestor", Suggestion::Nothing),
            ("membershipDuration", Suggestion::Nothing),
            ("timestamp", Suggestion::Nothing),
        ] {
            assert_eq!(suggestion(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn a_response_field_is_harmless_by_its_whole_name() {
        for name in ["Date", "X-Request-Id", "CF-Ray", "X-RateLimit-Remaining", "RateLimit", "X-Amz-Cf-Id"] {
            assert!(is_harmless_in_response(name.as_bytes()), "{name}");
        }
        for name in ["X-Requestor", "X-Request-User", "X-RateLimit-User", "X-Request-Id-Of", "Location"] {
            assert!(!is_harmless_in_response(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn fields_that_may_matter_are_neither_of_the_connection_nor_of_a_proxy() {
        for name in ["Accept", "Accept-Language", "Origin", "X-Requested-With", "X-Tenant", "DNT"] {
            assert!(may_matter(name.as_bytes()), "{name}");
        }
        for name in ["Host", "User-Agent", "Accept-Encoding", "X-Request-Id", "Referer", "Range", "Cookie"] {
            assert!(!may_matter(name.as_bytes()), "{name}");
        }
        for name in ["Authorization", "X-Api-Key", "True-Client-IP", "CF-Connecting-IP", "TE", "Upgrade"] {
            assert!(!may_matter(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn words_that_may_be_about_the_client_are_known() {
        for word in ["me", "Me", "account", "log-out", "my-orders", "sign_in", "admin.php", "export"] {
            assert!(may_be_of_the_client(word.as_bytes()), "{word}");
        }
        for word in ["shoe", "home", "old-red-story", "men", "summary"] {
            assert!(!may_be_of_the_client(word.as_bytes()), "{word}");
        }
    }

    #[test]
    fn credentials_are_recognized_and_preferences_are_not_credentials() {
        for name in ["Authorization", "X-Api-Key", "session", "sid", "X-Tenant", "role", "PHPSESSID"] {
            assert!(is_credential(name.as_bytes()), "{name}");
        }
        for name in ["accept-language", "currency", "ab", "lang", "user-agent", "accept", "origin", "theme"] {
            assert!(!is_credential(name.as_bytes()), "{name}");
        }
    }
}
