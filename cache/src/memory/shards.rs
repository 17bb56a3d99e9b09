//! The shards of memory, with the budget that they share: room is taken before something is stored, and made by evicting what is unused.
//!
//! A key's shard is locked for one change at a time ([`Shards::change`]); what is let go is dropped after the lock, and waiters are woken
//! after it. Before: `memory`; next: `shard`, one of them.

use super::cells::{Cell, is_gone};
use super::grant::Grant;
use super::shard::{After, Evicted, Freed, Shard, Swept};
use super::slot::Slot;
use crate::budget::{Budget, Room};
use crate::entry::Entry;
use crate::key::Key;
use crate::loan::{Held, Loans};
use crate::now::Now;
use crate::purges::Purges;
use crate::sync::{Mutex, MutexGuard};
use foldhash::quality::RandomState;
use millstream_wire::Coding;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::Duration;

/// Shards, powers of two: one per four mebibytes or slightly less, so that a shard's lock guards few enough
/// keys to be held briefly, and each has enough of them to choose a victim from.
const FEWEST_SHARDS: u64 = 1;
const MOST_SHARDS: u64 = 1024;
const SHARE: u64 = 4 * 1024 * 1024;
/// Calls of a hand, beyond one for each shard, before making room is given up.
const MOST_PASSES: usize = 64;
/// Slots that one call of [`Shards::sweep`] examines in each shard.
const SWEEP: usize = 512;

#[derive(Debug)]
pub(crate) struct Shards {
    hasher: RandomState,
    shards: Box<[Mutex<Shard>]>,
    budget: Arc<Budget>,
    pub(crate) loans: Arc<Loans>,
    victim: AtomicUsize,
    evictions: AtomicU64,
}

impl Shards {
    pub(super) fn new(most_bytes: u64, most_cells: u64) -> Shards {
        let shards = (most_bytes / SHARE).next_power_of_two().clamp(FEWEST_SHARDS, MOST_SHARDS);
        Shards {
            hasher: RandomState::default(),
            shards: (0..shards).map(|_| Mutex::new(Shard::new())).collect(),
            budget: Arc::new(Budget::new(most_bytes, most_cells)),
            loans: Arc::default(),
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
    pub(super) fn free(&self, freed: Freed) {
        self.budget.release(freed.bytes, freed.cells as u64);
        drop(freed);
        self.loans.relieve();
    }

    /// Drops what was not used for `inactive` and what is purged, a bounded number of keys at a time, and
    /// reports each that was used or purged.
    pub(crate) fn sweep(
        &self,
        purges: &Purges,
        (now, inactive): (Now, Duration),
        mut tell: impl FnMut(&Slot, &Cell, Swept),
    ) {
        let second = u32::try_from(now.unix_seconds()).unwrap_or(0);
        let inactive = u32::try_from(inactive.as_secs()).unwrap_or(u32::MAX);
        let generation = purges.generation();
        for shard in &self.shards {
            let mut freed = Freed::default();
            // In the order in which everybody takes both: the shard, then the rules.
            let mut shard = lock(shard);
            let rules = purges.rules();
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

    pub(super) fn cell(&self, grant: &Grant, change: impl FnOnce(&mut Cell, &mut After)) {
        self.change(&grant.key, |shard, index, after| {
            if let Some(index) = index {
                let slot = shard.slot(index);
                if let Some(at) = slot.position(grant.values.as_deref()) {
                    change(&mut slot.cells[at], after);
                }
            }
        });
    }

    pub(super) fn change<T>(
        &self,
        key: &Key,
        change: impl FnOnce(&mut Shard, Option<u32>, &mut After) -> T,
    ) -> T {
        let mut after = After::default();
        let mut shard = self.shard(key.hash());
        let index = shard.find(key.hash(), key.bytes());
        let outcome = change(&mut shard, index, &mut after);
        drop(shard);
        self.free(after.freed);
        after.wake.into_iter().for_each(Waker::wake);
        outcome
    }

    pub(super) fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
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
