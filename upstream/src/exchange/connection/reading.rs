//! The answer as it comes: heads, then the body piece by piece, out of one buffer.
//!
//! A part that was handed out, and the head, stay where they are until the next read. Next: `body`, which knows what of it is data.

use super::state::Found;
use super::{Connection, Over, Part};
use crate::error::ExchangeError;
use crate::exchange::body::Body;
use millstream_net::clock;
use millstream_wire::h1::head::{HeadLimits, Progress, ResponseHead, ResponseHeadError};
use millstream_wire::{FieldId, other_protocol};
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

/// The bytes of a head are bounded by `proxy_buffer_size`.
const MAX_FIELDS: usize = 1000;

const MOST_OF_STREAM: usize = 32 * 1024;

#[derive(Debug, Clone, Copy)]
enum Wait {
    Each(Duration),
    /// All reads until [`Connection::accept_head`], so that a dripping head cannot last forever.
    Whole(Duration),
}

/// What is read of a response while the request is still being sent.
const MOST_AHEAD: usize = 16 * 1024;

impl Connection {
    /// Call it if the moment is known without reading the clock; otherwise the first poll reads it.
    pub fn wait_for_head_until(&mut self, until: Instant) {
        self.deadline.set(until);
        self.waiting = true;
    }

    /// Reads the next head, interim (1xx) or final; a final one starts the body. `limit` is
    /// `proxy_buffer_size`, and `timeout` bounds the wait for all of it, as in nginx. May be dropped and
    /// called again.
    pub async fn read_head(
        &mut self,
        head: &mut ResponseHead,
        limit: usize,
        timeout: Duration,
    ) -> Result<(), ExchangeError> {
        head.clear();
        poll_fn(|context| self.poll_read_head(context, head, limit, timeout)).await
    }

    /// [`Connection::read_head`] as a poll. `head` must be clear at first, and the same one each time.
    pub fn poll_read_head(
        &mut self,
        context: &mut Context<'_>,
        head: &mut ResponseHead,
        limit: usize,
        timeout: Duration,
    ) -> Poll<Result<(), ExchangeError>> {
        if let Over::Call(_) = self.over {
            return self.poll_call_head(context, head, limit, timeout);
        }
        let limits = HeadLimits { line: limit, total: limit, fields: MAX_FIELDS };
        loop {
            if self.has_unread() {
                match self.exchange.speaker.parse(head, self.buffer.unread(), &limits) {
                    Ok(Progress::Complete) => return Poll::Ready(self.accept_head(head)),
                    Ok(Progress::Partial) if self.buffer.unread().len() >= limit => {
                        return Poll::Ready(Err(ExchangeError::HeadTooLarge));
                    }
                    Ok(Progress::Partial) => {}
                    Err(ResponseHeadError::TooLarge) => return Poll::Ready(Err(ExchangeError::HeadTooLarge)),
                    Err(_) if other_protocol::is_tls(self.buffer.unread()) => {
                        return Poll::Ready(Err(ExchangeError::Tls("a TLS record")));
                    }
                    Err(error) => return Poll::Ready(Err(ExchangeError::BadHead(error))),
                }
            }
            if self.exchange.speaker.is_ended()? || self.exchange.speaker.is_closed() {
                return Poll::Ready(Err(ExchangeError::EndedEarly));
            }
            if ready!(self.poll_fill(context, Wait::Whole(timeout), usize::MAX))? == 0 {
                if other_protocol::is_tls(self.buffer.unread()) {
                    return Poll::Ready(Err(ExchangeError::Tls("a TLS record")));
                }
                return Poll::Ready(Err(ExchangeError::ClosedEarly {
                    any_bytes: self.exchange.received > 0,
                }));
            }
        }
    }

    fn poll_call_head(
        &mut self,
        context: &mut Context<'_>,
        head: &mut ResponseHead,
        limit: usize,
        timeout: Duration,
    ) -> Poll<Result<(), ExchangeError>> {
        let Over::Call(call) = &self.over else { return Poll::Pending };
        let polled = call.poll_head(context);
        let answer = match polled {
            Poll::Ready(answer) => answer?,
            Poll::Pending => return self.poll_timeout(context, timeout).map(Err),
        };
        if answer.headers.view().bytes().len() > limit {
            return Poll::Ready(Err(ExchangeError::HeadTooLarge));
        }
        self.buffer.put_head(|bytes| {
            head.take(answer.status, &answer.headers, bytes);
            head.length
        });
        self.exchange.received += head.length as u64;
        self.waiting = false;
        if !head.is_interim() {
            let length = head.view(self.buffer.head()).get(FieldId::ContentLength);
            self.exchange.body = match answer.is_last || self.exchange.has_no_body(head) {
                true => Body::ended(),
                false => Body::of_stream(length.and_then(millstream_wire::octets::decimal)),
            };
        }
        Poll::Ready(Ok(()))
    }

    fn poll_timeout(&mut self, context: &mut Context<'_>, timeout: Duration) -> Poll<ExchangeError> {
        if !self.waiting {
            self.deadline.set(clock::now() + timeout);
            self.waiting = true;
        }
        self.deadline.poll(context).map(|()| ExchangeError::ReadTimeout)
    }

    fn accept_head(&mut self, head: &ResponseHead) -> Result<(), ExchangeError> {
        self.waiting = false;
        self.exchange.accept_head(head, &mut self.buffer)
    }

    /// Only what is in the buffer. Errors: [`ExchangeError::BadBody`], and invalid records of the protocol.
    pub fn next_part(&mut self) -> Result<Part<'_>, ExchangeError> {
        Ok(match self.advance()? {
            Found::Data { from, to } => Part::Data(self.buffer.part(from, to)),
            Found::Nothing => Part::Empty,
            Found::End => Part::End,
        })
    }

    /// Skips what has come of the body, so that a connection whose response is complete can be reused.
    pub fn pass_over(&mut self) {
        while matches!(self.advance(), Ok(Found::Data { .. })) {}
    }

    fn advance(&mut self) -> Result<Found, ExchangeError> {
        self.exchange.advance(&mut self.buffer)
    }

    /// `None` at its end. May be dropped and called again. Errors: [`ExchangeError::ClosedEarly`], and those
    /// of reading.
    pub async fn read_body(&mut self, timeout: Duration) -> Result<Option<&[u8]>, ExchangeError> {
        loop {
            match self.advance()? {
                Found::Data { from, to } => return Ok(Some(self.buffer.part(from, to))),
                Found::End => return Ok(None),
                Found::Nothing => self.fill_body(timeout).await?,
            }
        }
    }

    /// Call it after all parts in the buffer were taken, then [`Connection::next_part`]. May be dropped and
    /// called again.
    pub async fn fill_body(&mut self, timeout: Duration) -> Result<(), ExchangeError> {
        poll_fn(|context| self.poll_fill_body(context, timeout)).await
    }

    /// [`Connection::fill_body`] as a poll. The timeout counts from the first call that has to wait.
    pub fn poll_fill_body(
        &mut self,
        context: &mut Context<'_>,
        timeout: Duration,
    ) -> Poll<Result<(), ExchangeError>> {
        let most = match &mut self.exchange.pace {
            Some(pace) => ready!(pace.poll_most(context)),
            None => usize::MAX,
        };
        let was_waiting = self.waiting;
        let filled = self.poll_fill(context, Wait::Each(timeout), most);
        if let (Some(pace), Poll::Ready(Ok(count))) = (&mut self.exchange.pace, &filled) {
            pace.read(*count as u64);
        }
        if filled.is_pending()
            && !was_waiting
            && let Over::Socket(stream) = &mut self.over
        {
            // A server that writes head and body apart waits for our acknowledgement of the first (Nagle), which the
            // kernel would hold back for 40 ms.
            stream.acknowledge_now();
        }
        if ready!(filled)? == 0
            && !(self.exchange.speaker.ends_by_close(self.exchange.keep)
                && self.exchange.body.ended_with_stream())
        {
            return Poll::Ready(Err(ExchangeError::ClosedEarly { any_bytes: true }));
        }
        Poll::Ready(Ok(()))
    }

    /// Ready when the upstream sends or closes early; data is kept for [`Connection::read_head`]. No timeout.
    pub fn poll_speaks(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Over::Call(call) = &self.over {
            return call.poll_speaks(context);
        }
        if self.has_unread() {
            return Poll::Ready(());
        }
        self.poll_read(context, usize::MAX).map(|read| {
            // An error or the end is met again by the next read.
            self.exchange.received += read.unwrap_or(0) as u64;
        })
    }

    /// Ready when a final response has begun to arrive, or the upstream closes. What has come is kept for
    /// [`Connection::read_head`], up to about [`MOST_AHEAD`].
    pub(super) fn poll_answers(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.exchange.speaker.says_final(self.buffer.unread())
                || self.buffer.unread().len() >= MOST_AHEAD
            {
                return Poll::Ready(());
            }
            match ready!(self.poll_read(context, MOST_AHEAD)) {
                Ok(0) | Err(_) => return Poll::Ready(()),
                Ok(count) => self.exchange.received += count as u64,
            }
        }
    }

    /// Holds no buffer while nothing is in it: a slow upstream costs none.
    pub(super) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        most: usize,
    ) -> Poll<Result<usize, ExchangeError>> {
        let buffer = self.buffer.room();
        let from = buffer.len();
        let read = match &mut self.over {
            Over::Socket(stream) => {
                let read = stream.poll_read_into(context, buffer, most);
                self.exchange.speaker.received(buffer, from);
                read.map_err(ExchangeError::Read)
            }
            Over::Call(call) => {
                let read = call.poll_read_into(context, buffer, most.min(MOST_OF_STREAM));
                if let Poll::Ready(Ok(0)) = read {
                    self.exchange.body.end_stream(call.take_trailers());
                }
                read
            }
        };
        if read.is_pending() {
            self.buffer.rest_if_empty();
        }
        read
    }

    /// 0 at the end of the connection.
    fn poll_fill(
        &mut self,
        context: &mut Context<'_>,
        wait: Wait,
        most: usize,
    ) -> Poll<Result<usize, ExchangeError>> {
        let outcome = match self.poll_read(context, most) {
            Poll::Ready(Ok(count)) => {
                self.exchange.received += count as u64;
                Ok(count)
            }
            Poll::Ready(Err(error)) => Err(error),
            Poll::Pending => {
                let (Wait::Each(timeout) | Wait::Whole(timeout)) = wait;
                Err(ready!(self.poll_timeout(context, timeout)))
            }
        };
        self.waiting &= matches!((wait, &outcome), (Wait::Whole(_), Ok(1..)));
        Poll::Ready(outcome)
    }
}
