//! What is counted of one cache zone.

use super::{CacheStatus, add, add_all};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const STATUSES: usize = CacheStatus::ALL.len();

#[derive(Debug, Default)]
pub(super) struct CacheCells {
    responses: [AtomicU64; STATUSES],
    bytes: [AtomicU64; STATUSES],
    waits: AtomicU64,
    /// Microseconds.
    waited: AtomicU64,
    stale_on_error: AtomicU64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheSnapshot {
    /// In the order of [`CacheStatus::ALL`].
    pub responses: [u64; STATUSES],
    /// Sent to clients, heads included.
    pub bytes: [u64; STATUSES],
    /// Requests that waited for another's response.
    pub waits: u64,
    /// In total, in microseconds.
    pub waited: u64,
    /// Stale responses due to failures of the upstream, and failed background refreshes.
    pub stale_on_error: u64,
}

impl CacheCells {
    #[inline]
    pub(super) fn count(&self, status: CacheStatus, sent: u64) {
        add(&self.responses[status as usize], 1);
        add(&self.bytes[status as usize], sent);
    }

    pub(super) fn count_wait(&self, waited: Duration) {
        add(&self.waits, 1);
        add(&self.waited, u64::try_from(waited.as_micros()).unwrap_or(u64::MAX));
    }

    pub(super) fn count_stale_on_error(&self) {
        add(&self.stale_on_error, 1);
    }

    pub(super) fn add_to(&self, sum: &mut CacheSnapshot) {
        add_all(&mut sum.responses, &self.responses);
        add_all(&mut sum.bytes, &self.bytes);
        sum.waits += self.waits.load(Ordering::Relaxed);
        sum.waited += self.waited.load(Ordering::Relaxed);
        sum.stale_on_error += self.stale_on_error.load(Ordering::Relaxed);
    }
}
