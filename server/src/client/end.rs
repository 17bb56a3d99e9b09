//! Where a client is: at the other end of a connection or of one of its streams, or inside, where a request asks by a subrequest.
//!
//! Whoever answers need not know. Next: `client`, which reads and writes through it; `streams`; `serve/subrequest`, which is inside.

use crate::worker::{Awaits, ConnectionSlot, Watch};
use millstream_net::outlet::Outlet;
use millstream_net::pipe::Pipe;
use millstream_net::stream::{Hangup, Stream};
use millstream_net::streams;
use millstream_net::timer::Deadline;
use millstream_wire::h2::error_code::ErrorCode;
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Where a client is.
pub enum End {
    /// At the other end of a connection, which has a place among those of its worker.
    Connection(Stream, ConnectionSlot),
    /// At the other end of a stream among several of a connection.
    Stream(Rc<streams::Http2Stream>),
    /// In this process.
    Inside(Rc<Inside>),
}

/// What a request that asks by a subrequest and the subrequest have in common.
pub struct Inside {
    /// The way of the answer.
    pub pipe: Pipe,
    /// Whether the head of the answer is wanted; else its body alone.
    pub wants_head: bool,
    /// The status of the answer, once it has ended.
    pub status: Cell<u16>,
}

impl End {
    /// The way out.
    pub fn outlet<'s>(&'s mut self, deadline: &'s mut Deadline, timeout: Duration) -> Outlet<'s> {
        match self {
            End::Connection(stream, _) => Outlet::new(stream, deadline, timeout),
            End::Stream(stream) => Outlet::into_inlet(&**stream, deadline, timeout),
            End::Inside(inside) => Outlet::into_inlet(&inside.pipe, deadline, timeout),
        }
    }

    /// Gives a stream up, so that nobody takes what there was for all; a connection is to be closed.
    pub fn cancel(&self) {
        if let End::Stream(stream) = self {
            stream.reset(ErrorCode::Cancel);
        }
    }

    /// Reads once; from inside nothing comes.
    pub fn poll_read_into(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        at_most: usize,
    ) -> Poll<io::Result<usize>> {
        match self {
            End::Connection(stream, _) => stream.poll_read_into(cx, buffer, at_most),
            End::Stream(stream) => stream.poll_read_into(cx, buffer, at_most),
            End::Inside(_) => Poll::Ready(Ok(0)),
        }
    }

    /// Whether all that a body has is read, where a stream's end tells that.
    pub(super) fn is_read(&self) -> bool {
        matches!(self, End::Stream(stream) if stream.is_read())
    }

    /// Whether the kernel can send it files.
    pub(super) fn takes_files(&self) -> bool {
        matches!(self, End::Connection(stream, _) if stream.takes_files())
    }

    /// Something that sees the close without reading; without a descriptor for it the close is seen at the next write.
    pub(super) fn hangup(&self) -> Option<(Hangup, Watch)> {
        let End::Connection(stream, place) = self else { return None };
        place.watch().and_then(|watch| Some((Hangup::of(stream).ok()?, watch)))
    }

    /// Whether who is inside or at a stream has left; nothing for one at a connection, which only reading tells.
    pub(super) fn poll_left(&self, cx: &mut Context<'_>) -> Option<Poll<()>> {
        match self {
            End::Connection(..) => None,
            End::Stream(stream) => Some(stream.poll_left(cx)),
            End::Inside(inside) => Some(inside.pipe.poll_left(cx)),
        }
    }

    /// Whether heads go out. To most of those inside they do not.
    pub(super) fn takes_heads(&self) -> bool {
        match self {
            End::Connection(..) | End::Stream(_) => true,
            End::Inside(inside) => inside.wants_head,
        }
    }

    /// See [`ConnectionSlot::wait`].
    pub(super) fn wait(&self, awaits: Awaits, waker: &Waker) {
        if let End::Connection(_, place) = self {
            place.wait(awaits, waker);
        }
    }

    /// See [`ConnectionSlot::is_shed`].
    pub(super) fn is_shed(&self) -> bool {
        matches!(self, End::Connection(_, place) if place.is_shed())
    }

    /// See [`ConnectionSlot::set_busy`].
    pub(super) fn set_busy(&self) {
        if let End::Connection(_, place) = self {
            place.set_busy();
        }
    }
}
