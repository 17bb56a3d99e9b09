//! The rights around a fill, as values: a permit to fill, and a place among those who wait.
//!
//! ```text
//!   FillPermit ── begin(head) ──▶ Fill ── push … finish ──▶ stored, followers complete
//!      │ drop: given back            └ drop: aborted, nothing stored, followers see the cut
//!      ├ failed(): the next waiter tries; after two failures nobody waits
//!      ├ uncacheable(): all waiters go on their own for a while
//!      ├ replaced(): as that, and what is stored is removed
//!      ├ spent(): a 304 confirmed a stored entry for this request alone
//!      ├ aside(): as uncacheable(), and still a permit
//!      └ refresh(): a 304 gave a stored entry new life
//! ```
//! Each is used up by what it allows or given back by being dropped, so a request that dies cannot leave a key locked.
//! Next: `fill`, what a permit
//! becomes; `front`, which hands them out.

use crate::entry::{Entry, Variant};
use crate::fill::Fill;
use crate::head::StoredHead;
use crate::line::{Failure, Outcome, WaiterSlot};
use crate::memory::{Grant, Patience};
use crate::now::Now;
use crate::policy::{Asker, Lifetime, Needs, Reason};
use crate::progress::{Follower, Progress};
use crate::purges::number_of_key;
use crate::store::Store;
use crate::tags::{self, Tags};
use millstream_conf::model::ProxyCache;
use millstream_net::timer::{Deadline, with_deadline};
use millstream_wire::{Fields, Headers};
use std::future::poll_fn;
use std::sync::Arc;

/// The right to ask the upstream for a key.
#[derive(Debug)]
pub struct FillPermit {
    store: Arc<Store>,
    grant: Option<Grant>,
}

impl FillPermit {
    pub(crate) fn new(store: Arc<Store>, grant: Grant) -> FillPermit {
        FillPermit { store, grant: Some(grant) }
    }

    /// Why a response of this length will not be stored, as far as that is known in advance.
    pub fn objection(&self, length: Option<u64>) -> Option<Reason> {
        length.and_then(|length| self.store.objection(length))
    }

    /// The response may be stored: waiters read along from here. `request` is the client's, for Vary.
    pub fn begin(mut self, head: StoredHead, request: Fields<'_>, now: Now) -> Fill {
        let mut grant = self.grant.take().expect("a permit holds its grant until it is used up");
        let expected = head.content_length;
        let head = Arc::new(head);
        let fits = expected.is_none_or(|length| length <= self.store.largest_body());
        if fits {
            self.store.note_piece(&head.tags);
        }
        let make = |variant: Option<Variant>| Progress::new(head.clone(), variant);
        let begun =
            fits.then(|| self.store.memory.begin(&mut grant, head.view().vary(), request, make)).flatten();
        if begun.is_none() {
            let reason = (!fits).then_some(Reason::TooLarge);
            grant.uncacheable(&self.store.memory, reason, now);
        }
        let is_kept = begun.is_some();
        let progress = begun.unwrap_or_else(|| Progress::new(head.clone(), None));
        Fill::new(Some((self.store.clone(), grant)), progress, is_kept, expected, now)
    }

    /// The upstream confirmed an entry with a 304. `headers` are [`crate::head::Head::updated`], `lifetime`
    /// is what `policy` made of them. It keeps its tags and gets those of the 304. Waiters look up again.
    pub fn refresh(mut self, old: &Arc<Entry>, headers: Headers, lifetime: Lifetime, now: Now) -> Arc<Entry> {
        let named = Tags::read(headers.view(), std::iter::empty());
        let named = named.map(|named| Tags::of_all([old.head().tags, &named].into_iter()));
        let tags = named.filter(|tags| tags.len() <= tags::MOST);
        let has_all_tags = tags.is_some();
        let entry = self.updated(old, headers.view(), lifetime, tags, now);
        let known = old.variant.as_ref().map(|variant| &*variant.fields);
        let vary = entry.head().vary();
        let told_apart = vary.is_none_or(|vary| known.is_some_and(|known| known.covers(&vary)));
        if !told_apart || !has_all_tags {
            // It came to depend on fields that the stored body was not chosen by, or could not be purged by all of
            // its tags: used now, and asked for as a whole by the next.
            self.remove();
        } else if let Some(grant) = self.grant.take()
            && self.store.memory.store(&grant, &entry, now)
        {
            self.store.save(&entry, grant.order, now);
        }
        entry
    }

    /// The upstream confirmed an entry with a 304 whose fields forbid to store it any longer: for this request
    /// alone. The rest as [`FillPermit::uncacheable`], or [`FillPermit::replaced`] if it `replaces` what is stored.
    pub fn spent(self, old: &Arc<Entry>, headers: Headers, why: (Reason, bool), now: Now) -> Arc<Entry> {
        let entry = self.updated(old, headers.view(), old.head().lifetime, None, now);
        match why {
            (reason, true) => self.replaced(reason, now),
            (reason, false) => self.uncacheable(Some(reason), now),
        }
        entry
    }

    /// A stored entry with the fields of a 304; without `tags`, it keeps its own.
    fn updated(
        &self,
        old: &Arc<Entry>,
        fields: Fields<'_>,
        lifetime: Lifetime,
        tags: Option<Tags>,
        now: Now,
    ) -> Arc<Entry> {
        let before = old.head();
        let mut head = StoredHead::new(before.status, fields, Some(old.length()), lifetime, now);
        head.tags = tags.unwrap_or_else(|| before.tags.clone());
        head.part = before.part;
        // What was confirmed is as good as what was asked for at the same time.
        let orders = (self.grant().order, self.grant().born);
        let entry = Entry::new(old.key(), old.variant.clone(), orders, head.view(), old.body());
        entry.keep_all_coded(old);
        Arc::new(entry)
    }

    /// What is stored is removed, unless the response is one client's. Waiters look up again.
    fn remove(&mut self) {
        let Some(grant) = self.grant.take() else { return };
        if grant.asker == Asker::Anybody {
            self.store.invalidate(grant.key.bytes());
        }
        grant.end(&self.store.memory);
    }

    /// The response may not be stored: all waiters continue on their own, and for a while, the longer the
    /// response took, no one waits for this key. The reason is remembered, see [`Sight::of`](crate::Sight::of). Others are
    /// not told if the reason is this request's own and no one waited for it, or, whatever the reason, if the
    /// request shows a credential and such requests get only public responses; waiters then look up again.
    /// After an error of the upstream call [`FillPermit::failed`] instead.
    pub fn uncacheable(mut self, reason: Option<Reason>, now: Now) {
        let Some(grant) = self.grant.take() else { return };
        match reason {
            Some(reason) if reason.is_of_request() && grant.right.is_none() => {}
            _ => grant.uncacheable(&self.store.memory, reason, now),
        }
    }

    /// [`FillPermit::uncacheable`] of a response that replaces what is stored ([`Reason::replaces`]): that is removed, unless the
    /// response is one client's.
    pub fn replaced(self, reason: Reason, now: Now) {
        let (store, grant) = (self.store.clone(), self.grant().clone());
        self.uncacheable(Some(reason), now);
        if grant.asker == Asker::Anybody {
            store.invalidate(grant.key.bytes());
        }
    }

    /// The upstream failed: the next waiter tries. After a second failure in a row, all present waiters get
    /// it if it says nothing about the request, see [`Woken::Failed`], else they ask for themselves; and for
    /// 1 s no one waits for this key. `status` is that of the response, for [`Sight::of`](crate::Sight::of).
    pub fn failed(mut self, status: u16, told: Option<Failure>, now: Now) {
        if let Some(grant) = self.grant.take() {
            let number = number_of_key(grant.key.text());
            self.store.failures.note(number, now.unix_milliseconds, status);
            grant.failed(&self.store.memory, told, now);
        }
    }

    /// The response is stored but must be validated at each use (no-cache): all waiters continue on their
    /// own, and this one is filled beside them.
    #[must_use]
    pub fn aside(mut self, now: Now) -> FillPermit {
        if let Some(grant) = self.grant.as_mut().filter(|grant| grant.right.is_some()) {
            grant.uncacheable(&self.store.memory, None, now);
            grant.right = None;
        }
        self
    }

    /// Whether others wait for this fill; the right itself may be passed on meanwhile.
    pub fn awaited(&self) -> Awaited {
        Awaited { store: self.store.clone(), grant: self.grant().clone() }
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    pub(crate) fn grant_in(&mut self, store: &Arc<Store>) -> Option<&mut Grant> {
        self.grant.as_mut().filter(|_| Arc::ptr_eq(&self.store, store))
    }

    pub(crate) fn grant(&self) -> &Grant {
        self.grant.as_ref().expect("a permit holds its grant until it is used up")
    }
}

impl Drop for FillPermit {
    fn drop(&mut self) {
        if let Some(grant) = self.grant.take().filter(|grant| grant.right.is_some()) {
            grant.give_back(&self.store.memory);
        }
    }
}

/// Tells whether a fill has waiters.
#[derive(Debug)]
pub struct Awaited {
    store: Arc<Store>,
    grant: Grant,
}

impl Awaited {
    pub fn by_others(&self) -> bool {
        self.grant.is_awaited(&self.store.memory)
    }
}

/// A place in the line.
#[derive(Debug)]
pub struct Waiter {
    store: Arc<Store>,
    slot: Arc<WaiterSlot>,
    grant: Grant,
    patience: Patience,
    needs: Needs,
}

/// The outcome of waiting.
#[derive(Debug)]
pub enum Woken {
    /// The filler has failed or had its time (`proxy_cache_lock_age`): it is your turn. Or it takes long, few
    /// wait, and nothing of the key was ever stored: ask beside it.
    Fill(FillPermit),
    /// Something was stored, or cannot be: look up again.
    Retry,
    /// The response arrives: read along.
    Streaming(Follower),
    /// Two consecutive requests have met this failure: use a stale response, or respond with it.
    Failed(Failure),
    /// `proxy_cache_lock_timeout`: ask the upstream and store nothing.
    Timeout,
}

impl Waiter {
    pub(crate) fn new(
        store: Arc<Store>,
        (slot, grant): (Arc<WaiterSlot>, Grant),
        patience: Patience,
        needs: Needs,
    ) -> Waiter {
        Waiter { store, slot, grant, patience, needs }
    }

    /// At most `proxy_cache_lock_timeout` from `now`. Woken by the event itself, from any thread.
    pub async fn wait(mut self, request: Fields<'_>, conf: &ProxyCache, now: Now) -> Woken {
        let last = now.after(conf.lock_timeout).instant;
        let mut deadline = Deadline::new();
        loop {
            let Patience { aged_at, few_until } = self.patience;
            let until = last.min(aged_at).min(few_until.unwrap_or(last));
            deadline.set(until);
            let told = with_deadline(&mut deadline, poll_fn(|context| self.slot.poll(context))).await;
            let outcome = match told {
                Ok(outcome) => Some(outcome),
                Err(_) if until >= last => match self.slot.leave() {
                    // It came in the same moment.
                    Some(outcome) => Some(outcome),
                    None => return Woken::Timeout,
                },
                Err(_) if few_until == Some(until) => {
                    self.patience.few_until = None;
                    match self.grant.let_go(&self.store.memory, &self.slot) {
                        true => match self.slot.leave() {
                            Some(outcome) => Some(outcome),
                            None => return Woken::Fill(self.beside()),
                        },
                        false => None,
                    }
                }
                Err(_) => {
                    let right = self.grant.take_over(&self.store.memory, &self.slot, conf.lock_age, until);
                    self.patience.aged_at = until.checked_add(conf.lock_age).unwrap_or(last);
                    right.map(Outcome::Right)
                }
            };
            if let Some(outcome) = outcome {
                return self.woken(outcome, request);
            }
        }
    }

    fn woken(&self, outcome: Outcome, request: Fields<'_>) -> Woken {
        match outcome {
            Outcome::Retry => Woken::Retry,
            Outcome::Failed(failure) => Woken::Failed(failure),
            Outcome::Right(right) => {
                // It begins now: purges of the time it waited have nothing to do with it.
                let born = self.store.memory.purges.generation();
                match self.grant.take_right(&self.store.memory, right, born) {
                    true => Woken::Fill(self.permit(right, born)),
                    false => Woken::Retry,
                }
            }
            Outcome::Follow(follower) => {
                let fits = follower.head().lifetime.meets(self.needs)
                    && follower
                        .variant()
                        .is_none_or(|variant| variant.fits(request, &mut Vec::with_capacity(64)));
                if fits { Woken::Streaming(follower) } else { Woken::Retry }
            }
        }
    }

    /// The right to ask beside whoever fills the key, which begins now.
    fn beside(&self) -> FillPermit {
        let memory = &self.store.memory;
        let (order, born) = (memory.next_order(), memory.purges.generation());
        FillPermit::new(self.store.clone(), Grant { right: None, order, born, ..self.grant.clone() })
    }

    fn permit(&self, right: u64, born: u64) -> FillPermit {
        let grant = Grant { right: Some(right), order: right, born, ..self.grant.clone() };
        FillPermit::new(self.store.clone(), grant)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if let Some(Outcome::Right(right)) = self.slot.leave() {
            // Told but not taken: the next in the line gets it.
            drop(self.permit(right, self.grant.born));
        }
    }
}
