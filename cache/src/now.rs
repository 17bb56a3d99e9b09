//! The moment at which something is decided, handed in by whoever asks.
//!
//! Freshness is counted on the wall clock, because it must survive a restart; locks are counted on the monotonic
//! one, because a stepped clock must not stall a client. No decision of this crate reads a clock by itself, so the
//! tests live in any time they like. Next: `policy`, which calculates with it.

use millstream_net::clock;
use std::time::{Duration, Instant};

/// One moment on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds since 1970-01-01 00:00:00 UTC.
    pub unix_milliseconds: i64,
    pub instant: Instant,
}

impl Now {
    pub fn read() -> Now {
        Now { unix_milliseconds: clock::wall().unix_milliseconds(), instant: clock::now() }
    }

    pub fn unix_seconds(self) -> i64 {
        self.unix_milliseconds.div_euclid(1000)
    }

    /// Saturates at what the clocks can hold.
    #[must_use]
    pub fn after(self, wait: Duration) -> Now {
        Now {
            unix_milliseconds: self.unix_milliseconds.saturating_add(milliseconds(wait)),
            instant: self.instant.checked_add(wait).unwrap_or(self.instant),
        }
    }
}

/// At most what an `i64` holds.
pub(crate) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
