//! An answer on its way: head and body framed into one buffer, changed and compressed on the way where the location says so.
//!
//! Before: `assembly`, what else belongs to it; next: `sending`, which makes one, and writes it.

use super::Answerer;
use super::Ending;
use super::assembly::{Assembly, Next};
use super::framing::Framed;
use super::tail::Tail;
use crate::filter::chain::Chain;
use crate::filter::compressor::Compressor;
use crate::filter::trailers;
use crate::limits::limit_rate::Pace;
use crate::request::Request;
use millstream_net::buffers;
use millstream_wire::h1::encode;
use millstream_wire::{Fields, Headers};
use std::task::Context;
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
    pub(super) framed: Framed,
    /// What the body goes through first.
    pub(super) chain: Option<Chain>,
    /// What else belongs to it.
    pub(super) assembly: Option<Box<Assembly>>,
    pub(super) compressor: Option<Box<Compressor>>,
    /// Whether what the compressor holds goes out when the source pauses.
    pub(super) streams: bool,
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
            + self.assembly.as_ref().map_or(0, |assembly| assembly.held())
    }

    /// How it ended.
    pub(super) fn settle(mut self, abandoned: bool) -> Ending {
        buffers::give(std::mem::take(&mut self.out));
        let is_whole = self.ended && !self.cut && !abandoned;
        match (is_whole, self.framed) {
            (true, Framed::Close) => Ending::Closing,
            (true, _) => Ending::Whole,
            (false, Framed::Close) => Ending::CutUnseen,
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
            Framed::Length(left) => left >= length as u64,
            Framed::Chunked | Framed::Close => true,
            Framed::Empty => false,
        }
    }

    /// Whether neither filters nor a coding make something else of the body.
    pub(super) fn is_as_it_comes(&self) -> bool {
        self.chain.is_none() && self.assembly.is_none() && self.compressor.is_none()
    }

    /// Takes some of the answer itself, once it has gone through the filters.
    pub(super) fn put(&mut self, request: &mut Request, answerer: Answerer, text: &[u8]) {
        match &mut self.assembly {
            Some(assembly) => assembly.put(request, answerer, text),
            None => self.code(request, text),
        }
    }

    /// Ends the answer itself. Trailer fields are sent where the body is chunked.
    pub(super) fn close(&mut self, request: &mut Request, answerer: Answerer, trailers: Option<Fields<'_>>) {
        if let Some(chain) = self.chain.take() {
            match chain.end(request) {
                Some(rest) => self.put(request, answerer, &rest),
                None => {
                    self.cut = true;
                    return;
                }
            }
        }
        match &mut self.assembly {
            Some(assembly) => assembly.close(request, answerer, trailers),
            None => self.finish(request, trailers),
        }
    }

    /// Frames what there is of an answer that is put together.
    pub(super) fn assemble(
        &mut self,
        context: &mut Context<'_>,
        request: &mut Request,
        answerer: Answerer,
    ) -> Assembled {
        while let Some(assembly) = &mut self.assembly {
            if self.out.len() - self.written >= AT_ONCE {
                return Assembled::Some;
            }
            match assembly.next(context, request, answerer) {
                Next::Text(text) => self.code(request, &text),
                Next::Nothing => return Assembled::All,
                Next::Waits => return Assembled::Waits,
                Next::Cut => return Assembled::Cut,
                Next::End(trailers) => {
                    self.assembly = None;
                    self.finish(request, trailers.as_ref().map(Headers::view));
                }
            }
        }
        Assembled::All
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
            Framed::Empty => return,
            Framed::Length(left) => piece.len().min(usize::try_from(left).unwrap_or(usize::MAX)),
            Framed::Chunked | Framed::Close => piece.len(),
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
            Framed::Chunked => encode::chunk_head(&mut self.out, length),
            Framed::Length(left) => *left -= length as u64,
            Framed::Empty | Framed::Close => {}
        }
    }

    pub(super) fn close_piece(&mut self) {
        if self.framed == Framed::Chunked {
            self.out.extend_from_slice(b"\r\n");
        }
    }

    pub(super) fn end(&mut self, request: &mut Request, of_upstream: Option<Fields<'_>>) {
        match self.framed {
            Framed::Length(left) if left > 0 => self.cut = true,
            Framed::Chunked => {
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
