//! Purges of many entries at once, as rules: an entry is checked against them when it is met, never looked for.
//!
//! A number counts purges of this kind (it begins at the clock's milliseconds, so it grows over restarts too); a fill notes
//! it when it begins, and a rule goes for what was born before it. Next: `memory`, which asks.

use std::sync::atomic::{AtomicU64, Ordering};

/// The purges of a zone.
#[derive(Debug, Default)]
pub(crate) struct Purges {
    generation: AtomicU64,
}

impl Purges {
    /// The number of the latest purge.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }
}
