//! Directives about an API that nobody described: whom an answer may be given to, how long past its end, and who takes it out.
//!
//! nginx has none of them, so their defaults leave nginx's meaning as it is; `serve` writes them all. Before:
//! `cache`. Next: `purge`; `millstream-cache`'s `policy` and `vary`, which apply these.

use std::sync::Arc;
use std::time::Duration;

use super::CommonLevel;
use crate::features::level::level;
use crate::features::templates::{record, without_templates};
use crate::reading::{Reading, parameter};
use crate::source::Span;
use crate::template::Template;
use crate::tree::Directive;

#[derive(Debug, Clone, Default)]
pub enum Credentials {
    /// Cached like others, as far as RFC 9111 §3.5 allows; and only what nginx stores is.
    #[default]
    Unsaid,
    /// Cached like others, and so is what RFC 9111 allows to be stored.
    Any,
    /// They share only responses that are explicitly public.
    Public {
        /// Fields, in lower case, that `proxy_set_header` sends in place of the client's.
        replaced: Arc<[Box<str>]>,
    },
}

impl Credentials {
    /// Whether users are kept apart: who shows a credential gets only public responses.
    pub fn is_public(&self) -> bool {
        matches!(self, Credentials::Public { .. })
    }
}

record! {
    pub struct AddressValue {
        pub value: Template,
        /// The client's fields it is made of: it tells an address if one of them does. Empty = it always
        /// does.
        pub fields: Arc<[Box<str>]>,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheVary {
    /// By Origin, unless the response allows every origin.
    pub origin: bool,
    /// By every request field that is not known to be irrelevant.
    pub unlisted: bool,
    /// By what the upstream is told of the client's address, unless the response is public.
    pub address: bool,
}

/// Whether an unsafe request invalidates what is stored for its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Invalidation {
    #[default]
    On,
    Off,
    /// At most once per URL in this time.
    Every(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaleWhile {
    /// Hundredths of the response's freshness lifetime.
    pub percent: Option<u16>,
    pub longest: Duration,
}

without_templates!(CacheVary, Credentials, Invalidation, StaleWhile);

level! {
    pub struct SharingLevel {
        /// The inner `None` is `off`.
        stale_while_updating: Option<StaleWhile>,
        /// The inner `None` is `off`.
        stale_if_error: Option<Duration>,
        credentials: bool,
        vary: (CacheVary, Span),
        invalidation: Invalidation,
    }
}

/// Default of `max=` with a percentage.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

macro_rules! rows {
    ($prefix:literal, $family:expr) => {
        [
            once(concat!($prefix, "_cache_stale_while_updating"), HTTP_SERVER_LOCATION, (1, 2),
                "off | time | percent% [max=time]", "off",
                concat!("Limits how long an expired response may be used during a refresh that `", $prefix, "_cache_use_stale updating` or a background update \
                allows: to a time, or to a percentage of its lifetime, at most `max` (1d). After that, requests wait for the upstream. \
                `stale-while-revalidate` in the response takes precedence. With `off`, there is no limit, as in nginx."),
                Apply::Pass($family, sharing::stale_while_updating)).needing(Need::Cache),
            once(concat!($prefix, "_cache_stale_if_error"), HTTP_SERVER_LOCATION, (1, 1), "off | time", "off",
                concat!("Limits how long an expired response may be used if the upstream fails and `", $prefix, "_cache_use_stale` allows it. `stale-if-error` in \
                the response takes precedence. With `off`, there is no limit, as in nginx."),
                Apply::Pass($family, |l, d, r| {
                    let word = &d.args[0];
                    l.sharing.stale_if_error =
                        if word.text == "off" { Some(None) } else { r.duration(word).map(Some) };
                })).needing(Need::Cache),
            once(concat!($prefix, "_cache_credentials"), HTTP_SERVER_LOCATION, (1, 1), "any | public", "",
                "Sets how the cache handles requests with a credential. Without the directive and with `any`, only Authorization is a credential \
                (RFC 9111 §3.5), and so is a value that reaches the upstream in its place, such as `$remote_user`; without the directive, responses that nginx never stores (`no-cache` or `private` in any form, stale on arrival, to a POST) \
                are stored only if they have `public` or `s-maxage`. With `public`, the cache uses and stores responses to requests with a credential only if they have `public` or `s-maxage`; otherwise, \
                such requests are passed to the upstream with their conditions and ranges, and no other request waits for them. Credentials are a \
                client certificate, Cookie, Authorization, Proxy-Authorization, and fields whose name contains token, secret, session, key or auth \
                or refers to a person (X-User, X-Actor …). A field that the key contains or that `proxy_set_header` clears is not a credential. A \
                value derived from a credential is one too if it reaches the upstream: through `set`, `map`, a capture, `auth_request_set`, a \
                parameter, `proxy_set_body`, `proxy_ssl_certificate`, `root`, or the URL of a rewrite or an internal redirect, unless the key \
                contains that URL. If such a value determines which URL is requested from the upstream, the cache is not used, because `public` in \
                the response refers to that URL alone. The same applies if the condition of an `if` depends on a credential: to the values that its block sets, and to the address \
                to which its block passes the request. A field with such a name that the configuration sets is a credential if its value comes from the client, unless \
                the key contains that value.",
                Apply::Pass($family, sharing::credentials)).needing(Need::Cache),
            once(concat!($prefix, "_cache_vary"), HTTP_SERVER_LOCATION, (1, 3), "off | [origin] [unlisted] [address]", "off",
                concat!("Varies responses by more request fields than those in Vary. `origin`: by Origin, unless the response has \
                `Access-Control-Allow-Origin: *`. `unlisted`: by Accept, Accept-Language, whether the client is a phone, and every field that is \
                not known to be harmless. The harmless ones are the other parts of User-Agent, Referer, Sec-Fetch-Site and -User, Sec-CH-UA \
                and -Platform, and fields of traces (Traceparent, X-Request-Id, X-B3-TraceId …), caches and connections (Cache-Control, Range, If-None-Match \
                …). If the configuration uses such a field, or a variable of the connection such as `$server_port`, other than in logs, in `add_header` or for the \
                cache itself, responses vary by the variable that it uses (with `map $http_user_agent $mobile`, by `$mobile`). For credentials, see `", $prefix, "_cache_credentials`. `address`: by the client's address if the upstream receives it: in fields that \
                the configuration sets (X-Real-IP, X-Forwarded-For …), in parameters, a body, the URL, by `proxy_bind` or `proxy_protocol`, or \
                in fields from a `trusted_proxy`; or if the configuration uses it to decide how to handle the request (in `if`, `rewrite`, \
                `try_files` or `index`, or by `deny` with an `error_page`). A response with `public` or `s-maxage` does not vary by it unless the \
                address determines which URL is requested. Fields that name a client's address (True-Client-IP, \
                CF-Connecting-IP …) are passed on only from a `trusted_proxy`. With any of the three, a response with Content-Encoding varies by Accept-Encoding."),
                Apply::Pass($family, sharing::vary)).needing(Need::Cache),
            once(concat!($prefix, "_cache_invalidation"), HTTP_SERVER_LOCATION, (1, 1), "on | off | rate=number r/s",
                "on",
                "Invalidates stored responses for the target of a request with an unsafe or unknown method if its response is 2xx or 3xx (RFC 9111 \
                §4.4). With `on`, each such request sends the next GET for that URL to the upstream. With `rate=1r/s` (or `r/m`), each URL is \
                invalidated at most once per second; further requests within that time take effect together at its end, so a response may be a \
                second older than the last change. With `off`, responses remain until they expire.",
                Apply::Pass($family, sharing::invalidation)).needing(Need::Cache),
        ]
    };
}
pub(super) use rows;

/// A percentage with an optional `max=`; `None` after an error was reported.
fn percentage(directive: &Directive, example: &str, reading: &mut Reading<'_>) -> Option<(u64, Duration)> {
    let first = &directive.args[0];
    let mut longest = LONGEST;
    if let Some(word) = directive.args.get(1) {
        match parameter(word) {
            Some(("max", value)) if first.text.ends_with('%') => longest = reading.duration(&value)?,
            _ => {
                reading
                    .error(word.span, format!("invalid parameter \"{}\"", word.text))
                    .help(format!("write {} {example};", directive.name.text));
                return None;
            }
        }
    }
    let percent = first.text.strip_suffix('%')?;
    let percent = reading.number(&Reading::part(first, percent), 1, 1000)?;
    Some((percent, longest))
}

pub(super) fn stale_while_updating(
    level: &mut CommonLevel,
    directive: &Directive,
    reading: &mut Reading<'_>,
) {
    let first = &directive.args[0];
    level.sharing.stale_while_updating = match directive.args.len() {
        1 if first.text == "off" => Some(None),
        1 if !first.text.ends_with('%') => {
            reading.duration(first).map(|longest| Some(StaleWhile { percent: None, longest }))
        }
        _ => percentage(directive, "100% max=10s", reading)
            .map(|(percent, longest)| Some(StaleWhile { percent: Some(percent as u16), longest })),
    };
}

pub(super) fn credentials(level: &mut CommonLevel, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    match word.text.as_str() {
        "any" => level.sharing.credentials = Some(false),
        "public" => level.sharing.credentials = Some(true),
        _ => reading.not_one_of(word, &["any", "public"]),
    }
}

pub(super) fn vary(level: &mut CommonLevel, directive: &Directive, reading: &mut Reading<'_>) {
    let mut vary = CacheVary::default();
    for word in &directive.args {
        match word.text.as_str() {
            "off" if directive.args.len() == 1 => {}
            "origin" => vary.origin = true,
            "unlisted" => vary.unlisted = true,
            "address" => vary.address = true,
            _ => reading.not_one_of(word, &["off", "origin", "unlisted", "address"]),
        }
    }
    level.sharing.vary = Some((vary, directive.span));
}

pub(super) fn invalidation(level: &mut CommonLevel, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    let invalidation = match (word.text.as_str(), parameter(word)) {
        ("on", _) => Some(Invalidation::On),
        ("off", _) => Some(Invalidation::Off),
        (_, Some(("rate", value))) => interval(&value.text).map(Invalidation::Every),
        _ => None,
    };
    if invalidation.is_none() {
        reading
            .error(word.span, format!("invalid value \"{}\"", word.text))
            .help("write on, off, or a rate such as rate=1r/s or rate=30r/m");
    }
    level.sharing.invalidation = invalidation;
}

/// The time between two at a rate such as `10r/s` or `30r/m`, of 1 to 1000.
pub(super) fn interval(rate: &str) -> Option<Duration> {
    let (number, per) = match rate.strip_suffix("r/s") {
        Some(number) => (number, Duration::from_secs(1)),
        None => (rate.strip_suffix("r/m")?, Duration::from_secs(60)),
    };
    let number = number.parse::<u32>().ok().filter(|number| (1..=1000).contains(number))?;
    Some(per / number)
}
