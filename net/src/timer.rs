//! Deadlines of connections: cheap to move, nothing when unset.
//!
//! A connection's timeouts are put off at every request and hardly ever pass. So moving a deadline only
//! writes it down; the runtime's timer is touched when it fires too early, or when a deadline moves before
//! what it is set to. The one timer entry is on the heap and made when first waited for.
//! Next: `stream`, whose reads and writes take one.

use crate::clock;
use std::cell::Cell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

#[cfg(test)]
mod tests;

/// A moment by which something must have happened; none at first. It must always be polled on the same
/// runtime thread.
#[derive(Debug, Default)]
pub struct Deadline {
    at: Cell<Option<Instant>>,
    armed: Option<Pin<Box<Sleep>>>,
    waker: Option<Waker>,
}

impl Deadline {
    pub const fn new() -> Self {
        Deadline { at: Cell::new(None), armed: None, waker: None }
    }

    /// A waiting task notices a later moment by itself; an earlier one at its next poll.
    pub fn set(&self, at: Instant) {
        self.at.set(Some(at));
    }

    pub fn clear(&self) {
        self.at.set(None);
    }

    pub fn at(&self) -> Option<Instant> {
        self.at.get()
    }

    /// Clears it and frees its timer entry, for a state without a deadline for long (a tunnel).
    pub fn release(&mut self) {
        self.at.set(None);
        self.armed = None;
        self.waker = None;
    }

    /// Call it inside a tokio runtime with time enabled.
    #[allow(clippy::disallowed_methods, reason = "this is the one user of the runtime's timer")]
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.at.get() else { return Poll::Pending };
        let at = tokio::time::Instant::from_std(at);
        if let (Some(sleep), Some(waker)) = (&self.armed, &self.waker)
            && at >= sleep.deadline()
            && !sleep.is_elapsed()
            && waker.will_wake(context.waker())
        {
            // The entry is armed for this task and has not fired: asking it again would only register the same waker.
            return Poll::Pending;
        }
        let sleep = self.armed.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        if at < sleep.deadline() {
            sleep.as_mut().reset(at);
        }
        // At most two rounds: the second is after a reset to exactly `at`.
        while sleep.as_mut().poll(context).is_ready() {
            if sleep.deadline() >= at {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(at);
        }
        self.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Waits forever while there is none.
    pub async fn passed(&mut self) {
        poll_fn(|context| self.poll(context)).await;
    }
}

/// The deadline passed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("timed out")
    }
}

impl std::error::Error for Elapsed {}

impl From<Elapsed> for io::Error {
    /// `TimedOut` without an errno, see [`is_elapsed`].
    fn from(_: Elapsed) -> Self {
        io::ErrorKind::TimedOut.into()
    }
}

/// Whether a [`Deadline`] of ours passed, rather than the kernel's timeout (ETIMEDOUT).
pub fn is_elapsed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut && error.raw_os_error().is_none()
}

/// The future is polled first. It is held inside; if its size matters, pass `Box::pin(future)` or `&mut
/// pinned`, or poll the deadline beside it.
pub async fn with_deadline<F: Future>(deadline: &mut Deadline, future: F) -> Result<F::Output, Elapsed> {
    let mut future = pin!(future);
    poll_fn(|context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Ok(output));
        }
        deadline.poll(context).map(|()| Err(Elapsed))
    })
    .await
}

/// The same for a deadline that nothing else needs: `wait` from now.
pub async fn within<F: Future>(wait: Duration, future: F) -> Result<F::Output, Elapsed> {
    let mut deadline = Deadline::new();
    deadline.set(clock::now() + wait);
    with_deadline(&mut deadline, future).await
}

pub async fn pause(wait: Duration) {
    let mut deadline = Deadline::new();
    deadline.set(clock::now() + wait);
    deadline.passed().await;
}
