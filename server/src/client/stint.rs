//! How much of an answer is worked on before others of the same loop get their turn.
//!
//! Before: nothing; next: `assembly` and `answer`, which work, and `client`, which lets others in between.

use std::pin::pin;
use std::task::{Context, Poll};

/// Work of one turn, in bytes that go through filters or what takes as long: less than a millisecond.
const MOST: usize = 128 * 1024;

/// The work of one turn.
#[derive(Debug, Default)]
pub(super) struct Stint {
    work: usize,
}

impl Stint {
    /// Counts what was done.
    pub(super) fn worked(&mut self, work: usize) {
        self.work = self.work.saturating_add(work);
    }

    /// Whether it is the turn of others.
    pub(super) fn is_over(&self) -> bool {
        self.work >= MOST
    }
}

/// Lets others in, and whoever has come to the loop's sockets meanwhile; the task goes on after them.
pub(super) fn poll_others<T>(context: &mut Context<'_>) -> Poll<T> {
    _ = pin!(tokio::task::yield_now()).poll(context);
    Poll::Pending
}
