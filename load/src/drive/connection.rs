//! One connection of the load: where it stands, what is on its way on it, what of that has not gone out yet.
//!
//! ```text
//!  Unopened ──▶ Connecting ──▶ Shaking (TLS) ──▶ Open ──▶ Unopened
//!                   └───────────────┴─ failed ─▶ Paused ──┘
//! ```
//! Over HTTP/2 `Greeting` stands before `Open`: the server's settings are waited for. It decides nothing; `worker` moves it.

use crate::exchange::Reader;
use crate::multiplex::Multiplex;
use crate::plan::{Plan, Target};
use crate::stream::Stream;
use std::collections::VecDeque;
use std::sync::Arc;

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// There is none.
    Unopened,
    /// Since this moment.
    Connecting(u64),
    /// TLS is agreed on, since this moment.
    Shaking(u64),
    /// HTTP/2: the server's settings are waited for, since this moment.
    Greeting(u64),
    /// Requests can be sent.
    Open,
    /// It failed and is tried again at this moment.
    Paused(u64),
}

/// A request on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    /// The place of its target in the plan.
    pub(super) target: u32,
    /// When it should have started.
    pub(super) due: u64,
    /// When it was sent.
    pub(super) sent: u64,
    /// The first byte of the answer; 0: none yet.
    pub(super) first_byte: u64,
}

/// What a redirect asks for.
#[derive(Debug)]
pub(super) struct Hop {
    pub(super) target: Target,
    /// The place of the first target in the plan.
    pub(super) place: u32,
    /// How many redirects led here.
    pub(super) count: u32,
    /// When the first request should have started, and when it was sent.
    pub(super) due: u64,
    pub(super) sent: u64,
}

/// See the module.
pub(super) struct Connection {
    /// Its lane in the worker.
    pub(super) lane: u32,
    /// Which of the server's addresses is tried.
    pub(super) address: u32,
    /// How many others were tried in vain before it, one right after the other.
    pub(super) passed: u32,
    pub(super) stage: Stage,
    pub(super) stream: Option<Stream>,
    /// Tells events and places in a queue from those of the connection before.
    pub(super) generation: u32,
    /// Whether a request was ever sent on it.
    pub(super) is_used: bool,
    /// Whether it stands in its lane's queue of free connections.
    pub(super) is_listed: bool,
    /// Since when it has had room for a request.
    pub(super) free_since: u64,
    /// The request that this connection is opened for should start then.
    pub(super) claim: Option<u64>,
    pub(super) reader: Reader,
    /// HTTP/2: its streams, those of `sent` in the same order.
    pub(super) http2: Option<Box<Multiplex>>,
    /// HTTP/2: whether an answer came on it.
    pub(super) is_answered: bool,
    /// HTTP/2: connections in its place that the server ended without an answer, one after the other.
    pub(super) fruitless: u32,
    /// In place of the plan's target, where a redirect is followed: of the request on its way, or next to be sent.
    pub(super) hop: Option<Arc<Hop>>,
    /// Requests on their way, oldest first.
    pub(super) sent: VecDeque<Sent>,
    /// How many of them, the newest, have not gone out whole.
    pub(super) unsent: u32,
    /// Bytes of the oldest of those that have gone out.
    pub(super) unsent_from: usize,
}

impl Connection {
    pub(super) fn new(lane: u32) -> Connection {
        Connection {
            lane,
            address: 0,
            passed: 0,
            stage: Stage::Unopened,
            stream: None,
            generation: 0,
            is_used: false,
            is_listed: false,
            free_since: 0,
            claim: None,
            reader: Reader::default(),
            http2: None,
            is_answered: false,
            hop: None,
            fruitless: 0,
            sent: VecDeque::new(),
            unsent: 0,
            unsent_from: 0,
        }
    }

    /// The hop that is to be sent next, if any.
    #[inline]
    pub(super) fn next_hop(&self) -> Option<&Hop> {
        self.hop.as_deref().filter(|_| self.sent.is_empty())
    }

    /// What the request on its way asks for, a place in the plan.
    #[inline]
    pub(super) fn target<'a>(hop: Option<&'a Hop>, plan: &'a Plan, place: u32) -> &'a Target {
        hop.map_or_else(|| &plan.targets[place as usize], |hop| &hop.target)
    }

    /// Closes the socket and forgets what belonged to it but the hop, which goes on elsewhere; closing takes it out of epoll too.
    pub(super) fn reset(&mut self) {
        self.stream = None;
        self.stage = Stage::Unopened;
        self.generation = self.generation.wrapping_add(1);
        (self.is_used, self.is_listed) = (false, false);
        self.claim = None;
        self.reader.clear();
        (self.http2, self.is_answered) = (None, false);
        self.sent.clear();
        (self.unsent, self.unsent_from) = (0, 0);
    }

    /// Whether another request can be on its way on it.
    #[inline]
    pub(super) fn has_room(&self, plan: &Plan) -> bool {
        match &self.http2 {
            None => self.sent.len() < plan.pipeline as usize,
            Some(streams) => streams.has_room(plan.pipeline),
        }
    }

    /// Requests that have gone out whole and have no answer yet.
    pub(super) fn gone_out(&self) -> usize {
        self.sent.len().saturating_sub(self.unsent as usize)
    }

    /// When it must be looked at even if nothing happens on it.
    pub(super) fn deadline(&self, timeout: u64) -> Option<u64> {
        match self.stage {
            Stage::Unopened => None,
            Stage::Paused(until) => Some(until),
            Stage::Connecting(since) | Stage::Shaking(since) | Stage::Greeting(since) => {
                Some(since + timeout)
            }
            Stage::Open => self.sent.front().map(|oldest| oldest.sent + timeout),
        }
    }
}
