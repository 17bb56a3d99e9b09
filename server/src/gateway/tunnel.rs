//! After 101, or what stands for it on a stream: bytes both ways until both sides have ended, nothing moved for `proxy_read_timeout`, or one side took
//! nothing of what is there for it (`send_timeout`, `proxy_send_timeout`).
//!
//! The bytes are nobody's business here (RFC 9110 §7.8). A side without bytes holds no buffer.

use super::answer_head::visible;
use super::{Passing, Proxied};
use crate::client::{Client, ClientFailure};
use crate::filter::head::{self, HeadPlan};
use millstream_net::outlet::Outlet;
use millstream_net::stream::Stream;
use millstream_net::timer::Deadline;
use millstream_net::{buffers, clock};
use millstream_upstream::{Connection, Turn};
use millstream_wire::h1::head::ResponseHead;
use millstream_wire::{FieldId, Fields};
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// One of both that talk.
enum Side<'a> {
    Client(&'a mut Client),
    Upstream(&'a mut Stream),
}

impl Side<'_> {
    fn poll_read_into(&mut self, context: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        match self {
            Side::Client(client) => client.place().poll_read_into(context, buffer, usize::MAX),
            Side::Upstream(stream) => stream.poll_read_into(context, buffer, usize::MAX),
        }
    }

    fn outlet<'s>(&'s mut self, deadline: &'s mut Deadline, patience: Duration) -> Outlet<'s> {
        match self {
            Side::Client(client) => client.place().outlet(deadline, patience),
            Side::Upstream(stream) => Outlet::new(stream, deadline, patience),
        }
    }
}

/// One direction.
struct Way {
    buffer: Vec<u8>,
    written: usize,
    moved: u64,
    /// The source has ended.
    ended: bool,
    /// The end was passed on.
    shut: bool,
    /// Runs while the other side takes nothing, for `patience`.
    stalled: Deadline,
    patience: Duration,
}

impl<'a> Passing<'a> {
    /// Passes the 101 on and joins the two connections.
    pub(super) async fn tunnel(
        &mut self,
        mut connection: Box<Connection>,
        turn: Turn,
        answered: &ResponseHead,
    ) -> Proxied {
        // Where others use the connection too, there is no 101 to come here.
        if connection.stream_mut().is_none() {
            return Proxied::Failed(502);
        }
        let Some(client) = self.client.take() else { return Proxied::Failed(502) };
        let settings = &self.request.location().settings;
        let mut down = Way::new(buffers::take(), settings.send.timeout);
        let fields = answered.view(connection.head_bytes());
        let mut shown = visible(&self.proxy.exchange, fields);
        let is_stream = self.request.is_on_stream();
        match is_stream {
            // Which protocol it is was said by the request, and the key was ours (RFC 8441 §5.1).
            true => shown
                .retain(|field| !field.name(fields.bytes()).eq_ignore_ascii_case(b"sec-websocket-accept")),
            false => shown.extend(fields.lines().filter(|field| field.id == FieldId::Upgrade)),
        }
        let fields = Fields::new(fields.bytes(), &shown);
        let status = if is_stream { 200 } else { 101 };
        let plan = HeadPlan { status, fields, length: None, chunked: false, coding: None, age: None };
        head::encode(&mut down.buffer, self.request, &plan);
        client.put_head(self.request, &mut down.buffer);
        let head_length = down.buffer.len() as u64;
        down.buffer.extend_from_slice(&connection.take_read_ahead());
        let mut up = Way::new(client.take_read_ahead(), self.proxy.exchange.send_timeout);
        self.request.keep_alive = false;

        let timeout = self.proxy.exchange.read_timeout;
        let mut deadline = Deadline::new();
        deadline.set(clock::now() + timeout);
        let outcome = poll_fn(|context| {
            let before = (down.moved, up.moved);
            // The order makes what one direction read go out in the same round.
            let Some(upstream) = connection.stream_mut() else { return Poll::Ready(Ok(())) };
            let down_done = down.poll(context, &mut Side::Upstream(upstream), &mut Side::Client(client));
            let up_done = up.poll(context, &mut Side::Client(client), &mut Side::Upstream(upstream));
            if (down.moved, up.moved) != before {
                deadline.set(clock::now() + timeout);
            }
            match (down_done, up_done) {
                (Poll::Ready(Err(_)), _) => Poll::Ready(Err(ClientFailure::Gone)),
                (_, Poll::Ready(Err(_))) => Poll::Ready(Ok(())),
                (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => Poll::Ready(Ok(())),
                _ => deadline.poll(context).map(|()| Ok(())),
            }
        })
        .await;
        // A reset of the API is one of the stream (RFC 8441 §5).
        if outcome.is_err() {
            client.place().cancel();
        }
        // What one side still says has nobody left who would take it. A stream that both have ended has ended.
        if !(is_stream && outcome.is_ok()) {
            client.abandon();
        }
        self.request.sent.bytes += down.moved;
        self.request.sent.body_bytes += down.moved.saturating_sub(head_length);
        self.request.sent.complete = outcome.is_ok();
        let length = down.moved.saturating_sub(head_length);
        let now = clock::now();
        self.note_end(&connection, length, now);
        turn.succeeded(now);
        Proxied::Done
    }
}

impl Way {
    fn new(buffer: Vec<u8>, patience: Duration) -> Way {
        Way { buffer, written: 0, moved: 0, ended: false, shut: false, stalled: Deadline::new(), patience }
    }

    /// Moves what can be moved; ready at the end of this direction.
    fn poll(
        &mut self,
        context: &mut Context<'_>,
        from: &mut Side<'_>,
        to: &mut Side<'_>,
    ) -> Poll<io::Result<()>> {
        let mut to = to.outlet(&mut self.stalled, self.patience);
        loop {
            if self.written < self.buffer.len() {
                let count = ready!(to.poll_write(context, &self.buffer[self.written..]))?;
                self.written += count;
                self.moved += count as u64;
                continue;
            }
            self.buffer.clear();
            self.written = 0;
            if self.ended {
                rest(&mut self.buffer);
                if !self.shut {
                    // Where it cannot be told of the end any more it knows.
                    _ = ready!(to.poll_shutdown(context));
                    self.shut = true;
                }
                return Poll::Ready(Ok(()));
            }
            if self.buffer.capacity() == 0 {
                self.buffer = buffers::take();
            }
            match from.poll_read_into(context, &mut self.buffer) {
                Poll::Ready(Ok(0)) => self.ended = true,
                Poll::Ready(Ok(_)) => {}
                // Who was reset takes nothing more either.
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    rest(&mut self.buffer);
                    // A TLS stream may hold records back until it is flushed.
                    return match to.poll_flush(context) {
                        Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                        _ => Poll::Pending,
                    };
                }
            }
        }
    }
}

/// An empty buffer goes back to the pool.
fn rest(buffer: &mut Vec<u8>) {
    if buffer.is_empty() && buffer.capacity() > 0 {
        buffers::give(std::mem::take(buffer));
    }
}
