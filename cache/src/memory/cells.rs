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

#[derive(Debug, Default)]
pub(crate) struct Cell {
    pub(crate) values: Option<Arc<[u8]>>,
    pub(crate) entry: Option<Arc<Entry>>,
    pub(crate) line: Option<Box<Line>>,
    /// Bytes of the budget that it holds.
    pub(crate) charge: u64,
    /// Until then responses are assumed uncacheable, in milliseconds since 1970.
    pub(crate) uncacheable_until: i64,
    /// How long before `uncacheable_until` the last one came, in seconds.
    pub(super) paused_for: u16,
    /// Why the last response could not be stored, if known.
    pub(crate) refused: Option<Reason>,
    /// Requests for it while it was not stored.
    pub(crate) uses: u32,
    /// When it was last seen to be used, in seconds since 1970.
    pub(crate) used_at: u32,
    /// Its file was looked for and does not exist.
    pub(crate) absent_on_disk: bool,
    /// Used since the hand of the queue passed, unless the entry's own mark says so.
    pub(crate) touched: bool,
    /// The same for the hand among the variants of its key.
    pub(super) visited: bool,
    /// A hash of its values, so that few of them have to be compared.
    pub(super) mark: u16,
}

/// In the order they came.
#[derive(Debug)]
pub(crate) enum Cells {
    One(Cell),
    /// None, or several. Capacity is freed when one or none is left.
    Several {
        cells: Vec<Cell>,
        /// Where the search for a victim continues.
        hand: u32,
    },
}

/// A collision only costs a comparison.
fn mark(values: Option<&[u8]>) -> u16 {
    values.map_or(0, |values| crc32fast::hash(values) as u16)
}

impl Cells {
    pub(crate) const fn new() -> Cells {
        Cells::Several { cells: Vec::new(), hand: 0 }
    }

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

    /// The victim for a new cell: by SIEVE, the first unused since the hand passed. `None` if each has a
    /// right held.
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
    /// Whether a right to it is held, so that the hand may not take it.
    pub(crate) fn is_pinned(&self) -> bool {
        self.line.is_some()
    }

    /// Whether it was used since the last call.
    pub(crate) fn take_used(&mut self) -> bool {
        self.see_mark();
        std::mem::take(&mut self.touched)
    }

    /// The same for the hand among its key's variants.
    fn take_visited(&mut self) -> bool {
        self.see_mark();
        std::mem::take(&mut self.visited)
    }

    /// Takes the entry's mark over for both hands. Returns whether it was set.
    pub(crate) fn see_mark(&mut self) -> bool {
        let used = self.entry.as_ref().is_some_and(|entry| entry.marks.take_used());
        self.touch_if(used);
        used
    }

    /// Marks a cell without an entry as used.
    pub(crate) fn touch_if(&mut self, used: bool) {
        self.touched |= used;
        self.visited |= used;
    }
}

/// Whether an entry must go; otherwise it counts as checked so far.
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
