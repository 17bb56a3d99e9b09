//! How much memory entries, their index and answers on their way may take, counted before it is taken.
//!
//! Whoever wants to store reserves first, and only then takes a shard's lock; so the count never passes the bound, also
//! between threads. Answers on their way may take half of it, so that a flood of slow ones does not empty the cache.
//! Next: `memory`, which makes room when a reservation is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The share of the bytes that fills may take.
const FILLING_SHARE: u64 = 2;

#[derive(Debug)]
pub(crate) struct Budget {
    bytes: AtomicU64,
    cells: AtomicU64,
    /// Bytes of `bytes` that belong to fills.
    filling: AtomicU64,
    most_bytes: AtomicU64,
    most_cells: AtomicU64,
}

impl Budget {
    pub(crate) fn new(most_bytes: u64, most_cells: u64) -> Budget {
        Budget {
            bytes: AtomicU64::new(0),
            cells: AtomicU64::new(0),
            filling: AtomicU64::new(0),
            most_bytes: AtomicU64::new(most_bytes),
            most_cells: AtomicU64::new(most_cells),
        }
    }

    pub(crate) fn set_bounds(&self, most_bytes: u64, most_cells: u64) {
        self.most_bytes.store(most_bytes, Ordering::Relaxed);
        self.most_cells.store(most_cells, Ordering::Relaxed);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn cells(&self) -> u64 {
        self.cells.load(Ordering::Relaxed)
    }

    pub(crate) fn most_bytes(&self) -> u64 {
        self.most_bytes.load(Ordering::Relaxed)
    }

    /// Whether a lowered bound is exceeded.
    pub(crate) fn is_over(&self) -> bool {
        self.bytes() > self.most_bytes() || self.cells() > self.most_cells.load(Ordering::Relaxed)
    }

    /// Takes both or neither.
    pub(crate) fn reserve(&self, bytes: u64, cells: u64) -> bool {
        if !take(&self.bytes, bytes, self.most_bytes()) {
            return false;
        }
        if !take(&self.cells, cells, self.most_cells.load(Ordering::Relaxed)) {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        true
    }

    pub(crate) fn filling(&self) -> u64 {
        self.filling.load(Ordering::Relaxed)
    }

    /// `reserve` takes from the whole.
    pub(crate) fn room(self: &Arc<Self>, bytes: u64, reserve: impl FnOnce() -> bool) -> Option<Room> {
        if !take(&self.filling, bytes, self.most_bytes() / FILLING_SHARE) {
            return None;
        }
        if !reserve() {
            self.filling.fetch_sub(bytes, Ordering::Relaxed);
            return None;
        }
        Some(Room { budget: self.clone(), bytes })
    }

    pub(crate) fn release(&self, bytes: u64, cells: u64) {
        // Nothing is released by most look-ups: then nothing that all threads share is written.
        if bytes > 0 {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        if cells > 0 {
            self.cells.fetch_sub(cells, Ordering::Relaxed);
        }
    }
}

/// Room of a fill; given back by dropping it.
#[derive(Debug)]
pub(crate) struct Room {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Room {
    pub(crate) fn join(&mut self, mut other: Room) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    pub(crate) fn shrink_to(&mut self, bytes: u64) {
        let spare = self.bytes.saturating_sub(bytes);
        if spare > 0 {
            self.bytes -= spare;
            self.budget.filling.fetch_sub(spare, Ordering::Relaxed);
            self.budget.release(spare, 0);
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.budget.filling.fetch_sub(self.bytes, Ordering::Relaxed);
        self.budget.release(self.bytes, 0);
    }
}

fn take(counter: &AtomicU64, amount: u64, most: u64) -> bool {
    let sum = |now: u64| now.checked_add(amount).filter(|&sum| amount == 0 || sum <= most);
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).is_ok()
}
