//! What a client owes in time: since when only it is awaited, and when the wait ends.
//!
//! Only waits for the client are bounded here; responses have their own timeouts.

use crate::connection::accepted::Accepted;
use crate::worker::{Awaits, idle_since};
use millstream_net::clock;
use millstream_net::timer::Deadline;
use std::task::{Context, Poll};
use std::time::Instant;

pub(super) struct ClientDue {
    /// Since when only the client is awaited: for a request's rest, for all bodies, or to read, less the
    /// worth of what moves meanwhile ([`idle_since`]).
    since: Option<Instant>,
    waiting: Deadline,
}

impl ClientDue {
    pub(super) fn new() -> ClientDue {
        ClientDue { since: None, waiting: Deadline::new() }
    }

    pub(super) fn clear(&mut self) {
        self.since = None;
    }

    pub(super) fn moved(&mut self, octets: usize) {
        self.since = self.since.map(|since| idle_since(since, octets, clock::now()));
    }

    /// The wait goes on if it has begun.
    pub(super) fn is(&mut self, is_due: bool) {
        self.since = is_due.then(|| self.since.unwrap_or_else(clock::now));
    }

    pub(super) fn awaits(&self, is_idle: bool, accepted: &Accepted) -> Awaits {
        match self.since {
            since if !is_idle => Awaits::Body(since.unwrap_or_else(clock::now)),
            Some(since) => Awaits::Head(since),
            None => Awaits::Request(accepted.last_used),
        }
    }

    /// When a connection without streams closes. `has_asked`: some request came before.
    pub(super) fn end_of_idling(&self, has_asked: bool, accepted: &Accepted) -> Instant {
        let head_timeout = accepted.server().settings.client_header.timeout;
        match self.since {
            _ if !has_asked => accepted.last_used + head_timeout,
            Some(since) => since + head_timeout,
            None => accepted.last_used + accepted.settings().keepalive.timeout,
        }
    }

    /// Ready at `end`, if there is one.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>, end: Option<Instant>) -> Poll<()> {
        match end {
            Some(end) => {
                self.waiting.set(end);
                self.waiting.poll(cx)
            }
            None => {
                self.waiting.clear();
                Poll::Pending
            }
        }
    }
}
