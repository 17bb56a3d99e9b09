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

mod reading;
mod sending;

use super::body::Body;
use super::pace::Pace;
use super::speaker::Speaker;
use crate::dial::Dial;
use crate::error::ExchangeError;
use crate::lease::Lease;
use crate::peer::Peer;
use millstream_net::buffers;
use millstream_net::clock;
use millstream_net::stream::Stream;
use millstream_net::timer::Deadline;
use millstream_wire::{Fields, Method};
use std::fmt;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Interim answers (1xx) taken in one exchange; a server that sends more is broken.
pub const MAX_INTERIM: u32 = 64;

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
    /// As [`Dial::reach`].
    pub async fn open(peer: &Peer, dial: &Dial, timeout: Duration) -> Result<Connection, ExchangeError> {
        let mut deadline = Deadline::new();
        let stream = dial.reach(&peer.address, timeout, &mut deadline).await?;
        Ok(Self::over(stream, peer, dial, deadline))
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

    /// The bytes of the head that was read last, which its spans point into. Valid until the next read.
    pub fn head_bytes(&self) -> &[u8] {
        &self.buffer[self.head.0..self.head.0 + self.head.1]
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
