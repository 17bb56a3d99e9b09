//! An answer on its way: what is framed of it, what its body still goes through, and how it is written, as fast as it may go: from
//! memory, or by the kernel out of a file.
//!
//! Next: `body_filters`, `output` and `unread`, its parts; `millstream-net`'s `outlet`, which bounds how long a client may take nothing.

use super::ClientFailure;
use super::body_filters::BodyFilters;
use super::output::{AnswerFraming, AnswerOutput};
use super::tail::Tail;
use super::unread::UnreadBody;
use crate::filter::trailers;
use crate::limits::limit_rate::Pace;
use crate::request::Request;
use millstream_net::outlet::Outlet;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::fd::AsFd;
use std::task::{Context, Poll, ready};
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

    /// What is not to be skipped goes through the filters.
    pub(super) fn push(&mut self, request: &mut Request, piece: &[u8]) {
        let passed = usize::try_from(self.skipped).unwrap_or(usize::MAX).min(piece.len());
        self.skipped -= passed as u64;
        self.filters.put(&mut self.output, request, &piece[passed..]);
    }

    /// Whether nothing follows what is framed now with its tail.
    fn is_last(&self, request: &Request) -> bool {
        let is_whole = self.output.ended
            // All that was announced is there, and nothing else will be.
            || self.output.framing == AnswerFraming::Length(0)
                && self.filters.is_none()
                && !trailers::are_expected(request, request.sent.status)
                && !trailers::may_come(request);
        is_whole && !self.output.cut && self.tail.length() == 0 && self.output.last_block.is_none()
    }

    /// Whether no more of the body follows what is framed now with its tail.
    fn has_body_framed(&self) -> bool {
        let is_framed = self.output.ended || self.output.framing == AnswerFraming::Length(0);
        is_framed && !self.output.cut && self.tail.length() == 0
    }

    /// Whether what ends the response has to wait.
    fn is_held(&mut self, cx: &mut Context<'_>, request: &Request) -> bool {
        let is_at_end = self.has_body_framed();
        let Some(unread) = &mut self.unread else { return false };
        if unread.poll(cx, request, is_at_end).is_ready() {
            self.unread = None;
            return false;
        }
        is_at_end
    }

    pub(super) fn poll_write(
        &mut self,
        outlet: &mut Outlet<'_>,
        cx: &mut Context<'_>,
        request: &mut Request,
    ) -> Poll<Result<(), ClientFailure>> {
        let (mut tail, mut sent) = (std::mem::take(&mut self.tail), 0);
        let step = match (&tail, tail.bytes()) {
            (Tail::File(file, part), _) => {
                self.poll_write_file(outlet, cx, request, &**file, part, &mut sent)
            }
            (_, Some(bytes)) => self.poll_write_piece(outlet, cx, request, &bytes, &mut sent),
            // What was moved to a file meanwhile is read piece by piece, by whoever flushes.
            (_, None) => {
                self.tail = tail;
                return self.poll_write_piece(outlet, cx, request, &[], &mut sent);
            }
        };
        if step.is_pending() {
            tail.advance(sent);
            self.tail = tail;
        }
        step
    }

    pub(super) fn is_paused(&self) -> bool {
        self.pace.as_ref().is_some_and(|pace| pace.is_paused())
    }

    /// Reads a piece of what was moved to a file; false without one.
    pub(super) async fn read_on(&mut self) -> io::Result<bool> {
        let Tail::Lent(loan, part) = &self.tail else { return Ok(false) };
        let bytes = loan.read(part.clone()).await?;
        self.output.bytes.extend_from_slice(&bytes);
        self.tail.advance(bytes.len());
        Ok(true)
    }

    /// Returns how many of the bytes written were not of `out`.
    fn account(&mut self, request: &mut Request, count: usize) -> usize {
        if let Some(pace) = &mut self.pace {
            pace.wrote(request.sent.bytes, count as u64);
        }
        let from_out = count.min(self.output.unwritten().len());
        self.output.written += from_out;
        let of_head = count.min(self.head_left);
        self.head_left -= of_head;
        request.sent.bytes += count as u64;
        request.sent.body_bytes += (count - of_head) as u64;
        count - from_out
    }

    pub(super) fn poll_write_piece(
        &mut self,
        outlet: &mut Outlet<'_>,
        cx: &mut Context<'_>,
        request: &mut Request,
        piece: &[u8],
        sent: &mut usize,
    ) -> Poll<Result<(), ClientFailure>> {
        let is_held = self.is_held(cx, request);
        while !self.output.unwritten().is_empty() || *sent < piece.len() {
            let most = ready!(self.poll_most(outlet, cx, request))?;
            let (out, rest) = (self.output.unwritten(), &piece[*sent..]);
            let left = self.output.unwritten().len() + piece.len() - *sent;
            if is_held && left == 1 {
                return Poll::Pending;
            }
            let most = if is_held { most.min(left - 1) } else { most };
            let out = &out[..out.len().min(most)];
            let rest = &rest[..rest.len().min(most - out.len())];
            let is_end = out.len() + rest.len() == left;
            outlet.is_last(is_end && self.is_last(request));
            let wrote = if rest.is_empty() {
                outlet.poll_write(cx, out)
            } else {
                outlet.poll_write_vectored(cx, &[IoSlice::new(out), IoSlice::new(rest)])
            };
            *sent += self.wrote(ready!(wrote), request)?;
        }
        if is_held { Poll::Pending } else { self.poll_written(outlet, cx, request) }
    }

    fn poll_written(
        &mut self,
        outlet: &mut Outlet<'_>,
        cx: &mut Context<'_>,
        request: &mut Request,
    ) -> Poll<Result<(), ClientFailure>> {
        self.output.bytes.clear();
        self.output.written = 0;
        // A TLS stream may hold records back until it is flushed.
        ready!(outlet.poll_flush(cx)).map_err(|error| self.failed(&error))?;
        if self.output.ended && !self.output.cut && self.tail.length() == 0 {
            request.sent.complete = true;
        }
        Poll::Ready(Ok(()))
    }

    pub(super) fn poll_write_file(
        &mut self,
        outlet: &mut Outlet<'_>,
        cx: &mut Context<'_>,
        request: &mut Request,
        file: &dyn AsFd,
        part: &Range<u64>,
        sent: &mut usize,
    ) -> Poll<Result<(), ClientFailure>> {
        while part.start + (*sent as u64) < part.end {
            let most = ready!(self.poll_most(outlet, cx, request))?;
            let out = self.output.unwritten();
            let out = &out[..out.len().min(most)];
            let start = part.start + *sent as u64;
            let rest = start..part.end.min(start.saturating_add((most - out.len()) as u64));
            let wrote = outlet.poll_write_with_file(cx, out, &file, rest);
            *sent += self.wrote(ready!(wrote), request)?;
        }
        self.poll_written(outlet, cx, request)
    }

    /// Ready once something may be written and would be taken. Checks the pace first, as the caller writes at
    /// once.
    pub(super) fn poll_room(
        &mut self,
        outlet: &mut Outlet<'_>,
        cx: &mut Context<'_>,
        request: &Request,
    ) -> Poll<Result<(), ClientFailure>> {
        ready!(self.poll_most(outlet, cx, request))?;
        outlet.poll_room(cx).map_err(|error| self.failed(&error))
    }

    /// Bytes that may be written now. Flushes TLS before a pause.
    fn poll_most(
        &mut self,
        outlet: &mut Outlet<'_>,
        cx: &mut Context<'_>,
        request: &Request,
    ) -> Poll<Result<usize, ClientFailure>> {
        let Some(pace) = &mut self.pace else { return Poll::Ready(Ok(usize::MAX)) };
        if let Poll::Ready(most) = pace.poll_most(cx, request.sent.bytes) {
            return Poll::Ready(Ok(most));
        }
        match outlet.poll_flush(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(self.failed(&error))),
            _ => Poll::Pending,
        }
    }

    fn wrote(&mut self, wrote: io::Result<usize>, request: &mut Request) -> Result<usize, ClientFailure> {
        match wrote {
            Ok(count) => Ok(self.account(request, count)),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn failed(&mut self, error: &io::Error) -> ClientFailure {
        self.output.cut = true;
        ClientFailure::of_writing(error)
    }
}
