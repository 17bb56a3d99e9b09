//! One key in memory: its variants, and for each the entry, the line and what is remembered about misses.
//!
//! Plain data that the shard's lock guards. A cell without an entry exists for a reason (a line, uses counted for
//! `proxy_cache_min_uses`, an answer that could not be stored) and goes when it is neither used nor needed. The key's
//! bytes are in its entries; only a slot without one keeps them itself. Next: `shard`, the table and queue that slots
//! stand in.

use super::cells::{Cell, Cells};
use crate::entry::Entry;
use crate::footprint::allocated;
use crate::key::Key;
use crate::variants::BaseFile;
use crate::vary::VaryFields;
use millstream_wire::Fields;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// Most variants of one key; one more replaces one that was not used lately.
pub(crate) const VARIANTS: usize = 128;
/// A slot's share of the hash table: four bytes and a mark, in a table that is at least 7/16 full.
const TABLE_SHARE: u64 = 12;

/// No variant may be evicted for another one.
#[derive(Debug)]
pub(crate) struct Full;

#[derive(Debug)]
pub(crate) struct Slot {
    hash: u64,
    /// The key, unless a cell has an entry that states it.
    key: Option<Arc<Key>>,
    pub(crate) vary: Option<Arc<VaryFields>>,
    pub(crate) base: Option<Box<BaseFile>>,
    pub(crate) cells: Cells,
    pub(crate) older: u32,
    pub(crate) newer: u32,
}

impl Slot {
    pub(crate) fn new(key: Arc<Key>, older: u32, newer: u32) -> Slot {
        let (hash, cells) = (key.hash(), Cells::new());
        Slot { hash, key: Some(key), vary: None, base: None, cells, older, newer }
    }

    #[inline]
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// The whole key, see [`crate::key`].
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match &self.key {
            Some(key) => key.bytes(),
            None => self.cells.iter().find_map(|cell| cell.entry.as_ref()).map_or(&[], |entry| entry.key()),
        }
    }

    /// To be held beyond the lock.
    pub(crate) fn shared_key(&self) -> Arc<Key> {
        self.key.clone().unwrap_or_else(|| Arc::new(Key::new(self.key(), self.hash)))
    }

    pub(crate) fn values(&self, request: Fields<'_>) -> Option<Arc<[u8]>> {
        let fields = self.vary.as_ref()?;
        let mut values = Vec::with_capacity(64);
        fields.write(request, &mut values);
        Some(values.into())
    }

    pub(crate) fn position(&self, values: Option<&[u8]>) -> Option<usize> {
        self.cells.position(values)
    }

    /// Returns the cell that must go for it, if any. Fails if all are there and each has a right held.
    pub(crate) fn make_room(&mut self) -> Result<Option<Cell>, Full> {
        if self.cells.len() < VARIANTS {
            return Ok(None);
        }
        let at = self.cells.unused().ok_or(Full)?;
        Ok(Some(self.remove(at)))
    }

    /// `key` is this slot's; kept if no entry states it.
    pub(crate) fn push(&mut self, cell: Cell, key: impl FnOnce() -> Arc<Key>) {
        if let Some(entry) = &cell.entry {
            entry.enter();
            self.key = None;
        } else if self.key.is_none() && self.cells.iter().all(|cell| cell.entry.is_none()) {
            self.key = Some(key());
        }
        self.cells.push(cell);
    }

    /// A slot without cells has forgotten its key.
    pub(crate) fn remove(&mut self, at: usize) -> Cell {
        if self.cells.len() > 1 {
            self.keep_key_without(at);
        }
        self.cells.remove(at)
    }

    pub(crate) fn take_where(&mut self, goes: impl FnMut(&mut Cell) -> bool, mut take: impl FnMut(Cell)) {
        let mut stated = None;
        self.cells.take_where(goes, |cell| {
            if stated.is_none() {
                stated.clone_from(&cell.entry);
            }
            take(cell);
        });
        let is_stated = self.key.is_some() || self.cells.iter().any(|cell| cell.entry.is_some());
        if !is_stated && !self.cells.is_empty() {
            self.key = stated.map(|entry| Arc::new(Key::new(entry.key(), self.hash)));
        }
    }

    pub(crate) fn put_entry(&mut self, at: usize, entry: Arc<Entry>) -> Option<Arc<Entry>> {
        self.key = None;
        entry.enter();
        self.cells[at].entry.replace(entry)
    }

    pub(crate) fn take_entry(&mut self, at: usize) -> Option<Arc<Entry>> {
        self.keep_key_without(at);
        self.cells[at].entry.take()
    }

    /// Keeps the key itself if no entry but that of the cell `at` states it.
    fn keep_key_without(&mut self, at: usize) {
        let stated = self.cells.iter().enumerate().any(|(other, cell)| other != at && cell.entry.is_some());
        if !stated {
            self.key = Some(self.shared_key());
        }
    }

    /// What a cell costs without its entry, its share of the slot and of the table included. Every variant of
    /// a key is charged for the slot, so that whichever goes last has paid for it.
    pub(crate) fn cost(key: &Key, values: Option<&[u8]>) -> u64 {
        Slot::cost_with_entry(values) + key.cost()
    }

    /// In addition to its entry, which states the key.
    pub(crate) fn cost_with_entry(values: Option<&[u8]>) -> u64 {
        let variant = values.map_or(0, |values| size_of::<Cell>() as u64 + allocated(values.len() + 16));
        size_of::<Slot>() as u64 + TABLE_SHARE + variant
    }
}
