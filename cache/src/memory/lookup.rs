//! What a request gets: one decision under one shard's lock, with `now` handed in.
//!
//! It decides; the values that carry the rights it grants are made in `permit` and `front`. Next: `change`.

use super::Memory;
use super::cells::Cell;
use super::grant::Grant;
use super::obey::as_ruled;
use super::shard::{After, Shard};
use super::slot::{Full, Slot};
use crate::entry::Entry;
use crate::key::Key;
use crate::line::{Line, Purpose, WaiterSlot};
use crate::now::Now;
use crate::policy::{Asker, Needs, Reason, StaleCause};
use millstream_conf::model::ProxyCache;
use millstream_wire::Fields;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) hash: u64,
    pub(crate) request: Fields<'a>,
    pub(crate) conf: &'a ProxyCache,
    pub(crate) now: Now,
    pub(crate) asker: Asker,
    /// False when asked again after the disk was read.
    pub(crate) counts_use: bool,
    /// What was requested before this place in the order is not for this request: its client has changed it
    /// since, and the invalidation is delayed. 0 if it changed nothing.
    pub(crate) since: u64,
}

pub(crate) enum Found {
    Fresh(Arc<Entry>),
    Ahead(Arc<Entry>, Grant),
    Stale(Arc<Entry>, Option<Grant>),
    Miss(Grant),
    Apart(Grant),
    Scarce,
    Busy(Arc<WaiterSlot>, Grant, Patience, Option<Arc<Entry>>),
    Probe(Grant),
}

#[derive(Debug)]
pub(crate) struct Patience {
    /// When the holder has had its time, so that another may have the right.
    pub(crate) aged_at: Instant,
    /// When a few waiters for what may never be stored ask beside it.
    pub(crate) few_until: Option<Instant>,
}

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

/// A cell had to be made and was not paid for yet.
struct Unpaid(u64);

impl Asked<'_> {
    #[inline]
    pub(crate) fn needs(&self) -> Needs {
        Needs::of(self.conf, self.asker)
    }
}

impl Memory {
    /// `on_disk` says whether the entry may be in a file, from the slot as far as it is known.
    pub(crate) fn look_up(&self, asked: &Asked<'_>, on_disk: impl Fn(&Slot, Option<&[u8]>) -> bool) -> Found {
        let mut after = After::default();
        let mut paid = None;
        let found = loop {
            let mut shard = self.shards.shard(asked.hash);
            match self.decide(&mut shard, asked, &on_disk, &mut paid, &mut after) {
                Ok(found) => break found,
                Err(Unpaid(cost)) => {
                    drop(shard);
                    if let Some(less) = paid.replace(cost) {
                        self.shards.release(less, 1);
                    }
                    if !self.shards.reserve(cost, 1, asked.hash) {
                        paid = None;
                        break Found::Scarce;
                    }
                }
            }
        };
        if let Some(cost) = paid {
            self.shards.release(cost, 1);
        }
        self.shards.free(after.freed);
        after.wake.into_iter().for_each(Waker::wake);
        found
    }

    pub(crate) fn peek(&self, key: &[u8], request: Fields<'_>) -> Option<Arc<Entry>> {
        let hash = self.hash(key);
        let mut shard = self.shards.shard(hash);
        let index = shard.find(hash, key)?;
        let slot = shard.slot(index);
        let at = slot.position(slot.values(request).as_deref())?;
        slot.cells[at].entry.clone()
    }

    /// Without counting as a use and without a change.
    pub(crate) fn look_at(&self, key: &[u8], request: Fields<'_>, now: Now) -> Option<Seen> {
        let hash = self.hash(key);
        let mut shard = self.shards.shard(hash);
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

    fn decide(
        &self,
        shard: &mut Shard,
        asked: &Asked<'_>,
        on_disk: &impl Fn(&Slot, Option<&[u8]>) -> bool,
        paid: &mut Option<u64>,
        after: &mut After,
    ) -> Result<Found, Unpaid> {
        let slot = match shard.find(asked.hash, asked.key) {
            Some(index) => shard.slot(index),
            None => {
                let key = Arc::new(Key::new(asked.key, asked.hash));
                let cost = Slot::cost(&key, None);
                if paid.is_none_or(|paid| paid < cost) {
                    return Err(Unpaid(cost));
                }
                let index = shard.add(key);
                shard.slot(index)
            }
        };
        let values = slot.values(asked.request);
        let at = match slot.position(values.as_deref()) {
            Some(at) => at,
            None => {
                let cost = Slot::cost(&slot.shared_key(), values.as_deref());
                if paid.is_none_or(|paid| paid < cost) {
                    return Err(Unpaid(cost));
                }
                match slot.make_room() {
                    Ok(gone) => gone.into_iter().for_each(|cell| after.freed.cell(cell)),
                    Err(Full) => return Ok(Found::Scarce),
                }
                // What was paid too much stays with the cell.
                let charge = paid.take().unwrap_or(cost);
                let cell = Cell { values: values.clone(), charge, ..Cell::default() };
                slot.push(cell, || Arc::new(Key::new(asked.key, asked.hash)));
                slot.cells.len() - 1
            }
        };
        let born = self.purges.generation();
        slot.obey(at, (&self.purges, born), asked.now, after);
        let may_be_on_disk = slot.cells[at].entry.is_none()
            && !slot.cells[at].absent_on_disk
            && on_disk(slot, values.as_deref());
        let used_at = u32::try_from(asked.now.unix_seconds()).unwrap_or(0);
        let cell = &mut slot.cells[at];
        cell.used_at = used_at;
        let is_for_others = cell.entry.as_ref().is_some_and(|entry| !entry.meets(asked.needs()));
        if let Some(entry) = cell.entry.as_ref().filter(|entry| !is_for_others && entry.order >= asked.since)
        {
            let hot = entry.marks.mark_used() | cell.touched;
            if entry.is_fresh(asked.now) && !(hot && refreshes_ahead(cell, entry, asked)) {
                return Ok(Found::Fresh(entry.clone()));
            }
        }
        let grant = grant((slot.shared_key(), values), (self.next_order(), born), asked);
        if is_for_others {
            return Ok(apart(grant, asked.asker));
        }
        let cell = &mut slot.cells[at];
        Ok(match cell.entry.clone().filter(|_| asked.since == 0) {
            Some(entry) if entry.is_fresh(asked.now) => ahead(cell, entry, grant, asked.now.instant),
            Some(entry) => stale(cell, entry, grant, asked),
            None => missing(cell, grant, asked, may_be_on_disk && asked.since == 0),
        })
    }
}

/// A grant without the right to be the only one.
fn grant(
    (key, values): (Arc<Key>, Option<Arc<[u8]>>),
    (order, born): (u64, u64),
    asked: &Asked<'_>,
) -> Grant {
    Grant { key, values, right: None, order, born, since: Some(asked.now.instant), asker: asked.asker }
}

/// Whether this request refreshes an entry that is in use and fresh (`proxy_cache_refresh_ahead`): one does,
/// near its end, and no one waits for it.
fn refreshes_ahead(cell: &Cell, entry: &Entry, asked: &Asked<'_>) -> bool {
    let window = asked.conf.refresh_ahead;
    !window.is_zero()
        && cell.line.is_none()
        && asked.now.unix_milliseconds >= cell.uncacheable_until
        && entry.wants_refresh(window, asked.now)
        && entry.marks.claim_ahead()
}

fn ahead(cell: &mut Cell, entry: Arc<Entry>, grant: Grant, now: Instant) -> Found {
    Found::Ahead(entry, lead(cell, grant, Purpose::Fill, now))
}

fn lead(cell: &mut Cell, grant: Grant, purpose: Purpose, now: Instant) -> Grant {
    cell.line = Some(Box::new(Line::new((grant.order, grant.born), purpose, grant.asker, now)));
    Grant { right: Some(grant.order), ..grant }
}

fn take_over(line: &mut Line, grant: Grant, now: Instant) -> Grant {
    line.pass_to((grant.order, grant.born), grant.asker, now);
    Grant { right: Some(grant.order), ..grant }
}

/// What is stored is not for this request: it asks for itself, beside whoever fills the key. If the
/// configuration and not the client caused it, its response replaces what is stored.
fn apart(grant: Grant, asker: Asker) -> Found {
    match asker {
        Asker::Known => Found::Apart(grant),
        Asker::Anybody => Found::Miss(grant),
    }
}

/// An entry that is no longer fresh: one updates it; the others get it if it may be used meanwhile, or wait.
fn stale(cell: &mut Cell, entry: Arc<Entry>, grant: Grant, asked: &Asked<'_>) -> Found {
    if entry.head().lifetime.always_validate {
        // What one is told about it is not told to others (RFC 9111 §5.2.2.4): nobody waits, everybody asks.
        return Found::Stale(entry, Some(grant));
    }
    let usable = entry.may_serve_stale(StaleCause::Updating, asked.conf, asked.now);
    if asked.asker == Asker::Known && !usable {
        // What it is told may be for it alone: nobody waits for that, and it waits for nobody.
        return Found::Stale(entry, Some(grant));
    }
    let now = asked.now.instant;
    let uncacheable = asked.now.unix_milliseconds < cell.uncacheable_until;
    if let Some(line) = &mut cell.line
        && (line.is_aged(asked.conf.lock_age, now) || !usable && line.is_of_another(asked.asker))
    {
        return Found::Stale(entry, Some(take_over(line, grant, now)));
    }
    match &mut cell.line {
        Some(_) if usable => Found::Stale(entry, None),
        Some(line) if asked.conf.lock => {
            let patience = Patience { aged_at: line.aged_at(asked.conf.lock_age, now), few_until: None };
            Found::Busy(line.join(grant.born), grant, patience, Some(entry))
        }
        // With `proxy_cache_lock off`, and for a while after an answer that could not be stored, everybody asks.
        Some(_) => Found::Stale(entry, Some(grant)),
        None if uncacheable && !usable => Found::Stale(entry, Some(grant)),
        None => Found::Stale(entry, Some(lead(cell, grant, Purpose::Fill, now))),
    }
}

/// Nothing suitable in memory: read the file, wait for its reader, or ask.
fn missing(cell: &mut Cell, grant: Grant, asked: &Asked<'_>, may_be_on_disk: bool) -> Found {
    // After a look at the disk the request may turn out to be for another variant, where it is the first.
    if asked.counts_use || cell.uses == 0 {
        cell.touch_if(cell.uses > 0);
        cell.uses = cell.uses.saturating_add(1);
    }
    let now = asked.now.instant;
    let needs = asked.needs();
    let waits = |line: &Line| match asked.asker {
        // What somebody else asked for, or reads, before the client's own change.
        _ if asked.since > 0 && (line.right < asked.since || line.purpose == Purpose::Probe) => false,
        Asker::Anybody => true,
        // For the head of an answer that may turn out to be for others nobody waits.
        Asker::Known => line.purpose == Purpose::Probe || line.streams_for(needs),
    };
    if let Some(line) = cell.line.as_mut().filter(|line| waits(line)) {
        let is_over = line.is_aged(asked.conf.lock_age, now) || line.is_of_another(asked.asker);
        if is_over && asked.asker == Asker::Anybody {
            return Found::Miss(take_over(line, grant, now));
        }
        if asked.conf.lock || line.purpose == Purpose::Probe {
            let few = asked.conf.lock_patience.filter(|_| asked.asker == Asker::Anybody);
            let patience = Patience {
                aged_at: line.aged_at(asked.conf.lock_age, now),
                few_until: few.map(|few| line.aged_at(few, now)),
            };
            return Found::Busy(line.join(grant.born), grant, patience, None);
        }
        return Found::Miss(grant);
    }
    if may_be_on_disk && cell.line.is_none() {
        return Found::Probe(lead(cell, grant, Purpose::Probe, now));
    }
    if cell.uses < asked.conf.min_uses {
        return Found::Scarce;
    }
    if asked.asker == Asker::Known {
        return Found::Apart(grant);
    }
    let is_filled = cell.line.is_some();
    if is_filled || !asked.conf.lock || asked.now.unix_milliseconds < cell.uncacheable_until {
        return Found::Miss(grant);
    }
    Found::Miss(lead(cell, grant, Purpose::Fill, now))
}
