//! One exchange after another on one connection to an upstream server, whoever speaks.
//!
//! ```text
//! begin → send… → sent_whole → read_head (1xx: again) → read_body… → Ended ┬ reusable → pool
//!                                                                            └ not → dropped
//! ```
//!
//! The connection reads into one pooled buffer and hands out slices of it, so a small answer is read by one call and
//! never copied here; while there is nothing to read it has none. A part that was handed out, and the head, stay until the next read. It decides nothing about retries and knows no client. Next: `speaker` for what is said, `body` for what follows a head, `pool` for what happens
//! between exchanges.

use super::body::{self, Body};
use super::pace::Pace;
use super::speaker::Speaker;
use crate::dial::Dial;
use crate::error::ExchangeError;
use crate::lease::Lease;
use crate::peer::Peer;
use millstream_net::buffers;
use millstream_net::clock;
use millstream_net::connect::connect;
use millstream_net::outlet::Outlet;
use millstream_net::stream::Stream;
use millstream_net::timer::{Deadline, is_elapsed, with_deadline};
use millstream_wire::h1::head::{HeadLimits, Progress, ResponseHead, ResponseHeadError};
use millstream_wire::{Fields, Method};
use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

/// Interim answers (1xx) taken in one exchange; a server that sends more is broken.
pub const MAX_INTERIM: u32 = 64;

/// Fields that an answer's head may have; the bytes are bounded by `proxy_buffer_size`.
const MAX_FIELDS: usize = 1000;

/// The least room for one read.
const MIN_READ: usize = 4096;

/// A piece of a body, found without reading from the network.
#[derive(Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Bytes of the body, never empty; they stay valid until the next call.
    Data(&'a [u8]),
    /// Nothing is left in the buffer: [`Connection::fill_body`] first.
    Empty,
    /// The body has ended; trailers, if any, are in [`Connection::trailers`].
    End,
}

/// A [`Part`] by its place in the buffer.
enum Found {
    Data { from: usize, to: usize },
    Nothing,
    End,
}

/// What a timeout of reading is for.
#[derive(Debug, Clone, Copy)]
enum Wait {
    /// Each read that has to wait.
    Each(Duration),
    /// All reads until [`Connection::accept_head`], so that a head that drips does not last for ever.
    Whole(Duration),
}

/// What is kept for as long as a connection lives, such as its place among a worker's connections.
pub trait Held {
    /// Whether the connection may idle with it; otherwise it is closed after its exchange.
    fn may_idle(&self) -> bool;
}

impl fmt::Debug for dyn Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Held {{ may_idle: {} }}", self.may_idle())
    }
}

/// A connection to an upstream server.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    /// What was read; bytes before `start` are used up.
    buffer: Vec<u8>,
    start: usize,
    /// Where the head that was read last starts in `buffer`, and its length.
    head: (usize, usize),
    body: Body,
    speaker: Speaker,
    deadline: Deadline,
    peer: u64,
    /// How it was made.
    dial: Dial,
    name: Rc<str>,
    opened: Instant,
    requests: u64,
    method: Method,
    keep: bool,
    sent: bool,
    pooled: bool,
    received: u64,
    written: u64,
    interim: u32,
    pub(crate) lease: Option<Lease>,
    /// Kept for as long as the connection lives, such as its place among a worker's connections.
    held: Option<Box<dyn Held>>,
    waiting: bool,
    /// How fast the body is read, where that is limited.
    pace: Option<Box<Pace>>,
}

impl Connection {
    /// Connects to a peer.
    ///
    /// # Errors
    /// [`ExchangeError::Connect`], [`ExchangeError::Handshake`] and [`ExchangeError::ConnectTimeout`], which holds for either.
    pub async fn open(peer: &Peer, dial: &Dial, timeout: Duration) -> Result<Connection, ExchangeError> {
        let mut deadline = Deadline::new();
        deadline.set(clock::now() + timeout);
        let stream = match with_deadline(&mut deadline, connect(&peer.address, dial.local.as_deref())).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(ExchangeError::Connect(error)),
            Err(_) => return Err(ExchangeError::ConnectTimeout),
        };
        let Some(secured) = &dial.secured else { return Ok(Self::over(stream, peer, dial, deadline)) };
        deadline.set(clock::now() + timeout);
        let handshake = Box::pin(secured.connector.connect(stream, &secured.name));
        match with_deadline(&mut deadline, handshake).await {
            Ok(Ok(stream)) => Ok(Self::over(stream, peer, dial, deadline)),
            Ok(Err(error)) => Err(ExchangeError::Handshake(error)),
            Err(_) => Err(ExchangeError::ConnectTimeout),
        }
    }

    /// A connection that exists already.
    fn over(stream: Stream, peer: &Peer, dial: &Dial, deadline: Deadline) -> Connection {
        Connection {
            stream,
            buffer: Vec::new(),
            start: 0,
            head: (0, 0),
            body: Body::ended(),
            speaker: Speaker::http1(false),
            deadline,
            peer: peer.id,
            dial: dial.clone(),
            pace: None,
            // A copy of its own: counting references on a name that all workers share would bounce its cache line.
            name: Rc::from(&*peer.name),
            opened: clock::now(),
            requests: 0,
            method: Method::Get,
            keep: false,
            sent: false,
            pooled: false,
            received: 0,
            written: 0,
            interim: 0,
            lease: None,
            held: None,
            waiting: false,
        }
    }

    /// Starts an exchange. `method` decides how the answer is framed; `keep` says whether the request allows the
    /// connection to be used again.
    pub fn begin(&mut self, speaker: Speaker, method: Method, keep: bool) {
        self.speaker = speaker;
        self.method = method;
        self.keep = keep;
        self.sent = false;
        self.received = 0;
        self.written = 0;
        self.interim = 0;
        self.waiting = false;
        self.requests += 1;
        self.body = Body::pending();
    }

    /// Sends a head, as it is, and behind it a piece of the request's body, framed; each may be empty. `last` ends the body.
    ///
    /// # Errors
    /// [`ExchangeError::Write`], and [`ExchangeError::SendTimeout`] where nothing could be written for `timeout`.
    pub async fn send(
        &mut self,
        mut head: &[u8],
        mut piece: &[u8],
        last: bool,
        timeout: Duration,
    ) -> Result<(), ExchangeError> {
        let mut before = Vec::new();
        loop {
            let (framed, rest) = piece.split_at(piece.len().min(self.speaker.most()));
            before.clear();
            let behind = self.speaker.frame(framed.len(), last && rest.is_empty(), &mut before);
            let mut parts = [IoSlice::new(&[]); 4];
            let filled = [head, &before, framed, behind].into_iter().filter(|part| !part.is_empty());
            let count = parts.iter_mut().zip(filled).map(|(place, part)| *place = IoSlice::new(part)).count();
            self.write_all(&mut parts[..count], timeout).await?;
            if rest.is_empty() {
                return Ok(());
            }
            (head, piece) = (&[], rest);
        }
    }

    /// Sends what the socket takes at once of bytes that need no framing. The error is how many it took; whoever is told
    /// goes on with [`Connection::send`], which meets what is wrong again.
    pub fn send_at_once(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
        timeout: Duration,
    ) -> Result<(), usize> {
        let mut outlet = Outlet::new(&mut self.stream, &mut self.deadline, timeout);
        let Poll::Ready(Ok(sent)) = outlet.poll_write(context, bytes) else { return Err(0) };
        let flushed = sent == bytes.len() && matches!(outlet.poll_flush(context), Poll::Ready(Ok(())));
        self.written += sent as u64;
        if flushed { Ok(()) } else { Err(sent) }
    }

    /// Writes all of some pieces, by one call where the kernel takes them.
    async fn write_all(
        &mut self,
        pieces: &mut [IoSlice<'_>],
        timeout: Duration,
    ) -> Result<(), ExchangeError> {
        let total: usize = pieces.iter().map(|piece| piece.len()).sum();
        match Outlet::new(&mut self.stream, &mut self.deadline, timeout).write_all(pieces).await {
            Ok(()) => {
                self.written += total as u64;
                Ok(())
            }
            Err(error) if is_elapsed(&error) => Err(ExchangeError::SendTimeout),
            Err(error) => Err(ExchangeError::Write(error)),
        }
    }

    /// Notes that the request, body included, is out. A connection where it is not is never used again.
    pub fn sent_whole(&mut self) {
        self.sent = true;
    }

    /// A head is waited for until then, where it is known without reading the clock. The first call that reads one says
    /// it otherwise.
    pub fn wait_for_head_until(&mut self, until: Instant) {
        self.deadline.set(until);
        self.waiting = true;
    }

    /// Reads the next head, interim (1xx) or final; a final one starts the body. `limit` is `proxy_buffer_size`, and
    /// `timeout` bounds the wait for all of it, as in nginx. May be dropped and called again.
    ///
    /// # Errors
    /// Every way in which a head can fail to come.
    pub async fn read_head(
        &mut self,
        head: &mut ResponseHead,
        limit: usize,
        timeout: Duration,
    ) -> Result<(), ExchangeError> {
        head.clear();
        poll_fn(|context| self.poll_read_head(context, head, limit, timeout)).await
    }

    /// [`Connection::read_head`] for callers that poll. `head` is clear at first, and the same one each time.
    pub fn poll_read_head(
        &mut self,
        context: &mut Context<'_>,
        head: &mut ResponseHead,
        limit: usize,
        timeout: Duration,
    ) -> Poll<Result<(), ExchangeError>> {
        let limits = HeadLimits { line: limit, total: limit, fields: MAX_FIELDS };
        loop {
            if self.start < self.buffer.len() {
                match self.speaker.parse(head, &self.buffer[self.start..], &limits) {
                    Ok(Progress::Complete) => return Poll::Ready(self.accept_head(head)),
                    Ok(Progress::Partial) if self.buffer.len() - self.start >= limit => {
                        return Poll::Ready(Err(ExchangeError::HeadTooLarge));
                    }
                    Ok(Progress::Partial) => {}
                    Err(ResponseHeadError::TooLarge) => return Poll::Ready(Err(ExchangeError::HeadTooLarge)),
                    Err(error) => return Poll::Ready(Err(ExchangeError::BadHead(error))),
                }
            }
            if self.speaker.is_ended(self.keep)? {
                return Poll::Ready(Err(ExchangeError::EndedEarly));
            }
            if ready!(self.poll_fill(context, Wait::Whole(timeout), usize::MAX))? == 0 {
                return Poll::Ready(Err(ExchangeError::ClosedEarly { any_bytes: self.received > 0 }));
            }
        }
    }

    fn accept_head(&mut self, head: &ResponseHead) -> Result<(), ExchangeError> {
        self.head = (self.start, head.length);
        self.start += head.length;
        self.waiting = false;
        let fields = head.view(&self.buffer[self.head.0..self.start]);
        if head.is_interim() {
            self.interim += 1;
            return if self.interim > MAX_INTERIM { Err(ExchangeError::TooManyInterim) } else { Ok(()) };
        }
        let (framing, keep) = self.speaker.accept(self.method, head, fields)?;
        self.keep &= keep;
        self.body = Body::of(framing);
        Ok(())
    }

    /// The bytes of the head that was read last, which its spans point into. Valid until the next read.
    pub fn head_bytes(&self) -> &[u8] {
        &self.buffer[self.head.0..self.head.0 + self.head.1]
    }

    /// The next piece of the body as far as it is in the buffer.
    ///
    /// # Errors
    /// [`ExchangeError::BadBody`] for a broken chunked coding, and what a protocol finds wrong with its records.
    pub fn next_part(&mut self) -> Result<Part<'_>, ExchangeError> {
        Ok(match self.advance()? {
            Found::Data { from, to } => Part::Data(&self.buffer[from..to]),
            Found::Nothing => Part::Empty,
            Found::End => Part::End,
        })
    }

    /// Takes the next piece from the buffer.
    fn advance(&mut self) -> Result<Found, ExchangeError> {
        match self.body.step(&self.buffer[self.start..])? {
            body::Step::Data { from, to, used } => {
                let start = self.start;
                self.start += used;
                Ok(Found::Data { from: start + from, to: start + to })
            }
            body::Step::More { used } => {
                self.start += used;
                match self.speaker.is_ended(self.keep)? {
                    false => Ok(Found::Nothing),
                    true if self.body.ended_with_stream() => Ok(Found::End),
                    true => Err(ExchangeError::EndedEarly),
                }
            }
            body::Step::End { used } => {
                self.start += used;
                Ok(Found::End)
            }
        }
    }

    /// The next piece of the body, read from the network where need be; `None` at its end. May be dropped and called
    /// again.
    ///
    /// # Errors
    /// [`ExchangeError::ClosedEarly`] where the connection ended before the body did, and those of reading.
    pub async fn read_body(&mut self, timeout: Duration) -> Result<Option<&[u8]>, ExchangeError> {
        loop {
            match self.advance()? {
                Found::Data { from, to } => return Ok(Some(&self.buffer[from..to])),
                Found::End => return Ok(None),
                Found::Nothing => self.fill_body(timeout).await?,
            }
        }
    }

    /// Reads more of the body into the buffer, all of whose parts have been taken; after it, [`Connection::next_part`]
    /// goes on. May be dropped and called again.
    ///
    /// # Errors
    /// As [`Connection::read_body`].
    pub async fn fill_body(&mut self, timeout: Duration) -> Result<(), ExchangeError> {
        poll_fn(|context| self.poll_fill_body(context, timeout)).await
    }

    /// [`Connection::fill_body`] for callers that wait for something else at the same time. The timeout counts from the
    /// first call that has to wait.
    pub fn poll_fill_body(
        &mut self,
        context: &mut Context<'_>,
        timeout: Duration,
    ) -> Poll<Result<(), ExchangeError>> {
        let most = match &mut self.pace {
            Some(pace) => ready!(pace.poll_most(context)),
            None => usize::MAX,
        };
        let was_waiting = self.waiting;
        let filled = self.poll_fill(context, Wait::Each(timeout), most);
        if let (Some(pace), Poll::Ready(Ok(count))) = (&mut self.pace, &filled) {
            pace.read(*count as u64);
        }
        if filled.is_pending() && !was_waiting {
            // A server that writes head and body apart waits for our acknowledgement of the first (Nagle), which the
            // kernel would hold back for 40 ms.
            self.stream.acknowledge_now();
        }
        if ready!(filled)? == 0 && !(self.speaker.ends_by_close() && self.body.ended_with_stream()) {
            return Poll::Ready(Err(ExchangeError::ClosedEarly { any_bytes: true }));
        }
        Poll::Ready(Ok(()))
    }

    /// Ready when the upstream speaks, or closes, though its turn may not have come; what it says is kept for
    /// [`Connection::read_head`]. No timeout.
    pub fn poll_speaks(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.poll_read(context, usize::MAX).map(|read| {
            // An error or the end is met again by the next read.
            self.received += read.unwrap_or(0) as u64;
        })
    }

    /// Reads once. No buffer is held while nothing is in it: an upstream that is slow to answer costs none.
    fn poll_read(&mut self, context: &mut Context<'_>, most: usize) -> Poll<io::Result<usize>> {
        self.make_room();
        let from = self.buffer.len();
        let read = self.stream.poll_read_into(context, &mut self.buffer, most);
        self.speaker.received(&mut self.buffer, from);
        if read.is_pending() && self.buffer.is_empty() {
            buffers::give(std::mem::take(&mut self.buffer));
        }
        read
    }

    /// Room for one read. Nothing that was handed out and is still valid moves.
    fn make_room(&mut self) {
        if self.buffer.capacity() == 0 {
            self.buffer = buffers::take();
        }
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
        } else if self.buffer.capacity() - self.buffer.len() < MIN_READ && self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        if self.buffer.capacity() - self.buffer.len() < MIN_READ {
            self.buffer.reserve(MIN_READ);
        }
    }

    /// Reads once; 0 at the end of the connection.
    fn poll_fill(
        &mut self,
        context: &mut Context<'_>,
        wait: Wait,
        most: usize,
    ) -> Poll<Result<usize, ExchangeError>> {
        let outcome = match self.poll_read(context, most) {
            Poll::Ready(Ok(count)) => {
                self.received += count as u64;
                Ok(count)
            }
            Poll::Ready(Err(error)) => Err(ExchangeError::Read(error)),
            Poll::Pending => {
                if !self.waiting {
                    let (Wait::Each(timeout) | Wait::Whole(timeout)) = wait;
                    self.deadline.set(clock::now() + timeout);
                    self.waiting = true;
                }
                ready!(self.deadline.poll(context));
                Err(ExchangeError::ReadTimeout)
            }
        };
        self.waiting &= matches!((wait, &outcome), (Wait::Whole(_), Ok(1..)));
        Poll::Ready(outcome)
    }

    /// Trailer fields, after a chunked body.
    pub fn trailers(&self) -> Option<Fields<'_>> {
        self.body.trailers()
    }

    /// How many bytes of body are still to come, where the answer says so.
    pub fn remaining(&self) -> Option<u64> {
        self.body.remaining()
    }

    /// Whether the answer's body has ended cleanly.
    pub fn is_ended(&self) -> bool {
        self.body.is_ended()
    }

    /// Whether another exchange may follow: both messages ended cleanly, nothing is left over (bytes behind an answer
    /// belong to nobody, RFC 9112 §6.3), and neither side asked to close.
    pub fn reusable(&self) -> bool {
        self.keep
            && self.sent
            && self.body.is_ended()
            && self.start == self.buffer.len()
            && self.speaker.is_at_rest()
            && self.may_idle()
    }

    /// Whether nobody needs what is kept with it.
    fn may_idle(&self) -> bool {
        self.held.as_ref().is_none_or(|held| held.may_idle())
    }

    /// Whether bytes follow the answer that do not belong to it.
    pub fn has_leftover(&self) -> bool {
        self.body.is_ended() && self.start < self.buffer.len()
    }

    /// Whether bytes were read that are of nothing that is whole yet.
    pub fn has_unread(&self) -> bool {
        self.start < self.buffer.len()
    }

    /// The stream itself, for a tunnel.
    pub fn stream_mut(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// What was read behind the head, for a tunnel; the buffer is given up.
    pub fn take_read_ahead(&mut self) -> Vec<u8> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.drain(..self.start);
        self.start = 0;
        self.head = (0, 0);
        buffer
    }

    /// Keeps a value for as long as the connection lives.
    pub fn hold(&mut self, value: Box<dyn Held>) {
        self.held = Some(value);
    }

    /// Whether it came from the pool, so that a failure without any answer may only mean that it was stale.
    pub fn is_pooled(&self) -> bool {
        self.pooled
    }

    /// The peer's number in its group.
    pub fn peer(&self) -> u64 {
        self.peer
    }

    /// How it was made.
    pub(crate) fn dial(&self) -> &Dial {
        &self.dial
    }

    /// Reads the rest of the present body no faster than so many bytes a second.
    pub fn limit_rate(&mut self, rate: u64) {
        self.pace = Some(Box::new(Pace::new(rate, (self.buffer.len() - self.start) as u64)));
    }

    /// The peer's name, as in `$upstream_addr`.
    pub fn peer_name(&self) -> &Rc<str> {
        &self.name
    }

    /// Bytes read and written in the present exchange.
    pub fn traffic(&self) -> (u64, u64) {
        (self.received, self.written)
    }

    /// Requests begun on the connection.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// When it was opened.
    pub fn opened(&self) -> Instant {
        self.opened
    }

    /// The stream, for the pool's watch over idle connections.
    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Gives the buffer back while nothing is to be read.
    pub(crate) fn rest(&mut self) {
        self.pooled = true;
        self.pace = None;
        self.start = 0;
        self.head = (0, 0);
        let buffer = std::mem::take(&mut self.buffer);
        if buffer.capacity() > 0 {
            buffers::give(buffer);
        }
        self.body = Body::ended();
        self.speaker = Speaker::http1(false);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        if buffer.capacity() > 0 {
            buffers::give(buffer);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
