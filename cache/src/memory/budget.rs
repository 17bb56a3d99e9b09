//! How much memory entries and their index may take, counted before it is taken.
//!
//! Whoever wants to store reserves first, and only then takes a shard's lock; so the count never passes the bound, also
//! between threads. Next: `memory`, which makes room when a reservation is refused.

use std::sync::atomic::{AtomicU64, Ordering};

/// One bound on bytes and one on keys.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes: AtomicU64,
    cells: AtomicU64,
    most_bytes: AtomicU64,
    most_cells: AtomicU64,
}

impl Budget {
    pub(crate) fn new(most_bytes: u64, most_cells: u64) -> Budget {
        Budget {
            bytes: AtomicU64::new(0),
            cells: AtomicU64::new(0),
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

    /// Whether a bound that was lowered is passed.
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

    pub(crate) fn release(&self, bytes: u64, cells: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.cells.fetch_sub(cells, Ordering::Relaxed);
    }
}

fn take(counter: &AtomicU64, amount: u64, most: u64) -> bool {
    let sum = |now: u64| now.checked_add(amount).filter(|&sum| amount == 0 || sum <= most);
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).is_ok()
}
