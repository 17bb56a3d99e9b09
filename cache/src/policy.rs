//! What may be stored, for how long, and when it may be used past that time: pure functions of answer and moment.
//!
//! RFC 9111 for a shared cache, RFC 5861, and nginx's order of who decides: X-Accel-Expires, then Cache-Control and
//! Expires, then `proxy_cache_valid`. Where RFC 9111 forbids to share an answer, `proxy_ignore_headers` is the only
//! way to store it all the same. Nothing here looks at an entry's bytes or changes anything. Next: `entry`.

use crate::now::{Now, milliseconds};
use crate::vary::{self, Vary};
use millstream_conf::model::{IgnoreHeaders, ProxyCache, UseStale, ValidStatus};
use millstream_wire::cache_control::{self, CacheControl};
use millstream_wire::{FieldId, Fields, Method, date};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Longest lifetime and age that is calculated with: 68 years, the largest that RFC 9111 §1.2.2 asks for.
const LONGEST: u64 = i32::MAX as u64;

/// What of a request decides whether its answer may be stored.
#[derive(Debug, Clone, Copy)]
pub struct RequestFacts {
    /// The method as it was sent to the upstream.
    pub method: Method,
    /// Whether an Authorization field was sent to the upstream.
    pub has_authorization: bool,
}

/// Whether an answer may be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storable {
    /// For so long.
    Yes(Lifetime),
    /// Not, and why.
    No(Reason),
}

/// Why an answer is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The method is not among `proxy_cache_methods`, or the answer to a HEAD has no body to store.
    Method,
    /// A status that is no whole answer: 1xx, 206, 304.
    Status,
    /// `proxy_no_cache`.
    NoCacheDirective,
    /// `X-Accel-Expires: 0`, or a moment that has passed.
    XAccelExpires,
    /// Cache-Control: no-store.
    NoStore,
    /// Cache-Control: private, with or without field names.
    Private,
    /// Cache-Control: no-cache, with or without field names.
    NoCache,
    /// The answer is no longer fresh when it arrives, and may not be used stale.
    Expired,
    /// Nothing gives it a lifetime: no header, and no `proxy_cache_valid` for its status.
    NoLifetime,
    /// It sets a cookie.
    SetCookie,
    /// `Vary: *`, or more names than are kept apart.
    Vary,
    /// The key's text is longer than [`crate::key::LONGEST_TEXT`].
    KeyTooLong,
    /// The request carried credentials and RFC 9111 §3.5 does not allow to share the answer.
    Authorization,
}

/// How long an entry may be used, and how beyond that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// Fresh before this moment, in milliseconds since 1970.
    pub fresh_until: i64,
    /// Age it already had when it arrived.
    pub initial_age: Duration,
    /// May be used this much longer while it is being updated (RFC 5861 §3).
    pub stale_while_revalidate: Option<Duration>,
    /// May be used this much longer when the upstream fails (RFC 5861 §4).
    pub stale_if_error: Option<Duration>,
    /// Whether the answer forbids to use it stale.
    pub revalidation: Revalidation,
    /// `proxy_ignore_headers Vary`: one answer for all, whatever its Vary says.
    pub vary_ignored: bool,
    /// no-cache: never used without asking first, however fresh (RFC 9111 §5.2.2.4).
    pub always_validate: bool,
}

/// Whether a stale answer may be used without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revalidation {
    /// Nothing is said.
    Free,
    /// s-maxage says it in passing (RFC 9111 §5.2.2.10); an explicit RFC 5861 directive beside it wins.
    Implied,
    /// must-revalidate or proxy-revalidate: never.
    Required,
}

/// Why a stale answer would be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StaleCause {
    /// It is being updated.
    Updating,
    /// The upstream could not be reached, or broke off.
    Error,
    /// The upstream was too slow.
    Timeout,
    /// The upstream's answer could not be read.
    InvalidHeader,
    /// The upstream answered with this status.
    Status(u16),
}

/// Whether requests with this method are looked up: GET and HEAD, and POST where `proxy_cache_methods` names it.
pub fn looks_up(conf: &ProxyCache, method: Method) -> bool {
    matches!(method, Method::Get | Method::Head) || (method == Method::Post && conf.cache_post)
}

/// Whether this answer means that what is stored for the target is no longer true (RFC 9111 §4.4): a method that is
/// not safe, unknown ones among them, and no error.
pub fn invalidates(method: Method, status: u16) -> bool {
    !method.is_safe() && (200..400).contains(&status)
}

/// Whether an answer may be stored and for how long. `no_cache` is the outcome of `proxy_no_cache`.
pub fn storable(
    conf: &ProxyCache,
    ignore: &IgnoreHeaders,
    request: &RequestFacts,
    status: u16,
    answer: Fields<'_>,
    now: Now,
    no_cache: bool,
) -> Storable {
    let control = match ignore.cache_control {
        true => cache_control::parse(std::iter::empty::<&[u8]>()),
        false => cache_control::parse(answer.all(FieldId::CacheControl)),
    };
    match forbidden(conf, ignore, request, status, answer, &control, no_cache) {
        Some(reason) => Storable::No(reason),
        None => {
            lifetime(conf, ignore, status, answer, &control, now).map_or_else(Storable::No, Storable::Yes)
        }
    }
}

fn forbidden(
    conf: &ProxyCache,
    ignore: &IgnoreHeaders,
    request: &RequestFacts,
    status: u16,
    answer: Fields<'_>,
    control: &CacheControl<'_>,
    no_cache: bool,
) -> Option<Reason> {
    if no_cache {
        return Some(Reason::NoCacheDirective);
    }
    if request.method == Method::Head || !looks_up(conf, request.method) {
        return Some(Reason::Method);
    }
    if status < 200 || matches!(status, 206 | 304) {
        return Some(Reason::Status);
    }
    if !ignore.set_cookie && answer.has(FieldId::SetCookie) {
        return Some(Reason::SetCookie);
    }
    if !ignore.vary && matches!(vary::read(answer), Vary::Anything | Vary::TooMany) {
        return Some(Reason::Vary);
    }
    let shared = control.public || control.must_revalidate || control.s_maxage.is_some();
    if request.has_authorization && !conf.key_names_credential && !shared {
        return Some(Reason::Authorization);
    }
    None
}

fn lifetime(
    conf: &ProxyCache,
    ignore: &IgnoreHeaders,
    status: u16,
    answer: Fields<'_>,
    control: &CacheControl<'_>,
    now: Now,
) -> Result<Lifetime, Reason> {
    let initial_age = Duration::from_secs(answer.get(FieldId::Age).and_then(number).unwrap_or(0));
    let terms = |fresh_until| Lifetime {
        fresh_until,
        initial_age,
        stale_while_revalidate: control.stale_while_revalidate.map(seconds),
        stale_if_error: control.stale_if_error.map(seconds),
        revalidation: match () {
            () if control.must_revalidate || control.proxy_revalidate => Revalidation::Required,
            () if control.s_maxage.is_some() => Revalidation::Implied,
            () => Revalidation::Free,
        },
        vary_ignored: ignore.vary,
        always_validate: false,
    };
    let accelerated = answer.get(FieldId::XAccelExpires).filter(|_| !ignore.x_accel_expires);
    if let Some(fresh_until) = accelerated.and_then(|value| x_accel_expires(value, now)) {
        return if fresh_until > now.unix_milliseconds {
            Ok(terms(fresh_until))
        } else {
            Err(Reason::XAccelExpires)
        };
    }
    if control.no_store {
        return Err(Reason::NoStore);
    }
    if control.private.is_present() {
        return Err(Reason::Private);
    }
    if control.no_cache.is_present() {
        return Err(Reason::NoCache);
    }
    // Age counts against the lifetime that the origin gave (RFC 9111 §4.2.3). The Date field does not: a clock that
    // is wrong at the origin would make everything stale.
    if let Some(explicit) = explicit(ignore, answer, control, now) {
        let left = milliseconds(explicit).saturating_sub(milliseconds(initial_age));
        let terms = terms(now.unix_milliseconds.saturating_add(left));
        return if left > 0 || usable_stale(&terms, now) { Ok(terms) } else { Err(Reason::Expired) };
    }
    match conf
        .valid
        .iter()
        .find(|valid| valid.status == ValidStatus::Any || valid.status == ValidStatus::Is(status))
    {
        Some(valid) if !valid.time.is_zero() => Ok(terms(now.after(valid.time).unix_milliseconds)),
        _ => Err(Reason::NoLifetime),
    }
}

/// The lifetime that Cache-Control or Expires give; zero where they say that it is over.
fn explicit(
    ignore: &IgnoreHeaders,
    answer: Fields<'_>,
    control: &CacheControl<'_>,
    now: Now,
) -> Option<Duration> {
    if let Some(age) = control.s_maxage.or(control.max_age) {
        return Some(seconds(age));
    }
    let expires = answer.get(FieldId::Expires).filter(|_| !ignore.expires)?;
    // An Expires that cannot be read, "0" above all, lies in the past (RFC 9111 §5.3).
    let Some(expires) = date::parse_http(expires) else { return Some(Duration::ZERO) };
    let date = answer.get(FieldId::Date).and_then(date::parse_http).unwrap_or(now.unix_seconds());
    Some(seconds(u64::try_from(expires.saturating_sub(date)).unwrap_or(0)))
}

/// `X-Accel-Expires`: seconds from now, or `@` and seconds since 1970. `None` where it is neither.
fn x_accel_expires(value: &[u8], now: Now) -> Option<i64> {
    match value.strip_prefix(b"@") {
        Some(moment) => Some(milliseconds(seconds(number(moment)?))),
        None => Some(now.after(seconds(number(value)?)).unix_milliseconds),
    }
}

/// Whether an answer that is stale at once is worth storing.
fn usable_stale(terms: &Lifetime, now: Now) -> bool {
    terms.revalidation != Revalidation::Required
        && [terms.stale_while_revalidate, terms.stale_if_error]
            .into_iter()
            .flatten()
            .any(|window| terms.is_within(window, now))
}

impl Lifetime {
    /// Whether the entry is fresh.
    #[inline]
    pub fn is_fresh(&self, now: Now) -> bool {
        now.unix_milliseconds < self.fresh_until
    }

    /// Whether the entry, being stale, may be used because of `cause`.
    ///
    /// The configuration may allow it for an answer that says nothing about it; an answer that forbids it outweighs
    /// the configuration (RFC 9111 §4.2.4).
    pub fn may_serve_stale(&self, cause: StaleCause, use_stale: &UseStale, now: Now) -> bool {
        let granted = match cause {
            StaleCause::Updating => self.stale_while_revalidate,
            StaleCause::Status(status) if !matches!(status, 500 | 502 | 503 | 504) => None,
            _ => self.stale_if_error,
        };
        match self.revalidation {
            Revalidation::Required => false,
            _ if granted.is_some_and(|window| self.is_within(window, now)) => true,
            Revalidation::Implied => false,
            Revalidation::Free => allows(use_stale, cause),
        }
    }

    fn is_within(&self, window: Duration, now: Now) -> bool {
        now.unix_milliseconds < self.fresh_until.saturating_add(milliseconds(window))
    }
}

fn allows(use_stale: &UseStale, cause: StaleCause) -> bool {
    match cause {
        StaleCause::Updating => use_stale.updating,
        StaleCause::Error => use_stale.error,
        StaleCause::Timeout => use_stale.timeout,
        StaleCause::InvalidHeader => use_stale.invalid_header,
        StaleCause::Status(500) => use_stale.http_500,
        StaleCause::Status(502) => use_stale.http_502,
        StaleCause::Status(503) => use_stale.http_503,
        StaleCause::Status(504) => use_stale.http_504,
        StaleCause::Status(403) => use_stale.http_403,
        StaleCause::Status(404) => use_stale.http_404,
        StaleCause::Status(429) => use_stale.http_429,
        StaleCause::Status(_) => false,
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds.min(LONGEST))
}

/// A whole number of seconds; one too large to hold counts as the longest.
fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value =
        text.iter().fold(0u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
    Some(value.min(LONGEST))
}
