//! Purging: the door for whoever may, and for unsafe methods.
//!
//! A key that is named exactly is taken out of memory and its file removed, at once. Everything else, and everything that
//! is only made stale, is a rule that costs the same however much it goes for. Nothing here decides who may purge. Next:
//! `purges`, the rules.

use super::Store;
use super::rate::{Rate, Turn};
use crate::disk::{Disk, Sentence};
use crate::key;
use crate::memory::{Gone, Grant};
use crate::now::Now;
use crate::purges::{How, LONGEST_PREFIX, Purge, Purged, Rule, Scope, What, number_of_key};
use crate::tags::Tag;
use crate::variants;
use millstream_net::clock;
use millstream_net::timer::{Deadline, with_deadline};
use std::fs::File;
use std::future::Future;
use std::io;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long an unsafe request is held up at most until a file is gone.
const UNLINKING: Duration = Duration::from_secs(1);

impl Store {
    /// Purges. In memory it is done when this returns: no answer that is looked up from then on is an older one, and no
    /// fill that began before is stored. When the future resolves it holds after a restart too; that comes about also
    /// where the future is dropped.
    ///
    /// # Errors
    /// Where the cache directory cannot be written: the purge is in force until this process ends.
    pub fn purge(self: &Arc<Self>, purge: Purge) -> impl Future<Output = io::Result<Purged>> + Send + use<> {
        self.purge_at(purge, Now::read())
    }

    /// As [`Store::purge`], at a moment that is given: what is soft makes stale from then on.
    pub fn purge_at(
        self: &Arc<Self>,
        purge: Purge,
        now: Now,
    ) -> impl Future<Output = io::Result<Purged>> + Send + use<> {
        let at = now.unix_milliseconds;
        let purges = &self.memory.purges;
        let mut purged = Purged::default();
        let mut removed = None;
        let scope = match purge.what {
            What::All => Some(Scope::All),
            What::Prefix(prefix) if prefix.is_empty() => Some(Scope::All),
            // No key is as long.
            What::Prefix(prefix) if prefix.len() > LONGEST_PREFIX => None,
            What::Prefix(prefix) => Some(Scope::Prefix(prefix.into())),
            What::Tag(name) => Some(Scope::Tag(Tag::of(&name).0)),
            What::Key(key) => {
                let text = key::text(&key);
                let scope = Scope::Key(number_of_key(text));
                let is_whole = text.len() < key.len();
                match purge.how {
                    How::Soft => {
                        // The rule first, or somebody could store what it goes for behind our back.
                        let rule = purges.declare(scope, How::Soft, at);
                        purged.in_memory = self.memory.obey_now(&key, now);
                        return self.promise(Some(rule), None, (purged, at));
                    }
                    How::Hard => {
                        self.recent.note(number_of_key(text), at, 0);
                        let sentence = self.doom(&key);
                        let Gone { order, variants, stored, .. } = self.memory.purge(&key);
                        purged.in_memory = stored;
                        removed = Some(Removed { key, order, variants, _sentence: sentence });
                        // Where the text alone is given, other keys may have the same, and which ones is not known.
                        (!is_whole).then_some(scope)
                    }
                }
            }
        };
        let rule = scope.map(|scope| purges.declare(scope, purge.how, at));
        self.promise(rule, removed, (purged, at))
    }

    /// Forgets everything stored under a whole key, all variants, in memory and, soon, on disk; fills under way are not
    /// stored. Gives whether anything was in memory.
    pub fn invalidate(self: &Arc<Self>, key: &[u8]) -> bool {
        let sentence = self.doom(key);
        let Gone { order, variants, stored, .. } = self.memory.purge(key);
        if let Some(disk) = self.disk.clone() {
            let removed = Removed { key: key.into(), order, variants, _sentence: sentence };
            // Nobody was promised that it lasts over the end of the process.
            self.behind.push(move || _ = removed.unlink(&disk));
        }
        stored
    }

    /// What an unsafe request may do about a key of which at most one in `interval` may take out what is stored.
    pub fn turn(&self, key: &[u8], interval: Duration, now: Now) -> Turn {
        self.turns().turn((self.hash(key), key), interval, now.unix_milliseconds)
    }

    /// Keeps what was promised to the key with this hash for the moment `at`, unless somebody has done so before.
    pub fn keep_promise(&self, hash: u64, at: i64) {
        let now = Now::read().unix_milliseconds;
        let key = self.turns().take(hash, at, now.max(at));
        if let Some(key) = key {
            _ = self.invalidate_after(&key, None);
        }
    }

    /// Keeps the promises whose time has come: whoever they were given to may be gone with its worker.
    pub(super) fn keep_promises(&self, now: Now) {
        let now = now.unix_milliseconds;
        let keys = self.turns().take_all(now, now);
        for key in keys {
            _ = self.invalidate_after(&key, None);
        }
    }

    /// The configuration has this zone no more: whoever keeps promises may never come again, and another zone of the same
    /// directory would find the files. So all are kept now, before their time; requests on their way are promised none.
    pub fn leave(&self) {
        let keys = self.turns().end(Now::read().unix_milliseconds);
        for key in keys {
            _ = self.invalidate_after(&key, None);
        }
    }

    /// Keeps all promises, before their time: there is no later. Files go in [`Store::flush`].
    pub(super) fn keep_promises_at_end(&self) {
        let keys = self.turns().end(Now::read().unix_milliseconds);
        for key in keys {
            let removed = self.outdate(&key, None);
            if let Some(disk) = self.disk.clone() {
                self.behind.leave_first(move || removed.take_names(&disk));
            }
        }
    }

    /// Nothing panics half-way through a change of the table, so a poisoned lock guards a whole one.
    fn turns(&self) -> MutexGuard<'_, Rate> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As `Front::invalidate_after`; what is given waits at most [`UNLINKING`].
    pub(crate) fn invalidate_after(
        &self,
        key: &[u8],
        own: Option<&mut Grant>,
    ) -> Option<impl Future<Output = ()> + use<>> {
        let removed = self.outdate(key, own);
        let disk = self.disk.clone()?;
        let may_be_there = disk.may_gain(&variants::own(key));
        let (done, waiting) = oneshot::channel();
        self.behind.push_first(move || {
            removed.take_names(&disk);
            // Nobody may wait any more.
            _ = done.send(());
        });
        may_be_there.then_some(async move {
            let mut deadline = Deadline::new();
            if let Some(at) = clock::now().checked_add(UNLINKING) {
                deadline.set(at);
            }
            _ = with_deadline(&mut deadline, waiting).await;
        })
    }

    /// Memory forgets what an unsafe request has changed; gives the files that have to go.
    fn outdate(&self, key: &[u8], own: Option<&mut Grant>) -> Removed {
        let at = Now::read().unix_milliseconds;
        self.unsafe_requests.note(number_of_key(key::text(key)), at, 0);
        let sentence = self.doom(key);
        let gone = self.memory.purge(key);
        if let Some(own) = own {
            own.outlive(self.memory.hash(key), &gone);
        }
        let Gone { order, variants, .. } = gone;
        Removed { key: key.into(), order, variants, _sentence: sentence }
    }

    /// Before memory forgets: whoever misses there must not find the file, which goes later.
    fn doom(&self, key: &[u8]) -> Option<Sentence> {
        self.disk.as_ref().map(|disk| disk.doom(variants::own(key)))
    }

    /// Makes a purge that is in force last, off the loop; outside of a runtime there is none to hold up.
    fn promise(
        self: &Arc<Self>,
        rule: Option<Rule>,
        removed: Option<Removed>,
        (mut purged, at): (Purged, i64),
    ) -> impl Future<Output = io::Result<Purged>> + Send + use<> {
        if let (Some(disk), Some(_)) = (&self.disk, &rule) {
            // The purger may have something to do.
            disk.wake();
        }
        let store = self.clone();
        let work = move || {
            let mut rule = rule;
            if let (Some(removed), Some(disk)) = (removed, &store.disk) {
                purged.on_disk = removed.unlink(disk)?;
                if rule.is_none() && removed.is_left(disk) {
                    // The system did not let it go.
                    let scope = Scope::Key(number_of_key(key::text(&removed.key)));
                    rule = Some(store.memory.purges.declare(scope, How::Hard, at));
                }
            }
            if let (Some(journal), Some(rule)) = (&store.journal, rule) {
                journal.append(&rule, &store.memory.purges)?;
            }
            if let Some(disk) = &store.disk {
                // Its thread may have files to look through.
                disk.wake();
            }
            Ok(purged)
        };
        let (done, waiting) = oneshot::channel();
        // Nobody may wait any more.
        let work = move || _ = done.send(work());
        match self.disk {
            Some(_) => self.purging.push(work),
            None => work(),
        }
        async move { waiting.await.unwrap_or_else(|error| Err(io::Error::other(error))) }
    }
}

/// Files that have to go: those of the variants that are known. Others count only with the key's own file.
struct Removed {
    key: Vec<u8>,
    order: u64,
    variants: Vec<Arc<[u8]>>,
    /// Until they have gone, nobody reads them.
    _sentence: Option<Sentence>,
}

impl Removed {
    /// Removes them, so that they are gone after a failure of power too; whether the key's own file was there. Blocks.
    fn unlink(&self, disk: &Disk) -> io::Result<bool> {
        let path = disk.path(&variants::own(&self.key));
        let was_there = path.exists();
        self.take_names(disk);
        if let Some(directory) = path.parent().filter(|_| was_there) {
            match File::open(directory).and_then(|directory| directory.sync_all()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(was_there)
    }

    /// Removes them, so that they are gone after the end of the process too. Blocks.
    fn take_names(&self, disk: &Disk) {
        variants::names(&self.key, &self.variants).for_each(|name| disk.unlink(&name, self.order));
    }

    /// Whether the key's own file is there all the same. A newer one, of an answer that was asked for after the purge, is not
    /// it.
    fn is_left(&self, disk: &Disk) -> bool {
        disk.has_older(&variants::own(&self.key), self.order)
    }
}
