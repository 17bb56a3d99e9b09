//! Takes away what purges and unsafe requests go for, and makes rules last.
//!
//! Files go off the loop, in the order in which somebody waits for them; until they have gone nobody reads them. Next:
//! `store/purge`, which says what goes; `purges/journal`.

use super::super::Store;
use super::Tier;
use crate::disk::Sentence;
use crate::key;
use crate::memory::Gone;
use crate::purges::{How, Purges, Rule, Scope, number_of_key};
use crate::variants;
use millstream_net::clock;
use millstream_net::timer::{Deadline, with_deadline};
use std::fs::File;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Longest delay of an unsafe request until a file is gone.
const UNLINKING: Duration = Duration::from_secs(1);

/// Files to remove: those of the known variants. Others count only with the key's own file.
pub(in crate::store) struct Removed {
    key: Vec<u8>,
    order: u64,
    variants: Vec<Arc<[u8]>>,
    /// Until they are removed, no one reads them.
    _sentence: Option<Sentence>,
}

impl Removed {
    pub(in crate::store) fn of(key: &[u8], gone: Gone, sentence: Option<Sentence>) -> Removed {
        Removed { key: key.into(), order: gone.order, variants: gone.variants, _sentence: sentence }
    }
}

impl Tier {
    /// Call it before memory forgets: a miss there must not find the file, which goes later.
    pub(in crate::store) fn doom(&self, key: &[u8]) -> Sentence {
        self.disk.doom(variants::own(key))
    }

    /// Not promised to survive the end of the process.
    pub(in crate::store) fn remove(self: &Arc<Self>, removed: Removed) {
        let tier = self.clone();
        self.behind.push(move || _ = tier.unlink(&removed));
    }

    /// Removes files when the process ends, without an event loop.
    pub(in crate::store) fn remove_at_end(self: &Arc<Self>, removed: Removed) {
        let tier = self.clone();
        self.behind.leave_first(move || tier.take_names(&removed));
    }

    /// Removes files before all pending work, and writes the rule for slices. The future waits for it, at
    /// most [`UNLINKING`], and not for the disk itself; `None` if there is no file.
    pub(in crate::store) fn remove_first(
        self: &Arc<Self>,
        store: &Arc<Store>,
        removed: Removed,
        rule: Option<Rule>,
    ) -> Option<impl Future<Output = ()> + use<>> {
        let is_due = rule.is_some() || self.disk.may_gain(&variants::own(&removed.key));
        let (done, waiting) = oneshot::channel();
        let (tier, store) = (self.clone(), store.clone());
        self.behind.push_first(move || {
            tier.take_names(&removed);
            if let Some(rule) = rule {
                tier.note(&rule, &store.memory.purges);
            }
            // Nobody may wait any more.
            _ = done.send(());
        });
        is_due.then_some(async move {
            let mut deadline = Deadline::new();
            if let Some(at) = clock::now().checked_add(UNLINKING) {
                deadline.set(at);
            }
            _ = with_deadline(&mut deadline, waiting).await;
        })
    }

    /// Writes a rule for slices, without a promise. Blocks.
    pub(in crate::store) fn note(&self, rule: &Rule, purges: &Purges) {
        // What fails here is in force until this process ends, and in the journal with the next rule that can be written.
        _ = self.changes.append(rule, purges);
        self.disk.wake();
    }

    /// Makes a purge of the moment `at` survive a power failure, off the event loop if there is one. `done`
    /// is told whether the key's own file existed.
    pub(in crate::store) fn make_last(
        self: &Arc<Self>,
        store: &Arc<Store>,
        (rule, removed): (Option<Rule>, Option<Removed>),
        at: i64,
        done: impl FnOnce(io::Result<bool>) + Send + 'static,
    ) {
        if rule.is_some() {
            // The purger may have something to do.
            self.disk.wake();
        }
        let (tier, store) = (self.clone(), store.clone());
        self.purging.push(move || done(tier.last(&store, rule, removed, at)));
    }

    /// Blocks.
    fn last(
        &self,
        store: &Store,
        mut rule: Option<Rule>,
        removed: Option<Removed>,
        at: i64,
    ) -> io::Result<bool> {
        let purges = &store.memory.purges;
        let mut was_there = false;
        if let Some(removed) = removed {
            was_there = self.unlink(&removed)?;
            if rule.is_none() && self.is_left(&removed) {
                // The system did not let it go.
                let scope = Scope::Key(number_of_key(key::text(&removed.key)));
                rule = Some(purges.declare(scope, How::Hard, at));
            }
        }
        if let Some(rule) = rule {
            self.journal.append(&rule, purges)?;
        }
        // Its thread may have files to look through.
        self.disk.wake();
        Ok(was_there)
    }

    /// Removes files so that they stay gone after a power failure; returns whether the key's own file
    /// existed. Blocks.
    fn unlink(&self, removed: &Removed) -> io::Result<bool> {
        let path = self.disk.path(&variants::own(&removed.key));
        let was_there = path.exists();
        self.take_names(removed);
        if let Some(directory) = path.parent().filter(|_| was_there) {
            match File::open(directory).and_then(|directory| directory.sync_all()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(was_there)
    }

    /// Removes files so that they stay gone after the end of the process. Blocks.
    fn take_names(&self, removed: &Removed) {
        variants::names(&removed.key, &removed.variants)
            .for_each(|name| self.disk.unlink(&name, removed.order));
    }

    /// Whether the key's own file still exists. A newer one, requested after the purge, does not count.
    fn is_left(&self, removed: &Removed) -> bool {
        self.disk.has_older(&variants::own(&removed.key), removed.order)
    }
}
