//! How much of an answer is worked on before others of the same loop get their turn.

use std::pin::pin;
use std::task::{Context, Poll};

/// Bytes through filters, or equal work, of one turn: less than a millisecond.
const MOST: usize = 128 * 1024;

#[derive(Debug, Default)]
pub(super) struct Stint {
    work: usize,
}

impl Stint {
    pub(super) fn worked(&mut self, work: usize) {
        self.work = self.work.saturating_add(work);
    }

    pub(super) fn is_over(&self) -> bool {
        self.work >= MOST
    }
}

/// Yields to other tasks, and to the loop's sockets.
pub(super) fn poll_others<T>(context: &mut Context<'_>) -> Poll<T> {
    _ = pin!(tokio::task::yield_now()).poll(context);
    Poll::Pending
}
