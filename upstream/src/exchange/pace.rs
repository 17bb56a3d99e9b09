//! `proxy_limit_rate`: when how much of an answer may be read, in nginx's arithmetic.
//!
//! By any moment as many bytes may have been read as the rate gives for the seconds since the body began, and one second's more; after
//! each read it pauses for as long as the rate takes for what was read. It waits by a timer. Next: `connection`, which asks before it reads.

use millstream_net::clock;
use millstream_net::timer::Deadline;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Pace {
    /// Bytes per second, not 0.
    rate: u64,
    began: Instant,
    had: u64,
    pause: Deadline,
}

impl Pace {
    /// `had` bytes came with the head. A rate of 0 counts as 1.
    pub(super) fn new(rate: u64, had: u64) -> Self {
        Pace { rate: rate.max(1), began: clock::now(), had, pause: Deadline::new() }
    }

    /// Waits until it is at least one byte.
    pub(super) fn poll_most(&mut self, context: &mut Context<'_>) -> Poll<usize> {
        loop {
            if self.pause.at().is_some() {
                ready!(self.pause.poll(context));
                self.pause.clear();
            }
            let now = clock::now();
            match self.most(now.saturating_duration_since(self.began)) {
                Ok(most) => return Poll::Ready(usize::try_from(most).unwrap_or(usize::MAX)),
                Err(pause) => self.pause.set(now + pause),
            }
        }
    }

    pub(super) fn read(&mut self, count: u64) {
        self.had = self.had.saturating_add(count);
        let pause = self.time_for(count);
        if !pause.is_zero() {
            self.pause.set(clock::now() + pause);
        }
    }

    /// What may be read after that time, or how long nothing may.
    fn most(&self, since: Duration) -> Result<u64, Duration> {
        let allowed = self.rate.saturating_mul(since.as_secs() + 1);
        match allowed.saturating_sub(self.had) {
            0 => Err(self.time_for(self.had.saturating_sub(allowed)) + Duration::from_millis(1)),
            most => Ok(most),
        }
    }

    fn time_for(&self, bytes: u64) -> Duration {
        let milliseconds = u128::from(bytes) * 1000 / u128::from(self.rate);
        // No answer is waited for longer than a day at once.
        Duration::from_millis(u64::try_from(milliseconds).unwrap_or(u64::MAX).min(24 * 3600 * 1000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_may_have_its_rate_for_every_second_begun() {
        let milliseconds = Duration::from_millis;
        for (rate, had, since, expected) in [
            (1000, 0, 0, Ok(1000)),
            (1000, 400, 0, Ok(600)),
            (1000, 1000, 0, Err(1)),
            (1000, 1000, 1000, Ok(1000)),
            (1000, 2500, 0, Err(1501)),
            (1, u64::MAX, 0, Err(24 * 3600 * 1000 + 1)),
            (u64::MAX, 5, 0, Ok(u64::MAX - 5)),
        ] {
            let pace = Pace::new(rate, had);
            assert_eq!(pace.most(milliseconds(since)), expected.map_err(milliseconds), "{rate} {had}");
        }
    }
}
