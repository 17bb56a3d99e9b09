//! Waiting for something outside this process, with a bound.
//!
//! Other processes give no event that a test could always await, so a condition is asked again with a pause that doubles
//! from a millisecond to 50. Never a fixed sleep: the wait ends as soon as the condition holds, and fails loudly if it never does.

use std::time::{Duration, Instant};

const LONGEST_PAUSE: Duration = Duration::from_millis(50);

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

/// Panics with `what` after half a minute (a busy machine is no failure).
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    assert!(
        within(Duration::from_secs(30), || holds().then_some(())).is_some(),
        "waited half a minute in vain: {what}"
    );
}

/// Panics when the figure has not grown for half a minute, however long the whole takes: a busy machine is no
/// failure.
pub fn until_grown(what: &str, goal: u64, mut figure: impl FnMut() -> u64) {
    let mut reached = 0;
    while reached != goal {
        let grown = within(Duration::from_secs(30), || Some(figure()).filter(|now| *now > reached));
        reached = grown.unwrap_or_else(|| panic!("{what} stands at {reached} of {goal} for half a minute"));
        assert!(reached <= goal, "{what} is past {goal}: {reached}");
    }
}
