//! Waiting for a line to be in its file: a future that the writer wakes once it is past the line's ticket.
//!
//! It must never poll by time, and needs no runtime. Next: `queue`, where tickets are counted and wakers kept.

use super::queue::{Shared, Ticket};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

#[must_use = "futures do nothing unless polled"]
pub struct Written<'a> {
    shared: &'a Shared,
    ticket: Ticket,
    /// The waker that the writer holds for this future, so that each is registered once.
    registered: Option<Waker>,
}

impl<'a> Written<'a> {
    pub(super) fn new(shared: &'a Shared, ticket: Ticket) -> Self {
        Written { shared, ticket, registered: None }
    }
}

impl Future for Written<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.shared.written.load(Ordering::Acquire) >= self.ticket.0 {
            return Poll::Ready(());
        }
        let mut state = self.shared.lock();
        // Under the lock the answer is final: the writer moves the mark and takes the wakers under it.
        if state.late || self.shared.written.load(Ordering::Acquire) >= self.ticket.0 {
            return Poll::Ready(());
        }
        if !self.registered.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            state.waiters.push((self.ticket, context.waker().clone()));
            self.shared.hurry(&mut state);
            drop(state);
            self.registered = Some(context.waker().clone());
        }
        Poll::Pending
    }
}
