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

/// How long an unsafe request is held up at most until a file is gone.
const UNLINKING: Duration = Duration::from_secs(1);

/// Files that have to go: those of the variants that are known. Others count only with the key's own file.
pub(in crate::store) struct Removed {
    key: Vec<u8>,
    order: u64,
    variants: Vec<Arc<[u8]>>,
    /// Until they have gone, nobody reads them.
    _sentence: Option<Sentence>,
}

impl Removed {
    /// Those of a key that memory has let go of.
    pub(in crate::store) fn of(key: &[u8], gone: Gone, sentence: Option<Sentence>) -> Removed {
        Removed { key: key.into(), order: gone.order, variants: gone.variants, _sentence: sentence }
    }
}

impl Tier {
    /// Before memory forgets: whoever misses there must not find the file, which goes later.
    pub(in crate::store) fn doom(&self, key: &[u8]) -> Sentence {
        self.disk.doom(variants::own(key))
    }

    /// Removes files soon. Nobody was promised that it lasts over the end of the process.
    pub(in crate::store) fn remove(self: &Arc<Self>, removed: Removed) {
        let tier = self.clone();
        self.behind.push(move || _ = tier.unlink(&removed));
    }

    /// Removes files when the process ends: there is no loop any more.
    pub(in crate::store) fn remove_at_end(self: &Arc<Self>, removed: Removed) {
        let tier = self.clone();
        self.behind.leave_first(move || tier.take_names(&removed));
    }

    /// Removes files before all that waits, and writes the rule down that goes for pieces. What is given waits for it, at most
    /// [`UNLINKING`], and not for the disk itself; nothing where there is no file.
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

    /// Writes a rule for pieces down, whose success nobody was promised. Blocks.
    pub(in crate::store) fn note(&self, rule: &Rule, purges: &Purges) {
        // What fails here is in force until this process ends, and in the journal with the next rule that can be written.
        _ = self.changes.append(rule, purges);
        self.disk.wake();
    }

    /// Makes a purge of the moment `at` outlast a failure of power, off the loop; outside of a runtime there is none to hold
    /// up. `done` is told whether the key's own file was there.
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

    /// Removes files, so that they are gone after a failure of power too; whether the key's own file was there. Blocks.
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

    /// Removes files, so that they are gone after the end of the process too. Blocks.
    fn take_names(&self, removed: &Removed) {
        variants::names(&removed.key, &removed.variants)
            .for_each(|name| self.disk.unlink(&name, removed.order));
    }

    /// Whether the key's own file is there all the same. A newer one, of an answer that was asked for after the purge, is not
    /// it.
    fn is_left(&self, removed: &Removed) -> bool {
        self.disk.has_older(&variants::own(&removed.key), removed.order)
    }
}
