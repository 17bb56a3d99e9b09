//! The memory tier: entries by key in shards, bounded in bytes and keys, index included.
//!
//! A worker comes here only when its own handles do not answer ([`crate::front`]), so a shard's lock is held for a
//! look-up or a change, never for a hit that repeats. What is let go is dropped after the lock. Waiters are woken after
//! the lock. Next: `memory/lookup` (what a request gets), `memory/change` (what is stored), `memory/right` (what the right to fill does).

mod slab;
mod cells;
mod slot;
mod shard;
mod grant;
mod shards;
mod change;
mod obey;
mod lookup;
mod files;
mod right;

#[cfg(test)]
mod tests;

pub(crate) use cells::Cell;
pub(crate) use change::{Gone, Put};
pub(crate) use grant::Grant;
pub(crate) use lookup::{Asked, Found, Patience};
pub(crate) use obey::as_ruled;
pub(crate) use shard::Swept;
pub(crate) use slot::Slot;

use crate::now::Now;
use crate::purges::Purges;
use crate::variants::FileName;
use files::Unlinked;
use shards::Shards;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Purge times remembered, by hash; a power of two. Two keys that share one cost a refill at worst: with a
/// hundred unsafe requests during a fill, one time in three hundred.
const PURGES: usize = 32 * 1024;

#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) shards: Shards,
    /// Orders rights, entries and purges.
    order: AtomicU64,
    marks: Box<[AtomicU64]>,
    pub(crate) purges: Purges,
}

impl Memory {
    pub(crate) fn new(most_bytes: u64, most_cells: u64) -> Memory {
        Memory {
            shards: Shards::new(most_bytes, most_cells),
            order: AtomicU64::new(1),
            purges: Purges::default(),
            marks: (0..PURGES).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// See [`Shards::hash`].
    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.shards.hash(key)
    }

    /// See [`Shards::sweep`].
    pub(crate) fn sweep(&self, now: Now, inactive: Duration, tell: impl FnMut(&Slot, &Cell, Swept)) {
        self.shards.sweep(&self.purges, (now, inactive), tell);
    }

    /// A file was removed of a key of which only the hash is known: if the key's own, everything of the key
    /// goes as by a purge; if a variant's, the variant goes. Returns whether there was such a key.
    pub(crate) fn unlinked(&self, hash: u64, name: &FileName) -> bool {
        match self.shards.unlinked(hash, name) {
            Unlinked::Key(key) => _ = self.purge(key.bytes()),
            Unlinked::Variant => {}
            Unlinked::Nothing => return false,
        }
        true
    }

    pub(crate) fn next_order(&self) -> u64 {
        self.order.fetch_add(1, Ordering::AcqRel)
    }

    /// When a key, or one that shares its mark, was last purged.
    pub(crate) fn purged_at(&self, hash: u64) -> u64 {
        self.marks[hash as usize % PURGES].load(Ordering::Acquire)
    }

    /// Whether a purge of a key with one hash counts for one with the other.
    pub(crate) fn share_mark(one: u64, other: u64) -> bool {
        one as usize % PURGES == other as usize % PURGES
    }

    /// From now on nothing that began before counts for this key. Returns the purge's place in the order, and
    /// that of the previous one.
    fn mark_purged(&self, hash: u64) -> (u64, u64) {
        let order = self.next_order();
        (order, self.marks[hash as usize % PURGES].fetch_max(order, Ordering::AcqRel))
    }
}
