//! The socket of a connection with what is on its way through it: bytes read and not yet taken, frames made and not yet written.
//!
//! It knows no frame, and holds no buffer while nothing is under way.

use super::due::ClientDue;
use millstream_net::buffers;
use millstream_net::outlet::Outlet;
use millstream_net::stream::Stream;
use millstream_net::streams::{self, Carrier};
use millstream_net::timer::Deadline;
use millstream_wire::h2::frame::HEAD_LENGTH;
use millstream_wire::h2::settings::{DEFAULT_MAX_FRAME_SIZE, PeerSettings};
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Bytes from which a system call is cheaper than a copy.
const WORTH_A_WRITE: usize = 32 * 1024;
/// Bytes framed before a write: with a whole response of 16 KiB behind them they fit into [`streams::ROOM`].
const MOST_TOGETHER: usize = 48 * 1024;
/// Bytes of bodies written directly in one turn.
const MOST_NOW: usize = 512 * 1024;

pub(super) struct FramedSocket {
    pub(super) socket: Stream,
    pub(super) carrier: Rc<Carrier>,
    pub(super) input: Vec<u8>,
    output: Vec<u8>,
    written: usize,
    /// Whether the last write took all there was.
    is_out: bool,
    sent_now: usize,
    writing: Deadline,
}

impl FramedSocket {
    pub(super) fn new(socket: Stream, came: Vec<u8>) -> FramedSocket {
        FramedSocket {
            socket,
            carrier: Rc::new(Carrier::new(PeerSettings::default())),
            input: came,
            output: Vec::new(),
            written: 0,
            is_out: true,
            sent_now: 0,
            writing: Deadline::new(),
        }
    }

    pub(super) fn begin_turn(&mut self) {
        self.sent_now = 0;
    }

    pub(super) fn is_out(&self) -> bool {
        self.is_out
    }

    fn unwritten(&self) -> usize {
        self.output.len() - self.written
    }

    /// Whether the client reads so little of our control frames that its input is ignored.
    pub(super) fn is_clogged(&self) -> bool {
        self.carrier.queued() + self.unwritten() >= 2 * streams::ROOM
    }

    /// Whether so much is framed that it is written before more requests are taken, so that their responses find
    /// room too. If the socket does not take it, they wait for their turn.
    pub(super) fn is_full(&self) -> bool {
        self.carrier.queued() >= MOST_TOGETHER && self.output.is_empty()
    }

    /// Whether frames were made since the last write, which took all there was.
    pub(super) fn has_more(&self) -> bool {
        self.carrier.queued() > 0 && self.output.is_empty()
    }

    /// Writes all that is framed. What the client takes of it counts for it.
    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        timeout: Duration,
        due: &mut ClientDue,
    ) -> Poll<io::Result<()>> {
        self.is_out = false;
        let mut outlet = Outlet::new(&mut self.socket, &mut self.writing, timeout);
        loop {
            if self.written == self.output.len() {
                self.output.clear();
                self.written = 0;
                self.carrier.take(&mut self.output);
                if self.output.is_empty() {
                    break;
                }
            }
            match outlet.poll_write(cx, &self.output[self.written..]) {
                Poll::Ready(Ok(count)) => {
                    self.written += count;
                    self.carrier.wrote(count);
                    due.moved(count);
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        // A TLS stream may hold records back until it is flushed.
        let flushed = outlet.poll_flush(cx);
        self.is_out = flushed.is_ready();
        flushed
    }

    /// One read, unless too much output waits: input makes more.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.is_clogged() {
            return Poll::Pending;
        }
        if self.input.capacity() == 0 {
            self.input = buffers::take();
        } else if self.input.len() == self.input.capacity() {
            // Our largest frame, which we said nothing about, is a little larger than a buffer.
            self.input.reserve(DEFAULT_MAX_FRAME_SIZE as usize + HEAD_LENGTH);
        }
        self.socket.poll_read_into(cx, &mut self.input, usize::MAX)
    }

    /// Frames a whole response, and writes a large one at once. False unless the client's windows take all of
    /// it. `chunk`: octets of one frame.
    pub(super) fn whole(&mut self, stream: u32, block: &[u8], body: &[u8], chunk: u32) -> bool {
        if !self.sends_now(body) {
            return self.carrier.whole(stream, block, body, chunk);
        }
        self.sent_now += body.len();
        let socket = &self.socket;
        self.carrier.whole_through(stream, block, body, chunk, |parts| socket.write_now(parts))
    }

    fn sends_now(&self, body: &[u8]) -> bool {
        body.len() >= WORTH_A_WRITE
            && self.unwritten() == 0
            && self.sent_now < MOST_NOW
            && self.socket.takes_files()
    }

    /// Nothing that is framed later is written any more.
    pub(super) fn close_output(&mut self) {
        let mut words = Vec::new();
        self.carrier.take(&mut words);
        self.output.extend_from_slice(&words);
    }

    /// Writes the last frames; whether the client may still read them.
    pub(super) async fn write_rest(&mut self, timeout: Duration) -> bool {
        let mut deadline = Deadline::new();
        let outlet = Outlet::new(&mut self.socket, &mut deadline, timeout);
        outlet.write_all(&mut [IoSlice::new(&self.output[self.written..])]).await.is_ok()
    }

    /// Returns the buffers that are empty.
    pub(super) fn rest(&mut self) {
        for buffer in [&mut self.input, &mut self.output] {
            if buffer.is_empty() && buffer.capacity() > 0 {
                buffers::give(std::mem::take(buffer));
            }
        }
        self.carrier.rest();
    }
}
