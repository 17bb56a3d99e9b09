//! An answer on its way: head and body framed into one buffer, changed and compressed on the way where the location says so.
//!
//! Before: `assembly`, what else belongs to it; next: `sending`, which makes one.

use super::assembly::{Assembly, NextPart};
use super::framing::AnswerFraming;
use super::stint::Stint;
use super::tail::Tail;
use super::{Answerer, Ending};
use crate::filter::chain::{Chain, ChainStep};
use crate::filter::compressor::Compressor;
use crate::filter::trailers;
use crate::limits::limit_rate::Pace;
use crate::request::Request;
use millstream_net::buffers;
use millstream_wire::h1::encode;
use millstream_wire::{Fields, Headers};
use std::task::Context;
use std::time::Duration;

/// Bytes framed before they are written, even if more is ready.
const AT_ONCE: usize = 32 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Assembled {
    All,
    Some,
    Waits,
    Later,
    /// A subrequest's response was cut, and so is this one.
    Cut,
}

pub(super) struct Answer {
    pub(super) out: Vec<u8>,
    pub(super) written: usize,
    /// The part of a whole body behind `out`.
    pub(super) tail: Tail,
    pub(super) head_left: usize,
    pub(super) framed: AnswerFraming,
    pub(super) chain: Option<Chain>,
    pub(super) assembly: Option<Box<Assembly>>,
    pub(super) compressor: Option<Compressor>,
    /// Whether to flush the compressor when the source pauses.
    pub(super) streams: bool,
    pub(super) paused: bool,
    /// Trailer fields, until the filters have seen all of the body.
    pub(super) trailers: Option<Box<Headers>>,
    pub(super) last_block: Option<Vec<u8>>,
    /// Bytes of the body to skip first.
    pub(super) skipped: u64,
    pub(super) ended: bool,
    pub(super) cut: bool,
    pub(super) send_timeout: Duration,
    /// `limit_rate`.
    pub(super) pace: Option<Box<Pace>>,
}

impl Answer {
    pub(super) fn queued(&self) -> usize {
        self.out.len() - self.written
            + self.tail.length()
            + self.chain.as_ref().map_or(0, Chain::held)
            + self.assembly.as_ref().map_or(0, |assembly| assembly.held())
    }

    /// How it ended, and the trailers still to be sent on a stream.
    pub(super) fn settle(mut self, abandoned: bool) -> (Ending, Option<Vec<u8>>) {
        buffers::give(std::mem::take(&mut self.out));
        let is_whole = self.ended && !self.cut && !abandoned;
        let ending = match (is_whole, self.framed) {
            (true, AnswerFraming::Close) => Ending::Closing,
            (true, _) => Ending::Whole,
            (false, AnswerFraming::Close) => Ending::CutUnseen,
            (false, _) => Ending::Cut,
        };
        (ending, self.last_block)
    }

    pub(super) fn wanted<'p>(&mut self, piece: &'p [u8]) -> &'p [u8] {
        let passed = usize::try_from(self.skipped).unwrap_or(usize::MAX).min(piece.len());
        self.skipped -= passed as u64;
        &piece[passed..]
    }

    pub(super) fn room_for(&self, length: usize) -> bool {
        match self.framed {
            AnswerFraming::Length(left) => left >= length as u64,
            AnswerFraming::Chunked | AnswerFraming::Close | AnswerFraming::Stream => true,
            AnswerFraming::Empty => false,
        }
    }

    /// Neither filters nor a coding.
    pub(super) fn is_as_it_comes(&self) -> bool {
        self.chain.is_none() && self.assembly.is_none() && self.compressor.is_none()
    }

    /// What filters do not take at once waits for [`Answer::assemble`].
    pub(super) fn put(&mut self, request: &mut Request, piece: &[u8]) {
        self.paused = false;
        match (&mut self.chain, &mut self.assembly) {
            (None, None) => self.code(request, piece),
            (None, Some(assembly)) => assembly.put(piece),
            (Some(chain), _) => chain.put(piece),
        }
    }

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

    /// Frames what is available of a filtered or assembled response, up to [`AT_ONCE`].
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

    /// One step of the filters if there is room; false if there is nothing to do.
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

    fn conclude(&mut self, request: &mut Request) {
        let trailers = self.trailers.take();
        self.finish(request, trailers.as_ref().map(|fields| fields.view()));
    }

    /// Flushes the compressor, so that the client gets every event at once.
    fn flush_coded(&mut self, request: &mut Request) {
        self.paused = false;
        let Some(compressor) = &mut self.compressor else { return };
        let mut squeezed = buffers::take();
        compressor.flush(&mut squeezed);
        request.sent.compressed = Some(compressor.totals());
        self.frame(&squeezed);
        buffers::give(squeezed);
    }

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
            AnswerFraming::Chunked | AnswerFraming::Close | AnswerFraming::Stream => piece.len(),
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
            AnswerFraming::Empty | AnswerFraming::Close | AnswerFraming::Stream => {}
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
            // Whatever frames the body there, fields may follow (RFC 9113 §8.1).
            AnswerFraming::Length(_) | AnswerFraming::Stream
                if request.is_on_stream()
                    && (of_upstream.is_some() || trailers::are_expected(request, request.sent.status)) =>
            {
                self.last_block = trailers::block(request, of_upstream);
            }
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
