//! Sending an answer: head and body framed into one buffer, changed and compressed on the way where the location says so.
//!
//! An answer that cannot be ended as announced is abandoned: the connection closes without the last chunk, so no client
//! takes a part for the whole (RFC 9112 §8).

use super::answer::Answer;
use super::assembly::Assembly;
use super::framing::{AnswerHead, Framed, framed};
use super::tail::{Tail, WholeBody};
use super::{Client, ClientFailure};
use crate::filter::chain::{self, Changes};
use crate::filter::coding::{self, Plain};
use crate::filter::compressor::{Compressor, Effort};
use crate::filter::head;
use crate::limits::limit_rate::Pace;
use crate::request::Request;
use bytes::Bytes;
use millstream_net::buffers;
use millstream_net::outlet::Outlet;
use millstream_wire::Fields;
use millstream_wire::h1::encode;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::fd::AsFd;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Pieces from this size on are written from where they are instead of being copied.
const WRITE_IN_PLACE: usize = 8 * 1024;
/// A body up to this size is copied behind its head: a vectored write costs the kernel more than that.
const WRITE_TOGETHER: usize = 4 * 1024;
/// Bytes that go through filters before what comes of them is written: `gunzip` makes up to a thousand times as many of them.
const FILTERED_AT_ONCE: usize = 16 * 1024;

impl Client {
    /// Makes the head of the answer; nothing is written yet.
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
        let AnswerHead { status, fields, length, .. } = answer_head;
        let coding = coding::choose(request, &Plain { status, fields, length });
        let effort = coding.map(|coding| Effort::of(&request.location().settings, coding));
        let framed = framed(request, &answer_head, coding.is_some());
        let mut out = buffers::take();
        let length = if coding.is_some() { None } else { length };
        head::encode(
            &mut out,
            request,
            &head::Plan {
                status: answer_head.status,
                fields: answer_head.fields,
                length: if matches!(framed, Framed::Close | Framed::Chunked) { None } else { length },
                chunked: framed == Framed::Chunked,
                coding,
                age: answer_head.age,
            },
        );
        if !self.end.takes_heads() {
            out.clear();
        }
        let (mut chain, mut assembly) = (None, None);
        if let Some(changes) = changed.filter(|_| framed != Framed::Empty) {
            chain = changes.chain;
            assembly = Assembly::begin(changes.addition, changes.ssi, request, self.answerer);
        }
        self.answer = Some(Box::new(Answer {
            head_left: out.len(),
            out,
            written: 0,
            tail: Tail::None,
            framed,
            streams,
            chain,
            assembly,
            compressor: effort
                .filter(|_| framed != Framed::Empty)
                .map(|effort| Box::new(Compressor::new(effort))),
            skipped: 0,
            ended: false,
            cut: false,
            send_timeout: request.location().settings.send.timeout,
            pace: Pace::of(request),
        }));
    }

    /// The answer that was begun is a part of what comes: this much of it is passed over first. What comes beyond the
    /// length that was announced is passed over anyway.
    pub fn skip(&mut self, bytes: u64) {
        if let Some(answer) = &mut self.answer {
            answer.skipped = bytes;
        }
    }

    /// Whether all of the length that was announced has been framed.
    pub fn has_all(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| answer.framed == Framed::Length(0))
    }

    /// Frames a piece of the body into the buffer.
    pub fn push(&mut self, request: &mut Request, piece: &[u8]) {
        let Some(answer) = &mut self.answer else { return };
        let piece = answer.wanted(piece);
        let changed = answer.chain.as_mut().map(|chain| chain.take(request, piece));
        answer.put(request, self.answerer, changed.as_deref().unwrap_or(piece));
    }

    /// Ends the body: nothing more is pushed. Trailer fields are sent where it is chunked.
    pub fn end(&mut self, request: &mut Request, trailers: Option<Fields<'_>>) {
        if let Some(answer) = &mut self.answer {
            answer.close(request, self.answerer, trailers);
        }
    }

    /// The source has nothing more for now: what the compressor holds back of a stream is framed, so that the client gets
    /// every event when it comes. An answer of a known length is no stream, and is compressed better without.
    pub fn pause(&mut self, request: &mut Request) {
        let Some(answer) = &mut self.answer else { return };
        let Some(compressor) = answer.compressor.as_mut().filter(|_| answer.streams) else { return };
        let mut squeezed = buffers::take();
        compressor.flush(&mut squeezed);
        request.sent.compressed = Some(compressor.totals());
        answer.frame(&squeezed);
        buffers::give(squeezed);
    }

    /// The answer is to pass as it comes, whatever its length (`proxy_buffering off`).
    pub fn unbuffered(&mut self) {
        if let Some(answer) = &mut self.answer {
            answer.streams = true;
        }
    }

    /// Frames a piece and writes it. What of a large piece the socket takes at once is not copied; of the rest the client
    /// has a copy of its own, so that a slow one holds nobody else's memory. A piece is short.
    pub async fn send(&mut self, request: &mut Request, piece: Bytes) -> Result<(), ClientFailure> {
        let in_place = piece.len() >= WRITE_IN_PLACE
            && self.answer.as_ref().is_some_and(|answer| {
                answer.is_as_it_comes() && answer.skipped == 0 && answer.room_for(piece.len())
            });
        if !in_place {
            return self.send_changed(request, piece).await;
        }
        let Some(answer) = &mut self.answer else { return Ok(()) };
        let mut outlet = self.end.outlet(&mut self.deadline, answer.send_timeout);
        answer.open_piece(piece.len());
        let mut piece = piece;
        poll_fn(|cx| {
            let mut sent = 0;
            let step = answer.poll_write_piece(&mut outlet, cx, request, &piece, &mut sent);
            if step.is_pending() {
                answer.out.extend_from_slice(&std::mem::take(&mut piece)[sent..]);
            }
            step
        })
        .await?;
        answer.close_piece();
        Ok(())
    }

    /// Frames what comes of a piece and writes it. A piece that filters go through is taken in parts, for much may come of little.
    async fn send_changed(&mut self, request: &mut Request, mut piece: Bytes) -> Result<(), ClientFailure> {
        let is_filtered = self.answer.as_ref().is_some_and(|answer| answer.chain.is_some());
        while is_filtered && piece.len() > FILTERED_AT_ONCE {
            let part = piece.split_to(FILTERED_AT_ONCE);
            self.push(request, &part);
            self.flush(request).await?;
        }
        self.push(request, &piece);
        drop(piece);
        self.flush(request).await
    }

    /// Whether pieces of the body may stay in a file for [`Client::send_file`].
    pub fn takes_files(&self) -> bool {
        self.end.takes_files() && self.answer.as_ref().is_some_and(|answer| answer.is_as_it_comes())
    }

    /// Frames a piece that is in a file, and lets the kernel send it.
    pub async fn send_file(
        &mut self,
        request: &mut Request,
        file: &dyn AsFd,
        part: Range<u64>,
    ) -> Result<(), ClientFailure> {
        let Some(answer) = &mut self.answer else { return Ok(()) };
        let length = usize::try_from(part.end - part.start).unwrap_or(usize::MAX);
        if answer.framed == Framed::Empty {
            return Ok(());
        }
        if !answer.room_for(length) {
            // More than was announced: the connection ends before it.
            self.cut = true;
            return Err(ClientFailure::Gone);
        }
        let mut outlet = self.end.outlet(&mut self.deadline, answer.send_timeout);
        answer.open_piece(length);
        let mut sent = 0;
        poll_fn(|cx| answer.poll_write_file(&mut outlet, cx, request, file, &part, &mut sent)).await?;
        answer.close_piece();
        Ok(())
    }

    /// Sends a head made elsewhere and its whole body, in one write where the socket takes it.
    pub async fn send_whole(
        &mut self,
        request: &mut Request,
        head: Vec<u8>,
        body: &Bytes,
    ) -> Result<(), ClientFailure> {
        let mut head = Some(head);
        let whole = || WholeBody { bytes: body, held: None, file: None };
        poll_fn(|cx| match head.take() {
            Some(head) => self.poll_whole(cx, request, head, whole()),
            None => self.poll_flush(cx, request),
        })
        .await
    }

    /// The first step of [`Client::send_whole`]: what the socket does not take stays queued for [`Client::flush`].
    /// Only then is the body's count of holders touched, which other threads share. Where the body is in a file as well,
    /// the file is sent.
    pub fn poll_whole(
        &mut self,
        cx: &mut Context<'_>,
        request: &mut Request,
        head: Vec<u8>,
        mut body: WholeBody<'_>,
    ) -> Poll<Result<(), ClientFailure>> {
        let mut out = head;
        if !self.end.takes_heads() {
            out.clear();
        }
        let head_left = out.len();
        if body.bytes.len() <= WRITE_TOGETHER {
            static NONE: Bytes = Bytes::from_static(b"");
            out.extend_from_slice(body.bytes);
            body = WholeBody { bytes: &NONE, held: None, file: None };
        }
        let mut whole = Answer {
            head_left,
            out,
            written: 0,
            tail: Tail::None,
            framed: Framed::Empty,
            chain: None,
            assembly: None,
            compressor: None,
            streams: false,
            skipped: 0,
            ended: true,
            cut: false,
            send_timeout: request.location().settings.send.timeout,
            pace: Pace::of(request),
        };
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
                buffers::give(whole.out);
            }
        }
        step
    }

    /// Sends an interim (1xx) answer at once (RFC 9110 §15.2); HTTP/1.0 clients get none.
    pub async fn interim(
        &mut self,
        request: &mut Request,
        status: u16,
        fields: Fields<'_>,
    ) -> Result<(), ClientFailure> {
        if !request.is_http11() || self.begun() || !self.end.takes_heads() {
            return Ok(());
        }
        let mut out = buffers::take();
        encode::status_line(&mut out, status);
        for (_, name, value) in fields.iter() {
            encode::field(&mut out, name, value);
        }
        out.extend_from_slice(b"\r\n");
        let outcome = self.write(request, &out).await;
        request.sent.bytes += out.len() as u64;
        buffers::give(out);
        outcome
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

    fn poll_write_piece(
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
    fn poll_write_file(
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
