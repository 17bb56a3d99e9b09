//! Keeps the files within `inactive`, `max_size`, `min_free` and the number of keys, as nginx's cache manager does.
//!
//! At the pace of `manager_files`, `manager_threshold` and `manager_sleep`. That a store does not pass `max_size` does
//! not depend on it: room is made before a file is written. Next: `keeper`, which calls it.

use super::pace::Round;
use super::{Disk, lock, second};
use crate::now::Now;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Files examined between two looks at the time.
const SLICE: usize = 20_000;
/// Most files removed to make room for one.
const MOST: usize = 1000;
/// Between two passes; nginx's own.
const LONGEST: Duration = Duration::from_secs(10);
const SHORTEST: Duration = Duration::from_secs(1);

impl Disk {
    /// Removes unused and surplus files until the round is over; false once nothing is left to do.
    pub(super) fn tidy(&self, now: Now, round: &mut Round) -> bool {
        let inactive = u32::try_from(self.inactive.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
        while round.goes_on() {
            let (unused, is_round) = self.files.inactive(second(now), inactive, SLICE, round.left());
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

    pub(super) fn tidy_every(&self) -> Duration {
        if self.min_free.load(Ordering::Relaxed) > 0 {
            return SHORTEST;
        }
        Duration::from_secs(self.inactive.load(Ordering::Relaxed) / 4).clamp(SHORTEST, LONGEST)
    }

    fn remove_surplus(&self, round: &mut Round) -> bool {
        while self.is_over(0) || self.is_short_of_space() {
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
        if bytes > self.max_size() {
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
        let (files, held) = self.size();
        held.saturating_add(bytes) > self.max_size() || files > self.most_files.load(Ordering::Relaxed)
    }

    fn is_short_of_space(&self) -> bool {
        let least = self.min_free.load(Ordering::Relaxed);
        least > 0
            && rustix::fs::statvfs(&self.tree.root)
                .is_ok_and(|found| found.f_bavail.saturating_mul(found.f_frsize) < least)
    }

    fn remove_least_used(&self) -> bool {
        let Some(name) = self.files.least_used() else { return false };
        let _stripe = lock(self.stripe(&name));
        self.remove(&name);
        true
    }
}
