//! The last purges of single keys, which leave no rule behind, for whoever asks what became of an answer.
//!
//! Bounded, of this process alone, and never asked for a decision. Next: `store/sight`, which asks.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Purges that are remembered.
const MOST: usize = 1024;

/// Numbers of keys with the moment of their purge in milliseconds since 1970, the latest last.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<VecDeque<(u64, i64)>>);

impl Recent {
    /// Remembers a purge, in the place of the oldest where there are too many.
    pub(super) fn note(&self, key: u64, at: i64) {
        let mut purges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if purges.len() == MOST {
            purges.pop_front();
        }
        purges.push_back((key, at));
    }

    /// When a key was purged last.
    pub(super) fn find(&self, key: u64) -> Option<i64> {
        let purges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        purges.iter().rev().find(|(known, _)| *known == key).map(|(_, at)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_purge_of_a_key_is_found_until_too_many_came_after_it() {
        let recent = Recent::default();
        recent.note(1, 10);
        recent.note(2, 20);
        recent.note(1, 30);
        assert_eq!((recent.find(1), recent.find(2), recent.find(3)), (Some(30), Some(20), None));
        (0..MOST as u64).for_each(|number| recent.note(100 + number, 40));
        assert_eq!(recent.find(1), None);
    }
}
