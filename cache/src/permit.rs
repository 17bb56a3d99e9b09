//! The rights around a fill, as values: a permit to fill, the fill itself, and a place among those who wait.
//!
//! ```text
//!   FillPermit ── begin(head) ──▶ Fill ── push … finish ──▶ stored, followers complete
//!      │ drop: given back            └ drop: aborted, nothing stored, followers see the cut
//!      ├ failed(): the next waiter tries; after two failures nobody waits
//!      ├ uncacheable(): all waiters go on their own for a while
//!      ├ aside(): as that, and still a permit
//!      └ refresh(): a 304 gave a stored entry new life
//! ```
//! Each is used up by what it allows or given back by being dropped, so a request that dies cannot leave a key locked.
//! Next: `front`, which hands them out.

use crate::body::Body;
use crate::disk::{self, Identity, Spool};
use crate::entry::{Entry, Variant};
use crate::file_format;
use crate::head::StoredHead;
use crate::line::{Failure, Outcome, WaiterSlot};
use crate::memory::Grant;
use crate::now::Now;
use crate::policy::{Lifetime, Needs, Reason};
use crate::progress::{Follower, Progress};
use crate::purges::number_of_key;
use crate::store::{Place, Store};
use crate::tags::{self, Tags};
use bytes::Bytes;
use millstream_conf::model::ProxyCache;
use millstream_net::blocking;
use millstream_net::timer::{Deadline, with_deadline};
use millstream_wire::{Fields, Headers};
use std::future::poll_fn;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is kept for followers of a body that is not stored, and what is gathered before a piece is written to disk.
const WINDOW: u64 = 256 * 1024;
/// How long a reader of a body that is not stored may stand still, a window behind, while others wait for it.
const PATIENCE: Duration = Duration::from_secs(1);
/// Room for a body that is kept in memory is made in steps of so many bytes.
const ROOM_STEP: u64 = 1024;

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

    /// Why an answer of this length will not be stored all the same, as far as that is known before it comes.
    pub fn objection(&self, length: Option<u64>) -> Option<Reason> {
        let length = length?;
        match &self.store.disk {
            _ if length > self.store.largest_body() => Some(Reason::TooLarge),
            Some(disk) if length > self.store.largest_in_memory() && disk.is_failing() => {
                Some(Reason::DiskError)
            }
            _ => None,
        }
    }

    /// The upstream has answered with something that may be stored: whoever waits reads along from here. `request` is
    /// the client's, for Vary.
    pub fn begin(mut self, head: StoredHead, request: Fields<'_>, now: Now) -> Fill {
        let mut grant = self.grant.take().expect("a permit holds its grant until it is used up");
        let expected = head.content_length;
        let head = Arc::new(head);
        let fits = expected.is_none_or(|length| length <= self.store.largest_body());
        let make = |variant: Option<Variant>| Progress::new(head.clone(), variant);
        let begun =
            fits.then(|| self.store.memory.begin(&mut grant, head.view().vary(), request, make)).flatten();
        let mode = if begun.is_some() { Mode::Memory } else { Mode::Passing };
        if begun.is_none() {
            let reason = (!fits).then_some(Reason::TooLarge);
            self.store.memory.uncacheable(&grant, reason, now);
        }
        let progress = begun.unwrap_or_else(|| Progress::new(head.clone(), None));
        Fill::new(self.store.clone(), Some(grant), progress, mode, expected, now)
    }

    /// The answer is passed to whoever reads along and not stored, `reason` says why; who waits for the key is told as by
    /// [`FillPermit::uncacheable`].
    pub fn along(
        mut self,
        (status, answer): (u16, Fields<'_>),
        length: Option<u64>,
        reason: Option<Reason>,
        now: Now,
    ) -> Fill {
        self.refuse(reason, now);
        let lifetime = Lifetime::over(now);
        let head = Arc::new(StoredHead::new(status, answer, length, lifetime, now));
        let progress = Progress::new(head, None);
        Fill::new(self.store.clone(), None, progress, Mode::Passing, length, now)
    }

    /// The upstream has confirmed a stored entry with a 304. `headers` are [`crate::head::Head::updated`], `lifetime` what
    /// `policy` made of them. It keeps its tags and gets those that the 304 names. Waiters look up again.
    pub fn refresh(mut self, old: &Arc<Entry>, headers: Headers, lifetime: Lifetime, now: Now) -> Arc<Entry> {
        let before = old.head();
        let mut head = StoredHead::new(before.status, headers.view(), Some(old.length()), lifetime, now);
        let named = Tags::read(headers.view(), std::iter::empty()).map(|named| before.tags.and(&named));
        let too_many_tags = named.as_ref().is_none_or(|tags| tags.len() > tags::MOST);
        head.tags = named.unwrap_or_else(|| before.tags.clone());
        head.part = before.part;
        let vary = head.view().vary();
        // What was confirmed is as good as what was asked for at the same time.
        let orders = (self.grant().order, self.grant().born);
        let entry = Entry::new(old.key(), old.variant.clone(), orders, head.view(), old.body());
        if let Some(body) = old.gzip_body() {
            entry.keep_gzip(body);
        }
        let entry = Arc::new(entry);
        let known = old.variant.as_ref().map(|variant| &*variant.fields);
        let told_apart = vary.is_none_or(|vary| known.is_some_and(|known| known.covers(&vary)));
        if let Some(grant) = self.grant.take() {
            if !told_apart || too_many_tags {
                // It came to depend on fields that the stored body was not chosen by, or could not be purged by all of
                // its tags: used now, not stored.
                self.store.memory.end(&grant);
            } else if self.store.memory.store(&grant, &entry, now) {
                self.store.save(&entry, grant.order, now);
            }
        }
        entry
    }

    /// The upstream has answered with something that may not be stored: all waiters go on their own, and for 10 s
    /// nobody waits for this key. The reason is remembered, see [`Store::sight`]. Where the reason is this request's own
    /// and nobody waited for it, others are not told. After an error of the upstream it is [`FillPermit::failed`].
    pub fn uncacheable(mut self, reason: Option<Reason>, now: Now) {
        self.refuse(reason, now);
    }

    fn refuse(&mut self, reason: Option<Reason>, now: Now) {
        let Some(grant) = self.grant.take() else { return };
        match reason {
            // Whoever else shows a credential does not wait, so those who did wait form a line of their own.
            Some(Reason::Credentials) => self.store.memory.end(&grant),
            Some(reason) if reason.is_of_request() && grant.right.is_none() => {}
            _ => self.store.memory.uncacheable(&grant, reason, now),
        }
    }

    /// The upstream has failed: the next waiter tries. Where that was the second failure in a row, all who wait now are told
    /// of it if it is one that says nothing about the request, see [`Woken::Failed`], else they ask for themselves; and for
    /// 1 s nobody waits for this key.
    /// `status` is what was answered, for whoever asks what happened ([`Store::sight`]).
    pub fn failed(mut self, status: u16, told: Option<Failure>, now: Now) {
        if let Some(grant) = self.grant.take() {
            let number = number_of_key(grant.key.text());
            self.store.failures.note(number, now.unix_milliseconds, status);
            self.store.memory.failed(&grant, told, now);
        }
    }

    /// The answer is stored and may not be used without asking (no-cache): whoever waits must ask by itself, so all go
    /// on their own, and this one is filled beside them.
    #[must_use]
    pub fn aside(mut self, now: Now) -> FillPermit {
        if let Some(grant) = self.grant.as_mut().filter(|grant| grant.right.is_some()) {
            self.store.memory.uncacheable(grant, None, now);
            grant.right = None;
        }
        self
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
            self.store.memory.give_back(&grant);
        }
    }
}

/// An answer that is being received.
#[derive(Debug)]
pub struct Fill {
    store: Arc<Store>,
    grant: Option<Grant>,
    progress: Arc<Progress>,
    mode: Mode,
    held: u64,
    /// Bytes that room was made for.
    counted: u64,
    /// There was no room for what came last.
    crowded: bool,
    expected: Option<u64>,
    began: Now,
}

#[derive(Debug)]
enum Mode {
    /// Kept in memory.
    Memory,
    /// Too large for memory: going to its file.
    Spool(Box<Spool>),
    /// Passed on to followers, not stored.
    Passing,
}

impl Fill {
    fn new(
        store: Arc<Store>,
        grant: Option<Grant>,
        progress: Arc<Progress>,
        mode: Mode,
        expected: Option<u64>,
        began: Now,
    ) -> Fill {
        Fill { store, grant, progress, mode, held: 0, counted: 0, crowded: false, expected, began }
    }

    /// A reader of this answer from its beginning. Take it before the first piece is pushed; later there may be no
    /// beginning left, and it breaks off at once.
    pub fn follow(&self) -> Option<Follower> {
        self.progress.follow()
    }

    /// The head of the answer.
    pub fn head(&self) -> &Arc<StoredHead> {
        &self.progress.head
    }

    /// Adds a piece of the body. Await [`Fill::ready`] before the next.
    pub fn push(&mut self, bytes: Bytes) {
        self.held = self.progress.push(bytes);
        if matches!(self.mode, Mode::Memory)
            && self.held > self.counted
            && let Some(grant) = &self.grant
        {
            let more = (self.held - self.counted).next_multiple_of(ROOM_STEP);
            match self.store.memory.room(more, grant.key.hash()) {
                Some(room) => {
                    self.counted += more;
                    self.progress.hold(room);
                }
                None => self.crowded = true,
            }
        }
    }

    /// Ready for the next piece: at once for a body that fits in memory, after writing for one that goes to disk, and
    /// when the slowest reader has come close for one that is not stored; of these two no more is held than a window
    /// of 256 KiB and a piece. A reader that takes nothing for 1 s while others have read all sees an answer that is not
    /// stored break off, so that one client cannot hold up the rest. Must not be dropped while it waits, unless the fill is given up.
    pub async fn ready(&mut self) {
        let too_large = self.crowded || self.held > self.store.largest_in_memory();
        if matches!(self.mode, Mode::Memory) && too_large {
            self.leave_memory().await;
        }
        match self.mode {
            Mode::Memory => {}
            Mode::Spool(_) if self.held >= WINDOW => self.spool().await,
            Mode::Spool(_) => {}
            Mode::Passing => self.progress.drained(WINDOW, PATIENCE).await,
        }
    }

    /// Whether anybody reads along.
    pub fn has_followers(&self) -> bool {
        self.progress.has_followers()
    }

    /// Whether it will be stored, as far as is known by now.
    pub fn is_storing(&self) -> bool {
        !matches!(self.mode, Mode::Passing)
    }

    /// The body has ended as its framing says. `None` where it was not stored: its length is not what was announced,
    /// it was too large, the key was purged meanwhile, or there was no room.
    pub async fn finish(mut self) -> Option<Arc<Entry>> {
        let total = self.progress.total();
        if self.expected.is_some_and(|expected| expected != total) {
            return None;
        }
        if matches!(self.mode, Mode::Memory) && self.held > self.store.largest_in_memory() {
            self.leave_memory().await;
        }
        let entry = match self.mode {
            Mode::Memory => self.store_in_memory(),
            Mode::Spool(_) => self.store_on_disk().await,
            Mode::Passing => None,
        };
        if let Some(grant) = self.grant.take().filter(|_| entry.is_none()) {
            self.store.memory.end(&grant);
        }
        self.progress.end(entry.clone());
        entry
    }

    fn store_in_memory(&mut self) -> Option<Arc<Entry>> {
        let body = Body::Memory(self.progress.whole()?);
        self.progress.release_room();
        let entry = self.entry(body);
        let grant = self.grant.as_ref()?;
        let stored = self.store.memory.store(grant, &entry, self.began);
        if stored {
            self.store.save(&entry, grant.order, self.began);
        }
        stored.then_some(entry)
    }

    async fn store_on_disk(&mut self) -> Option<Arc<Entry>> {
        self.spool().await;
        let Mode::Spool(spool) = std::mem::replace(&mut self.mode, Mode::Passing) else { return None };
        let (store, disk) = (self.store.clone(), self.store.disk.clone()?);
        let (key, variant) = (self.grant.as_ref()?.key.clone(), self.progress.variant.clone());
        let began = self.grant.as_ref()?.order;
        let (now, born, head) = (self.began, self.grant.as_ref()?.born, self.progress.head.clone());
        let body = blocking::run(move || {
            if store.memory.purges.rules().go_for(born, &head.tags, key.text()) {
                return None;
            }
            let values = variant.as_ref().map(|variant| &*variant.values);
            let (name, _, is_base) = store.place(&key, values);
            let vary = variant.as_ref().map(|variant| &*variant.fields);
            // The epoch is in the file already. As the key's own file it begins a new one; beside another own file it
            // is only good where that has the same.
            let place = Place { key: &key, vary, values, file: (name, spool.epoch(), is_base) };
            store.commit(&disk, *spool, place, began, now)
        })
        .await?;
        let entry = self.entry(Body::File(body));
        self.store.memory.store(self.grant.as_ref()?, &entry, self.began).then_some(entry)
    }

    fn entry(&self, body: Body) -> Arc<Entry> {
        let grant = self.grant.as_ref().expect("held until finish takes it");
        let variant = self.progress.variant.clone().map(Arc::new);
        let orders = (grant.order, grant.born);
        Arc::new(Entry::new(grant.key.bytes(), variant, orders, self.progress.head.view(), body))
    }

    /// The body has become too large for memory: on to disk, or on to whoever reads along and no further.
    async fn leave_memory(&mut self) {
        if let Some((disk, grant)) = self.store.disk.clone().zip(self.grant.clone()) {
            let (store, progress) = (self.store.clone(), self.progress.clone());
            let expected = self.expected.unwrap_or(self.held);
            let spool = blocking::run(move || {
                let variant = progress.variant.as_ref();
                let (_, epoch, _) = store.place(&grant.key, variant.map(|variant| &*variant.values));
                let vary = variant.map(|variant| (&*variant.fields, &*variant.values));
                let head = file_format::encode_head(grant.key.bytes(), vary, progress.head.view());
                let identity = Identity { id: disk::random_id(), epoch, born: grant.born };
                disk.begin(&head, identity, expected)
            });
            if let Some(spool) = spool.await {
                self.progress.release_room();
                self.mode = Mode::Spool(Box::new(spool));
                return;
            }
        }
        self.stop_storing(match &self.store.disk {
            Some(disk) if disk.is_failing() => Some(Reason::DiskError),
            _ if self.held > self.store.largest_in_memory() => Some(Reason::TooLarge),
            // No room now, of which the next answer may find more.
            _ => None,
        });
    }

    /// Writes what has come since the last time.
    async fn spool(&mut self) {
        let Mode::Spool(mut spool) = std::mem::replace(&mut self.mode, Mode::Passing) else { return };
        let Some(disk) = self.store.disk.clone() else { return };
        let pieces = self.progress.unwritten();
        let (spool, written) = blocking::run(move || {
            let written = disk.append(&mut spool, &pieces);
            (spool, written)
        })
        .await;
        if !written {
            self.stop_storing(Some(Reason::DiskError));
            return;
        }
        self.progress.spooled(&spool.file, spool.body_offset(), spool.length());
        self.held = 0;
        if spool.length() > self.store.largest_body() {
            self.stop_storing(Some(Reason::TooLarge));
            return;
        }
        self.mode = Mode::Spool(spool);
    }

    /// From here on the answer is only passed on, and nobody new joins it.
    fn stop_storing(&mut self, reason: Option<Reason>) {
        self.mode = Mode::Passing;
        self.progress.release_room();
        if let Some(grant) = &mut self.grant {
            self.store.memory.uncacheable(grant, reason, self.began);
            grant.right = None;
        }
    }
}

impl Drop for Fill {
    fn drop(&mut self) {
        if let Some(grant) = self.grant.take() {
            self.store.memory.end(&grant);
        }
        // Has no effect on one that has ended.
        self.progress.abort();
    }
}

/// A place in the line.
#[derive(Debug)]
pub struct Waiter {
    store: Arc<Store>,
    slot: Arc<WaiterSlot>,
    grant: Grant,
    aged_at: Instant,
    needs: Needs,
}

/// What became of waiting.
#[derive(Debug)]
pub enum Woken {
    /// Whoever filled has failed or had its time (`proxy_cache_lock_age`): it is your turn.
    Fill(FillPermit),
    /// Something was stored, or cannot be: look up again.
    Retry,
    /// The answer arrives: read along.
    Streaming(Follower),
    /// Two who asked one after the other have met this failure: what is stale stands in, or it is the answer.
    Failed(Failure),
    /// `proxy_cache_lock_timeout`: ask the upstream and store nothing.
    Timeout,
}

impl Waiter {
    pub(crate) fn new(
        store: Arc<Store>,
        (slot, grant): (Arc<WaiterSlot>, Grant),
        aged_at: Instant,
        needs: Needs,
    ) -> Waiter {
        Waiter { store, slot, grant, aged_at, needs }
    }

    /// Waits, at most `proxy_cache_lock_timeout` from `now`. Woken by the event itself, from whichever thread.
    pub async fn wait(mut self, request: Fields<'_>, conf: &ProxyCache, now: Now) -> Woken {
        let last = now.after(conf.lock_timeout).instant;
        let mut deadline = Deadline::new();
        loop {
            let until = last.min(self.aged_at);
            deadline.set(until);
            let told = with_deadline(&mut deadline, poll_fn(|context| self.slot.poll(context))).await;
            let outcome = match told {
                Ok(outcome) => Some(outcome),
                Err(_) if until >= last => match self.slot.leave() {
                    // It came in the same moment.
                    Some(outcome) => Some(outcome),
                    None => return Woken::Timeout,
                },
                Err(_) => {
                    let right = self.store.memory.take_over(&self.grant, &self.slot, conf.lock_age, until);
                    self.aged_at = until.checked_add(conf.lock_age).unwrap_or(last);
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
                match self.store.memory.take_right(&self.grant, right, born) {
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
