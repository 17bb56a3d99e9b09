//! How much a zone's files may be and how long they stay unused, and at which pace its thread goes about it. A reload changes them.
//!
//! Next: `tidy`, which keeps the files within them.

use super::lock;
use millstream_conf::model::{CacheZone, Pace};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Between two passes; nginx's own.
const LONGEST: Duration = Duration::from_secs(10);
const SHORTEST: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Bounds {
    max_size: AtomicU64,
    min_free: AtomicU64,
    most_files: AtomicU64,
    /// Seconds.
    inactive: AtomicU64,
    paces: Mutex<Paces>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Paces {
    pub(super) loader: Pace,
    pub(super) manager: Pace,
    /// `None` with `purger=off`.
    pub(super) purger: Option<Pace>,
}

impl Bounds {
    pub(super) fn of(zone: &CacheZone) -> Bounds {
        let bounds = Bounds {
            max_size: AtomicU64::new(0),
            min_free: AtomicU64::new(0),
            most_files: AtomicU64::new(0),
            inactive: AtomicU64::new(0),
            paces: Mutex::new(Paces::of(zone)),
        };
        bounds.set(zone);
        bounds
    }

    pub(super) fn set(&self, zone: &CacheZone) {
        self.max_size.store(zone.max_size.unwrap_or(u64::MAX), Ordering::Relaxed);
        self.min_free.store(zone.min_free, Ordering::Relaxed);
        self.most_files.store(crate::key::most_keys(zone), Ordering::Relaxed);
        self.inactive.store(zone.inactive.as_secs(), Ordering::Relaxed);
        *lock(&self.paces) = Paces::of(zone);
    }

    pub(super) fn paces(&self) -> Paces {
        *lock(&self.paces)
    }

    pub(super) fn max_size(&self) -> u64 {
        self.max_size.load(Ordering::Relaxed)
    }

    /// In seconds.
    pub(super) fn inactive(&self) -> u32 {
        u32::try_from(self.inactive.load(Ordering::Relaxed)).unwrap_or(u32::MAX)
    }

    pub(super) fn tidy_every(&self) -> Duration {
        if self.min_free.load(Ordering::Relaxed) > 0 {
            return SHORTEST;
        }
        Duration::from_secs(self.inactive.load(Ordering::Relaxed) / 4).clamp(SHORTEST, LONGEST)
    }

    pub(super) fn are_passed_by(&self, files: u64, bytes: u64) -> bool {
        bytes > self.max_size() || files > self.most_files.load(Ordering::Relaxed)
    }

    pub(super) fn leave_no_space_at(&self, root: &Path) -> bool {
        let least = self.min_free.load(Ordering::Relaxed);
        least > 0
            && rustix::fs::statvfs(root)
                .is_ok_and(|found| found.f_bavail.saturating_mul(found.f_frsize) < least)
    }
}

impl Paces {
    fn of(zone: &CacheZone) -> Paces {
        let purger = zone.purger.then_some(zone.purger_pace);
        Paces { loader: zone.loader_pace, manager: zone.manager_pace, purger }
    }
}
