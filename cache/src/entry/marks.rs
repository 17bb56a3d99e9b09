//! The marks of an entry: the little of it that changes, read and written by all workers without a lock.
//!
//! A mark that is set already is not written again, so that a hot entry's cache line stays shared. Before: `entry`.

use millstream_wire::Coding;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

#[derive(Debug, Default)]
pub(crate) struct EntryMarks {
    retired: AtomicBool,
    used: AtomicBool,
    /// Codings being made, each the bit of its number.
    coding_claims: AtomicU8,
    ahead_claimed: AtomicBool,
    /// Not on disk in its present form: too much waited to be written, or a coded body has been made since.
    unwritten: AtomicBool,
}

impl EntryMarks {
    #[inline]
    pub(super) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    pub(super) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    /// Marks it as used, and returns whether it was before.
    #[inline]
    pub(crate) fn mark_used(&self) -> bool {
        let before = self.used.load(Ordering::Relaxed);
        if !before {
            self.used.store(true, Ordering::Relaxed);
        }
        before
    }

    pub(crate) fn take_used(&self) -> bool {
        self.used.load(Ordering::Relaxed) && self.used.swap(false, Ordering::Relaxed)
    }

    pub(super) fn is_ahead_claimed(&self) -> bool {
        self.ahead_claimed.load(Ordering::Relaxed)
    }

    /// True for exactly one caller: an entry is refreshed ahead once, whatever the result.
    pub(crate) fn claim_ahead(&self) -> bool {
        !self.ahead_claimed.swap(true, Ordering::Relaxed)
    }

    /// Whether it must still be written to disk.
    pub(crate) fn is_unwritten(&self) -> bool {
        self.unwritten.load(Ordering::Relaxed)
    }

    pub(crate) fn set_unwritten(&self, unwritten: bool) {
        self.unwritten.store(unwritten, Ordering::Relaxed);
    }

    /// True for exactly one caller until it gives the claim back.
    pub(super) fn claim_coding(&self, coding: Coding) -> bool {
        let bit = 1 << coding.number();
        self.coding_claims.fetch_or(bit, Ordering::AcqRel) & bit == 0
    }

    pub(crate) fn unclaim_coding(&self, coding: Coding) {
        self.coding_claims.fetch_and(!(1 << coding.number()), Ordering::Release);
    }
}
