//! Lifetime and age of an answer, calculated (RFC 9111 §4.2.1 to §4.2.3).
//!
//! Ages count from the origin's making of the answer. What the way here adds is taken from Date where that lies
//! within the exchange, so that the time an application needs to think is not held against its answer. Next:
//! `judge`, which decides what follows.

use super::arithmetic::Source;
use super::control::Governing;
use crate::now::{Now, milliseconds};
use millstream_conf::model::{Heuristic, ProxyCache, Valid, ValidStatus};
use millstream_wire::{FieldId, Fields, date, list, octets};
use std::time::Duration;

/// Longest lifetime and age used in calculations: 68 years, the largest that RFC 9111 §1.2.2 asks for.
pub(super) const LONGEST: u64 = i32::MAX as u64;

/// The Age field, and what the way here adds for a response that took `delay` to come.
pub(super) fn age(answer: Fields<'_>, delay: Duration, now: Now) -> (Duration, Duration) {
    let stated = answer.get(FieldId::Age).and_then(age_field);
    match stated {
        // It passed another cache: by RFC 9111 §4.2.3 the whole exchange may have been transit.
        Some(stated) => (seconds(stated), delay),
        None => (Duration::ZERO, since_date(answer, delay, now)),
    }
}

/// Time since the response was made, if its Date can be trusted: it lies within the exchange, to the second.
fn since_date(answer: Fields<'_>, delay: Duration, now: Now) -> Duration {
    let Some(made) = answer.get(FieldId::Date).and_then(date::parse_http) else { return Duration::ZERO };
    let arrived = now.unix_seconds();
    let asked = now.unix_milliseconds.saturating_sub(milliseconds(delay)).div_euclid(1000);
    // A second's Date may be up to a second old when it is written.
    if (asked..arrived).contains(&made) {
        let since = u64::try_from(arrived - made - 1).unwrap_or(0);
        Duration::from_secs(since).min(delay)
    } else {
        Duration::ZERO
    }
}

/// The first member counts, whatever else is listed; what is no number is ignored (RFC 9111 §5.1).
fn age_field(value: &[u8]) -> Option<u64> {
    list::elements(value).next().and_then(number)
}

/// By the directives in force or Expires; zero if they say that it is over.
pub(super) fn explicit(
    governing: &Governing<'_>,
    answer: Fields<'_>,
    now: Now,
) -> Option<(Source, Duration)> {
    let control = &governing.control;
    if let Some(age) = control.s_maxage {
        return Some((Source::SMaxage, seconds(age)));
    }
    if let Some(age) = control.max_age {
        return Some((Source::MaxAge, seconds(age)));
    }
    if !governing.expires_counts {
        return None;
    }
    let mut lines = answer.all(FieldId::Expires);
    let first = lines.next()?;
    let date = made_at(answer, now);
    // An Expires that cannot be read, "0" above all, lies in the past (RFC 9111 §5.3); several do too.
    let expires = date::parse_http(first).filter(|_| lines.next().is_none());
    let lifetime = expires.map_or(0, |expires| u64::try_from(expires.saturating_sub(date)).unwrap_or(0));
    Some((Source::Expires { expires, date }, seconds(lifetime)))
}

/// Seconds from now, or `@` and seconds since 1970. `None` if it is neither, or a number that nginx does not
/// hold.
pub(super) fn x_accel_expires(value: &[u8], now: Now) -> Option<i64> {
    let number = |text| octets::decimal(text).filter(|number| i64::try_from(*number).is_ok());
    match value.strip_prefix(b"@") {
        Some(moment) => Some(milliseconds(seconds(number(moment)?))),
        None => Some(now.after(seconds(number(value)?)).unix_milliseconds),
    }
}

pub(super) fn valid(conf: &ProxyCache, status: u16) -> Option<&Valid> {
    conf.valid.iter().find(|valid| is_for(valid, status))
}

pub(super) fn is_for(valid: &Valid, status: u16) -> bool {
    valid.status == ValidStatus::Any || valid.status == ValidStatus::Is(status)
}

/// A guess from Last-Modified (RFC 9111 §4.2.2), for statuses that are cacheable by default, and with
/// `public`.
pub(super) fn guess(
    heuristic: Heuristic,
    governing: &Governing<'_>,
    status: u16,
    answer: Fields<'_>,
    now: Now,
) -> Option<(Source, Duration)> {
    if !is_heuristically_cacheable(status) && !governing.control.public {
        return None;
    }
    let last_modified = answer.get(FieldId::LastModified).and_then(date::parse_http)?;
    let date = made_at(answer, now);
    let since = u64::try_from(date.saturating_sub(last_modified)).ok()?;
    let Heuristic { percent, longest } = heuristic;
    let lifetime = seconds(since.saturating_mul(u64::from(percent)) / 100).min(longest);
    Some((Source::Heuristic { last_modified, date, percent, longest }, lifetime))
}

/// RFC 9110 §15.1.
fn is_heuristically_cacheable(status: u16) -> bool {
    matches!(status, 200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// Date, or the time of arrival without a valid one (RFC 9110 §6.6.1).
fn made_at(answer: Fields<'_>, now: Now) -> i64 {
    answer.get(FieldId::Date).and_then(date::parse_http).unwrap_or(now.unix_seconds())
}

pub(super) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds.min(LONGEST))
}

/// In whole seconds; one too large to hold counts as the longest.
fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(octets::decimal(text).unwrap_or(LONGEST).min(LONGEST))
}
