//! Where a client is: at the other end of a connection or of one of its streams, or inside, where a request asks by a subrequest.
//!
//! Whoever answers need not know. Next: `client`, which reads and writes through it; `streams`; `drive/subrequest`, which is inside.

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

pub enum End {
    Connection(Stream, ConnectionSlot),
    Stream(Rc<streams::Http2Stream>),
    Inside(Rc<Inside>),
}

/// Shared by a subrequest and the request that started it.
pub struct Inside {
    pub pipe: Pipe,
    /// Whether the head of the response is wanted, not only its body.
    pub wants_head: bool,
    pub status: Cell<u16>,
}

impl End {
    pub fn outlet<'s>(&'s mut self, deadline: &'s mut Deadline, timeout: Duration) -> Outlet<'s> {
        match self {
            End::Connection(stream, _) => Outlet::new(stream, deadline, timeout),
            End::Stream(stream) => Outlet::into_inlet(&**stream, deadline, timeout),
            End::Inside(inside) => Outlet::into_inlet(&inside.pipe, deadline, timeout),
        }
    }

    /// Resets a stream, or marks a connection to be closed.
    pub fn cancel(&self) {
        if let End::Stream(stream) = self {
            stream.reset(ErrorCode::Cancel);
        }
    }

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

    /// Whether the whole body was read, if its stream's end tells.
    pub(super) fn is_read(&self) -> bool {
        matches!(self, End::Stream(stream) if stream.is_read())
    }

    pub(super) fn takes_files(&self) -> bool {
        matches!(self, End::Connection(stream, _) if stream.takes_files())
    }

    /// Detects a close without reading; if no descriptor is free, the next write does.
    pub(super) fn hangup(&self) -> Option<(Hangup, Watch)> {
        let End::Connection(stream, place) = self else { return None };
        place.watch().and_then(|watch| Some((Hangup::of(stream).ok()?, watch)))
    }

    /// Ready when a stream or subrequest is cancelled; `None` for a connection, which only reading tells.
    pub(super) fn poll_left(&self, cx: &mut Context<'_>) -> Option<Poll<()>> {
        match self {
            End::Connection(..) => None,
            End::Stream(stream) => Some(stream.poll_left(cx)),
            End::Inside(inside) => Some(inside.pipe.poll_left(cx)),
        }
    }

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
