//! The request on its way out: a head, and behind it the body, framed by the speaker.

use super::state::Unsent;
use super::{Connection, Over};
use crate::error::ExchangeError;
use millstream_net::outlet::Outlet;
use millstream_net::timer::is_elapsed;
use millstream_wire::Method;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};
use std::time::Duration;

impl Connection {
    /// Sends a head as it is, followed by a framed piece of the body; each may be empty. `last` ends the
    /// body. `timeout` bounds each wait. After [`ExchangeError::Write`] the server may have responded: read what it sent, then
    /// continue with [`Connection::send_unsent`].
    pub async fn send(
        &mut self,
        mut head: &[u8],
        mut piece: &[u8],
        last: bool,
        timeout: Duration,
    ) -> Result<(), ExchangeError> {
        self.exchange.body_given += piece.len() as u64;
        if let Over::Call(_) = self.over {
            return self.send_in_call(head, piece, last, timeout).await;
        }
        let mut before = Vec::new();
        loop {
            let (framed, rest) = piece.split_at(piece.len().min(self.exchange.speaker.most()));
            before.clear();
            let behind = self.exchange.speaker.frame(framed.len(), last && rest.is_empty(), &mut before);
            let mut parts = [IoSlice::new(&[]); 4];
            let filled = [head, &before, framed, behind].into_iter().filter(|part| !part.is_empty());
            let count = parts.iter_mut().zip(filled).map(|(place, part)| *place = IoSlice::new(part)).count();
            if let Err(error) = self.write_all(&mut parts[..count], timeout).await {
                self.keep_framed(rest, last);
                return Err(error);
            }
            if rest.is_empty() {
                return Ok(());
            }
            (head, piece) = (&[], rest);
        }
    }

    /// Behind what a write has left, the rest of the same piece.
    fn keep_framed(&mut self, mut rest: &[u8], last: bool) {
        self.exchange.unsent.is_last = last;
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(rest.len().min(self.exchange.speaker.most()));
            self.frame_unsent(piece, last && behind.is_empty());
            rest = behind;
        }
    }

    fn frame_unsent(&mut self, piece: &[u8], last: bool) {
        let mut before = Vec::new();
        let behind = self.exchange.speaker.frame(piece.len(), last, &mut before);
        [&before, piece, behind]
            .into_iter()
            .for_each(|part| self.exchange.unsent.bytes.extend_from_slice(part));
    }

    /// Sends what [`Connection::send`] could not, if anything. Returns whether the body has ended with it.
    pub async fn send_unsent(&mut self, timeout: Duration) -> Result<bool, ExchangeError> {
        let Unsent { bytes, is_last, .. } = std::mem::take(&mut self.exchange.unsent);
        if bytes.is_empty() {
            return Ok(is_last);
        }
        if let Over::Call(_) = self.over {
            return self.send_in_call(&[], &bytes, is_last, timeout).await.map(|()| is_last);
        }
        let written = self.write_all(&mut [IoSlice::new(&bytes)], timeout).await;
        self.exchange.unsent.is_last = is_last && written.is_err();
        written.map(|()| is_last)
    }

    /// For [`Connection::poll_send_piece`]: takes what [`Connection::send`] could not send in a call, and whether
    /// the body ends with what is unsent. What is framed for a socket stays here, and is sent first.
    pub fn take_unsent(&mut self) -> (Vec<u8>, bool) {
        if let Over::Socket(_) = self.over {
            return (Vec::new(), self.exchange.unsent.is_last);
        }
        let Unsent { bytes, is_last, .. } = std::mem::take(&mut self.exchange.unsent);
        (bytes, is_last)
    }

    async fn send_in_call(
        &mut self,
        head: &[u8],
        piece: &[u8],
        last: bool,
        timeout: Duration,
    ) -> Result<(), ExchangeError> {
        let Over::Call(call) = &mut self.over else { return Ok(()) };
        if !head.is_empty() {
            call.start(head, piece.is_empty() && last, self.exchange.method != Method::Head)?;
        }
        let stream = call.stream()?.clone();
        self.exchange.written += head.len() as u64;
        if piece.is_empty() {
            if last && head.is_empty() {
                stream.end(None);
            }
            return Ok(());
        }
        let mut outlet = Outlet::into_inlet(&*stream, &mut self.deadline, timeout);
        outlet.is_last(last);
        let mut rest = piece;
        let written = poll_fn(|context| {
            while !rest.is_empty() {
                match outlet.poll_write(context, rest) {
                    Poll::Ready(Ok(count)) => rest = &rest[count..],
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    // A server that has responded may accept no more until its response is read, or ever (RFC 9113 §8.1).
                    Poll::Pending if call.is_headed() => {
                        return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
                    }
                    Poll::Pending => return Poll::Pending,
                }
            }
            Poll::Ready(Ok(()))
        })
        .await;
        let count = (piece.len() - rest.len()) as u64;
        self.exchange.written += count;
        if written.is_err() {
            self.exchange.unsent = Unsent { bytes: rest.to_vec(), out: 0, is_last: last };
        }
        written.map_err(|error| if is_elapsed(&error) { ExchangeError::SendTimeout } else { call.unsent() })
    }

    /// While the response arrives: sends as much of a piece as the server accepts now; 0 if it accepts nothing
    /// more. An empty last piece is the end, and is accepted once all of the body is out.
    pub fn poll_send_piece(
        &mut self,
        context: &mut Context<'_>,
        piece: &[u8],
        last: bool,
        timeout: Duration,
    ) -> Poll<Result<usize, ExchangeError>> {
        let Over::Call(call) = &mut self.over else {
            return self.poll_send_framed(context, piece, last, timeout);
        };
        let stream = call.stream()?.clone();
        if piece.is_empty() {
            if last {
                stream.end(None);
            }
            return Poll::Ready(Ok(0));
        }
        let mut outlet = Outlet::into_inlet(&*stream, &mut self.sending, timeout);
        outlet.is_last(last);
        let outcome = ready!(outlet.poll_write(context, piece));
        Poll::Ready(match outcome {
            Ok(count) => {
                self.exchange.written += count as u64;
                Ok(count)
            }
            // A response that has come whole needs nothing more.
            Err(error) if is_elapsed(&error) && !call.has_all() => Err(ExchangeError::SendTimeout),
            Err(_) => Err(call.unsent()),
        })
    }

    /// Takes a piece once what is unsent before it is out, and sends of it what goes at once.
    fn poll_send_framed(
        &mut self,
        context: &mut Context<'_>,
        piece: &[u8],
        last: bool,
        timeout: Duration,
    ) -> Poll<Result<usize, ExchangeError>> {
        ready!(self.poll_unsent(context, timeout))?;
        if self.exchange.unsent.is_last || piece.is_empty() && !last {
            return Poll::Ready(Ok(0));
        }
        let count = piece.len().min(self.exchange.speaker.most());
        let is_end = last && count == piece.len();
        self.frame_unsent(&piece[..count], is_end);
        self.exchange.unsent.is_last = is_end;
        self.exchange.body_given += count as u64;
        match self.poll_unsent(context, timeout) {
            Poll::Pending if count == 0 => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending | Poll::Ready(Ok(())) => Poll::Ready(Ok(count)),
        }
    }

    /// A server that takes nothing for `timeout` may still respond, so that is a failed write.
    fn poll_unsent(
        &mut self,
        context: &mut Context<'_>,
        timeout: Duration,
    ) -> Poll<Result<(), ExchangeError>> {
        let Over::Socket(stream) = &mut self.over else { return Poll::Ready(Ok(())) };
        let mut outlet = Outlet::new(stream, &mut self.sending, timeout);
        let Unsent { bytes, out, .. } = &mut self.exchange.unsent;
        while *out < bytes.len() {
            let count = ready!(outlet.poll_write(context, &bytes[*out..])).map_err(ExchangeError::Write)?;
            self.exchange.written += count as u64;
            *out += count;
        }
        bytes.clear();
        *out = 0;
        outlet.poll_flush(context).map_err(ExchangeError::Write)
    }

    /// Sends unframed bytes as far as the socket accepts them at once. The error is how many it accepted;
    /// continue with [`Connection::send`], which meets any failure again.
    pub fn send_at_once(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
        timeout: Duration,
    ) -> Result<(), usize> {
        let stream = match &mut self.over {
            Over::Socket(stream) => stream,
            Over::Call(call) => {
                self.exchange.written += bytes.len() as u64;
                return call.start(bytes, true, self.exchange.method != Method::Head).map_err(|_| 0);
            }
        };
        let mut outlet = Outlet::new(stream, &mut self.deadline, timeout);
        let Poll::Ready(Ok(sent)) = outlet.poll_write(context, bytes) else { return Err(0) };
        let flushed = sent == bytes.len() && matches!(outlet.poll_flush(context), Poll::Ready(Ok(())));
        self.exchange.written += sent as u64;
        if flushed { Ok(()) } else { Err(sent) }
    }

    /// In one call if the kernel accepts all. A server that takes no more because it has responded is not waited for: the
    /// response, which is read next, ends the request's body (RFC 9112 §9.6). After an error, what is left is kept as unsent.
    async fn write_all(
        &mut self,
        mut pieces: &mut [IoSlice<'_>],
        timeout: Duration,
    ) -> Result<(), ExchangeError> {
        // A write of nothing must not look like a dead socket.
        IoSlice::advance_slices(&mut pieces, 0);
        let written = poll_fn(|context| {
            while !pieces.is_empty() {
                let Over::Socket(stream) = &mut self.over else { return Poll::Ready(Ok(())) };
                let mut outlet = Outlet::new(stream, &mut self.deadline, timeout);
                match outlet.poll_write_vectored(context, pieces) {
                    Poll::Ready(Ok(count)) => {
                        // Counted at once: what has gone out in part must not go out again elsewhere.
                        self.exchange.written += count as u64;
                        IoSlice::advance_slices(&mut pieces, count);
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => {
                        ready!(self.poll_answers(context));
                        return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
                    }
                }
            }
            let Over::Socket(stream) = &mut self.over else { return Poll::Ready(Ok(())) };
            Outlet::new(stream, &mut self.deadline, timeout).poll_flush(context)
        });
        let written = written.await;
        if written.is_err() {
            self.exchange.unsent.bytes = pieces.iter().flat_map(|part| part.iter().copied()).collect();
        }
        written.map_err(|error| match is_elapsed(&error) {
            true => ExchangeError::SendTimeout,
            false => ExchangeError::Write(error),
        })
    }

    /// Octets of the request's body that it was given: sent, or unsent.
    pub fn body_given(&self) -> u64 {
        self.exchange.body_given
    }

    /// The request, body included, is sent. Otherwise the connection is never reused.
    pub fn sent_whole(&mut self) {
        self.exchange.sent = true;
    }
}
