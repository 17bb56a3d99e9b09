//! The variants of a key: nearly always one, which then needs no memory of its own.
//!
//! A slice to whoever reads. Cells come and leave through `slot`, which knows where the key's bytes are. Next: `slot`.

use crate::entry::Entry;
use crate::line::Line;
use crate::policy::Reason;
use std::ops::{Deref, DerefMut};
use std::slice;
use std::sync::Arc;

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

/// Cells in the order they came.
#[derive(Debug)]
pub(crate) enum Cells {
    One(Cell),
    /// None, or several. Capacity is given back when one or none is left.
    Several(Vec<Cell>),
}

impl Cells {
    pub(crate) const fn new() -> Cells {
        Cells::Several(Vec::new())
    }

    pub(super) fn push(&mut self, cell: Cell) {
        *self = match std::mem::replace(self, Cells::new()) {
            Cells::Several(cells) if cells.is_empty() => Cells::One(cell),
            Cells::Several(mut cells) => {
                cells.push(cell);
                Cells::Several(cells)
            }
            Cells::One(first) => Cells::Several(vec![first, cell]),
        };
    }

    /// Takes one out; the others keep their order.
    pub(super) fn remove(&mut self, at: usize) -> Cell {
        let mut cells = match std::mem::replace(self, Cells::new()) {
            Cells::One(cell) => {
                assert_eq!(at, 0, "there is one cell");
                return cell;
            }
            Cells::Several(cells) => cells,
        };
        let removed = cells.remove(at);
        *self = match cells.pop() {
            Some(last) if cells.is_empty() => Cells::One(last),
            Some(last) => {
                cells.push(last);
                Cells::Several(cells)
            }
            None => Cells::new(),
        };
        removed
    }
}

impl Deref for Cells {
    type Target = [Cell];

    #[inline]
    fn deref(&self) -> &[Cell] {
        match self {
            Cells::One(cell) => slice::from_ref(cell),
            Cells::Several(cells) => cells,
        }
    }
}

impl DerefMut for Cells {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Cell] {
        match self {
            Cells::One(cell) => slice::from_mut(cell),
            Cells::Several(cells) => cells,
        }
    }
}

impl Cell {
    /// Whether the hand may not take it: somebody holds a right to it.
    pub(crate) fn is_pinned(&self) -> bool {
        self.line.is_some()
    }

    /// Whether it was used since the last time this was asked.
    pub(crate) fn take_used(&mut self) -> bool {
        std::mem::take(&mut self.touched) | self.entry.as_ref().is_some_and(|entry| entry.take_used())
    }
}
