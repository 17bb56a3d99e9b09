//! An answer on its way: what is framed of it, what its body still goes through, and how fast it may go.
//!
//! Before: `sending`, which makes one; next: `body_filters`, `output` and `unread`, its parts; `writing`, which writes it.

use super::Ending;
use super::body_filters::BodyFilters;
use super::output::AnswerOutput;
use super::tail::Tail;
use super::unread::UnreadBody;
use crate::limits::limit_rate::Pace;
use crate::request::Request;
use std::time::Duration;

pub(super) struct Answer {
    pub(super) output: AnswerOutput,
    /// The part of a whole body behind the output.
    pub(super) tail: Tail,
    pub(super) head_left: usize,
    pub(super) filters: BodyFilters,
    /// Bytes of the body to skip first.
    pub(super) skipped: u64,
    pub(super) send_timeout: Duration,
    /// `limit_rate`.
    pub(super) pace: Option<Box<Pace>>,
    /// The end waits for the rest of the request's body.
    pub(super) unread: Option<Box<UnreadBody>>,
}

impl Answer {
    #[inline]
    pub(super) fn new(request: &Request, output: AnswerOutput, filters: BodyFilters) -> Answer {
        Answer {
            head_left: output.bytes.len(),
            output,
            tail: Tail::None,
            filters,
            skipped: 0,
            send_timeout: request.location().settings.send.timeout,
            pace: Pace::of(request),
            unread: None,
        }
    }

    pub(super) fn queued(&self) -> usize {
        self.output.unwritten().len() + self.tail.length() + self.filters.queued()
    }

    /// See [`AnswerOutput::settle`].
    pub(super) fn settle(self, abandoned: bool) -> (Ending, Option<Vec<u8>>) {
        self.output.settle(abandoned)
    }

    /// What is not to be skipped goes through the filters.
    pub(super) fn push(&mut self, request: &mut Request, piece: &[u8]) {
        let passed = usize::try_from(self.skipped).unwrap_or(usize::MAX).min(piece.len());
        self.skipped -= passed as u64;
        self.filters.put(&mut self.output, request, &piece[passed..]);
    }
}
