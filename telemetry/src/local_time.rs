//! The wall clock as the logs see it: a function that `app` sets once, because one file above reads the time.
//!
//! It must never read a clock itself; before a clock is set every line says 1970.
//! Next: `error_log`, which prints it; `log_writer`, which spaces its complaints by it.

use std::sync::OnceLock;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LocalTime {
    /// Seconds since 1970-01-01 00:00:00 UTC.
    pub seconds: i64,
    /// 0 to 999.
    pub milliseconds: u16,
    /// Seconds east of UTC.
    pub utc_offset: i32,
}

static CLOCK: OnceLock<fn() -> LocalTime> = OnceLock::new();

/// For log lines of the process. Only the first call counts.
pub fn set_clock(clock: fn() -> LocalTime) {
    let _ = CLOCK.set(clock);
}

/// By the clock that was set, else the epoch.
pub fn now() -> LocalTime {
    CLOCK.get().map_or_else(LocalTime::default, |clock| clock())
}
