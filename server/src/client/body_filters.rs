//! What the body of an answer goes through on its way: the location's filters, the parts of other answers, and a coding.

use super::Answerer;
use super::assembly::{Assembly, NextPart};
use super::output::AnswerOutput;
use super::stint::Stint;
use crate::filter::chain::{Chain, ChainStep};
use crate::filter::compressor::Compressor;
use crate::request::Request;
use millstream_net::buffers;
use millstream_wire::{Fields, Headers};
use std::task::Context;

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

#[derive(Default)]
pub(super) struct BodyFilters {
    chain: Option<Chain>,
    assembly: Option<Box<Assembly>>,
    compressor: Option<Compressor>,
    /// Whether to flush the compressor when the source pauses.
    streams: bool,
    paused: bool,
    /// Trailer fields, until the filters have seen all of the body.
    trailers: Option<Box<Headers>>,
}

impl BodyFilters {
    /// `streams`: whether to flush the compressor when the source pauses.
    pub(super) fn new(
        chain: Option<Chain>,
        assembly: Option<Box<Assembly>>,
        compressor: Option<Compressor>,
        streams: bool,
    ) -> BodyFilters {
        BodyFilters { chain, assembly, compressor, streams, paused: false, trailers: None }
    }

    /// Neither filters nor a coding.
    pub(super) fn is_none(&self) -> bool {
        self.chain.is_none() && self.assembly.is_none() && self.compressor.is_none()
    }

    /// Bytes of the body in filters that keep its length.
    pub(super) fn held(&self) -> usize {
        self.chain.as_ref().map_or(0, Chain::held)
    }

    /// Bytes that wait for their turn.
    pub(super) fn queued(&self) -> usize {
        self.held() + self.assembly.as_ref().map_or(0, |assembly| assembly.held())
    }

    /// Flushes the compressor at every pause, though the length is known.
    pub(super) fn unbuffered(&mut self) {
        self.streams = true;
    }

    /// The source pauses.
    pub(super) fn pause(&mut self) {
        if self.streams {
            self.paused = self.compressor.is_some();
        }
    }

    /// What filters do not take at once waits for [`BodyFilters::assemble`].
    pub(super) fn put(&mut self, output: &mut AnswerOutput, request: &mut Request, piece: &[u8]) {
        self.paused = false;
        match (&mut self.chain, &mut self.assembly) {
            (None, None) => self.code(output, request, piece),
            (None, Some(assembly)) => assembly.put(piece),
            (Some(chain), _) => chain.put(piece),
        }
    }

    pub(super) fn close(
        &mut self,
        output: &mut AnswerOutput,
        request: &mut Request,
        trailers: Option<Fields<'_>>,
    ) {
        if self.chain.is_none() && self.assembly.is_none() {
            return self.finish(output, request, trailers);
        }
        self.trailers = trailers.map(|fields| Box::new(Headers::from(fields)));
        match (&mut self.chain, &mut self.assembly) {
            (Some(chain), _) => chain.close(),
            (None, Some(assembly)) => assembly.close(),
            (None, None) => {}
        }
    }

    /// Frames what is available of a filtered or assembled response, up to [`AT_ONCE`].
    pub(super) fn assemble(
        &mut self,
        output: &mut AnswerOutput,
        context: &mut Context<'_>,
        request: &mut Request,
        answerer: Answerer,
        stint: &mut Stint,
    ) -> Assembled {
        let assembled = loop {
            if self.chain.is_none() && self.assembly.is_none() {
                break Assembled::All;
            }
            if output.unwritten().len() >= AT_ONCE {
                return Assembled::Some;
            }
            if stint.is_over() {
                return Assembled::Later;
            }
            let is_filtered = self.filter(output, request, stint);
            let Some(assembly) = &mut self.assembly else {
                if is_filtered { continue } else { break Assembled::All }
            };
            match assembly.next(context, request, answerer, stint) {
                NextPart::Text(text) => {
                    stint.worked(text.len());
                    self.code(output, request, &text);
                }
                NextPart::Nothing | NextPart::Waits if is_filtered => {}
                NextPart::Nothing => break Assembled::All,
                NextPart::Waits => break Assembled::Waits,
                NextPart::Later => return Assembled::Later,
                NextPart::Cut => return Assembled::Cut,
                NextPart::End => {
                    self.assembly = None;
                    self.conclude(output, request);
                }
            }
        };
        if self.paused {
            self.flush_coded(output, request);
        }
        assembled
    }

    /// One step of the filters if there is room; false if there is nothing to do.
    fn filter(&mut self, output: &mut AnswerOutput, request: &mut Request, stint: &mut Stint) -> bool {
        let Some(chain) = &mut self.chain else { return false };
        if self.assembly.as_ref().is_some_and(|assembly| !assembly.has_room()) {
            return false;
        }
        let mut text = buffers::take();
        let step = chain.step(request, &mut text);
        if !text.is_empty() {
            match &mut self.assembly {
                Some(assembly) => assembly.put(&text),
                None => self.code(output, request, &text),
            }
        }
        buffers::give(text);
        match step {
            ChainStep::Done(work) => stint.worked(work),
            ChainStep::Dry => return false,
            ChainStep::Broken => (self.chain, self.assembly, output.cut) = (None, None, true),
            ChainStep::Ended => {
                self.chain = None;
                match &mut self.assembly {
                    Some(assembly) => assembly.close(),
                    None => self.conclude(output, request),
                }
            }
        }
        true
    }

    fn conclude(&mut self, output: &mut AnswerOutput, request: &mut Request) {
        let trailers = self.trailers.take();
        self.finish(output, request, trailers.as_ref().map(|fields| fields.view()));
    }

    /// Flushes the compressor, so that the client gets every event at once.
    fn flush_coded(&mut self, output: &mut AnswerOutput, request: &mut Request) {
        self.paused = false;
        let Some(compressor) = &mut self.compressor else { return };
        let mut squeezed = buffers::take();
        compressor.flush(&mut squeezed);
        request.sent.compressed = Some(compressor.totals());
        output.frame(&squeezed);
        buffers::give(squeezed);
    }

    fn finish(&mut self, output: &mut AnswerOutput, request: &mut Request, trailers: Option<Fields<'_>>) {
        if let Some(mut compressor) = self.compressor.take() {
            let mut squeezed = buffers::take();
            output.cut |= !compressor.finish(&mut squeezed);
            output.frame(&squeezed);
            request.sent.compressed = Some(compressor.totals());
            buffers::give(squeezed);
            if output.cut {
                return;
            }
        }
        output.end(request, trailers);
    }

    fn code(&mut self, output: &mut AnswerOutput, request: &mut Request, piece: &[u8]) {
        match &mut self.compressor {
            Some(compressor) => {
                let mut squeezed = buffers::take();
                compressor.compress(piece, &mut squeezed);
                request.sent.compressed = Some(compressor.totals());
                output.frame(&squeezed);
                buffers::give(squeezed);
            }
            None => output.frame(piece),
        }
    }
}
