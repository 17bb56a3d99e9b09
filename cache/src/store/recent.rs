//! What happened last to single keys and leaves nothing else behind (purges, unsafe requests, failures), for whoever asks
//! what became of an answer.
//!
//! Bounded, of this process alone, and never asked for a decision. Next: `store/sight`, which asks.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Events remembered of each kind.
const MOST: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Event {
    key: u64,
    at: i64,
    status: u16,
}

/// The latest last.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<VecDeque<Event>>);

impl Recent {
    /// Replaces the oldest if there are too many; repeated events of one key are one. `at` is in milliseconds
    /// since 1970.
    pub(crate) fn note(&self, key: u64, at: i64, status: u16) {
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if events.back().is_some_and(|last| last.key == key) {
            events.pop_back();
        }
        if events.len() == MOST {
            events.pop_front();
        }
        events.push_back(Event { key, at, status });
    }

    pub(super) fn find(&self, key: u64) -> Option<(i64, u16)> {
        let events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        events.iter().rev().find(|event| event.key == key).map(|event| (event.at, event.status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_event_of_a_key_is_found_until_too_many_came_after_it() {
        let recent = Recent::default();
        recent.note(1, 10, 0);
        recent.note(2, 20, 502);
        recent.note(1, 30, 0);
        assert_eq!((recent.find(1), recent.find(2), recent.find(3)), (Some((30, 0)), Some((20, 502)), None));
        (0..2 * MOST as i64).for_each(|at| recent.note(4, at, 0));
        assert_eq!(recent.find(1), Some((30, 0)), "one key again and again is one event");
        (0..MOST as u64).for_each(|number| recent.note(100 + number, 40, 0));
        assert_eq!(recent.find(1), None);
    }
}
