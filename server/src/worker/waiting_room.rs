//! Those that wait for a place among a worker's connections, in the order of their coming.
//!
//! It knows no place: who is called looks for one, and waits on if it is gone. Before: `worker`, which calls.

use std::cell::Cell;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

#[derive(Default)]
pub(super) struct WaitingRoom {
    waiting: Cell<usize>,
    room: Notify,
}

/// Counts one while it waits.
pub(super) struct Waiting<'a>(&'a Cell<usize>);

impl WaitingRoom {
    pub(super) fn enter(&self) -> Waiting<'_> {
        self.waiting.set(self.waiting.get() + 1);
        Waiting(&self.waiting)
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.get()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting() == 0
    }

    /// Registers at once, so that room which comes before the first poll is not missed.
    pub(super) fn called(&self) -> Notified<'_> {
        self.room.notified()
    }

    pub(super) fn call(&self) {
        self.room.notify_one();
    }

    /// Calls one for good, and the others to look again.
    pub(super) fn call_all(&self) {
        self.room.notify_waiters();
        self.room.notify_one();
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
