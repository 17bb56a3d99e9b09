//! One key in memory: its variants, and for each the entry, the line and what is remembered about misses.
//!
//! Plain data that the shard's lock guards. A cell without an entry exists for a reason (a line, uses counted for
//! `proxy_cache_min_uses`, an answer that could not be stored) and goes when it is neither used nor needed. Next:
//! `shard`, the table and queue that slots stand in.

use crate::entry::Entry;
use crate::key::Key;
use crate::line::Line;
use crate::policy::Reason;
use crate::vary::VaryFields;
use millstream_wire::Fields;
use std::sync::Arc;

/// Variants of one key that are kept; one more replaces the one that has been there longest.
pub(crate) const VARIANTS: usize = 128;

/// The file under the key's own name.
#[derive(Debug, Clone)]
pub(crate) struct BaseFile {
    /// Variants with another epoch do not count.
    pub(crate) epoch: u64,
    /// The variant that is in it.
    pub(crate) values: Option<Arc<[u8]>>,
}

/// A key.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) key: Arc<Key>,
    pub(crate) vary: Option<Arc<VaryFields>>,
    pub(crate) base: Option<BaseFile>,
    pub(crate) cells: Vec<Cell>,
    /// The next older slot in the queue.
    pub(crate) older: u32,
    /// The next newer one.
    pub(crate) newer: u32,
}

/// A variant of a key.
#[derive(Debug, Default)]
pub(crate) struct Cell {
    pub(crate) values: Option<Arc<[u8]>>,
    pub(crate) entry: Option<Arc<Entry>>,
    pub(crate) line: Option<Box<Line>>,
    /// Bytes of the budget that it holds.
    pub(crate) charge: u64,
    /// Until then answers are taken to be uncacheable, in milliseconds since 1970.
    pub(crate) uncacheable_until: i64,
    /// Why the last answer could not be stored, where that is known.
    pub(crate) refused: Option<Reason>,
    /// Requests for it while it was not stored.
    pub(crate) uses: u32,
    /// When it was last seen to be used, in seconds since 1970.
    pub(crate) used_at: u32,
    /// Its file was looked for and is not there.
    pub(crate) absent_on_disk: bool,
    /// Used since the hand of the queue came by, for a cell without an entry.
    pub(crate) touched: bool,
}

impl Slot {
    /// What a request says in the fields this key varies by.
    pub(crate) fn values(&self, request: Fields<'_>) -> Option<Arc<[u8]>> {
        let fields = self.vary.as_ref()?;
        let mut values = Vec::with_capacity(64);
        fields.write(request, &mut values);
        Some(values.into())
    }

    /// Where the cell of a variant is.
    pub(crate) fn position(&self, values: Option<&[u8]>) -> Option<usize> {
        self.cells.iter().position(|cell| cell.values.as_deref() == values)
    }
}

impl Cell {
    /// What a cell costs without its entry, its share of the slot and of the table included. Every variant of a key
    /// is charged for the slot, so that whichever goes last has paid for it.
    pub(crate) fn cost(key: &Key, values: Option<&[u8]>) -> u64 {
        let variant = values.map_or(0, |values| values.len() + 16);
        (size_of::<Slot>() + size_of::<Cell>() + 16 + variant) as u64 + key.cost()
    }

    /// Whether the hand may not take it: somebody holds a right to it.
    pub(crate) fn is_pinned(&self) -> bool {
        self.line.is_some()
    }

    /// Whether it was used since the last time this was asked.
    pub(crate) fn take_used(&mut self) -> bool {
        std::mem::take(&mut self.touched) | self.entry.as_ref().is_some_and(|entry| entry.take_used())
    }
}
