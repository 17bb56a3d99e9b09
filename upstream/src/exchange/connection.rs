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

mod buffer;
mod state;
mod reading;
mod sending;

use super::pace::Pace;
use super::speaker::Speaker;
use crate::dial::Dial;
use crate::error::ExchangeError;
use crate::h2::Call;
use crate::held::Held;
use crate::lease::Lease;
use crate::peer::Peer;
use buffer::ReadBuffer;
use millstream_net::clock;
use millstream_net::stream::Stream;
use millstream_net::timer::Deadline;
use millstream_wire::{Fields, Method};
use state::ExchangeState;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

/// A piece of a body, found without reading from the network.
#[derive(Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Never empty; valid until the next call.
    Data(&'a [u8]),
    /// Nothing is left in the buffer: call [`Connection::fill_body`] first.
    Empty,
    /// The body has ended; trailers, if any, are in [`Connection::trailers`].
    End,
}

#[derive(Debug)]
enum Over {
    Socket(Stream),
    /// A stream of a shared connection (HTTP/2).
    Call(Call),
}

/// A connection to an upstream server.
#[derive(Debug)]
pub struct Connection {
    over: Over,
    buffer: ReadBuffer,
    exchange: ExchangeState,
    deadline: Deadline,
    /// Of a body that is sent while the response arrives.
    sending: Deadline,
    peer: u64,
    dial: Dial,
    name: Rc<str>,
    opened: Instant,
    requests: u64,
    pooled: bool,
    pub(crate) lease: Option<Lease>,
    /// Kept as long as the connection lives, such as its slot among a worker's connections.
    held: Option<Box<dyn Held>>,
    waiting: bool,
}

impl Connection {
    pub async fn open(peer: &Peer, dial: &Dial, timeout: Duration) -> Result<Connection, ExchangeError> {
        let mut deadline = Deadline::new();
        let stream = dial.reach(&peer.address, timeout, &mut deadline).await?;
        Ok(Self::over(Over::Socket(stream), peer, dial, deadline))
    }

    /// `pooled`: the shared connection existed already.
    pub(crate) fn call(call: Call, peer: &Peer, dial: &Dial, pooled: bool) -> Connection {
        let mut connection = Self::over(Over::Call(call), peer, dial, Deadline::new());
        connection.pooled = pooled;
        connection
    }

    fn over(over: Over, peer: &Peer, dial: &Dial, deadline: Deadline) -> Connection {
        Connection {
            over,
            buffer: ReadBuffer::default(),
            exchange: ExchangeState::none(),
            deadline,
            sending: Deadline::new(),
            peer: peer.id,
            dial: dial.clone(),
            // A copy of its own: counting references on a name that all workers share would bounce its cache line.
            name: Rc::from(&*peer.name),
            opened: clock::now(),
            requests: 0,
            pooled: false,
            lease: None,
            held: None,
            waiting: false,
        }
    }

    /// `method` decides how the response is framed; `keep` says whether the request allows the connection to
    /// be reused.
    pub fn begin(&mut self, speaker: Speaker, method: Method, keep: bool) {
        self.exchange = ExchangeState::begin(speaker, method, keep);
        self.waiting = false;
        self.requests += 1;
    }

    /// The spans of the last head point into these. Valid until the next read.
    pub fn head_bytes(&self) -> &[u8] {
        self.buffer.head()
    }

    pub fn trailers(&self) -> Option<Fields<'_>> {
        self.exchange.body.trailers()
    }

    pub fn remaining(&self) -> Option<u64> {
        self.exchange.body.remaining()
    }

    pub fn is_ended(&self) -> bool {
        self.exchange.body.is_ended()
    }

    /// Both messages ended cleanly, nothing is left over (bytes after a response belong to no one, RFC 9112
    /// §6.3), and neither side asked to close.
    pub fn reusable(&self) -> bool {
        self.is_over() && self.exchange.speaker.is_at_rest()
    }

    /// Whether only the last record of the exchange is missing, after which another may follow.
    pub(crate) fn awaits_end(&self) -> bool {
        self.is_over()
            && matches!(self.exchange.speaker.is_ended(), Ok(false))
            && !self.exchange.speaker.is_at_rest()
    }

    fn is_over(&self) -> bool {
        self.exchange.is_over()
            && matches!(self.over, Over::Socket(_))
            && self.buffer.is_used_up()
            && self.may_idle()
    }

    /// Whether `held` allows it.
    fn may_idle(&self) -> bool {
        self.held.as_ref().is_none_or(|held| held.may_idle())
    }

    pub fn has_leftover(&self) -> bool {
        self.is_ended() && self.has_unread()
    }

    pub fn has_unread(&self) -> bool {
        !self.buffer.is_used_up()
    }

    /// For a tunnel; `None` if others share the connection.
    pub fn stream_mut(&mut self) -> Option<&mut Stream> {
        match &mut self.over {
            Over::Socket(stream) => Some(stream),
            Over::Call(_) => None,
        }
    }

    /// Whether there is more of the request's body to send while the response arrives.
    pub fn is_sending(&self) -> bool {
        !self.exchange.sent
    }

    /// What was read after the head so far.
    pub fn read_ahead(&self) -> &[u8] {
        self.buffer.unread()
    }

    /// For a tunnel; gives up the buffer.
    pub fn take_read_ahead(&mut self) -> Vec<u8> {
        self.buffer.take_unread()
    }

    pub fn hold(&mut self, value: Box<dyn Held>) {
        match &self.over {
            Over::Socket(_) => self.held = Some(value),
            // It is kept where the connection is.
            Over::Call(call) => call.hold(value),
        }
    }

    /// Then a failure without any response may only mean that it was stale.
    pub fn is_pooled(&self) -> bool {
        self.pooled
    }

    pub fn peer(&self) -> u64 {
        self.peer
    }

    pub(crate) fn dial(&self) -> &Dial {
        &self.dial
    }

    /// For the rest of the current body; bytes per second.
    pub fn limit_rate(&mut self, rate: u64) {
        self.exchange.pace = Some(Box::new(Pace::new(rate, self.buffer.unread().len() as u64)));
    }

    pub fn peer_name(&self) -> &Rc<str> {
        &self.name
    }

    pub fn traffic(&self) -> (u64, u64) {
        (self.exchange.received, self.exchange.written)
    }

    pub fn requests(&self) -> u64 {
        match &self.over {
            Over::Socket(_) => self.requests,
            Over::Call(call) => call.age().1,
        }
    }

    pub fn opened(&self) -> Instant {
        match &self.over {
            Over::Socket(_) => self.opened,
            Over::Call(call) => call.age().0,
        }
    }

    /// Whether an idle connection is open and nothing has arrived.
    pub(crate) fn is_quiet(&self) -> bool {
        match &self.over {
            Over::Socket(stream) => stream.is_quiet() && (!self.exchange.is_bodiless || stream.is_silent()),
            Over::Call(_) => false,
        }
    }

    /// Ready once an idle connection was closed, or received anything other than the last record of its
    /// exchange.
    pub(crate) fn poll_useless(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.awaits_end() {
            while self.awaits_end() {
                if !matches!(ready!(self.poll_read(context, usize::MAX)), Ok(1..)) {
                    return Poll::Ready(());
                }
            }
            if !self.reusable() {
                return Poll::Ready(());
            }
            self.rest();
        }
        match &self.over {
            Over::Socket(stream) => stream.poll_readable(context).map(drop),
            Over::Call(_) => Poll::Ready(()),
        }
    }

    /// Returns the buffer while nothing is to be read.
    pub(crate) fn rest(&mut self) {
        self.pooled = true;
        self.buffer.rest();
        self.exchange.rest();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // An exchange that is given up leaves no TIME_WAIT behind: a client that gives up thousands would use up the ports. A
        // request that is cut short ends where it is cut, which a server tells from a connection that failed.
        if let Over::Socket(stream) = &self.over
            && self.exchange.is_cut()
        {
            stream.reset_on_close();
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
