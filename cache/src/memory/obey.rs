//! What the rules of purges do to a key when it is met, and what a look at it tells that changes nothing.
//!
//! A purge by rule touches no key; here a cell whose entry or fill is older than the latest rule is brought in line
//! with them, once. Next: `purges`, the rules.

use super::Memory;
use super::cells::Cell;
use super::change::empty;
use super::shard::After;
use super::slot::Slot;
use crate::entry::Entry;
use crate::key::{self, Key};
use crate::line::Purpose;
use crate::now::Now;
use crate::policy::Reason;
use crate::purges::{Rules, Verdict};
use millstream_wire::Fields;
use std::sync::Arc;

pub(crate) struct Seen {
    pub(crate) entries: Vec<Arc<Entry>>,
    /// Which of them the request would get.
    pub(crate) chosen: Option<usize>,
    pub(crate) absent_on_disk: bool,
    pub(crate) uses: u32,
    pub(crate) uncacheable_until: i64,
    /// Why the last response was not stored, and when.
    pub(crate) refused: Option<(Reason, i64)>,
    /// Purpose of the line, whether it streams, and the number of waiters.
    pub(crate) line: Option<(Purpose, bool, usize)>,
}

impl Memory {
    /// Applies the rules up to `generation` to a cell.
    pub(super) fn obey(&self, slot: &mut Slot, at: usize, generation: u64, now: Now, after: &mut After) {
        let cell = &slot.cells[at];
        let old_entry = cell.entry.as_ref().is_some_and(|entry| entry.born() < generation);
        let old_line = cell.line.as_ref().is_some_and(|line| line.born < generation);
        if !old_entry && !old_line {
            return;
        }
        let rules = self.purges.rules();
        if old_entry {
            obey_with_entry(&rules, slot, at, now, after);
        }
        if old_line {
            obey_with_line(&rules, slot, at, after);
        }
    }

    /// Whether an entry in a worker's hands may still be used.
    #[cold]
    pub(crate) fn spares(&self, entry: &Entry) -> bool {
        match self.purges.verdict(entry.born(), entry.head().tags, key::text(entry.key())) {
            Verdict::Untouched(upto) => {
                entry.checked_upto(upto);
                true
            }
            Verdict::Soft { .. } | Verdict::Hard => false,
        }
    }

    /// Makes everything stored under a key stale, and fills unavailable to later requests. The rule is in
    /// force already; without the key in memory there is nothing to do. Returns whether anything was stored.
    pub(crate) fn obey_now(&self, key: &[u8], now: Now) -> bool {
        let hash = self.hash(key);
        self.change(&Key::new(key, hash), |shard, index, after| {
            let Some(index) = index else { return false };
            let (generation, slot) = (self.purges.generation(), shard.slot(index));
            let stored = slot.cells.iter().any(|cell| cell.entry.is_some());
            (0..slot.cells.len()).for_each(|at| self.obey(slot, at, generation, now, after));
            stored
        })
    }

    /// Without counting as a use and without a change.
    pub(crate) fn look_at(&self, key: &[u8], request: Fields<'_>, now: Now) -> Option<Seen> {
        let hash = self.hash(key);
        let mut shard = self.shard(hash);
        let index = shard.find(hash, key)?;
        let slot = shard.slot(index);
        let rules = self.purges.rules();
        let values = slot.values(request);
        let mut seen = Seen {
            entries: Vec::new(),
            chosen: None,
            absent_on_disk: false,
            uses: 0,
            uncacheable_until: 0,
            refused: None,
            line: None,
        };
        for cell in slot.cells.iter() {
            let is_chosen = cell.values.as_deref() == values.as_deref();
            if let Some(entry) = cell.entry.as_ref().and_then(|entry| as_ruled(&rules, entry, now)) {
                if is_chosen {
                    seen.chosen = Some(seen.entries.len());
                }
                seen.entries.push(entry);
            }
            if is_chosen {
                seen.tell(cell);
            }
        }
        Some(seen)
    }
}

impl Seen {
    fn tell(&mut self, cell: &Cell) {
        self.absent_on_disk = cell.absent_on_disk;
        self.uses = cell.uses;
        self.uncacheable_until = cell.uncacheable_until;
        let at = cell.uncacheable_until.saturating_sub(i64::from(cell.paused_for) * 1000);
        self.refused = cell.refused.map(|reason| (reason, at));
        self.line = cell.line.as_ref().map(|line| (line.purpose, line.progress.is_some(), line.waiting()));
    }
}

/// The entry after the rules were applied; `None` if it is purged.
pub(crate) fn as_ruled(rules: &Rules, entry: &Arc<Entry>, now: Now) -> Option<Arc<Entry>> {
    match rules.verdict(entry.born(), entry.head().tags, key::text(entry.key())) {
        Verdict::Untouched(_) => Some(entry.clone()),
        Verdict::Soft { at, upto } => Some(Arc::new(entry.stale_since(at.min(now.unix_milliseconds), upto))),
        Verdict::Hard => None,
    }
}

fn obey_with_entry(rules: &Rules, slot: &mut Slot, at: usize, now: Now, after: &mut After) {
    let Some(entry) = slot.cells[at].entry.clone() else { return };
    match rules.verdict(entry.born(), entry.head().tags, key::text(entry.key())) {
        Verdict::Untouched(upto) => entry.checked_upto(upto),
        Verdict::Soft { at: since, upto } => {
            let stale = entry.stale_since(since.min(now.unix_milliseconds), upto);
            after.freed.entry(slot.put_entry(at, Arc::new(stale)));
        }
        Verdict::Hard => {
            // Its file is no younger, so it need not be read to find that out.
            slot.cells[at].absent_on_disk = true;
            empty(slot, at, after);
        }
    }
}

/// Before the head arrives, the tags of a fill are unknown: those who join wait, and are told later, see
/// `Line::stream`.
fn obey_with_line(rules: &Rules, slot: &mut Slot, at: usize, after: &mut After) {
    let Some(line) = &slot.cells[at].line else { return };
    let text = key::text(slot.key());
    let purged = match (&line.progress, line.purpose) {
        (_, Purpose::Probe) => false,
        (Some(progress), _) => rules.go_for(line.born, &progress.head.tags, text),
        (None, _) => rules.go_for(line.born, &Default::default(), text),
    };
    let cell = &mut slot.cells[at];
    let Some(line) = &mut cell.line else { return };
    if purged {
        line.release(&mut after.wake);
        cell.line = None;
    } else if line.progress.is_some() {
        line.born = rules.last();
    }
}
