//! One connection of the load: where it stands, what is on its way on it, what of that has not gone out yet.
//!
//! ```text
//!  Unopened ──▶ Opening ──▶ Open ──▶ Unopened
//!                  └─ failed ─▶ Paused ──┘
//! ```
//! What stands before `Open` is connecting, TLS, and over HTTP/2 the server's settings. It decides nothing; `worker` moves it.

use crate::exchange::{Asked, Exchange};
use crate::plan::{Plan, Target};
use crate::stream::Stream;
use crate::tally::{Failure, Sent};
use std::collections::VecDeque;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Stage {
    #[default]
    Unopened,
    /// There will be one: since this moment it is connected to, TLS is agreed on, or the server's settings are waited for.
    Opening(u64),
    Open,
    /// It failed and is tried again at this moment.
    Paused(u64),
}

#[derive(Debug)]
pub(super) struct Hop {
    pub(super) target: Target,
    pub(super) count: u32,
    pub(super) first: Sent,
}

#[derive(Default)]
pub(super) struct Connection<Protocol> {
    pub(super) lane: u32,
    /// Which of the server's addresses is tried.
    pub(super) address: u32,
    /// How many others were tried in vain before it, one right after the other.
    pub(super) passed: u32,
    pub(super) stage: Stage,
    pub(super) stream: Option<Stream>,
    /// Tells events and places in a queue from those of the connection before.
    pub(super) generation: u32,
    pub(super) is_used: bool,
    pub(super) is_listed: bool,
    /// Since when it has had room for a request.
    pub(super) free_since: u64,
    /// The request that this connection is opened for should start then.
    pub(super) claim: Option<u64>,
    pub(super) exchange: Protocol,
    pub(super) is_answered: bool,
    /// Connections in its place that the server ended without an answer though nothing was wrong, one after the other.
    pub(super) fruitless: u32,
    /// In place of the plan's target, where a redirect is followed: of the request on its way, or next to be sent.
    pub(super) hop: Option<Box<Hop>>,
    pub(super) sent: VecDeque<Sent>,
}

impl<Protocol: Exchange> Connection<Protocol> {
    #[inline]
    pub(super) fn next_hop(&self) -> Option<u64> {
        self.hop.as_deref().filter(|_| self.sent.is_empty()).map(|hop| hop.first.due)
    }

    /// Closes the socket and forgets what belonged to it but the hop, which goes on elsewhere; closing takes it out of epoll too.
    pub(super) fn reset(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        (self.stage, self.stream, self.claim) = (Stage::Unopened, None, None);
        (self.is_used, self.is_listed, self.is_answered) = (false, false, false);
        self.exchange = Protocol::default();
        self.sent.clear();
    }

    pub(super) fn failure(&self) -> Failure {
        let is_shaking = |stream: &Stream| stream.is_connected() && !stream.is_open();
        if self.stream.as_ref().is_some_and(is_shaking) { Failure::Tls } else { Failure::Connect }
    }

    /// When it must be looked at even if nothing happens on it.
    pub(super) fn deadline(&self, timeout: u64) -> Option<u64> {
        match self.stage {
            Stage::Unopened => None,
            Stage::Paused(until) => Some(until),
            Stage::Opening(since) => Some(since + timeout),
            Stage::Open => self.sent.front().map(|oldest| oldest.sent + timeout),
        }
    }
}

#[inline]
pub(super) fn asked<'a>(plan: &'a Plan, sent: &'a VecDeque<Sent>, hop: Option<&'a Hop>) -> impl Asked<'a> {
    move |place| hop.map_or_else(|| &plan.targets[sent[place].target as usize], |hop| &hop.target)
}
