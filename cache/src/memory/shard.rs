//! A part of the keys: a table to find them, and a queue with a hand to let go of those that nobody uses.
//!
//! The queue is SIEVE's: newcomers enter at the new end, the hand moves from old to new, clears the mark of what was
//! used and takes what was not. A mark costs a hit nothing once it is set, and a scan of keys that are asked for once
//! passes through without pushing out what is used. Next: `lookup` and `change`, which work on one shard.

use super::slot::{Cell, Slot};
use crate::entry::Entry;
use crate::key::Key;
use hashbrown::HashTable;
use std::sync::Arc;

const NONE: u32 = u32::MAX;

/// Slots of the keys whose hashes fall here.
#[derive(Debug)]
pub(crate) struct Shard {
    table: HashTable<u32>,
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
    hand: u32,
    /// Where the sweep for unused entries goes on.
    swept: usize,
}

/// What was let go; dropped by the caller once the lock is released.
#[derive(Debug, Default)]
pub(crate) struct Freed {
    pub(crate) bytes: u64,
    pub(crate) cells: usize,
    pub(crate) entries: Vec<Arc<Entry>>,
}

impl Freed {
    /// Takes a cell whose entry, if it has one, is no longer stored.
    pub(crate) fn cell(&mut self, cell: Cell) {
        debug_assert!(cell.line.is_none());
        self.bytes += cell.charge;
        self.cells += 1;
        self.entry(cell.entry);
    }

    /// Takes an entry that is no longer stored.
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
            slots: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
            hand: NONE,
            swept: 0,
        }
    }

    /// The slot of a key.
    pub(crate) fn find(&self, hash: u64, key: &[u8]) -> Option<u32> {
        let same = |&index: &u32| {
            self.slots[index as usize]
                .as_ref()
                .is_some_and(|slot| slot.key.hash() == hash && slot.key.bytes() == key)
        };
        self.table.find(hash, same).copied()
    }

    /// The slot of a key that is known by its hash and by something that is true of it alone.
    pub(crate) fn find_by(&self, hash: u64, is_it: impl Fn(&Slot) -> bool) -> Option<u32> {
        let same = |&index: &u32| {
            self.slots[index as usize].as_ref().is_some_and(|slot| slot.key.hash() == hash && is_it(slot))
        };
        self.table.find(hash, same).copied()
    }

    /// A slot that [`Shard::find`] or [`Shard::add`] gave under the same lock.
    pub(crate) fn slot(&mut self, index: u32) -> &mut Slot {
        self.slots[index as usize].as_mut().expect("the index was given under this lock")
    }

    /// A new slot at the new end of the queue.
    pub(crate) fn add(&mut self, key: Arc<Key>) -> u32 {
        let hash = key.hash();
        let slot = Slot { key, vary: None, base: None, cells: Vec::new(), older: self.newest, newer: NONE };
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = Some(slot);
                index
            }
            None => {
                self.slots.push(Some(slot));
                // The budget's bound on keys is far below.
                u32::try_from(self.slots.len() - 1).expect("fewer keys than four billion")
            }
        };
        match self.newest {
            NONE => self.oldest = index,
            newest => self.slot(newest).newer = index,
        }
        self.newest = index;
        let slots = &self.slots;
        self.table.insert_unique(hash, index, |&other| {
            slots[other as usize].as_ref().map_or(0, |slot| slot.key.hash())
        });
        index
    }

    /// Takes a slot that has no cells out of table and queue.
    pub(crate) fn remove_if_empty(&mut self, index: u32) {
        let Some(slot) = self.slots[index as usize].take_if(|slot| slot.cells.is_empty()) else { return };
        if let Ok(place) = self.table.find_entry(slot.key.hash(), |&other| other == index) {
            place.remove();
        }
        match slot.older {
            NONE => self.oldest = slot.newer,
            older => self.slot(older).newer = slot.newer,
        }
        match slot.newer {
            NONE => self.newest = slot.older,
            newer => self.slot(newer).older = slot.older,
        }
        if self.hand == index {
            self.hand = slot.newer;
        }
        self.free.push(index);
    }

    /// Moves the hand until it has let go of something; `None` where nothing may go.
    pub(crate) fn evict(&mut self) -> Option<Freed> {
        let mut freed = Freed::default();
        // Once around clears every mark, a second time takes the first that is not pinned.
        for _ in 0..2 * (self.slots.len() - self.free.len()) {
            let index = if self.hand == NONE { self.oldest } else { self.hand };
            if index == NONE {
                return None;
            }
            let slot = self.slot(index);
            self.hand = slot.newer;
            let slot = self.slot(index);
            take_cells(slot, &mut freed, |cell| !cell.take_used());
            self.remove_if_empty(index);
            if freed.cells > 0 {
                return Some(freed);
            }
        }
        None
    }

    /// Lets go of cells not used within `inactive` seconds, looking at no more than `budget` slots, and tells of each
    /// that was used since the last round. True once the end was reached, so that the next call begins anew.
    pub(crate) fn sweep(
        &mut self,
        now: u32,
        inactive: u32,
        budget: usize,
        freed: &mut Freed,
        mut used: impl FnMut(&Slot, &Cell),
    ) -> bool {
        let end = (self.swept + budget).min(self.slots.len());
        for index in self.swept..end {
            let Some(mut slot) = self.slots[index].take() else { continue };
            for at in 0..slot.cells.len() {
                let cell = &mut slot.cells[at];
                if cell.entry.as_ref().is_some_and(|entry| entry.take_used()) {
                    // The hand has not seen this mark yet, so it is kept for it.
                    cell.touched = true;
                    cell.used_at = now;
                    used(&slot, &slot.cells[at]);
                }
            }
            take_cells(&mut slot, freed, |cell| now.saturating_sub(cell.used_at) > inactive);
            self.slots[index] = Some(slot);
            self.remove_if_empty(index as u32);
        }
        self.swept = if end == self.slots.len() { 0 } else { end };
        self.swept == 0
    }
}

/// Moves the cells that may go and should into `freed`.
fn take_cells(slot: &mut Slot, freed: &mut Freed, mut goes: impl FnMut(&mut Cell) -> bool) {
    let mut at = 0;
    while at < slot.cells.len() {
        if !slot.cells[at].is_pinned() && goes(&mut slot.cells[at]) {
            freed.cell(slot.cells.remove(at));
        } else {
            at += 1;
        }
    }
}
