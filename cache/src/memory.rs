//! The memory tier: entries by key in shards, bounded in bytes and keys, index included.
//!
//! A worker comes here only when its own handles do not answer ([`crate::front`]), so a shard's lock is held for a
//! look-up or a change, never for a hit that repeats. What is let go is dropped after the lock. Waiters are woken after
//! the lock. Next: `memory/lookup` (what a request gets), `memory/change` (what is stored), `memory/right` (what the right to fill does).

mod slab;
mod cells;
mod slot;
mod shard;
mod lookup;
mod change;
mod right;
mod files;
mod obey;

#[cfg(test)]
mod tests;

pub(crate) use cells::Cell;
pub(crate) use change::{Gone, Put};
pub(crate) use lookup::{Asked, Found, Grant, Patience};
pub(crate) use obey::as_ruled;
pub(crate) use shard::Swept;
pub(crate) use slot::Slot;

use crate::budget::{Budget, Room};
use crate::entry::Entry;
use crate::loan::{Held, Loans};
use crate::now::Now;
use crate::purges::Purges;
use crate::sync::{Mutex, MutexGuard};
use cells::is_gone;
use foldhash::quality::RandomState;
use millstream_wire::Coding;
use shard::{Evicted, Freed, Shard};
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Shards, powers of two: one per four mebibytes or slightly less, so that a shard's lock guards few enough
/// keys to be held briefly, and each has enough of them to choose a victim from.
const FEWEST_SHARDS: u64 = 1;
const MOST_SHARDS: u64 = 1024;
const SHARE: u64 = 4 * 1024 * 1024;
/// Purge times remembered, by hash; a power of two. Two keys that share one cost a refill at worst: with a
/// hundred unsafe requests during a fill, one time in three hundred.
const PURGES: usize = 32 * 1024;
/// Calls of a hand, beyond one for each shard, before making room is given up.
const MOST_PASSES: usize = 64;
/// Slots that one call of [`Memory::sweep`] examines in each shard.
const SWEEP: usize = 512;

#[derive(Debug)]
pub(crate) struct Memory {
    hasher: RandomState,
    shards: Box<[Mutex<Shard>]>,
    budget: Arc<Budget>,
    pub(crate) loans: Arc<Loans>,
    /// Orders rights, entries and purges.
    order: AtomicU64,
    marks: Box<[AtomicU64]>,
    pub(crate) purges: Purges,
    victim: AtomicUsize,
    evictions: AtomicU64,
}

impl Memory {
    pub(crate) fn new(most_bytes: u64, most_cells: u64) -> Memory {
        let shards = (most_bytes / SHARE).next_power_of_two().clamp(FEWEST_SHARDS, MOST_SHARDS);
        Memory {
            hasher: RandomState::default(),
            shards: (0..shards).map(|_| Mutex::new(Shard::new())).collect(),
            budget: Arc::new(Budget::new(most_bytes, most_cells)),
            loans: Arc::default(),
            order: AtomicU64::new(1),
            purges: Purges::default(),
            marks: (0..PURGES).map(|_| AtomicU64::new(0)).collect(),
            victim: AtomicUsize::new(0),
            evictions: AtomicU64::new(0),
        }
    }

    /// Seeded per process and zone.
    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(key);
        hasher.finish()
    }

    pub(crate) fn set_bounds(&self, most_bytes: u64, most_cells: u64) {
        self.budget.set_bounds(most_bytes, most_cells);
        while self.budget.is_over() && self.evict(None) {}
    }

    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.budget.bytes(), self.budget.most_bytes())
    }

    pub(crate) fn cells(&self) -> u64 {
        self.budget.cells()
    }

    /// Entries and remembered misses that were evicted.
    pub(crate) fn evictions(&self) -> u64 {
        self.evictions.load(Ordering::Relaxed)
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

    /// Takes from the budget for the key with this hash, evicting what is unused until it fits. False if it
    /// cannot fit. The first victim is from the key's own shard, so that no shard grows at the cost of the
    /// others; further ones, for a large body, are taken from all in turn.
    pub(crate) fn reserve(&self, bytes: u64, cells: u64, hash: u64) -> bool {
        if bytes > self.budget.most_bytes() {
            return false;
        }
        let mut own = Some(self.shard_of(hash));
        while !self.budget.reserve(bytes, cells) {
            if !self.evict(own.take()) {
                return false;
            }
        }
        true
    }

    /// `None` if fills have used up their share, or nothing can be evicted for it.
    pub(crate) fn room(&self, bytes: u64, hash: u64) -> Option<Room> {
        self.budget.room(bytes, || self.reserve(bytes, 0, hash))
    }

    pub(crate) fn filling(&self) -> u64 {
        self.budget.filling()
    }

    pub(crate) fn release(&self, bytes: u64, cells: u64) {
        self.budget.release(bytes, cells);
    }

    /// Starts with the shard named, if any; false if nothing may be evicted.
    fn evict(&self, mut first: Option<usize>) -> bool {
        let mut empty = 0;
        // Where all that the hands pass is in use or pinned it gives up, and what was to be stored is not: the marks
        // are cleared by then, so the next one finds something.
        let most = self.shards.len() + MOST_PASSES;
        for _ in 0..most {
            let next = || self.victim.fetch_add(1, Ordering::Relaxed) & (self.shards.len() - 1);
            let index = first.take().unwrap_or_else(next);
            let evicted = lock(&self.shards[index]).evict(self.loans.is_full());
            match evicted {
                Evicted::Freed(freed) => {
                    self.evictions.fetch_add(freed.cells as u64, Ordering::Relaxed);
                    self.free(freed);
                    return true;
                }
                Evicted::Passed => empty = 0,
                Evicted::Empty => empty += 1,
            }
            if empty > self.shards.len() {
                return false;
            }
        }
        false
    }

    /// Returns what was evicted to the budget and drops it. Never call it under a lock.
    fn free(&self, freed: Freed) {
        self.budget.release(freed.bytes, freed.cells as u64);
        drop(freed);
        self.loans.relieve();
    }

    /// Drops what was not used for `inactive` and what is purged, a bounded number of keys at a time, and
    /// reports each that was used or purged.
    pub(crate) fn sweep(&self, now: Now, inactive: Duration, mut tell: impl FnMut(&Slot, &Cell, Swept)) {
        let second = u32::try_from(now.unix_seconds()).unwrap_or(0);
        let inactive = u32::try_from(inactive.as_secs()).unwrap_or(u32::MAX);
        let generation = self.purges.generation();
        for shard in &self.shards {
            let mut freed = Freed::default();
            // In the order in which everybody takes both: the shard, then the rules.
            let mut shard = lock(shard);
            let rules = self.purges.rules();
            let purged = |entry: &Entry| entry.born() < generation && is_gone(&rules, entry);
            shard.sweep((second, inactive), SWEEP, &mut freed, purged, &mut tell);
            drop((rules, shard));
            self.free(freed);
        }
    }

    /// False if there is no room or the entry is no longer stored.
    pub(crate) fn add_coded(&self, entry: &Arc<Entry>, coding: Coding, body: Held) -> bool {
        let (cost, hash) = (entry.coded_cost(body.len()), self.hash(entry.key()));
        if !self.reserve(cost, 0, hash) {
            return false;
        }
        let mut kept = false;
        let mut shard = self.shard(hash);
        if let Some(index) = shard.find(hash, entry.key()) {
            let cells = &mut shard.slot(index).cells;
            let stored = cells
                .iter_mut()
                .find(|cell| cell.entry.as_ref().is_some_and(|held| Arc::ptr_eq(held, entry)));
            if let Some(cell) = stored
                && entry.keep_coded(coding, body.clone())
            {
                body.enter();
                cell.charge += cost;
                kept = true;
            }
        }
        drop(shard);
        if !kept {
            self.release(cost, 0);
        }
        kept
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        lock(&self.shards[self.shard_of(hash)])
    }

    fn shard_of(&self, hash: u64) -> usize {
        // The low bits choose the bucket in the shard's table and the highest ones tell its keys apart, those between
        // the shard.
        (hash >> 40) as usize & (self.shards.len() - 1)
    }
}

/// Nothing panics half-way through a change of a shard, so a poisoned lock guards a consistent one.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}
