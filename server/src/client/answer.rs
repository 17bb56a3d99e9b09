//! An answer on its way: head and body framed into one buffer, changed and compressed on the way where the location says so.
//!
//! Before: `assembly`, what else belongs to it; next: `sending`, which makes one.

use super::assembly::{Assembly, NextPart};
use super::framing::AnswerFraming;
use super::stint::Stint;
use super::tail::Tail;
use super::{Answerer, ClientFailure, Ending};
use crate::filter::chain::{Chain, ChainStep};
use crate::filter::compressor::Compressor;
use crate::filter::trailers;
use crate::limits::limit_rate::Pace;
use crate::request::Request;
use millstream_net::buffers;
use millstream_net::outlet::Outlet;
use millstream_wire::h1::encode;
use millstream_wire::{Fields, Headers};
use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::fd::AsFd;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Bytes framed before they are written even though more is there.
const AT_ONCE: usize = 32 * 1024;

/// How far putting together has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Assembled {
    /// All that is known by now is framed.
    All,
    /// There is more than is framed at once.
    Some,
    /// A subrequest has not answered yet.
    Waits,
    /// There is more to do, once others had their turn.
    Later,
    /// What a subrequest answers broke off, and so does this.
    Cut,
}

/// An answer being sent.
pub(super) struct Answer {
    pub(super) out: Vec<u8>,
    pub(super) written: usize,
    /// What follows `out` of a whole body.
    pub(super) tail: Tail,
    pub(super) head_left: usize,
    pub(super) framed: AnswerFraming,
    /// What the body goes through first.
    pub(super) chain: Option<Chain>,
    /// What else belongs to it.
    pub(super) assembly: Option<Box<Assembly>>,
    pub(super) compressor: Option<Box<Compressor>>,
    /// Whether what the compressor holds goes out when the source pauses.
    pub(super) streams: bool,
    /// Whether the source has paused since.
    pub(super) paused: bool,
    /// The fields behind the body, for when all of it has gone through filters.
    pub(super) trailers: Option<Box<Headers>>,
    /// Bytes of the body that are passed over before the first that goes out.
    pub(super) skipped: u64,
    pub(super) ended: bool,
    pub(super) cut: bool,
    pub(super) send_timeout: Duration,
    /// How fast it may go out (`limit_rate`).
    pub(super) pace: Option<Box<Pace>>,
}

impl Answer {
    pub(super) fn queued(&self) -> usize {
        self.out.len() - self.written
            + self.tail.length()
            + self.chain.as_ref().map_or(0, Chain::held)
            + self.assembly.as_ref().map_or(0, |assembly| assembly.held())
    }

    /// How it ended.
    pub(super) fn settle(mut self, abandoned: bool) -> Ending {
        buffers::give(std::mem::take(&mut self.out));
        let is_whole = self.ended && !self.cut && !abandoned;
        match (is_whole, self.framed) {
            (true, AnswerFraming::Close) => Ending::Closing,
            (true, _) => Ending::Whole,
            (false, AnswerFraming::Close) => Ending::CutUnseen,
            (false, _) => Ending::Cut,
        }
    }

    /// What is left of a piece behind what is passed over.
    pub(super) fn wanted<'p>(&mut self, piece: &'p [u8]) -> &'p [u8] {
        let passed = usize::try_from(self.skipped).unwrap_or(usize::MAX).min(piece.len());
        self.skipped -= passed as u64;
        &piece[passed..]
    }

    pub(super) fn room_for(&self, length: usize) -> bool {
        match self.framed {
            AnswerFraming::Length(left) => left >= length as u64,
            AnswerFraming::Chunked | AnswerFraming::Close => true,
            AnswerFraming::Empty => false,
        }
    }

    /// Whether neither filters nor a coding make something else of the body.
    pub(super) fn is_as_it_comes(&self) -> bool {
        self.chain.is_none() && self.assembly.is_none() && self.compressor.is_none()
    }

    /// Takes some of the answer itself. What filters do not take at once waits for [`Answer::assemble`].
    pub(super) fn put(&mut self, request: &mut Request, piece: &[u8]) {
        self.paused = false;
        match (&mut self.chain, &mut self.assembly) {
            (None, None) => self.code(request, piece),
            (None, Some(assembly)) => assembly.put(piece),
            (Some(chain), _) => chain.put(piece),
        }
    }

    /// Ends the answer itself. Trailer fields are sent where the body is chunked.
    pub(super) fn close(&mut self, request: &mut Request, trailers: Option<Fields<'_>>) {
        if self.chain.is_none() && self.assembly.is_none() {
            return self.finish(request, trailers);
        }
        self.trailers = trailers.map(|fields| Box::new(Headers::copied_from(fields, |_, _, _| true)));
        match (&mut self.chain, &mut self.assembly) {
            (Some(chain), _) => chain.close(),
            (None, Some(assembly)) => assembly.close(),
            (None, None) => {}
        }
    }

    /// Frames what there is of an answer that is filtered or put together, as far as there is room.
    pub(super) fn assemble(
        &mut self,
        context: &mut Context<'_>,
        request: &mut Request,
        answerer: Answerer,
        stint: &mut Stint,
    ) -> Assembled {
        let assembled = loop {
            if self.chain.is_none() && self.assembly.is_none() {
                break Assembled::All;
            }
            if self.out.len() - self.written >= AT_ONCE {
                return Assembled::Some;
            }
            if stint.is_over() {
                return Assembled::Later;
            }
            let is_filtered = self.filter(request, stint);
            let Some(assembly) = &mut self.assembly else {
                if is_filtered { continue } else { break Assembled::All }
            };
            match assembly.next(context, request, answerer, stint) {
                NextPart::Text(text) => {
                    stint.worked(text.len());
                    self.code(request, &text);
                }
                NextPart::Nothing | NextPart::Waits if is_filtered => {}
                NextPart::Nothing => break Assembled::All,
                NextPart::Waits => break Assembled::Waits,
                NextPart::Later => return Assembled::Later,
                NextPart::Cut => return Assembled::Cut,
                NextPart::End => {
                    self.assembly = None;
                    self.conclude(request);
                }
            }
        };
        if self.paused {
            self.flush_coded(request);
        }
        assembled
    }

    /// One step of the filters, where there is room for what comes of it. False where they have nothing to do.
    fn filter(&mut self, request: &mut Request, stint: &mut Stint) -> bool {
        let Some(chain) = &mut self.chain else { return false };
        if self.assembly.as_ref().is_some_and(|assembly| !assembly.has_room()) {
            return false;
        }
        let mut text = buffers::take();
        let step = chain.step(request, &mut text);
        if !text.is_empty() {
            match &mut self.assembly {
                Some(assembly) => assembly.put(&text),
                None => self.code(request, &text),
            }
        }
        buffers::give(text);
        match step {
            ChainStep::Done(work) => stint.worked(work),
            ChainStep::Dry => return false,
            ChainStep::Broken => (self.chain, self.assembly, self.cut) = (None, None, true),
            ChainStep::Ended => {
                self.chain = None;
                match &mut self.assembly {
                    Some(assembly) => assembly.close(),
                    None => self.conclude(request),
                }
            }
        }
        true
    }

    /// All has gone through filters.
    fn conclude(&mut self, request: &mut Request) {
        let trailers = self.trailers.take();
        self.finish(request, trailers.as_ref().map(|fields| fields.view()));
    }

    /// Frames what the compressor holds back of a stream, so that the client gets every event when it comes.
    fn flush_coded(&mut self, request: &mut Request) {
        self.paused = false;
        let Some(compressor) = &mut self.compressor else { return };
        let mut squeezed = buffers::take();
        compressor.flush(&mut squeezed);
        request.sent.compressed = Some(compressor.totals());
        self.frame(&squeezed);
        buffers::give(squeezed);
    }

    /// Frames the end of the body.
    pub(super) fn finish(&mut self, request: &mut Request, trailers: Option<Fields<'_>>) {
        if let Some(mut compressor) = self.compressor.take() {
            let mut squeezed = buffers::take();
            self.cut |= !compressor.finish(&mut squeezed);
            self.frame(&squeezed);
            request.sent.compressed = Some(compressor.totals());
            buffers::give(squeezed);
            if self.cut {
                return;
            }
        }
        self.end(request, trailers);
    }

    /// Frames a piece that has gone through the filters.
    pub(super) fn code(&mut self, request: &mut Request, piece: &[u8]) {
        match &mut self.compressor {
            Some(compressor) => {
                let mut squeezed = buffers::take();
                compressor.compress(piece, &mut squeezed);
                request.sent.compressed = Some(compressor.totals());
                self.frame(&squeezed);
                buffers::give(squeezed);
            }
            None => self.frame(piece),
        }
    }

    pub(super) fn frame(&mut self, piece: &[u8]) {
        let room = match self.framed {
            AnswerFraming::Empty => return,
            AnswerFraming::Length(left) => piece.len().min(usize::try_from(left).unwrap_or(usize::MAX)),
            AnswerFraming::Chunked | AnswerFraming::Close => piece.len(),
        };
        if room == 0 {
            return;
        }
        self.open_piece(room);
        self.out.extend_from_slice(&piece[..room]);
        self.close_piece();
    }

    pub(super) fn open_piece(&mut self, length: usize) {
        match &mut self.framed {
            AnswerFraming::Chunked => encode::chunk_head(&mut self.out, length),
            AnswerFraming::Length(left) => *left -= length as u64,
            AnswerFraming::Empty | AnswerFraming::Close => {}
        }
    }

    pub(super) fn close_piece(&mut self) {
        if self.framed == AnswerFraming::Chunked {
            self.out.extend_from_slice(b"\r\n");
        }
    }

    pub(super) fn end(&mut self, request: &mut Request, of_upstream: Option<Fields<'_>>) {
        match self.framed {
            AnswerFraming::Length(left) if left > 0 => self.cut = true,
            AnswerFraming::Chunked => {
                self.out.extend_from_slice(b"0\r\n");
                if of_upstream.is_some() || trailers::are_expected(request, request.sent.status) {
                    trailers::write(&mut self.out, request, of_upstream);
                }
                self.out.extend_from_slice(b"\r\n");
            }
            _ => {}
        }
        self.ended = true;
    }
}

impl Answer {
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

    /// Whether nothing is written for now, as fast as the client might be.
    pub(super) fn is_paused(&self) -> bool {
        self.pace.as_ref().is_some_and(|pace| pace.is_paused())
    }

    pub(super) fn send_timeout(&self) -> Duration {
        self.send_timeout
    }

    /// Reads a piece of what was moved to a file. False where nothing was.
    pub(super) async fn read_on(&mut self) -> io::Result<bool> {
        let Tail::Lent(loan, part) = &self.tail else { return Ok(false) };
        let bytes = loan.read(part.clone()).await?;
        self.out.extend_from_slice(&bytes);
        self.tail.advance(bytes.len());
        Ok(true)
    }

    /// Counts bytes that were written; gives how many of them were not of `out`.
    fn account(&mut self, request: &mut Request, count: usize) -> usize {
        if let Some(pace) = &mut self.pace {
            pace.wrote(request.sent.bytes, count as u64);
        }
        let from_out = count.min(self.out.len() - self.written);
        self.written += from_out;
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
        while self.written < self.out.len() || *sent < piece.len() {
            let most = ready!(self.poll_most(outlet, cx, request))?;
            let (out, rest) = (&self.out[self.written..], &piece[*sent..]);
            let out = &out[..out.len().min(most)];
            let rest = &rest[..rest.len().min(most - out.len())];
            let wrote = if rest.is_empty() {
                outlet.poll_write(cx, out)
            } else {
                outlet.poll_write_vectored(cx, &[IoSlice::new(out), IoSlice::new(rest)])
            };
            *sent += self.wrote(ready!(wrote), request)?;
        }
        self.poll_written(outlet, cx, request)
    }

    /// Everything was written that was to be.
    fn poll_written(
        &mut self,
        outlet: &mut Outlet<'_>,
        cx: &mut Context<'_>,
        request: &mut Request,
    ) -> Poll<Result<(), ClientFailure>> {
        self.out.clear();
        self.written = 0;
        // A TLS stream may hold records back until it is flushed.
        ready!(outlet.poll_flush(cx)).map_err(|error| self.failed(&error))?;
        if self.ended && !self.cut && self.tail.length() == 0 {
            request.sent.complete = true;
        }
        Poll::Ready(Ok(()))
    }

    /// As [`Answer::poll_write_piece`], for a piece in a file.
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
            let out = &self.out[self.written..];
            let out = &out[..out.len().min(most)];
            let start = part.start + *sent as u64;
            let rest = start..part.end.min(start.saturating_add((most - out.len()) as u64));
            let wrote = outlet.poll_write_with_file(cx, out, &file, rest);
            *sent += self.wrote(ready!(wrote), request)?;
        }
        self.poll_written(outlet, cx, request)
    }

    /// How many bytes may be written now. What a TLS session holds back goes out before a pause.
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

    /// What one write came to: how much of it was the piece's.
    fn wrote(&mut self, wrote: io::Result<usize>, request: &mut Request) -> Result<usize, ClientFailure> {
        match wrote {
            Ok(count) => Ok(self.account(request, count)),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn failed(&mut self, error: &io::Error) -> ClientFailure {
        self.cut = true;
        ClientFailure::of_writing(error)
    }
}
