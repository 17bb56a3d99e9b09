//! `expires`: the Expires and Cache-Control that a location gives its answers, in place of those that came.
//!
//! Reckoned at every answer, also at one out of the cache. Pure but for [`in_force`], which reads the location and, for a
//! variable, the request. Next: `head`, which writes what is decided here.

use crate::filter::sink::Sink;
use crate::request::Request;
use crate::variables::value;
use millstream_conf::model::Expires;
use millstream_conf::model::expires::parse;
use millstream_wire::date;
use std::borrow::Cow;

/// Seconds that nginx uses for the past and for ever.
const EPOCH: i64 = 1;
const MAX: i64 = 2_145_916_555;
const TEN_YEARS: i64 = 315_360_000;
const DAY: i64 = 86_400;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Seconds since 1970.
    pub expires: i64,
    /// Seconds; `None` is `no-cache`.
    pub max_age: Option<i64>,
}

pub fn in_force(request: &Request, status: u16) -> Option<Cow<'_, Expires>> {
    if !is_ordinary(status) {
        return None;
    }
    let found = match &request.location().settings.headers.expires {
        Expires::Off => return None,
        Expires::Variable(template, modified) => {
            let text = value(template, request);
            Cow::Owned(std::str::from_utf8(&text).ok().and_then(|text| parse(text, *modified).ok())?)
        }
        fixed => Cow::Borrowed(fixed),
    };
    (*found != Expires::Off).then_some(found)
}

/// Statuses for `add_header` without `always` and for `expires`, as in nginx.
pub fn is_ordinary(status: u16) -> bool {
    matches!(status, 200 | 201 | 204 | 206 | 301 | 302 | 303 | 304 | 307 | 308)
}

/// `offset` returns local time's seconds east of UTC.
pub fn stamp(
    expires: &Expires,
    last_modified: Option<i64>,
    now: i64,
    offset: impl Fn(i64) -> i32,
) -> Option<Stamp> {
    let (expires, max_age) = match (expires, last_modified) {
        (Expires::Off | Expires::Variable(..), _) => return None,
        (Expires::Epoch, _) => return Some(Stamp { expires: EPOCH, max_age: None }),
        (Expires::Max, _) => (MAX, TEN_YEARS),
        (Expires::Access(0) | Expires::Modified(0), _) => (now, 0),
        (Expires::Access(time), _) | (Expires::Modified(time), None) => (now.saturating_add(*time), *time),
        (Expires::Modified(time), Some(modified)) => {
            let expires = modified.saturating_add(*time);
            let max_age = if *time < 0 { *time } else { expires.saturating_sub(now) };
            (expires, max_age)
        }
        (Expires::Daily(time), _) => {
            let at = next(i64::from(*time), now, offset);
            (at, at - now)
        }
    };
    Some(Stamp { expires, max_age: (max_age >= 0).then_some(max_age) })
}

fn next(time: i64, now: i64, offset: impl Fn(i64) -> i32) -> i64 {
    let here = i64::from(offset(now));
    let midnight = (now + here).div_euclid(DAY) * DAY - here;
    let at = midnight + time;
    let at = if at > now { at } else { at + DAY };
    // Clocks may have been put forward or back by then.
    at + here - i64::from(offset(at))
}

impl Stamp {
    pub(super) fn write(&self, sink: &mut Sink<'_>) {
        sink.field(b"Expires", &date::format_http(self.expires));
        match self.max_age {
            None => sink.field(b"Cache-Control", b"no-cache"),
            Some(seconds) => sink.made(b"Cache-Control", |out| {
                out.extend_from_slice(b"max-age=");
                out.extend_from_slice(itoa::Buffer::new().format(seconds).as_bytes());
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{admitted, worker};

    /// 2026-11-21 10:00:00 UTC.
    const NOW: i64 = 1_795_255_200;

    fn check(expires: &Expires, modified: Option<i64>, at: i64, max_age: Option<i64>) {
        let expected = Some(Stamp { expires: at, max_age });
        assert_eq!(stamp(expires, modified, NOW, |_| 3600), expected, "{expires:?}");
    }

    #[test]
    fn every_form_is_reckoned_as_in_nginx() {
        check(&Expires::Epoch, None, 1, None);
        check(&Expires::Max, None, MAX, Some(TEN_YEARS));
        check(&Expires::Access(3600), None, NOW + 3600, Some(3600));
        check(&Expires::Access(0), None, NOW, Some(0));
        check(&Expires::Access(-1), None, NOW - 1, None);
        check(&Expires::Modified(3600), Some(NOW - 600), NOW + 3000, Some(3000));
        check(&Expires::Modified(3600), Some(NOW - 7200), NOW - 3600, None);
        check(&Expires::Modified(3600), None, NOW + 3600, Some(3600));
        check(&Expires::Modified(-60), Some(NOW + 600), NOW + 540, None);
        // Local clocks, an hour ahead, show 11:00.
        check(&Expires::Daily(12 * 3600), None, NOW + 3600, Some(3600));
        check(&Expires::Daily(11 * 3600), None, NOW + DAY, Some(DAY));
        check(&Expires::Daily(10 * 3600), None, NOW + DAY - 3600, Some(DAY - 3600));
        assert_eq!(stamp(&Expires::Off, None, NOW, |_| 0), None);
    }

    #[test]
    fn a_time_of_day_is_that_of_the_clock_then() {
        // Clocks go back by an hour at 20:00 UTC.
        let offset = |at: i64| if at < NOW + 10 * 3600 { 7200 } else { 3600 };
        let at = stamp(&Expires::Daily(23 * 3600), None, NOW, offset).expect("a stamp").expires;
        assert_eq!((at + i64::from(offset(at))).rem_euclid(DAY), 23 * 3600);
    }

    #[test]
    fn a_variable_is_read_at_every_answer_and_an_unknown_word_changes_nothing() {
        let worker = worker("server { listen 80; location / { expires $arg_e; } }");
        let of = |query: &str, status: u16| {
            let request = admitted(&worker, &format!("GET /?e={query} HTTP/1.1\r\nHost: a\r\n\r\n"));
            in_force(&request, status).map(Cow::into_owned)
        };
        assert_eq!(of("1h", 200), Some(Expires::Access(3600)));
        assert_eq!(of("max", 304), Some(Expires::Max));
        assert_eq!((of("off", 200), of("soon", 200), of("", 200)), (None, None, None));
        assert_eq!(of("1h", 404), None, "as add_header without always");
    }
}
