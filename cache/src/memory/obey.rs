//! What the rules of purges do to a key when it is met.
//!
//! A purge by rule touches no key; here a cell whose entry or fill is older than the latest rule is brought in line
//! with them, once. Next: `purges`, the rules.

use super::change::empty;
use super::shard::After;
use super::slot::Slot;
use crate::entry::Entry;
use crate::key;
use crate::line::Purpose;
use crate::now::Now;
use crate::purges::{Purges, Rules, Verdict};
use std::sync::Arc;

impl Slot {
    /// Applies the rules up to `generation` to a cell.
    pub(super) fn obey(
        &mut self,
        at: usize,
        (purges, generation): (&Purges, u64),
        now: Now,
        after: &mut After,
    ) {
        let cell = &self.cells[at];
        let old_entry = cell.entry.as_ref().is_some_and(|entry| entry.born() < generation);
        let old_line = cell.line.as_ref().is_some_and(|line| line.born < generation);
        if !old_entry && !old_line {
            return;
        }
        let rules = purges.rules();
        if old_entry {
            obey_with_entry(&rules, self, at, now, after);
        }
        if old_line {
            obey_with_line(&rules, self, at, after);
        }
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
