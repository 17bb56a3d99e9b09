//! Keeps requests from waiting for an engine that does not respond: three timeouts in a row open it for a second.
//!
//! Shared by all workers; relaxed, since one wait more or less does not matter. Next: `door`.

use millstream_net::clock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const TIMEOUTS: u32 = 3;
const OPEN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Breaker {
    start: Instant,
    timeouts: AtomicU32,
    /// Milliseconds after `start`.
    open_until: AtomicU64,
    opened: AtomicU64,
}

impl Breaker {
    pub(crate) fn new() -> Breaker {
        let (timeouts, open_until, opened) = Default::default();
        Breaker { start: clock::now(), timeouts, open_until, opened }
    }

    pub(crate) fn is_open(&self, now: Instant) -> bool {
        self.since_start(now) < self.open_until.load(Ordering::Relaxed)
    }

    pub(crate) fn succeeded(&self) {
        self.timeouts.store(0, Ordering::Relaxed);
    }

    pub(crate) fn timed_out(&self, now: Instant) {
        if self.timeouts.fetch_add(1, Ordering::Relaxed) + 1 >= TIMEOUTS {
            self.timeouts.store(0, Ordering::Relaxed);
            self.opened.fetch_add(1, Ordering::Relaxed);
            self.open_until.store(self.since_start(now + OPEN), Ordering::Relaxed);
        }
    }

    /// How often it was opened.
    pub(crate) fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    fn since_start(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.start).as_millis() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_timeouts_in_a_row_open_it_for_a_second() {
        let breaker = Breaker::new();
        let now = clock::now();
        breaker.timed_out(now);
        breaker.timed_out(now);
        breaker.succeeded();
        breaker.timed_out(now);
        breaker.timed_out(now);
        assert!(!breaker.is_open(now));
        breaker.timed_out(now);
        assert!(breaker.is_open(now) && breaker.is_open(now + OPEN / 2));
        assert!(!breaker.is_open(now + OPEN) && breaker.opened() == 1);
    }
}
