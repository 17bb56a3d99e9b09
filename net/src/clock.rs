//! The only reader of time.
//!
//! Everything that decides by time takes `now` as an argument, and the value comes from here, so that a test
//! can hand in any moment. clippy's `disallowed_methods` keeps other files from asking the system.

use crate::kernel;
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::time::Instant;

/// Zones change their offset only at quarters of an hour.
const QUARTER_HOUR: i64 = 15 * 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Wall {
    /// Seconds since 1970-01-01 00:00:00 UTC.
    pub seconds: i64,
    /// 0 to 999.
    pub milliseconds: u16,
}

impl Wall {
    /// Milliseconds since 1970-01-01 00:00:00 UTC.
    pub fn unix_milliseconds(self) -> i64 {
        self.seconds.saturating_mul(1000).saturating_add(i64::from(self.milliseconds))
    }
}

/// The monotonic clock: for durations and deadlines.
#[allow(clippy::disallowed_methods, reason = "this is the one reader of time")]
pub fn now() -> Instant {
    Instant::now()
}

/// For dates, freshness and logs, as of the kernel's last tick (at most 10 ms ago): read four times a
/// request, it costs a fifth of the exact one. A clock before 1970 reads as 1970.
pub fn wall() -> Wall {
    let time = clock_gettime(ClockId::RealtimeCoarse);
    Wall { seconds: time.tv_sec.max(0), milliseconds: (time.tv_nsec / 1_000_000) as u16 }
}

/// Milliseconds since 1970 of [`wall`].
pub fn unix_milliseconds() -> u64 {
    wall().unix_milliseconds().unsigned_abs()
}

/// Exact, for comparison with other machines.
pub fn unix_nanoseconds() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    let (seconds, nanoseconds) = (time.tv_sec.max(0).unsigned_abs(), time.tv_nsec.unsigned_abs());
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

/// Seconds that local time (`TZ`, else /etc/localtime) is ahead of UTC at `seconds` since 1970. Queried once
/// per thread and quarter-hour.
pub fn utc_offset(seconds: i64) -> i32 {
    thread_local! {
        static LAST: Cell<(i64, i32)> = const { Cell::new((i64::MIN, 0)) };
    }
    let quarter = seconds.div_euclid(QUARTER_HOUR);
    LAST.with(|last| {
        let (at, offset) = last.get();
        if at == quarter {
            return offset;
        }
        let offset = kernel::local_offset(seconds);
        last.set((quarter, offset));
        offset
    })
}

/// Such as `CET`, at `seconds` since 1970.
pub fn zone_name(seconds: i64) -> Vec<u8> {
    kernel::local_zone(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_clock_is_later_than_this_file() {
        assert!(wall().seconds > 1_700_000_000);
        assert!(wall().milliseconds < 1000);
    }

    #[test]
    fn an_offset_is_at_most_fourteen_hours_and_stays_within_its_quarter() {
        let offset = utc_offset(1_700_000_000);
        assert!(offset.abs() <= 14 * 3600);
        assert_eq!(offset, utc_offset(1_700_000_000));
        assert!(utc_offset(i64::MAX).abs() <= 14 * 3600);
    }

    #[test]
    fn milliseconds_since_1970_join_both_fields() {
        assert_eq!(Wall { seconds: 12, milliseconds: 345 }.unix_milliseconds(), 12_345);
    }
}
