//! Keeps the files within `inactive`, `max_size`, `min_free` and the number of keys, as nginx's cache manager does.
//!
//! At the pace of `manager_files`, `manager_threshold` and `manager_sleep`. That a store does not pass `max_size` does
//! not depend on it: room is made before a file is written. Next: `keeper`, which calls it.

use super::kept::KeptFiles;
use super::pace::Round;
use super::second;
use crate::now::Now;

/// Files examined between two looks at the time.
const SLICE: usize = 20_000;
/// Most files removed to make room for one.
const MOST: usize = 1000;

impl KeptFiles {
    /// Removes unused and surplus files until the round is over; false once nothing is left to do.
    pub(super) fn tidy(&self, now: Now, round: &mut Round) -> bool {
        let inactive = self.bounds.inactive();
        while round.goes_on() {
            let (unused, is_round) = self.index.inactive(second(now), inactive, SLICE, round.left());
            for name in &unused {
                round.takes();
                self.unlink(name, u64::MAX);
            }
            if is_round {
                return self.remove_surplus(round);
            }
        }
        true
    }

    fn remove_surplus(&self, round: &mut Round) -> bool {
        while self.is_over(0) || self.bounds.leave_no_space_at(&self.tree.root) {
            if !round.goes_on() {
                return true;
            }
            if !self.remove_least_used() {
                return false;
            }
            round.takes();
        }
        false
    }

    /// False if there is not enough to remove.
    pub(super) fn make_room(&self, bytes: u64) -> bool {
        if bytes > self.bounds.max_size() {
            return false;
        }
        let mut removed = 0;
        while self.is_over(bytes) {
            if removed == MOST || !self.remove_least_used() {
                return false;
            }
            removed += 1;
        }
        true
    }

    fn is_over(&self, bytes: u64) -> bool {
        self.bounds.are_passed_by(self.index.len(), self.index.bytes().saturating_add(bytes))
    }

    fn remove_least_used(&self) -> bool {
        let Some(name) = self.index.least_used() else { return false };
        let _stripe = self.hold(&name);
        self.remove(&name);
        true
    }
}
