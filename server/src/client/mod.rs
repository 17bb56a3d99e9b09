//! The client's side of a connection during one request: its body in, the answer out.
//!
//! Writing is in two steps: `begin`, `push` and `end` frame bytes into a buffer without I/O; `flush` writes it. So a
//! small answer leaves in one write. Timeouts hold between two reads or two writes, as nginx counts them.
//! Next: `connection/h1`, which owns a client between requests; `content/`, which answers through it.

mod end;
mod body;
mod tail;
mod unread;
mod stint;
mod assembly;
mod output;
mod body_filters;
mod answer;
mod sending;
#[cfg(test)]
mod tests;

pub use body::BodyProgress;
pub use end::{End, Inside};
pub use output::AnswerHead;
pub use tail::WholeBody;

use crate::request::Request;
use crate::worker::{Awaits, ConnectionSlot, Watch};
use answer::Answer;
use body::Body;
use body_filters::Assembled;
use millstream_net::stream::{Hangup, Stream};
use millstream_net::streams;
use millstream_net::timer::{Deadline, is_elapsed};
use millstream_net::{buffers, clock};
use millstream_wire::h2::error_code::ErrorCode;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use stint::Stint;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientFailure {
    Gone,
    Timeout,
    TooLarge,
    /// Its body is not framed as RFC 9112 §7 demands, or differs from its announced length.
    Malformed,
    /// Its head is larger than the upstream's protocol allows.
    HeadTooLarge,
}

impl ClientFailure {
    pub fn status(self) -> u16 {
        match self {
            ClientFailure::Gone => 499,
            ClientFailure::Timeout => 408,
            ClientFailure::TooLarge => 413,
            ClientFailure::Malformed => 400,
            ClientFailure::HeadTooLarge => 431,
        }
    }

    pub fn is_of_body(self) -> bool {
        matches!(self, ClientFailure::TooLarge | ClientFailure::Timeout | ClientFailure::Malformed)
    }

    /// The body differs from its announced length.
    fn of_reading(error: &std::io::Error) -> ClientFailure {
        if error.kind() == ErrorKind::InvalidData { ClientFailure::Malformed } else { ClientFailure::Gone }
    }

    fn of_writing(error: &std::io::Error) -> ClientFailure {
        if is_elapsed(error) { ClientFailure::Timeout } else { ClientFailure::Gone }
    }
}

/// How a response ended; decides how its connection may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Whole,
    /// Whole, once the connection closes.
    Closing,
    /// Cut, and the framing shows it.
    Cut,
    /// Cut and delimited by closing: only a reset shows it (RFC 9112 §8).
    CutUnseen,
}

impl Ending {
    pub fn is_whole(self) -> bool {
        matches!(self, Ending::Whole | Ending::Closing)
    }
}

/// Bytes read ahead while watching whether the client leaves.
const READ_AHEAD: usize = 64 * 1024;

pub type Answerer = fn(Box<Request>, Rc<Inside>);

/// A connection, a stream, or a request that made a subrequest.
pub struct Client {
    end: End,
    answerer: Answerer,
    deadline: Deadline,
    rest: Vec<u8>,
    body: Option<Box<Body>>,
    answer: Option<Box<Answer>>,
    /// Set while the read-ahead is full.
    hangup: Option<(Hangup, Watch)>,
    cut: bool,
    is_at_work: bool,
    /// Whether it last took nothing of the response.
    is_stalled: bool,
}

impl Client {
    pub fn new(stream: Stream, place: ConnectionSlot, answerer: Answerer) -> Self {
        Client::at(End::Connection(stream, place), answerer)
    }

    pub fn on_stream(stream: Rc<streams::Http2Stream>, answerer: Answerer) -> Self {
        Client::at(End::Stream(stream), answerer)
    }

    pub fn inside(inside: Rc<Inside>, answerer: Answerer) -> Self {
        Client::at(End::Inside(inside), answerer)
    }

    fn at(end: End, answerer: Answerer) -> Self {
        Client {
            end,
            answerer,
            deadline: Deadline::new(),
            rest: Vec::new(),
            body: None,
            answer: None,
            hangup: None,
            cut: false,
            is_at_work: false,
            is_stalled: false,
        }
    }

    pub fn connection(&mut self) -> Option<(&mut Stream, &ConnectionSlot)> {
        match &mut self.end {
            End::Connection(stream, place) => Some((stream, place)),
            End::Stream(_) | End::Inside(_) => None,
        }
    }

    pub fn into_connection(self) -> Option<(Stream, ConnectionSlot)> {
        match self.end {
            End::Connection(stream, place) => Some((stream, place)),
            End::Stream(_) | End::Inside(_) => None,
        }
    }

    pub fn place(&mut self) -> &mut End {
        &mut self.end
    }

    /// See [`ConnectionSlot::wait`].
    pub fn wait(&self, awaits: Awaits, waker: &Waker) {
        self.end.wait(awaits, waker);
    }

    pub fn is_shed(&self) -> bool {
        self.end.is_shed()
    }

    /// See [`ConnectionSlot::set_busy`].
    pub fn set_busy(&self) {
        self.end.set_busy();
    }

    pub fn deadline(&mut self) -> &mut Deadline {
        &mut self.deadline
    }

    pub fn rest(&mut self) -> &mut Vec<u8> {
        &mut self.rest
    }

    pub fn take_read_ahead(&mut self) -> Vec<u8> {
        self.hangup = None;
        std::mem::take(&mut self.rest)
    }

    /// One read; `Ready(Ok(0))` at the end of the stream.
    pub fn poll_read_more(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<usize>> {
        self.poll_read_at_most(cx, usize::MAX)
    }

    fn poll_read_at_most(&mut self, cx: &mut Context<'_>, at_most: usize) -> Poll<std::io::Result<usize>> {
        if self.rest.capacity() == 0 {
            self.rest = buffers::take();
        }
        if self.rest.len() == self.rest.capacity() {
            self.rest.reserve_exact(self.rest.capacity().min(at_most));
        }
        self.end.poll_read_into(cx, &mut self.rest, at_most)
    }

    pub fn release_buffer(&mut self) {
        if self.rest.is_empty() && self.rest.capacity() > 0 {
            buffers::give(std::mem::take(&mut self.rest));
        }
    }

    /// Ready when the client has closed its side. Reads pipelined requests ahead up to a bound, then watches
    /// without reading. Does not watch while a body is unread: reading it will notice.
    pub fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(step) = self.end.poll_left(cx) {
            return step;
        }
        if self.body_pending() {
            return Poll::Pending;
        }
        while self.rest.len() < READ_AHEAD {
            match self.poll_read_at_most(cx, READ_AHEAD - self.rest.len()) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(_)) => {}
                Poll::Pending => {
                    self.release_buffer();
                    return Poll::Pending;
                }
            }
        }
        if self.hangup.is_none() {
            self.hangup = self.end.hangup();
        }
        self.hangup.as_mut().map_or(Poll::Pending, |(hangup, _)| hangup.poll(cx))
    }

    /// Awaits something for the client; fails if the client leaves.
    pub async fn unless_gone<F: Future>(&mut self, wait: F) -> Result<F::Output, ClientFailure> {
        let mut wait = pin!(wait);
        poll_fn(|cx| match wait.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => self.poll_gone(cx).map(|()| Err(ClientFailure::Gone)),
        })
        .await
    }

    pub async fn has_left(&mut self) -> bool {
        poll_fn(|cx| Poll::Ready(self.poll_gone(cx).is_ready())).await
    }

    /// Ready when everything framed so far is written.
    pub fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        request: &mut Request,
    ) -> Poll<Result<(), ClientFailure>> {
        let step = self.poll_flush_all(cx, request);
        self.unless_shed(cx, step)
    }

    /// A client that takes nothing loses its slot if slots are short; it counts as too slow.
    fn unless_shed(
        &mut self,
        cx: &Context<'_>,
        step: Poll<Result<(), ClientFailure>>,
    ) -> Poll<Result<(), ClientFailure>> {
        // The deadline runs only while the client takes nothing.
        let until = self.deadline.at().filter(|_| step.is_pending());
        let since =
            until.zip(self.answer.as_ref()).and_then(|(at, answer)| at.checked_sub(answer.send_timeout));
        match since {
            Some(since) => {
                self.is_stalled = true;
                self.end.wait(Awaits::Body(since), cx.waker());
                if self.end.is_shed() {
                    return Poll::Ready(Err(ClientFailure::Timeout));
                }
            }
            None if self.is_stalled => {
                self.is_stalled = false;
                self.end.set_busy();
            }
            None => {}
        }
        step
    }

    fn poll_flush_all(
        &mut self,
        cx: &mut Context<'_>,
        request: &mut Request,
    ) -> Poll<Result<(), ClientFailure>> {
        let mut stint = Stint::default();
        self.is_at_work = false;
        loop {
            let Some(answer) = &mut self.answer else { return Poll::Ready(Ok(())) };
            let Answer { output, filters, .. } = &mut **answer;
            let assembled = filters.assemble(output, cx, request, self.answerer, &mut stint);
            let mut outlet = self.end.outlet(&mut self.deadline, answer.send_timeout);
            ready!(answer.poll_write(&mut outlet, cx, request))?;
            match assembled {
                Assembled::All => return Poll::Ready(Ok(())),
                Assembled::Some => {}
                Assembled::Later => {
                    self.is_at_work = true;
                    return stint::poll_others(cx);
                }
                Assembled::Waits => return self.poll_gone(cx).map(|()| Err(ClientFailure::Gone)),
                Assembled::Cut => {
                    self.cut = true;
                    request.keep_alive = false;
                    return Poll::Ready(Err(ClientFailure::Gone));
                }
            }
        }
    }

    pub async fn flush(&mut self, request: &mut Request) -> Result<(), ClientFailure> {
        loop {
            poll_fn(|cx| match self.poll_flush(cx, request) {
                // Who has left is not written to by and by (`limit_rate`).
                Poll::Pending if self.answer.as_ref().is_some_and(|answer| answer.is_paused()) => {
                    self.poll_gone(cx).map(|()| Err(ClientFailure::Gone))
                }
                step => step,
            })
            .await?;
            let Some(answer) = &mut self.answer else { return Ok(()) };
            match answer.read_on().await {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(_) => {
                    self.cut = true;
                    return Err(ClientFailure::Gone);
                }
            }
        }
    }

    /// Waits until the client would take bytes, if that can be known, so that no one holds them meanwhile.
    pub async fn room(&mut self, request: &Request) -> Result<(), ClientFailure> {
        poll_fn(|cx| {
            let Some(answer) = &mut self.answer else { return Poll::Ready(Ok(())) };
            let mut outlet = self.end.outlet(&mut self.deadline, answer.send_timeout);
            match answer.poll_room(&mut outlet, cx, request) {
                Poll::Pending if answer.is_paused() => self.poll_gone(cx).map(|()| Err(ClientFailure::Gone)),
                step => step,
            }
        })
        .await
    }

    /// Whether the status is already fixed.
    pub fn begun(&self) -> bool {
        self.answer.is_some() || self.cut
    }

    pub fn queued(&self) -> usize {
        self.answer.as_ref().map_or(0, |answer| answer.queued())
    }

    /// Whether flushing waits for other tasks rather than the client.
    pub fn is_at_work(&self) -> bool {
        self.is_at_work
    }

    /// Sends no response: closes a connection, or resets a stream with nginx's code.
    pub fn withhold(&mut self, request: &mut Request) {
        request.keep_alive = false;
        if let End::Stream(stream) = &self.end {
            stream.reset(ErrorCode::ProtocolError);
            self.cut = true;
        }
    }

    /// Closes the connection, so that the client sees the cut.
    pub fn abandon(&mut self) {
        self.cut = true;
    }

    pub fn settle(&mut self) -> Ending {
        self.deadline.clear();
        self.body = None;
        self.hangup = None;
        let (ending, trailers) = match self.answer.take() {
            Some(answer) => answer.output.settle(self.cut),
            None if self.cut => (Ending::Cut, None),
            None => (Ending::Whole, None),
        };
        if let End::Stream(stream) = &self.end {
            match ending {
                Ending::Whole | Ending::Closing => stream.end(trailers.as_deref()),
                // The client is not to take a part for the whole (RFC 9113 §8.1.1).
                Ending::Cut | Ending::CutUnseen => stream.reset(ErrorCode::InternalError),
            }
        }
        ending
    }
}

fn later(timeout: std::time::Duration) -> std::time::Instant {
    clock::now() + timeout
}
