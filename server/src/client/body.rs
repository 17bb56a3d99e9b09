//! Reading a request's body: framing taken off, size and pace bounded, `100 Continue` sent when it is first wanted.
//!
//! RFC 9112 §7.1 for chunked, RFC 9110 §10.1.1 for Expect.

use super::{Client, ClientFailure, later};
use crate::request::Request;
use crate::worker::{Awaits, idle_since};
use millstream_net::{buffers, clock};
use millstream_wire::h1::chunked::{Decoder, Event};
use millstream_wire::h1::framing::Framing;
use millstream_wire::{FieldId, Fields, Version};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyProgress {
    More,
    End,
}

const TRAILER_LIMIT: usize = 8 * 1024;

pub(super) struct Body {
    state: Remaining,
    wants_continue: bool,
    timeout: Duration,
    idle_since: Instant,
}

enum Remaining {
    Length(u64),
    Chunked(Decoder),
    UntilEnd,
    Ended,
}

impl Client {
    /// Call it once the location, and so the timeout, is known. Fails if the start is no chunked body: then no
    /// one knows where the next request starts.
    pub fn expect_body(&mut self, request: &Request) -> Result<(), ClientFailure> {
        let state = match request.received.framing {
            Framing::None => return Ok(()),
            // A stream knows by itself whether it has brought as much, and ends by itself: also with nothing, until then anything may come.
            Framing::Length(_) if request.is_on_stream() => Remaining::UntilEnd,
            Framing::Length(0) => return Ok(()),
            Framing::Length(length) => Remaining::Length(length),
            Framing::Chunked => Remaining::Chunked(Decoder::new(TRAILER_LIMIT)),
            Framing::Close => Remaining::UntilEnd,
        };
        let outcome = match &state {
            Remaining::Chunked(decoder) => look_ahead(decoder.clone(), &self.rest),
            Remaining::Length(_) | Remaining::UntilEnd | Remaining::Ended => Ok(()),
        };
        let wants_continue = request.received.head.version != Version::Http10
            && request
                .field(FieldId::Expect)
                .is_some_and(|value| value.eq_ignore_ascii_case(b"100-continue"));
        let timeout = request.location().settings.client_body.timeout;
        let idle_since = clock::now();
        self.body = Some(Box::new(Body { state, wants_continue, timeout, idle_since }));
        outcome
    }

    /// Takes what has arrived, at most `at_most` bytes, without waiting or sending 100; whether that is all.
    pub async fn take_body_at_hand(
        &mut self,
        request: &mut Request,
        into: &mut Vec<u8>,
        at_most: usize,
    ) -> Result<BodyProgress, ClientFailure> {
        while self.body_pending() && into.len() < at_most && !(self.awaits_continue() && self.rest.is_empty())
        {
            let room = at_most - into.len();
            let mut reading = pin!(self.read_body_within(request, into, room));
            match poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await {
                Poll::Ready(Ok(BodyProgress::More)) => {}
                Poll::Ready(outcome) => return outcome,
                Poll::Pending => break,
            }
        }
        Ok(if self.body_pending() { BodyProgress::More } else { BodyProgress::End })
    }

    pub fn body_pending(&self) -> bool {
        self.body.as_ref().is_some_and(|body| !matches!(body.state, Remaining::Ended))
    }

    pub fn body_known(&self) -> bool {
        self.body.is_some()
    }

    /// Whether the client still waits for `100 Continue` and so may never send its body.
    pub fn awaits_continue(&self) -> bool {
        self.body.as_ref().is_some_and(|body| body.wants_continue)
    }

    pub async fn read_body(
        &mut self,
        request: &mut Request,
        into: &mut Vec<u8>,
    ) -> Result<BodyProgress, ClientFailure> {
        self.read_body_within(request, into, usize::MAX).await
    }

    /// The same with a bound above 0; the excess waits.
    pub async fn read_body_within(
        &mut self,
        request: &mut Request,
        into: &mut Vec<u8>,
        at_most: usize,
    ) -> Result<BodyProgress, ClientFailure> {
        if !self.body_pending() {
            return Ok(BodyProgress::End);
        }
        if self.body.as_mut().is_some_and(|body| std::mem::take(&mut body.wants_continue))
            && self.rest.is_empty()
        {
            self.interim(request, 100, Fields::default()).await?;
        }
        loop {
            // What is decoded at most may be framing alone, with the body's next bytes here already.
            while !self.rest.is_empty() {
                let before = into.len();
                let progress = self.decode(request, into, at_most)?;
                if progress == BodyProgress::End || into.len() > before {
                    return Ok(progress);
                }
            }
            if !self.read_some().await? {
                return Ok(BodyProgress::End);
            }
        }
    }

    /// As [`Client::read_body_within`], for callers that wait for several things and have their own timeout.
    pub fn poll_body_within(
        &mut self,
        cx: &mut Context<'_>,
        request: &mut Request,
        into: &mut Vec<u8>,
        at_most: usize,
    ) -> Poll<Result<BodyProgress, ClientFailure>> {
        while self.body_pending() {
            while !self.rest.is_empty() {
                let before = into.len();
                let progress = self.decode(request, into, at_most)?;
                if progress == BodyProgress::End || into.len() > before {
                    return Poll::Ready(Ok(progress));
                }
            }
            if ready!(self.poll_octets(cx))? == 0 {
                break;
            }
        }
        if let Some(body) = &mut self.body {
            body.state = Remaining::Ended;
        }
        Poll::Ready(Ok(BodyProgress::End))
    }

    /// Drops the rest of an unused body, so that the connection can go on, as nginx. Gives up after
    /// `lingering_time`, or `lingering_timeout` without data; then the connection closes.
    pub async fn discard_body(&mut self, request: &mut Request) {
        let settings = &request.location().settings;
        let (pause, until) = (settings.lingering.timeout, later(settings.lingering.time));
        let mut dropped = buffers::take();
        while let Some(body) = self.body.as_mut().filter(|body| !matches!(body.state, Remaining::Ended)) {
            let left = until.saturating_duration_since(clock::now());
            if left.is_zero() {
                break;
            }
            body.timeout = pause.min(left);
            dropped.clear();
            if self.read_body(request, &mut dropped).await.is_err() {
                break;
            }
        }
        buffers::give(dropped);
    }

    /// One read; 0 at the end of a body that ends with its stream.
    fn poll_octets(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, ClientFailure>> {
        let may_end = self.body.as_ref().is_some_and(|body| matches!(body.state, Remaining::UntilEnd));
        match self.poll_read_more(cx) {
            Poll::Ready(Ok(0)) if !may_end => Poll::Ready(Err(ClientFailure::Gone)),
            Poll::Ready(read) => Poll::Ready(read.map_err(|error| ClientFailure::of_reading(&error))),
            Poll::Pending => {
                self.release_buffer();
                Poll::Pending
            }
        }
    }

    /// One read within the timeout; false at the end. A client whose slot is needed counts as too slow.
    async fn read_some(&mut self) -> Result<bool, ClientFailure> {
        let Some(body) = &self.body else { return Err(ClientFailure::Gone) };
        let since = body.idle_since;
        self.deadline.set(later(body.timeout));
        let outcome = poll_fn(|cx| match self.poll_octets(cx) {
            Poll::Ready(read) => Poll::Ready(read),
            Poll::Pending => {
                self.end.wait(Awaits::Body(since), cx.waker());
                if self.end.is_shed() {
                    return Poll::Ready(Err(ClientFailure::Timeout));
                }
                self.deadline.poll(cx).map(|()| Err(ClientFailure::Timeout))
            }
        })
        .await;
        self.deadline.clear();
        self.end.set_busy();
        let count = outcome?;
        if let Some(body) = &mut self.body {
            body.idle_since = idle_since(since, count, clock::now());
            if count == 0 {
                body.state = Remaining::Ended;
            }
        }
        Ok(count > 0)
    }

    fn decode(
        &mut self,
        request: &mut Request,
        into: &mut Vec<u8>,
        at_most: usize,
    ) -> Result<BodyProgress, ClientFailure> {
        let Some(body) = &mut self.body else { return Ok(BodyProgress::End) };
        let before = into.len();
        // Framing only takes bytes away.
        let input = &self.rest[..self.rest.len().min(at_most)];
        let (consumed, ended) = match &mut body.state {
            Remaining::Ended => (0, true),
            Remaining::UntilEnd => {
                into.extend_from_slice(input);
                // The end goes on with the last piece, which most bodies are alone.
                (input.len(), input.len() == self.rest.len() && self.end.is_read())
            }
            Remaining::Length(left) => {
                let take = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                into.extend_from_slice(&input[..take]);
                *left -= take as u64;
                (take, *left == 0)
            }
            Remaining::Chunked(decoder) => decode_chunked(decoder, input, into)?,
        };
        request.received.body_octets += (into.len() - before) as u64;
        request.received.body_received += consumed as u64;
        consume(&mut self.rest, consumed);
        if ended {
            body.state = Remaining::Ended;
        }
        // An announced length was checked before (`rewrite`). The location that reads it bounds any other.
        let is_announced = matches!(request.received.framing, Framing::Length(_));
        if !is_announced && request.exceeds_limit(request.received.body_octets) {
            return Err(ClientFailure::TooLarge);
        }
        Ok(if ended { BodyProgress::End } else { BodyProgress::More })
    }
}

fn look_ahead(mut decoder: Decoder, input: &[u8]) -> Result<(), ClientFailure> {
    let mut at = 0;
    loop {
        let (used, event) = decoder.decode(&input[at..]).map_err(|_| ClientFailure::Malformed)?;
        at += used;
        if !matches!(event, Event::Data(_)) {
            return Ok(());
        }
    }
}

fn decode_chunked(
    decoder: &mut Decoder,
    input: &[u8],
    into: &mut Vec<u8>,
) -> Result<(usize, bool), ClientFailure> {
    let mut consumed = 0;
    loop {
        let (used, event) = decoder.decode(&input[consumed..]).map_err(|_| ClientFailure::Malformed)?;
        consumed += used;
        match event {
            Event::Data(piece) => into.extend_from_slice(piece),
            Event::More => return Ok((consumed, false)),
            Event::End => return Ok((consumed, true)),
        }
    }
}

pub(super) fn consume(rest: &mut Vec<u8>, count: usize) {
    if count == rest.len() {
        let mut emptied = std::mem::take(rest);
        emptied.clear();
        buffers::give(emptied);
    } else {
        rest.drain(..count);
    }
}
