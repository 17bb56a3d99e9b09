//! How long a peer takes to answer, as `least_time` goes by it: averages that forget, and the requests that are under way.
//!
//! All times are whole milliseconds, and the arithmetic is nginx's, so that the same times make the same choices. Only groups
//! that choose by time write here, a peer at a time. Every decision takes `now`. Before: `peer`, whose it is; next:
//! `balance/least_time`.

use millstream_conf::model::TimeTo;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// In milliseconds. Longer times are equal: such a peer is judged by its load alone.
const LONGEST: u64 = 5000;
/// Times within one step are equal, so that similarly fast peers take turns.
const STEP: u64 = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timing {
    pub(crate) to: TimeTo,
    pub(crate) inflight: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Times(Mutex<Averages>);

#[derive(Debug, Default)]
struct Averages {
    header: u64,
    response: u64,
    /// When the peer was last chosen or failed, rounded to `fail_timeout`: from then on its times age.
    looked_at: Option<Instant>,
    underway: Underway,
}

/// Requests without a response yet.
#[derive(Debug, Default)]
struct Underway {
    count: u64,
    /// Their total time up to `changed_at`.
    taken: u64,
    changed_at: Option<Instant>,
    average: u64,
}

impl Times {
    /// With `inflight` the request counts until [`Times::leave`].
    pub(crate) fn enter(&self, fail_timeout: Duration, inflight: bool, now: Instant) {
        let mut averages = self.lock();
        if averages.age(fail_timeout, now).is_none_or(|age| age > 0) {
            averages.looked_at = Some(now);
        }
        if inflight {
            averages.underway.advance(now);
            averages.underway.count += 1;
        }
    }

    pub(crate) fn leave(&self, taken: Duration, now: Instant) {
        let underway = &mut self.lock().underway;
        underway.advance(now);
        underway.taken = underway.taken.saturating_sub(milliseconds(taken));
        underway.count = underway.count.saturating_sub(1);
        if underway.count == 0 {
            underway.taken = 0;
        }
    }

    pub(crate) fn failed(&self, now: Instant) {
        self.lock().looked_at = Some(now);
    }

    pub(crate) fn head(&self, time: Duration) {
        average(&mut self.lock().header, milliseconds(time));
    }

    pub(crate) fn whole(&self, time: Duration) {
        average(&mut self.lock().response, milliseconds(time));
    }

    /// Updates the times of current requests, before peers are compared.
    pub(crate) fn look(&self, now: Instant) {
        let underway = &mut self.lock().underway;
        if let (Some(share), Some(at)) = (underway.taken.checked_div(underway.count), underway.changed_at) {
            let taken = share + milliseconds(now.saturating_duration_since(at));
            average(&mut underway.average, taken);
        }
    }

    /// In milliseconds, rounded to steps; at most [`LONGEST`].
    pub(crate) fn expected(&self, to: TimeTo, fail_timeout: Duration, now: Instant) -> u64 {
        let averages = self.lock();
        let known = match to {
            TimeTo::Header => averages.header,
            TimeTo::LastByte => averages.response,
        };
        // A peer that nobody has looked at becomes faster in the memory, so that a slow one gets its chance.
        let known = known.checked_shr(averages.age(fail_timeout, now).unwrap_or(0)).unwrap_or(0);
        let known = match averages.underway.count {
            0 => known,
            _ => known.max(averages.underway.average),
        };
        if known > LONGEST { LONGEST } else { known + STEP - known % STEP }
    }

    /// Nothing panics under it, so a poisoned lock is used as it is.
    fn lock(&self) -> MutexGuard<'_, Averages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Averages {
    /// Whole periods of `fail_timeout` since the last look; `None` if there was none. Whole seconds count, as
    /// in nginx.
    fn age(&self, fail_timeout: Duration, now: Instant) -> Option<u32> {
        let seconds = now.saturating_duration_since(self.looked_at?).as_secs();
        let timeout = fail_timeout.as_secs();
        let times = if seconds > timeout { seconds / (timeout + 1) } else { 0 };
        Some(u32::try_from(times).unwrap_or(u32::MAX))
    }
}

impl Underway {
    fn advance(&mut self, now: Instant) {
        if let Some(at) = self.changed_at.replace(now) {
            self.taken += milliseconds(now.saturating_duration_since(at)) * self.count;
        }
    }
}

/// The first value is taken as it is; each later one moves the average by a twentieth of the difference.
fn average(average: &mut u64, value: u64) {
    *average = match *average {
        0 => value,
        known => (0.5 + value as f64 * 0.05 + known as f64 * 0.95) as u64,
    };
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
