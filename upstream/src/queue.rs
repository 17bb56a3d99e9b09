//! `queue`: where requests wait that no server can take at once, over all workers.
//!
//! Whoever gets a turn passes the word on, since there may be room for more; so one call is enough for any number of places that
//! become free. A request that comes while others wait goes behind them. Before: `millstream-conf`'s `Queue`; next: `peers`, whose
//! turns call when they end; `millstream-server`'s `exchange/queueing`, which waits.

use millstream_conf::model::Queue as Terms;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The requests of one group that wait.
#[derive(Debug)]
pub struct Queue {
    terms: Terms,
    waiting: AtomicU32,
    overflows: AtomicU64,
    room: Notify,
}

/// A place in the queue while it exists.
#[derive(Debug)]
pub struct Waiting(Arc<Queue>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueAccount {
    pub size: u32,
    pub most: u32,
    pub overflows: u64,
}

impl Queue {
    pub(crate) fn new(terms: Terms) -> Arc<Queue> {
        let (waiting, overflows, room) = (AtomicU32::new(0), AtomicU64::new(0), Notify::new());
        Arc::new(Queue { terms, waiting, overflows, room })
    }

    /// `None` if all places are taken.
    pub fn enter(self: &Arc<Queue>) -> Option<Waiting> {
        let more = |waiting| (waiting < self.terms.most).then_some(waiting + 1);
        if self.waiting.fetch_update(Relaxed, Relaxed, more).is_err() {
            self.overflows.fetch_add(1, Relaxed);
            return None;
        }
        Some(Waiting(self.clone()))
    }

    pub fn timeout(&self) -> Duration {
        self.terms.timeout
    }

    pub(crate) fn is_waited_in(&self) -> bool {
        self.waiting.load(Relaxed) > 0
    }

    /// There may be room: the longest waiter tries again.
    pub fn call(&self) {
        self.room.notify_one();
    }

    pub fn account(&self) -> QueueAccount {
        QueueAccount {
            size: self.waiting.load(Relaxed),
            most: self.terms.most,
            overflows: self.overflows.load(Relaxed),
        }
    }
}

impl Waiting {
    /// Ready when there may be room. Calls count from its creation, once it was enabled.
    pub fn called(&self) -> Notified<'_> {
        self.0.room.notified()
    }

    /// Wakes the next one: there may be room for it too.
    pub fn pass_on(&self) {
        self.0.call();
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}
