//! Sending an answer: head and body framed into one buffer, changed and compressed on the way where the location says so.
//!
//! An answer that cannot be ended as announced is abandoned: the connection closes without the last chunk, so no client
//! takes a part for the whole (RFC 9112 §8).

use super::answer::Answer;
use super::assembly::Assembly;
use super::body_filters::BodyFilters;
use super::output::{AnswerFraming, AnswerHead, AnswerOutput, framed};
use super::tail::WholeBody;
use super::unread::UnreadBody;
use super::{Client, ClientFailure, End};
use crate::filter::chain::{self, Changes};
use crate::filter::coding::{self, Plain};
use crate::filter::compressor::{Compressor, EncoderMemory};
use crate::filter::encoder::Effort;
use crate::filter::{head, trailers};
use crate::request::Request;
use bytes::Bytes;
use millstream_net::buffers;
use millstream_telemetry::metrics::Counter;
use millstream_wire::{Coding, Fields, Version};
use std::future::poll_fn;
use std::io::IoSlice;
use std::ops::Range;
use std::os::fd::AsFd;
use std::task::{Context, Poll};

/// From this size on pieces are written in place instead of copied.
const WRITE_IN_PLACE: usize = 8 * 1024;
/// Up to this size a body is copied behind its head: a vectored write costs the kernel more.
const WRITE_TOGETHER: usize = 4 * 1024;

impl Client {
    pub fn begin(&mut self, request: &mut Request, answer_head: AnswerHead<'_>) {
        if self.awaits_continue() {
            // It may send the body or not, so where the next request begins is not known (RFC 9110 §10.1.1).
            request.keep_alive = false;
        }
        // HEAD too: it says what GET would (RFC 9110 §9.3.2).
        let streams = answer_head.length.is_none();
        head::draft(request, answer_head.fields);
        let changed = chain::of(request, answer_head.status, answer_head.fields, answer_head.length);
        let answer_head = match &changed {
            Some(Changes { draft, .. }) => {
                AnswerHead { fields: draft.headers.view(), length: draft.length, ..answer_head }
            }
            None => answer_head,
        };
        // Filters change what is there; all that follows goes by the status that goes out.
        let answer_head = AnswerHead { status: request.outgoing(answer_head.status), ..answer_head };
        let AnswerHead { status, fields, length, .. } = answer_head;
        let coding = coding::choose(request, &Plain { status, fields, length });
        let encoder = coding.and_then(|coding| encoder_of(request, coding, length));
        let coding = coding.filter(|_| encoder.is_some());
        let framed = framed(request, &answer_head, coding.is_some());
        let mut out = buffers::take();
        let length = if coding.is_some() { None } else { length };
        head::encode(
            &mut out,
            request,
            &head::HeadPlan {
                status: answer_head.status,
                fields: answer_head.fields,
                length: if matches!(framed, AnswerFraming::Close | AnswerFraming::Chunked) {
                    None
                } else {
                    length
                },
                chunked: framed == AnswerFraming::Chunked,
                coding,
                age: answer_head.age,
            },
        );
        let is_as_it_comes = changed.is_none() && coding.is_none();
        let unread = UnreadBody::of(self, request, status);
        let is_all = unread.is_none() && is_all(request, framed, is_as_it_comes, status);
        self.take_head(request, &mut out, is_all);
        let (mut chain, mut assembly) = (None, None);
        if let Some(changes) = changed.filter(|_| framed != AnswerFraming::Empty) {
            chain = changes.chain;
            assembly = Assembly::begin(changes.addition, changes.ssi, request, self.answerer);
        }
        let compressor = encoder
            .filter(|_| framed != AnswerFraming::Empty)
            .map(|(effort, memory)| Compressor::new(effort, memory));
        let filters = BodyFilters::new(chain, assembly, compressor, streams);
        let mut answer = Box::new(Answer::new(request, AnswerOutput::new(out, framed), filters));
        answer.unread = unread;
        self.answer = Some(answer);
    }

    /// Leaves the head in the buffer to be sent before the body. On a stream it has its own frames; most
    /// subrequests skip it.
    pub fn take_head(&mut self, request: &mut Request, out: &mut Vec<u8>, is_all: bool) {
        match &self.end {
            End::Connection(..) => return,
            End::Stream(stream) => {
                stream.head(out, is_all, request.location().settings.send.http2_chunk);
                request.sent.bytes += out.len() as u64;
            }
            End::Inside(inside) if inside.wants_head => return,
            End::Inside(_) => {}
        }
        out.clear();
    }

    /// Skips this much of the body, for a partial response. Bytes beyond the announced length are skipped
    /// anyway.
    pub fn skip(&mut self, bytes: u64) {
        if let Some(answer) = &mut self.answer {
            answer.skipped = bytes;
        }
    }

    /// Whether the announced length is framed, or is in filters that keep it.
    pub fn has_all(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| match answer.output.framing {
            AnswerFraming::Length(left) => left <= answer.filters.held() as u64,
            _ => false,
        })
    }

    pub fn push(&mut self, request: &mut Request, piece: &[u8]) {
        let Some(answer) = &mut self.answer else { return };
        answer.push(request, piece);
    }

    /// Trailer fields are sent if the body is chunked.
    pub fn end(&mut self, request: &mut Request, trailers: Option<Fields<'_>>) {
        if let Some(answer) = &mut self.answer {
            answer.filters.close(&mut answer.output, request, trailers);
        }
    }

    /// The end of a response, and all of it written.
    pub async fn finish(
        &mut self,
        request: &mut Request,
        trailers: Option<Fields<'_>>,
    ) -> Result<(), ClientFailure> {
        self.end(request, trailers);
        self.flush(request).await
    }

    /// The end of a response that cannot go on: the client gets what is there, and sees the cut.
    pub async fn cut(&mut self, request: &mut Request) -> Result<(), ClientFailure> {
        self.abandon();
        request.keep_alive = false;
        self.flush(request).await
    }

    /// The source pauses: the next flush empties the compressor, so that the client gets every event at once.
    /// Not for a known length, which compresses better without.
    pub fn pause(&mut self) {
        if let Some(answer) = &mut self.answer {
            answer.filters.pause();
        }
    }

    pub fn unbuffered(&mut self) {
        if let Some(answer) = &mut self.answer {
            answer.filters.unbuffered();
        }
    }

    /// Frames a piece and writes it. What the socket takes at once is not copied; the rest is, so that a slow
    /// client holds no one else's memory.
    pub async fn send(&mut self, request: &mut Request, piece: Bytes) -> Result<(), ClientFailure> {
        let in_place = piece.len() >= WRITE_IN_PLACE
            && self.answer.as_ref().is_some_and(|answer| {
                answer.filters.is_none() && answer.skipped == 0 && answer.output.room_for(piece.len())
            });
        if !in_place {
            self.push(request, &piece);
            drop(piece);
            return self.flush(request).await;
        }
        if let Some(answer) = &mut self.answer {
            answer.output.open_piece(piece.len());
        }
        let mut piece = piece;
        poll_fn(|cx| {
            let Some(answer) = &mut self.answer else { return Poll::Ready(Ok(())) };
            let mut outlet = self.end.outlet(&mut self.deadline, answer.send_timeout);
            let mut sent = 0;
            let step = answer.poll_write_piece(&mut outlet, cx, request, &piece, &mut sent);
            if step.is_pending() {
                answer.output.bytes.extend_from_slice(&std::mem::take(&mut piece)[sent..]);
            }
            self.unless_shed(cx, step)
        })
        .await?;
        if let Some(answer) = &mut self.answer {
            answer.output.close_piece();
        }
        Ok(())
    }

    pub fn takes_files(&self) -> bool {
        self.end.takes_files() && self.answer.as_ref().is_some_and(|answer| answer.filters.is_none())
    }

    pub async fn send_file(
        &mut self,
        request: &mut Request,
        file: &dyn AsFd,
        part: Range<u64>,
    ) -> Result<(), ClientFailure> {
        let Some(answer) = &mut self.answer else { return Ok(()) };
        let length = usize::try_from(part.end - part.start).unwrap_or(usize::MAX);
        if answer.output.framing == AnswerFraming::Empty {
            return Ok(());
        }
        if !answer.output.room_for(length) {
            // More than was announced: the connection ends before it.
            self.cut = true;
            return Err(ClientFailure::Gone);
        }
        answer.output.open_piece(length);
        let mut sent = 0;
        poll_fn(|cx| {
            let Some(answer) = &mut self.answer else { return Poll::Ready(Ok(())) };
            let mut outlet = self.end.outlet(&mut self.deadline, answer.send_timeout);
            let step = answer.poll_write_file(&mut outlet, cx, request, file, &part, &mut sent);
            self.unless_shed(cx, step)
        })
        .await?;
        if let Some(answer) = &mut self.answer {
            answer.output.close_piece();
        }
        Ok(())
    }

    /// A response that is all there, in one write; the rest stays queued for [`Client::flush`]. Only then is the
    /// body's reference count touched, which threads share. If the body is also in a file, the file is sent.
    pub fn poll_whole(
        &mut self,
        cx: &mut Context<'_>,
        request: &mut Request,
        head: Vec<u8>,
        mut body: WholeBody<'_>,
    ) -> Poll<Result<(), ClientFailure>> {
        let mut out = head;
        let unread = UnreadBody::of(self, request, request.sent.status);
        self.take_head(request, &mut out, unread.is_none() && body.bytes.is_empty());
        let head_left = out.len();
        if body.bytes.len() <= WRITE_TOGETHER {
            out.extend_from_slice(body.bytes);
            body = WholeBody { bytes: b"", shared: None, held: None, file: None };
        }
        let mut whole = Answer::new(request, AnswerOutput::whole(out), BodyFilters::default());
        (whole.head_left, whole.unread) = (head_left, unread);
        let mut sent = 0;
        body.file = body.file.filter(|_| self.end.takes_files());
        let mut outlet = self.end.outlet(&mut self.deadline, whole.send_timeout);
        let step = match body.file {
            Some(file) => {
                let part = 0..body.bytes.len() as u64;
                whole.poll_write_file(&mut outlet, cx, request, &**file, &part, &mut sent)
            }
            None => whole.poll_write_piece(&mut outlet, cx, request, body.bytes, &mut sent),
        };
        match &step {
            Poll::Pending => {
                whole.tail = body.rest(sent);
                self.answer = Some(Box::new(whole));
            }
            Poll::Ready(outcome) => {
                self.cut |= outcome.is_err();
                buffers::give(whole.output.bytes);
            }
        }
        step
    }

    /// At once (RFC 9110 §15.2); not to HTTP/1.0 clients or subrequests.
    pub async fn interim(
        &mut self,
        request: &mut Request,
        status: u16,
        fields: Fields<'_>,
    ) -> Result<(), ClientFailure> {
        if request.received.head.version == Version::Http10 || self.begun() || !self.end.takes_heads() {
            return Ok(());
        }
        let mut out = buffers::take();
        head::interim(&mut out, request, status, fields);
        request.sent.bytes += out.len() as u64;
        let outcome = match &self.end {
            End::Stream(stream) => {
                stream.head(&out, false, request.location().settings.send.http2_chunk);
                Ok(())
            }
            End::Connection(..) | End::Inside(_) => {
                let timeout = request.location().settings.send.timeout;
                let outlet = self.end.outlet(&mut self.deadline, timeout);
                outlet.write_all(&mut [IoSlice::new(&out)]).await
            }
        };
        buffers::give(out);
        outcome.map_err(|error| ClientFailure::of_writing(&error))
    }
}

/// Whether nothing follows the head: gRPC's trailers-only responses differ from an empty body.
fn is_all(request: &Request, framed: AnswerFraming, is_as_it_comes: bool, status: u16) -> bool {
    match framed {
        AnswerFraming::Empty => true,
        AnswerFraming::Length(0) => is_as_it_comes && !trailers::are_expected(request, status),
        _ => false,
    }
}

/// Effort of the response's encoder, and its memory; `None` if that is short.
fn encoder_of(request: &Request, coding: Coding, length: Option<u64>) -> Option<(Effort, EncoderMemory)> {
    let effort = Effort::of(&request.location().settings, coding, length);
    let memory = EncoderMemory::take(effort);
    if memory.is_none() {
        request.worker.metrics.add(Counter::CompressionsRefused, 1);
    }
    Some((effort, memory?))
}
