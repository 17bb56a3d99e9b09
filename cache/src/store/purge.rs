//! Purging: the door for whoever may, and for unsafe methods.
//!
//! A key that is named exactly is taken out of memory and its file removed, at once. Its other spellings, everything else, and everything
//! that is only made stale, is a rule that costs the same however much it goes for. Nothing here decides who may purge. Next:
//! `purges`, the rules.

use super::Store;
use super::rate::{Changed, Rate, Turn, Writer};
use super::tier::Removed;
use crate::disk::Sentence;
use crate::key;
use crate::memory::Grant;
use crate::now::Now;
use crate::purges::{How, LONGEST_PREFIX, Purge, Purged, Rule, Scope, What, number_of_key};
use crate::tags::Tag;
use crate::variants;
use millstream_wire::spelling::canonical;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// A purge half-way: its key is removed, its rule is not in force.
#[must_use]
pub struct Purging {
    purge: Purge,
    now: Now,
    purged: Purged,
    removed: Option<Removed>,
}

impl Store {
    /// In memory it is done when this returns: later look-ups get no older response, and no fill that began
    /// before is stored. When the future resolves it survives a restart; that happens even if the future is
    /// dropped. Fails if the cache directory is not writable: the purge is in force until this process ends.
    pub fn purge(self: &Arc<Self>, purge: Purge) -> impl Future<Output = io::Result<Purged>> + Send + use<> {
        self.purge_at(purge, Now::read())
    }

    /// At a given moment, from which on a soft purge makes stale.
    pub fn purge_at(
        self: &Arc<Self>,
        purge: Purge,
        now: Now,
    ) -> impl Future<Output = io::Result<Purged>> + Send + use<> {
        self.rule_out(self.take_out(purge, now))
    }

    /// The first half of a purge, of what has a file of its own: removes a key. With several purges all first
    /// halves must precede any second half, or the rule of one would hide what the other finds.
    pub fn take_out(&self, purge: Purge, now: Now) -> Purging {
        let mut purged = Purged::default();
        let mut removed = None;
        if let (What::Key(key), How::Hard) = (&purge.what, purge.how) {
            self.recent.note(number_of_key(key::text(key)), now.unix_milliseconds, 0);
            let sentence = self.doom(key);
            let gone = self.memory.purge(key);
            purged.in_memory = gone.stored;
            removed = Some(Removed::of(key, gone, sentence));
        }
        Purging { purge, now, purged, removed }
    }

    /// The second half: the rule, for whatever cannot be removed individually.
    pub fn rule_out(
        self: &Arc<Self>,
        purging: Purging,
    ) -> impl Future<Output = io::Result<Purged>> + Send + use<> {
        let Purging { purge, now, mut purged, removed } = purging;
        let at = now.unix_milliseconds;
        let purges = &self.memory.purges;
        let scope = match purge.what {
            What::All => Some(Scope::All),
            What::Prefix(prefix) if prefix.is_empty() => Some(Scope::All),
            // No key is as long.
            What::Prefix(prefix) if prefix.len() > LONGEST_PREFIX => None,
            What::Prefix(prefix) => Some(Scope::Prefix(prefix.into())),
            What::Tag(name) => Some(Scope::Tag(Tag::of(&name).0)),
            What::Key(key) => {
                let text = key::text(&key);
                let scope = Scope::Key(number_of_key(&canonical(text)));
                let is_whole = text.len() < key.len();
                match purge.how {
                    How::Soft => {
                        // The rule first, or somebody could store what it goes for behind our back.
                        let rule = purges.declare(scope, How::Soft, at);
                        purged.in_memory = self.memory.obey_now(&key, now);
                        purged.on_disk =
                            self.tier.as_ref().is_some_and(|tier| tier.may_have(&variants::own(&key)));
                        return self.promise(Some(rule), None, (purged, at));
                    }
                    How::Hard => {
                        // Where the text alone is given, other keys may have the same, and which ones is not known. A text that is in
                        // part encoded, or has what some encode, may be stored in another spelling.
                        let is_due = !is_whole
                            || !text.is_ascii()
                            || text.iter().any(|&byte| matches!(byte, b'%' | b'~'));
                        is_due.then_some(scope)
                    }
                }
            }
        };
        let rule = scope.map(|scope| purges.declare(scope, purge.how, at));
        self.promise(rule, removed, (purged, at))
    }

    /// Forgets all variants of a whole key in memory and, soon, on disk; current fills are not stored.
    /// Returns whether anything was in memory.
    pub fn invalidate(self: &Arc<Self>, key: &[u8]) -> bool {
        let sentence = self.doom(key);
        let gone = self.memory.purge(key);
        let stored = gone.stored;
        if let Some(tier) = &self.tier {
            tier.remove(Removed::of(key, gone, sentence));
        }
        stored
    }

    /// What an unsafe request may do about a key that may be invalidated at most once per `interval`. Until
    /// its turn comes, earlier responses are not for `client`, who sent it.
    pub fn turn<'k>(
        &self,
        changed: impl Into<Changed<'k>>,
        interval: Duration,
        client: IpAddr,
        now: Now,
    ) -> Turn {
        let changed = changed.into();
        let hash = self.hash(changed.key);
        let mut turns = self.turns();
        let writer = Writer { client, order: self.memory.next_order() };
        let turn = turns.turn((hash, changed), interval, now.unix_milliseconds, writer);
        self.waiting.note(hash, &turns);
        turn
    }

    /// The place in the order of a client's latest change of a key that still waits for its turn, else 0.
    /// Usually one look at a bit.
    #[inline]
    pub(crate) fn own_write(&self, hash: u64, client: impl FnOnce() -> IpAddr) -> u64 {
        if self.waiting.may_have(hash) { self.turns().own_write(hash, client()) } else { 0 }
    }

    /// Keeps what was promised to the key with this hash for the moment `at`, unless that was done.
    pub fn keep_promise(self: &Arc<Self>, hash: u64, at: i64) {
        let now = Now::read().unix_milliseconds;
        let promise = self.turns().take(hash, at, now.max(at));
        if let Some(promise) = promise {
            _ = self.invalidate_after(promise.changed(), None);
            self.membership.tell_others(promise.changed());
        }
    }

    /// Keeps the promises that are due: the worker they were given to may have ended.
    pub(super) fn keep_promises(self: &Arc<Self>, now: Now) {
        let now = now.unix_milliseconds;
        let promises = self.turns().take_all(now, now);
        for promise in promises {
            _ = self.invalidate_after(promise.changed(), None);
            self.membership.tell_others(promise.changed());
        }
    }

    /// The configuration no longer has this zone: its promises may never be kept otherwise, and another zone
    /// of the same directory would find the files. So all are kept now, ahead of time; later requests are
    /// promised none.
    pub fn leave(self: &Arc<Self>) {
        let promises = self.turns().end(Now::read().unix_milliseconds);
        for promise in promises {
            _ = self.invalidate_after(promise.changed(), None);
            self.membership.tell_others(promise.changed());
        }
    }

    /// Keeps all promises, ahead of time. Files go in [`Store::flush`].
    pub(super) fn keep_promises_at_end(&self) {
        let promises = self.turns().end(Now::read().unix_milliseconds);
        for promise in promises {
            let (removed, rule) = self.outdate(promise.changed(), None);
            self.membership.tell_others(promise.changed());
            if let Some(tier) = &self.tier {
                if let Some(rule) = rule {
                    tier.note(&rule, &self.memory.purges);
                }
                tier.remove_at_end(removed);
            }
        }
    }

    /// Nothing panics half-way through a change of the table, so a poisoned lock guards a consistent one.
    fn turns(&self) -> MutexGuard<'_, Rate> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out what another node reports as changed by an unsafe request. What has a file is gone from it
    /// when the future resolves.
    pub fn change(self: &Arc<Self>, changed: Changed<'_>) -> Option<impl Future<Output = ()> + use<>> {
        self.invalidate_after(changed, None)
    }

    /// As `Front::invalidate_after`.
    pub(crate) fn invalidate_after(
        self: &Arc<Self>,
        changed: Changed<'_>,
        own: Option<&mut Grant>,
    ) -> Option<impl Future<Output = ()> + use<>> {
        let (removed, rule) = self.outdate(changed, own);
        self.tier.as_ref()?.remove_first(self, removed, rule)
    }

    /// Removes from memory what an unsafe request has changed; returns the files to remove, and the rule for
    /// slices, if there may be some: which ones is unknown.
    fn outdate(&self, changed: Changed<'_>, own: Option<&mut Grant>) -> (Removed, Option<Rule>) {
        let Changed { key, has_pieces } = changed;
        let at = Now::read().unix_milliseconds;
        self.unsafe_requests.note(number_of_key(key::text(key)), at, 0);
        let sentence = self.doom(key);
        let gone = self.memory.purge(key);
        // Later than the place in the order up to which changes count as carried out.
        let rule = has_pieces.then(|| self.outdate_pieces(key, at)).flatten();
        let hash = self.memory.hash(key);
        if self.waiting.may_have(hash) {
            let mut turns = self.turns();
            turns.carried_out(hash, gone.order);
            self.waiting.note(hash, &turns);
        }
        if let Some(own) = own {
            own.outlive(hash, &gone);
        }
        (Removed::of(key, gone, sentence), rule)
    }

    fn outdate_pieces(&self, key: &[u8], at: i64) -> Option<Rule> {
        self.seek_pieces();
        let whole = Tag::of_pieces(key);
        let declare = || self.memory.purges.declare(Scope::Pieces(whole.0), How::Hard, at);
        self.wholes.outdate(whole, declare)
    }

    /// Call it before memory forgets: a miss there must not find the file, which goes later.
    fn doom(&self, key: &[u8]) -> Option<Sentence> {
        self.tier.as_ref().map(|tier| tier.doom(key))
    }

    /// Makes a purge in force durable.
    fn promise(
        self: &Arc<Self>,
        rule: Option<Rule>,
        removed: Option<Removed>,
        (mut purged, at): (Purged, i64),
    ) -> impl Future<Output = io::Result<Purged>> + Send + use<> {
        let waiting = self.tier.as_ref().map(|tier| {
            let (done, waiting) = oneshot::channel();
            // Nobody may wait any more.
            tier.make_last(self, (rule, removed), at, move |was_there| _ = done.send(was_there));
            waiting
        });
        async move {
            if let Some(waiting) = waiting {
                purged.on_disk |= waiting.await.unwrap_or_else(|error| Err(io::Error::other(error)))?;
            }
            Ok(purged)
        }
    }
}
