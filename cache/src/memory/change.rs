//! What is stored of a key: a fill begins and stores, and a purge takes everything away.
//!
//! Whoever lost the line's right may still store, because of two answers the one asked for later wins, but not what began before a
//! purge. Waiters are woken after the lock. Next: `right`, what the holder of the right does beside storing; `permit`, whose values
//! call these.

use super::Memory;
use super::cells::{Cell, is_gone};
use super::grant::Grant;
use super::shard::After;
use super::slot::{Full, Slot};
use crate::entry::{Entry, Variant};
use crate::key::{self, Key};
use crate::now::Now;
use crate::progress::Progress;
use crate::purges::Verdict;
use crate::vary::VaryFields;
use millstream_wire::Fields;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Gone {
    /// The purge's place in the order.
    pub(crate) order: u64,
    /// That of the last purge before it, of this key or of one that shares its mark.
    pub(crate) before: u64,
    pub(crate) variants: Vec<Arc<[u8]>>,
    pub(crate) stored: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    Stored,
    /// Nothing could be evicted for it.
    NoRoom,
    /// Purged meanwhile; or a fresh response requested later exists; or the key now varies by other fields.
    Outdated,
}

impl Grant {
    /// Its own request has purged this key: that does not apply to its own response, unless another purge
    /// came since it began.
    pub(crate) fn outlive(&mut self, hash: u64, gone: &Gone) {
        if Memory::share_mark(self.key.hash(), hash) && gone.before <= self.order {
            self.order = gone.order;
        }
    }
}

impl Memory {
    /// A fill has its head: determines its variant, and lets the waiters read along. The grant is changed to
    /// what the fill now holds. `None` if the response depends on too many fields.
    pub(crate) fn begin(
        &self,
        grant: &mut Grant,
        vary: Option<VaryFields>,
        request: Fields<'_>,
        progress: impl FnOnce(Option<Variant>) -> Arc<Progress>,
    ) -> Option<Arc<Progress>> {
        let cost = Slot::cost(&grant.key, None) + 16 + request.bytes().len() as u64;
        // Most of the time the cell is there and this is given back at once.
        let mut paid = self.shards.reserve(cost, 1, grant.key.hash()).then_some(cost);
        let progress = self.shards.change(&grant.key.clone(), |shard, index, after| {
            let index = match index {
                Some(index) => index,
                // The place of a fill beside the line was needed for something else.
                None => {
                    paid?;
                    shard.add(grant.key.clone())
                }
            };
            let slot = shard.slot(index);
            let variant = match settle_vary(slot, vary, after) {
                Ok(fields) => fields.map(|fields| variant_of(fields, request)),
                Err(TooMany) => {
                    shard.remove_if_empty(index);
                    return None;
                }
            };
            let values = variant.as_ref().map(|variant| variant.values.clone());
            let progress = progress(variant);
            let tags = &progress.head.tags;
            let is_purged = self.purges.rules().go_for(grant.born, tags, grant.key.text());
            let purged = is_purged.then_some(grant.born);
            move_line(slot, grant, values, &mut paid, (&progress, purged), after);
            shard.remove_if_empty(index);
            Some(progress)
        });
        if let Some(cost) = paid {
            self.shards.release(cost, 1);
        }
        progress
    }

    pub(crate) fn store(&self, grant: &Grant, entry: &Arc<Entry>, now: Now) -> bool {
        self.put(grant, entry, now) == Put::Stored
    }

    /// Stores an entry if it may be stored, and ends the line.
    pub(crate) fn put(&self, grant: &Grant, entry: &Arc<Entry>, now: Now) -> Put {
        let values = entry.variant.as_ref().map(|variant| variant.values.clone());
        let cost = entry.cost() + Slot::cost_with_entry(values.as_deref());
        if !self.shards.reserve(cost, 1, grant.key.hash()) {
            grant.end(self);
            return Put::NoRoom;
        }
        let stored = self.shards.change(&grant.key, |shard, index, after| {
            let purged = self.purged_at(grant.key.hash()) > grant.order
                || self.purges.rules().go_for(entry.born(), entry.head().tags, grant.key.text());
            let index = index.unwrap_or_else(|| shard.add(grant.key.clone()));
            let slot = shard.slot(index);
            let fields = entry.variant.as_ref().map(|variant| &*variant.fields);
            if slot.vary.is_none() && slot.cells.iter().all(|cell| cell.entry.is_none()) {
                slot.vary = entry.variant.as_ref().map(|variant| variant.fields.clone());
            }
            // A part does not take the place of a whole that was stored while it came.
            let is_less = entry.head().part.is_some()
                && slot.position(values.as_deref()).is_some_and(|at| {
                    let held = slot.cells[at].entry.as_ref();
                    held.is_some_and(|held| held.head().part.is_none() && held.is_fresh(now))
                });
            // Nor does an answer take the place of one that was asked for later and came first (RFC 9111 §4).
            let is_older = slot.position(values.as_deref()).is_some_and(|at| {
                let held = slot.cells[at].entry.as_ref();
                held.is_some_and(|held| held.order > entry.order && held.is_fresh(now))
            });
            let may_be_stored = !purged && !is_less && !is_older && slot.vary.as_deref() == fields;
            let stored = match may_be_stored {
                true => put(slot, values, cost, entry, now, after),
                false => Put::Outdated,
            };
            if let Some(at) = slot.position(grant.values.as_deref()) {
                end_line(&mut slot.cells[at], grant, after);
            }
            shard.remove_if_empty(index);
            stored
        });
        if stored != Put::Stored {
            self.shards.release(cost, 1);
        }
        stored
    }

    /// Removes an unusable entry, if it is still the stored one.
    pub(crate) fn forget(&self, entry: &Arc<Entry>) {
        self.shards.change(&Key::new(entry.key(), self.hash(entry.key())), |shard, index, after| {
            let Some(index) = index else { return };
            let slot = shard.slot(index);
            let same = |cell: &Cell| cell.entry.as_ref().is_some_and(|held| Arc::ptr_eq(held, entry));
            if let Some(at) = slot.cells.iter().position(same) {
                take_entry(slot, at, after);
            }
            slot.base = None;
            shard.remove_if_empty(index);
        });
    }

    pub(crate) fn purge(&self, key: &[u8]) -> Gone {
        let hash = self.hash(key);
        let (order, before) = self.mark_purged(hash);
        let key = Key::new(key, hash);
        self.shards.change(&key, |shard, index, after| {
            let Some(index) = index else {
                return Gone { order, before, variants: Vec::new(), stored: false };
            };
            let slot = shard.slot(index);
            slot.base = None;
            let variants = slot.cells.iter().filter_map(|cell| cell.values.clone()).collect();
            let rules = self.purges.rules();
            // What a rule has taken out before is not there any more.
            let stored =
                slot.cells.iter().filter_map(|cell| cell.entry.as_ref()).any(|entry| !is_gone(&rules, entry));
            drop(rules);
            for at in (0..slot.cells.len()).rev() {
                // Whoever asks from now on must not read along with a fill that began before.
                if let Some(mut line) = slot.cells[at].line.take() {
                    line.release(&mut after.wake);
                }
                take_entry(slot, at, after);
            }
            shard.remove_if_empty(index);
            Gone { order, before, variants, stored }
        })
    }

    /// Makes everything stored under a key stale, and fills unavailable to later requests. The rule is in
    /// force already; without the key in memory there is nothing to do. Returns whether anything was stored.
    pub(crate) fn obey_now(&self, key: &[u8], now: Now) -> bool {
        let hash = self.hash(key);
        self.shards.change(&Key::new(key, hash), |shard, index, after| {
            let Some(index) = index else { return false };
            let (generation, slot) = (self.purges.generation(), shard.slot(index));
            let stored = slot.cells.iter().any(|cell| cell.entry.is_some());
            (0..slot.cells.len()).for_each(|at| slot.obey(at, (&self.purges, generation), now, after));
            stored
        })
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
}

pub(super) struct TooMany;

/// Combines the Vary of a response with the key's. Variants are kept apart by all fields that any response
/// has named: one field more than a response asks for is safe, one less is not. If a field is new, earlier
/// entries can no longer be told apart and are removed.
pub(super) fn settle_vary(
    slot: &mut Slot,
    vary: Option<VaryFields>,
    after: &mut After,
) -> Result<Option<Arc<VaryFields>>, TooMany> {
    let fields = match (&slot.vary, vary) {
        (known, None) => return Ok(known.clone()),
        (Some(known), Some(vary)) if known.covers(&vary) => return Ok(Some(known.clone())),
        (None, Some(vary)) => vary,
        (Some(known), Some(vary)) => known.union(&vary).ok_or(TooMany)?,
    };
    let fields = Arc::new(fields);
    slot.vary = Some(fields.clone());
    slot.base = None;
    for at in (0..slot.cells.len()).rev() {
        take_entry(slot, at, after);
    }
    Ok(Some(fields))
}

fn variant_of(fields: Arc<VaryFields>, request: Fields<'_>) -> Variant {
    let mut values = Vec::with_capacity(64);
    fields.write(request, &mut values);
    Variant { fields, values: values.into() }
}

/// Moves the line of a fill to its variant, once that is known.
fn move_line(
    slot: &mut Slot,
    grant: &mut Grant,
    values: Option<Arc<[u8]>>,
    paid: &mut Option<u64>,
    (progress, purged): (&Arc<Progress>, Option<u64>),
    after: &mut After,
) {
    let at = slot.position(grant.values.as_deref());
    let held =
        at.filter(|&at| slot.cells[at].line.as_ref().is_some_and(|line| Some(line.right) == grant.right));
    let Some(at) = held else {
        // Beside the line, or the right was lost: nobody waits for this one.
        grant.right = None;
        grant.values = values;
        return;
    };
    if let Some(line) = &mut slot.cells[at].line {
        line.stream(progress, purged, &mut after.wake);
    }
    if slot.cells[at].values == values {
        return;
    }
    let line = slot.cells[at].line.take();
    grant.values = values.clone();
    if slot.cells[at].entry.is_none() {
        after.freed.cell(slot.remove(at));
    }
    match slot.position(values.as_deref()) {
        Some(target) if slot.cells[target].line.is_none() => slot.cells[target].line = line,
        None if paid.is_some() => match slot.make_room() {
            Ok(gone) => {
                gone.into_iter().for_each(|cell| after.freed.cell(cell));
                let charge = paid.take().unwrap_or(0);
                slot.push(Cell { values, charge, line, ..Cell::default() }, || grant.key.clone());
            }
            Err(Full) => grant.right = None,
        },
        // Somebody fills that variant already.
        _ => grant.right = None,
    }
}

fn put(
    slot: &mut Slot,
    values: Option<Arc<[u8]>>,
    cost: u64,
    entry: &Arc<Entry>,
    now: Now,
    after: &mut After,
) -> Put {
    let used_at = u32::try_from(now.unix_seconds()).unwrap_or(0);
    match slot.position(values.as_deref()) {
        Some(at) => {
            after.freed.entry(slot.put_entry(at, entry.clone()));
            let cell = &mut slot.cells[at];
            // The cell was paid for when it was made; the new payment covers it and the entry.
            after.freed.bytes += cell.charge;
            after.freed.cells += 1;
            cell.charge = cost;
            cell.uncacheable_until = 0;
            cell.refused = None;
            cell.absent_on_disk = false;
            cell.used_at = used_at;
        }
        None => {
            match slot.make_room() {
                Ok(gone) => gone.into_iter().for_each(|cell| after.freed.cell(cell)),
                Err(Full) => return Put::NoRoom,
            }
            let entry = Some(entry.clone());
            let cell = Cell { values, entry, charge: cost, used_at, ..Cell::default() };
            // Its entry states the key.
            slot.push(cell, || unreachable!("asked for without an entry only"));
        }
    }
    Put::Stored
}

/// Removes the cell too unless a right to it is held.
pub(super) fn take_entry(slot: &mut Slot, at: usize, after: &mut After) {
    if !slot.cells[at].is_pinned() {
        after.freed.cell(slot.remove(at));
        return;
    }
    empty(slot, at, after);
}

pub(super) fn empty(slot: &mut Slot, at: usize, after: &mut After) {
    let entry = slot.take_entry(at);
    if entry.is_some() {
        let key = slot.shared_key();
        let cell = &mut slot.cells[at];
        let index_cost = Slot::cost(&key, cell.values.as_deref()).min(cell.charge);
        after.freed.bytes += cell.charge - index_cost;
        cell.charge = index_cost;
    }
    after.freed.entry(entry);
}

pub(super) fn end_line(cell: &mut Cell, grant: &Grant, after: &mut After) {
    if let Some(mut line) = cell.line.take_if(|line| Some(line.right) == grant.right) {
        line.release(&mut after.wake);
    }
}
