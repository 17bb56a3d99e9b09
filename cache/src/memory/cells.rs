//! The variants of a key: nearly always one, which then needs no memory of its own.
//!
//! A slice to whoever reads. Cells come and leave through `slot`, which knows where the key's bytes are. Next: `slot`.

use crate::entry::Entry;
use crate::key;
use crate::line::Line;
use crate::policy::Reason;
use crate::purges::{Rules, Verdict};
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
    /// How long before that the last one came, in seconds.
    pub(super) paused_for: u16,
    /// Why the last answer could not be stored, where that is known.
    pub(crate) refused: Option<Reason>,
    /// Requests for it while it was not stored.
    pub(crate) uses: u32,
    /// When it was last seen to be used, in seconds since 1970.
    pub(crate) used_at: u32,
    /// Its file was looked for and is not there.
    pub(crate) absent_on_disk: bool,
    /// Used since the hand of the queue came by, as far as the entry's own mark does not say so.
    pub(crate) touched: bool,
    /// The same for the hand among the variants of its key.
    pub(super) visited: bool,
    /// A hash of its values, so that few of them have to be compared.
    pub(super) mark: u16,
}

/// Cells in the order they came.
#[derive(Debug)]
pub(crate) enum Cells {
    One(Cell),
    /// None, or several. Capacity is given back when one or none is left.
    Several {
        cells: Vec<Cell>,
        /// Where the search for one that goes for a new one goes on.
        hand: u32,
    },
}

/// A hash of a variant's values. Who makes two alike has them compared, no more.
fn mark(values: Option<&[u8]>) -> u16 {
    values.map_or(0, |values| crc32fast::hash(values) as u16)
}

impl Cells {
    pub(crate) const fn new() -> Cells {
        Cells::Several { cells: Vec::new(), hand: 0 }
    }

    /// Where the cell of a variant is.
    pub(super) fn position(&self, values: Option<&[u8]>) -> Option<usize> {
        let mark = mark(values);
        self.iter().position(|cell| cell.mark == mark && cell.values.as_deref() == values)
    }

    pub(super) fn push(&mut self, mut cell: Cell) {
        cell.mark = mark(cell.values.as_deref());
        *self = match std::mem::replace(self, Cells::new()) {
            Cells::Several { cells, .. } if cells.is_empty() => Cells::One(cell),
            Cells::Several { mut cells, hand } => {
                cells.push(cell);
                Cells::Several { cells, hand }
            }
            Cells::One(first) => Cells::Several { cells: vec![first, cell], hand: 0 },
        };
    }

    /// Takes one out; the others keep their order.
    pub(super) fn remove(&mut self, at: usize) -> Cell {
        let (mut cells, hand) = match std::mem::replace(self, Cells::new()) {
            Cells::One(cell) => {
                assert_eq!(at, 0, "there is one cell");
                return cell;
            }
            Cells::Several { cells, hand } => (cells, hand),
        };
        let removed = cells.remove(at);
        *self = Cells::Several { cells, hand };
        self.settle();
        removed
    }

    /// Takes out all that should go, in one pass.
    pub(super) fn take_where(&mut self, mut goes: impl FnMut(&mut Cell) -> bool, take: impl FnMut(Cell)) {
        match self {
            Cells::One(cell) => {
                if goes(cell)
                    && let Cells::One(cell) = std::mem::replace(self, Cells::new())
                {
                    std::iter::once(cell).for_each(take);
                }
            }
            Cells::Several { cells, .. } => {
                cells.extract_if(.., |cell| goes(cell)).for_each(take);
                self.settle();
            }
        }
    }

    /// Which one may go for a new one: by SIEVE, the first that was not used since the hand came by. `None` where
    /// somebody holds a right to each.
    pub(super) fn unused(&mut self) -> Option<usize> {
        let Cells::Several { cells, hand } = self else { return None };
        // In the second round the marks are cleared.
        for _ in 0..2 * cells.len() {
            let at = if (*hand as usize) < cells.len() { *hand as usize } else { 0 };
            let cell = &mut cells[at];
            if !cell.is_pinned() && !cell.take_visited() {
                *hand = at as u32;
                return Some(at);
            }
            *hand = at as u32 + 1;
        }
        None
    }

    /// One cell needs no vector.
    fn settle(&mut self) {
        let Cells::Several { cells, .. } = self else { return };
        match cells.len() {
            0 => *self = Cells::new(),
            1 => {
                if let Some(last) = cells.pop() {
                    *self = Cells::One(last);
                }
            }
            _ => {}
        }
    }
}

impl Deref for Cells {
    type Target = [Cell];

    #[inline]
    fn deref(&self) -> &[Cell] {
        match self {
            Cells::One(cell) => slice::from_ref(cell),
            Cells::Several { cells, .. } => cells,
        }
    }
}

impl DerefMut for Cells {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Cell] {
        match self {
            Cells::One(cell) => slice::from_mut(cell),
            Cells::Several { cells, .. } => cells,
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
        self.see_mark();
        std::mem::take(&mut self.touched)
    }

    /// The same for the hand among its key's variants.
    fn take_visited(&mut self) -> bool {
        self.see_mark();
        std::mem::take(&mut self.visited)
    }

    /// Takes the entry's mark over for both hands. Whether it was set.
    pub(crate) fn see_mark(&mut self) -> bool {
        let used = self.entry.as_ref().is_some_and(|entry| entry.take_used());
        self.touch_if(used);
        used
    }

    /// Marks it as used, without an entry that could be.
    pub(crate) fn touch_if(&mut self, used: bool) {
        self.touched |= used;
        self.visited |= used;
    }
}

/// Whether an entry is to go; one that no rule goes for is checked so far from then on.
pub(super) fn is_gone(rules: &Rules, entry: &Entry) -> bool {
    match rules.verdict(entry.born(), entry.head().tags, key::text(entry.key())) {
        Verdict::Untouched(upto) => {
            entry.checked_upto(upto);
            false
        }
        // The next request for it makes it stale.
        Verdict::Soft { .. } => false,
        Verdict::Hard => true,
    }
}
