//! The way out of a connection: every write to a peer has a bound on how long it may take nothing.
//!
//! What goes into a pipe to whoever asks inside, or into a stream of a connection that has several, goes the same way ([`Inlet`]).
//! The bound is `send_timeout`'s, as nginx counts it: it runs from the moment the peer takes no more and begins anew with
//! every byte it takes. Whoever writes to a peer writes through here, so that no write can be without one.

use crate::clock;
use crate::stream::Stream;
use crate::timer::{Deadline, Elapsed};
use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::AsyncWrite;

#[cfg(test)]
mod tests;

/// A destination of bytes other than a socket.
pub trait Inlet: fmt::Debug {
    /// Not all parts are empty; 0 if no one reads any more. `is_last`: nothing follows them.
    fn poll_write(&self, context: &mut Context<'_>, parts: &[IoSlice<'_>], is_last: bool) -> Poll<usize>;

    /// Ready once something would be accepted, so that no waiter need hold data; at once if unknown.
    fn poll_room(&self, _context: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    /// Nothing follows what was written; a no-op if that is evident.
    fn end(&self) {}

    /// Whether the writer waits for the peer, so that the timeout applies.
    fn waits_for_peer(&self) -> bool;

    /// Whether the peer took anything since the last call, even of another writer: that restarts the timeout.
    fn has_moved(&self) -> bool {
        false
    }
}

/// Errors are the stream's, `WriteZero` if it accepts nothing any more, and [`Elapsed`] after `timeout`
/// without a byte.
#[derive(Debug)]
pub struct Outlet<'s> {
    to: To<'s>,
    deadline: &'s mut Deadline,
    timeout: Duration,
    is_last: bool,
}

#[derive(Debug)]
enum To<'s> {
    Stream(&'s mut Stream),
    Inlet(&'s dyn Inlet),
}

impl<'s> Outlet<'s> {
    /// `deadline` belongs to the writing as long as something waits to be written.
    #[inline]
    pub fn new(stream: &'s mut Stream, deadline: &'s mut Deadline, timeout: Duration) -> Outlet<'s> {
        Outlet { to: To::Stream(stream), deadline, timeout, is_last: false }
    }

    #[inline]
    pub fn into_inlet(inlet: &'s dyn Inlet, deadline: &'s mut Deadline, timeout: Duration) -> Outlet<'s> {
        Outlet { to: To::Inlet(inlet), deadline, timeout, is_last: false }
    }

    #[inline]
    pub fn is_last(&mut self, is_last: bool) {
        self.is_last = is_last;
    }

    /// `bytes` must not be empty.
    #[inline]
    pub fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = match &mut self.to {
            To::Stream(stream) => Pin::new(&mut **stream).poll_write(context, bytes),
            To::Inlet(inlet) => inlet.poll_write(context, &[IoSlice::new(bytes)], self.is_last).map(Ok),
        };
        self.bounded(context, wrote.map(not_zero))
    }

    /// Not all parts may be empty.
    #[inline]
    pub fn poll_write_vectored(
        &mut self,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = match &mut self.to {
            To::Stream(stream) => Pin::new(&mut **stream).poll_write_vectored(context, parts),
            To::Inlet(inlet) => inlet.poll_write(context, parts, self.is_last).map(Ok),
        };
        self.bounded(context, wrote.map(not_zero))
    }

    /// As [`Stream::poll_write_with_file`]; not for an inlet.
    pub fn poll_write_with_file(
        &mut self,
        context: &mut Context<'_>,
        head: &[u8],
        file: &impl AsFd,
        part: Range<u64>,
    ) -> Poll<io::Result<usize>> {
        let wrote = match &mut self.to {
            To::Stream(stream) => stream.poll_write_with_file(context, head, file, part),
            To::Inlet(_) => Poll::Ready(Ok(0)),
        };
        self.bounded(context, wrote.map(not_zero))
    }

    pub fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let room = match &self.to {
            To::Stream(_) => Poll::Ready(()),
            To::Inlet(inlet) => inlet.poll_room(context),
        };
        self.bounded(context, room.map(Ok))
    }

    /// A TLS session keeps records that the socket did not accept.
    #[inline]
    pub fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = match &mut self.to {
            To::Stream(stream) => Pin::new(&mut **stream).poll_flush(context),
            To::Inlet(_) => Poll::Ready(Ok(())),
        };
        self.bounded(context, flushed)
    }

    pub fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = match &mut self.to {
            To::Stream(stream) => Pin::new(&mut **stream).poll_shutdown(context),
            To::Inlet(inlet) => {
                inlet.end();
                Poll::Ready(Ok(()))
            }
        };
        self.bounded(context, shut)
    }

    /// In as few system calls as possible, flushed. The parts are used up.
    pub async fn write_all(mut self, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        // Skips parts that are empty from the start: a write of nothing must not look like a dead socket.
        IoSlice::advance_slices(&mut parts, 0);
        poll_fn(|context| {
            loop {
                // One part goes by the plain call, which costs the kernel less.
                let written = match &*parts {
                    [] => return self.poll_flush(context),
                    [only] => ready!(self.poll_write(context, only)),
                    several => ready!(self.poll_write_vectored(context, several)),
                };
                IoSlice::advance_slices(&mut parts, written?);
            }
        })
        .await
    }

    /// The deadline runs while the peer accepts nothing.
    #[inline]
    fn bounded<T>(&mut self, context: &mut Context<'_>, step: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if step.is_ready() {
            self.deadline.clear();
            return step;
        }
        self.waits(context).map(Err)
    }

    fn waits(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let has_moved = match &self.to {
            // A session may have passed on some of what it holds, and yet wait.
            To::Stream(stream) => stream.has_moved(),
            To::Inlet(inlet) if inlet.waits_for_peer() => inlet.has_moved(),
            To::Inlet(_) => {
                self.deadline.clear();
                return Poll::Pending;
            }
        };
        if has_moved || self.deadline.at().is_none() {
            self.deadline.set(clock::now() + self.timeout);
        }
        self.deadline.poll(context).map(|()| Elapsed.into())
    }
}

fn not_zero(wrote: io::Result<usize>) -> io::Result<usize> {
    match wrote {
        Ok(0) => Err(io::ErrorKind::WriteZero.into()),
        other => other,
    }
}
