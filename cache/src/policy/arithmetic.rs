//! How a lifetime came about, with its numbers: what explaining shows step by step.
//!
//! RFC 9111 §4.2.1 (lifetime), §4.2.2 (guess), §4.2.3 (age). Nothing is decided here. Next: `freshness`, which fills
//! it in.

use crate::now::Now;
use std::fmt;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    XAccelExpires,
    SMaxage,
    MaxAge,
    /// Expires less Date; `None` if Expires cannot be read, which means the past.
    Expires {
        /// In seconds since 1970.
        expires: Option<i64>,
        /// Date, or the time of arrival without a valid one.
        date: i64,
    },
    Valid,
    Heuristic {
        /// In seconds since 1970.
        last_modified: i64,
        date: i64,
        /// Hundredths.
        percent: u8,
        longest: Duration,
    },
    /// no-cache and nothing else: it is validated at every use.
    NoCache,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arithmetic {
    pub source: Source,
    pub lifetime: Duration,
    pub age_field: Duration,
    pub transit: Duration,
    /// Age on arrival; `None` if it does not count against the lifetime (X-Accel-Expires,
    /// `proxy_cache_valid`).
    pub initial_age: Option<Duration>,
    /// In milliseconds since 1970.
    pub arrived: i64,
    /// In milliseconds since 1970.
    pub fresh_until: i64,
}

impl Arithmetic {
    /// Whole seconds of freshness left now; negative once it is stale.
    pub fn left(&self, now: Now) -> i64 {
        self.fresh_until.saturating_sub(now.unix_milliseconds).div_euclid(1000)
    }

    pub fn steps(&self) -> impl Iterator<Item = String> {
        let lifetime = format!("lifetime: {}", self.described());
        let seconds = |duration: Duration| duration.as_secs();
        let age = match self.initial_age {
            None => "age: not subtracted from this lifetime".to_owned(),
            Some(age) if self.transit.is_zero() => format!("age on arrival: {} s", seconds(age)),
            Some(age) => format!(
                "age on arrival: {} s (Age) + {} s (in transit) = {} s",
                seconds(self.age_field),
                seconds(self.transit),
                seconds(age)
            ),
        };
        let fresh = self.fresh_until.saturating_sub(self.arrived).div_euclid(1000);
        let left = match self.initial_age {
            None => format!("fresh for {fresh} s"),
            Some(age) => {
                format!("fresh for {} s - {} s = {fresh} s", seconds(self.lifetime), seconds(age))
            }
        };
        [lifetime, age, left].into_iter()
    }

    fn described(&self) -> String {
        let seconds = self.lifetime.as_secs();
        match self.source {
            Source::XAccelExpires => format!("{seconds} s (X-Accel-Expires)"),
            Source::SMaxage => format!("{seconds} s (s-maxage)"),
            Source::MaxAge => format!("{seconds} s (max-age)"),
            Source::Expires { expires: Some(expires), date } => {
                format!("{expires} (Expires) - {date} (Date) = {} s", expires.saturating_sub(date))
            }
            Source::Expires { expires: None, .. } => "0 s (an invalid Expires counts as expired)".to_owned(),
            Source::Valid => format!("{seconds} s (proxy_cache_valid)"),
            Source::Heuristic { last_modified, date, percent, longest } => format!(
                "{percent} % of {date} (Date) - {last_modified} (Last-Modified) = {} s, at most {} s: {seconds} s \
                 (proxy_cache_heuristic)",
                date.saturating_sub(last_modified),
                longest.as_secs()
            ),
            Source::NoCache => "0 s (no-cache: validated at every use)".to_owned(),
        }
    }
}

impl fmt::Display for Arithmetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.steps().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            f.write_str(&step)?;
        }
        Ok(())
    }
}
