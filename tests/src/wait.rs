//! Waiting for something outside this process, with a bound.
//!
//! Other processes give no event that a test could always await, so a condition is asked again with a pause that doubles
//! from a millisecond to 50. Never a fixed sleep: the wait ends as soon as the condition holds, and fails loudly if it never does.

use std::time::{Duration, Instant};

/// The longest pause between two looks.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Asks `ready` until it gives a value, at most for `limit`; `None` when the time is up.
pub fn within<T>(limit: Duration, mut ready: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(value) = ready() {
            return Some(value);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// As `within`, for a plain condition; panics with `what` when half a minute does not suffice (a busy machine is no failure).
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    assert!(
        within(Duration::from_secs(30), || holds().then_some(())).is_some(),
        "waited half a minute in vain: {what}"
    );
}
