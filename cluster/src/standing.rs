//! Whether this node may serve what it has without asking: one atomic, which every hit reads.
//!
//! ```text
//! joining ──▶ confirmed until … ──▶ cut off ──▶ replaying ──▶ confirmed until …
//!                  ▲      │
//!                  └──────┘ the head was read, and no other node has more
//! ```
//! It holds the moment until which the last confirmation counts, on the wall clock, which a hit has read anyway. A clock that was set back
//! by more than the span of a confirmation does not count as confirmed, and one that was set forward asks once too often. Next: `door`.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

/// Milliseconds by which a clock may be set back without a confirmation being lost. Shorter than `peers::MARGIN`.
const SLACK: i64 = 500;

#[derive(Debug)]
pub(crate) struct Standing {
    /// Milliseconds since 1970; 0: not confirmed.
    until: AtomicI64,
    /// Milliseconds.
    span: i64,
}

impl Standing {
    pub(crate) fn new(cut_off: Duration) -> Standing {
        Standing { until: AtomicI64::new(0), span: i64::try_from(cut_off.as_millis()).unwrap_or(i64::MAX) }
    }

    /// `now` is in milliseconds since 1970.
    #[inline]
    pub(crate) fn is_cut_off(&self, now: i64) -> bool {
        let (from, until) = self.window();
        now < from || now >= until
    }

    /// From when until when it is confirmed, in milliseconds since 1970.
    pub(crate) fn window(&self) -> (i64, i64) {
        match self.until.load(Ordering::Acquire) {
            0 => (0, 0),
            until => (until.saturating_sub(self.span + SLACK), until),
        }
    }

    /// The head of the log as it was at `at` is in force here. `now` and `wall` are one moment.
    pub(crate) fn confirm(&self, at: Instant, now: Instant, wall: i64) {
        let age = now.saturating_duration_since(at).as_millis();
        let left = self.span.saturating_sub(i64::try_from(age).unwrap_or(i64::MAX));
        self.until.store(if left > 0 { wall.saturating_add(left) } else { 0 }, Ordering::Release);
    }

    /// Nothing is confirmed any more.
    pub(crate) fn lapse(&self) {
        self.until.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_net::clock;

    #[test]
    fn a_confirmation_counts_from_its_question_on_and_not_after_a_step_of_the_clock() {
        let standing = Standing::new(Duration::from_secs(10));
        let wall = 1_000_000;
        assert!(standing.is_cut_off(wall), "nothing was confirmed");
        let at = clock::now();
        standing.confirm(at, at + Duration::from_secs(4), wall);
        for (now, is_cut_off) in [
            (wall, false),
            (wall + 5_999, false),
            (wall + 6_000, true),
            (wall - 4_500, false),
            (wall - 4_501, true),
            (wall - 3_600_000, true),
            (wall + 3_600_000, true),
        ] {
            assert_eq!(standing.is_cut_off(now), is_cut_off, "{now}");
        }
        standing.confirm(at, at + Duration::from_secs(10), wall);
        assert!(standing.is_cut_off(wall), "older than the span");
        standing.confirm(at, at, wall);
        standing.lapse();
        assert!(standing.is_cut_off(wall));
    }
}
