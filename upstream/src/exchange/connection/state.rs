//! How far the present exchange on a connection has come: its request sent, the heads and the body of its answer read.
//!
//! It reads and writes nothing. Before: `reading`, which fills the buffer; next: `speaker` and `body`, which say what the bytes mean.

use super::buffer::ReadBuffer;
use crate::error::{ExchangeError, MAX_INTERIM};
use crate::exchange::body::{self, Body};
use crate::exchange::pace::Pace;
use crate::exchange::speaker::Speaker;
use millstream_wire::Method;
use millstream_wire::h1::head::ResponseHead;

#[derive(Debug)]
pub(super) struct ExchangeState {
    pub(super) speaker: Speaker,
    pub(super) method: Method,
    /// Whether another may follow, as far as both sides have said.
    pub(super) keep: bool,
    pub(super) sent: bool,
    pub(super) received: u64,
    pub(super) written: u64,
    /// Octets of the request's body that were sent or are unsent.
    pub(super) body_given: u64,
    pub(super) unsent: Unsent,
    interim: u32,
    pub(super) body: Body,
    /// Whether the answer had no body whatever its fields said, so that a server may have written one all the same.
    pub(super) is_bodiless: bool,
    pub(super) pace: Option<Box<Pace>>,
}

/// What a server did not take because it responded first, after a part of the same piece had gone out: nothing else may be sent
/// before it. Framed, unless it is that of a call.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    pub(super) bytes: Vec<u8>,
    /// How many of them are out, while the response arrives.
    pub(super) out: usize,
    /// Whether it is the end of the body.
    pub(super) is_last: bool,
}

/// A part of a body by its place in the buffer.
pub(super) enum Found {
    Data { from: usize, to: usize },
    Nothing,
    End,
}

impl ExchangeState {
    /// Before the first exchange.
    pub(super) fn none() -> ExchangeState {
        let begun = ExchangeState::begin(Speaker::http1(false), Method::Get, false);
        ExchangeState { body: Body::ended(), ..begun }
    }

    pub(super) fn begin(speaker: Speaker, method: Method, keep: bool) -> ExchangeState {
        ExchangeState {
            speaker,
            method,
            keep,
            sent: false,
            received: 0,
            written: 0,
            body_given: 0,
            unsent: Unsent::default(),
            interim: 0,
            body: Body::pending(),
            is_bodiless: false,
            pace: None,
        }
    }

    /// Both messages ended cleanly, and neither side asked to close.
    pub(super) fn is_over(&self) -> bool {
        self.keep && self.sent && self.body.is_ended()
    }

    /// A request that was sent whole, and has not been answered whole.
    pub(super) fn is_cut(&self) -> bool {
        self.sent && !self.body.is_ended()
    }

    /// Holds nothing until the next exchange.
    pub(super) fn rest(&mut self) {
        self.pace = None;
        self.unsent = Unsent::default();
        self.body = Body::ended();
        self.speaker = Speaker::http1(false);
    }

    /// Whatever its fields say (RFC 9112 §6.3).
    pub(super) fn has_no_body(&self, head: &ResponseHead) -> bool {
        self.method == Method::Head || matches!(head.status, 204 | 304)
    }

    /// Takes the head at the beginning of what is unread.
    pub(super) fn accept_head(
        &mut self,
        head: &ResponseHead,
        buffer: &mut ReadBuffer,
    ) -> Result<(), ExchangeError> {
        buffer.use_up_head(head.length);
        if head.is_interim() {
            self.interim += 1;
            return if self.interim > MAX_INTERIM { Err(ExchangeError::TooManyInterim) } else { Ok(()) };
        }
        let (framing, keep) = self.speaker.accept(self.method, head, head.view(buffer.head()))?;
        self.keep &= keep;
        self.is_bodiless = self.has_no_body(head);
        self.body = Body::of(framing);
        Ok(())
    }

    /// The next part of the body, as far as it is in the buffer.
    pub(super) fn advance(&mut self, buffer: &mut ReadBuffer) -> Result<Found, ExchangeError> {
        match self.body.step(buffer.unread_mut())? {
            body::Step::Data { from, to, used } => {
                let start = buffer.use_up(used);
                Ok(Found::Data { from: start + from, to: start + to })
            }
            body::Step::More { used } => {
                buffer.use_up(used);
                match self.speaker.is_ended()? {
                    false if self.speaker.is_closed() && !self.body.ends_with_stream() => {
                        Err(ExchangeError::EndedEarly)
                    }
                    false => Ok(Found::Nothing),
                    true if self.body.ended_with_stream() => Ok(Found::End),
                    true => Err(ExchangeError::EndedEarly),
                }
            }
            body::Step::End { used } => {
                buffer.use_up(used);
                Ok(Found::End)
            }
        }
    }
}
