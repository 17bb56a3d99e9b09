//! A part of the keys: a table to find them, and a queue with a hand to let go of those that nobody uses.
//!
//! The queue is SIEVE's: newcomers enter at the new end, the hand moves from old to new, clears the mark of what was
//! used and takes what was not. A mark costs a hit nothing once it is set, and a scan of keys that are asked for once
//! passes through without pushing out what is used. Everything done under a shard's lock is short: growing copies
//! nothing but the table of indices, and the hand goes a bounded way. Next: `lookup` and `change`, which work on one
//! shard.

use super::cells::Cell;
use super::slab::Slab;
use super::slot::Slot;
use crate::entry::Entry;
use crate::key::Key;
use hashbrown::HashTable;
use std::sync::Arc;
use std::task::Waker;

const NONE: u32 = u32::MAX;
/// Slots that the hand passes in one call.
const STEPS: usize = 128;
/// A table this many times too large is shrunk.
const SPARE: usize = 8;

#[derive(Debug)]
pub(crate) struct Shard {
    table: HashTable<u32>,
    slots: Slab<Slot>,
    oldest: u32,
    newest: u32,
    hand: u32,
    /// Slots below this one are still to be examined in this round of the sweep.
    unswept: usize,
}

#[derive(Debug)]
pub(crate) enum Evicted {
    Freed(Freed),
    /// Everything the hand passed was used since it last passed; it may go on.
    Passed,
    Empty,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Swept {
    Used,
    /// A purge applied to its entry, and it goes.
    Purged,
    Unwritten,
}

/// Dropped by the caller once the lock is released.
#[derive(Debug, Default)]
pub(crate) struct Freed {
    pub(crate) bytes: u64,
    pub(crate) cells: usize,
    pub(crate) entries: Vec<Arc<Entry>>,
}

/// What has to happen once the lock is released.
#[derive(Default)]
pub(super) struct After {
    pub(super) wake: Vec<Waker>,
    pub(super) freed: Freed,
}

impl Freed {
    /// Its entry, if any, is no longer stored.
    pub(crate) fn cell(&mut self, cell: Cell) {
        debug_assert!(cell.line.is_none());
        self.bytes += cell.charge;
        self.cells += 1;
        self.entry(cell.entry);
    }

    pub(crate) fn entry(&mut self, entry: Option<Arc<Entry>>) {
        if let Some(entry) = entry {
            entry.retire();
            self.entries.push(entry);
        }
    }
}

impl Shard {
    pub(crate) fn new() -> Shard {
        Shard {
            table: HashTable::new(),
            slots: Slab::new(),
            oldest: NONE,
            newest: NONE,
            hand: NONE,
            unswept: 0,
        }
    }

    pub(crate) fn find(&self, hash: u64, key: &[u8]) -> Option<u32> {
        let same = |&index: &u32| {
            let slot = &self.slots[index as usize];
            slot.hash() == hash && slot.key() == key
        };
        self.table.find(hash, same).copied()
    }

    /// By the hash and something that is true of it alone.
    pub(crate) fn find_by(&self, hash: u64, is_it: impl Fn(&Slot) -> bool) -> Option<u32> {
        let same = |&index: &u32| {
            let slot = &self.slots[index as usize];
            slot.hash() == hash && is_it(slot)
        };
        self.table.find(hash, same).copied()
    }

    /// `index` must come from [`Shard::find`] or [`Shard::add`] under the same lock, with no slot removed
    /// since.
    pub(crate) fn slot(&mut self, index: u32) -> &mut Slot {
        &mut self.slots[index as usize]
    }

    /// At the new end of the queue.
    pub(crate) fn add(&mut self, key: Arc<Key>) -> u32 {
        let hash = key.hash();
        // The budget's bound on keys is far below.
        let index = u32::try_from(self.slots.push(Slot::new(key, self.newest, NONE)))
            .expect("fewer than four billion");
        match self.newest {
            NONE => self.oldest = index,
            newest => self.slot(newest).newer = index,
        }
        self.newest = index;
        let slots = &self.slots;
        self.table.insert_unique(hash, index, |&other| slots[other as usize].hash());
        index
    }

    /// Another slot may have its index afterwards.
    pub(crate) fn remove_if_empty(&mut self, index: u32) {
        let slot = self.slot(index);
        if !slot.cells.is_empty() {
            return;
        }
        let (hash, older, newer) = (slot.hash(), slot.older, slot.newer);
        if let Ok(place) = self.table.find_entry(hash, |&other| other == index) {
            place.remove();
        }
        self.link(older, newer);
        if self.hand == index {
            self.hand = newer;
        }
        self.slots.swap_remove(index as usize);
        let last = self.slots.len() as u32;
        if last != index {
            self.moved(last, index);
        }
        if self.table.capacity() > SPARE * (self.slots.len() + SPARE) {
            let slots = &self.slots;
            self.table.shrink_to(2 * slots.len(), |&other| slots[other as usize].hash());
        }
    }

    /// Makes two slots, or a slot and an end, neighbours in the queue.
    fn link(&mut self, older: u32, newer: u32) {
        match older {
            NONE => self.oldest = newer,
            older => self.slot(older).newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.slot(newer).older = older,
        }
    }

    /// Corrects references to a slot by its former index.
    fn moved(&mut self, from: u32, to: u32) {
        let slot = self.slot(to);
        let (hash, older, newer) = (slot.hash(), slot.older, slot.newer);
        if let Some(index) = self.table.find_mut(hash, |&other| other == from) {
            *index = to;
        }
        self.link(older, to);
        self.link(to, newer);
        if self.hand == from {
            self.hand = to;
        }
    }

    /// Moves the hand a bounded way, until it evicts something. `spares_held`: nothing whose memory would
    /// still be held.
    pub(crate) fn evict(&mut self, spares_held: bool) -> Evicted {
        if self.slots.len() == 0 {
            return Evicted::Empty;
        }
        let mut freed = Freed::default();
        for _ in 0..STEPS {
            let index = if self.hand == NONE { self.oldest } else { self.hand };
            let slot = self.slot(index);
            let newer = slot.newer;
            take_cells(slot, &mut freed, |cell| {
                let is_held = |cell: &Cell| cell.entry.as_ref().is_some_and(Entry::is_held);
                !(cell.take_used() || spares_held && is_held(cell))
            });
            self.hand = newer;
            self.remove_if_empty(index);
            if freed.cells > 0 {
                return Evicted::Freed(freed);
            }
        }
        Evicted::Passed
    }

    /// Drops cells not used within `inactive` seconds and those whose entry is `purged`, examining at most
    /// `most` slots, and reports each used since the last round or purged. After the last slot the next call
    /// starts over.
    pub(crate) fn sweep(
        &mut self,
        (now, inactive): (u32, u32),
        most: usize,
        freed: &mut Freed,
        purged: impl Fn(&Entry) -> bool,
        mut tell: impl FnMut(&Slot, &Cell, Swept),
    ) {
        let end = match self.unswept.min(self.slots.len()) {
            0 => self.slots.len(),
            unswept => unswept,
        };
        let first = end.saturating_sub(most);
        // From the end, so that what takes the place of a slot that goes has been looked at.
        for index in (first..end).rev() {
            let slot = &mut self.slots[index];
            for at in 0..slot.cells.len() {
                let cell = &mut slot.cells[at];
                // The hands have not seen this mark yet, so it is kept for them.
                if cell.see_mark() {
                    cell.used_at = now;
                    tell(slot, &slot.cells[at], Swept::Used);
                }
                let cell = &slot.cells[at];
                if !cell.is_pinned() && cell.entry.as_deref().is_some_and(&purged) {
                    tell(slot, cell, Swept::Purged);
                } else if cell.entry.as_ref().is_some_and(|entry| entry.marks.is_unwritten()) {
                    tell(slot, cell, Swept::Unwritten);
                }
            }
            take_cells(slot, freed, |cell| {
                let unused = now.saturating_sub(cell.used_at) > inactive;
                unused || cell.entry.as_deref().is_some_and(&purged)
            });
            self.remove_if_empty(index as u32);
        }
        self.unswept = first;
    }
}

fn take_cells(slot: &mut Slot, freed: &mut Freed, mut goes: impl FnMut(&mut Cell) -> bool) {
    slot.take_where(|cell| !cell.is_pinned() && goes(cell), |cell| freed.cell(cell));
}
