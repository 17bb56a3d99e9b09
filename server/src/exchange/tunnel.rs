//! After 101, or what stands for it on a stream: bytes both ways until both sides have ended, one has and nothing moved for five seconds, nothing moved
//! for `proxy_read_timeout`, or one side took nothing of what is there for it (`send_timeout`, `proxy_send_timeout`). One in which nothing moves ends where places are short.
//!
//! Only the first is an end, which a stream says by END_STREAM; all else is a cut, and a reset there.
//!
//! The bytes are nobody's business here (RFC 9110 §7.8). A side without bytes holds no buffer.

use super::answer_head::visible;
use super::answered::Answered;
use super::{Passing, Proxied};
use crate::client::Client;
use crate::filter::head::{self, HeadPlan};
use crate::worker::TunnelEntry;
use millstream_conf::model::Level;
use millstream_net::outlet::Outlet;
use millstream_net::stream::Stream;
use millstream_net::timer::{Deadline, is_elapsed};
use millstream_net::{buffers, clock};
use millstream_upstream::Connection;
use millstream_wire::h1::head::ResponseHead;
use millstream_wire::{FieldId, Fields};
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// How long nothing may move once one side has ended.
const HALF: Duration = Duration::from_secs(5);

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

struct Way {
    buffer: Vec<u8>,
    written: usize,
    moved: u64,
    ended: bool,
    shut: bool,
    /// The other direction broke: this one delivers what has arrived, and ends in a cut.
    is_cut: bool,
    /// Runs for `patience` while the receiver takes nothing.
    stalled: Deadline,
    patience: Duration,
}

enum Fault {
    /// The sender was reset, or is gone.
    Source,
    Sink,
    Slow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CutOff {
    Broken,
    /// Nothing moved for too long, or the upstream took nothing.
    Upstream,
    Client,
    /// Nothing moved, and other connections need the slots.
    Shed,
}

struct Tunnel<'t> {
    client: &'t mut Client,
    connection: &'t mut Connection,
    down: Way,
    up: Way,
    idle: Deadline,
    timeout: Duration,
    is_half: bool,
    entry: TunnelEntry,
}

pub(super) async fn open(passing: &mut Passing<'_>, answered: Answered, head: &ResponseHead) -> Proxied {
    let Answered { mut connection, turn, .. } = answered;
    // Where others use the connection too, there is no 101 to come here.
    if connection.stream_mut().is_none() {
        return Proxied::Failed(502);
    }
    let Some(client) = passing.client.take() else { return Proxied::Failed(502) };
    let mut down = Way::new(buffers::take(), passing.request.location().settings.send.timeout);
    put_head(passing, client, head.view(connection.head_bytes()), &mut down.buffer);
    let head_length = down.buffer.len() as u64;
    down.buffer.extend_from_slice(&connection.take_read_ahead());
    let up = Way::new(client.take_read_ahead(), passing.proxy.exchange.send_timeout);
    passing.request.keep_alive = false;

    let (idle, timeout) = (Deadline::new(), passing.proxy.exchange.read_timeout);
    let entry = passing.request.worker.enter_tunnel();
    let mut tunnel = Tunnel {
        client: &mut *client,
        connection: &mut connection,
        down,
        up,
        idle,
        timeout,
        is_half: false,
        entry,
    };
    tunnel.idle.set(clock::now() + timeout);
    let ended = poll_fn(|context| tunnel.poll(context)).await;
    let moved = tunnel.down.moved;
    drop(tunnel);
    if let Err(cut) = ended {
        report_cut(passing, &connection, cut);
    }
    let is_whole = ended.is_ok();
    // What is cut must not look ended: where a connection would be closed or reset, the stream is (RFC 8441 §5, RFC 9113 §8.5).
    if !is_whole {
        client.place().cancel();
    }
    // What one side still says has nobody left who would take it. A stream that both have ended has ended.
    if !(passing.request.is_on_stream() && is_whole) {
        client.abandon();
    }
    let length = moved.saturating_sub(head_length);
    passing.request.sent.bytes += moved;
    passing.request.sent.body_bytes += length;
    passing.request.sent.complete = is_whole;
    let now = clock::now();
    passing.note_end(&connection, length, now);
    turn.succeeded(now);
    Proxied::Done
}

fn report_cut(passing: &Passing<'_>, connection: &Connection, cut: CutOff) {
    let (level, why) = match cut {
        CutOff::Broken => return,
        CutOff::Upstream => (Level::Error, "upstream timed out (110: Connection timed out)"),
        CutOff::Client => (Level::Info, "client timed out (110: Connection timed out)"),
        CutOff::Shed => (Level::Info, "idle connection closed, worker_connections are not enough,"),
    };
    passing.log(level, connection.peer_name(), format_args!("{why} while proxying upgraded connection"));
}

fn put_head(passing: &mut Passing<'_>, client: &mut Client, fields: Fields<'_>, out: &mut Vec<u8>) {
    let mut shown = visible(&passing.proxy.exchange, fields);
    let is_stream = passing.request.is_on_stream();
    match is_stream {
        // Which protocol it is was said by the request, and the key was ours (RFC 8441 §5.1).
        true => {
            shown.retain(|field| !field.name(fields.bytes()).eq_ignore_ascii_case(b"sec-websocket-accept"))
        }
        false => shown.extend(fields.lines().filter(|field| field.id == FieldId::Upgrade)),
    }
    let fields = Fields::new(fields.bytes(), &shown);
    let status = if is_stream { 200 } else { 101 };
    let plan = HeadPlan { status, fields, length: None, chunked: false, coding: None, age: None };
    head::encode(out, passing.request, &plan);
    client.take_head(passing.request, out, false);
}

impl Tunnel<'_> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), CutOff>> {
        let Some(upstream) = self.connection.stream_mut() else {
            return Poll::Ready(Err(CutOff::Broken));
        };
        let before = (self.down.moved, self.up.moved);
        // The order makes what one direction read go out in the same round.
        let down = self.down.poll(context, &mut Side::Upstream(upstream), &mut Side::Client(self.client));
        let up = match self.down.is_cut {
            true => Poll::Pending,
            false => self.up.poll(context, &mut Side::Client(self.client), &mut Side::Upstream(upstream)),
        };
        let moved = self.down.moved - before.0 + self.up.moved - before.1;
        if moved > 0 {
            self.idle.set(clock::now() + self.timeout);
            self.entry.moved(usize::try_from(moved).unwrap_or(usize::MAX));
        }
        match (down, up) {
            (Poll::Ready(Err(Fault::Slow)), _) => Poll::Ready(Err(CutOff::Client)),
            (_, Poll::Ready(Err(Fault::Slow))) => Poll::Ready(Err(CutOff::Upstream)),
            (Poll::Ready(Err(_)), _) => Poll::Ready(Err(CutOff::Broken)),
            (Poll::Ready(Ok(())), _) if self.down.is_cut => Poll::Ready(Err(CutOff::Broken)),
            // All that the upstream said is there, and it takes no more, or the client says no more.
            (Poll::Ready(Ok(())), Poll::Ready(_)) => Poll::Ready(Ok(())),
            (Poll::Ready(Ok(())), Poll::Pending) | (Poll::Pending, Poll::Ready(Ok(()))) => {
                self.end_of_one();
                self.poll_idle(context)
            }
            (Poll::Pending, Poll::Ready(Err(Fault::Source))) => Poll::Ready(Err(CutOff::Broken)),
            (Poll::Pending, Poll::Ready(Err(Fault::Sink))) => {
                // A server that has closed takes nothing, and what it said before may still be in the socket.
                self.down.is_cut = true;
                self.poll_idle(context)
            }
            _ => self.poll_idle(context),
        }
    }

    /// Whoever has ended may still listen, but not for long to somebody who says nothing: a server that takes no notice of the end
    /// would hold the places of clients that have left.
    fn end_of_one(&mut self) {
        if !self.is_half {
            self.is_half = true;
            self.timeout = self.timeout.min(HALF);
            self.idle.set(clock::now() + self.timeout);
        }
    }

    fn poll_idle(&mut self, context: &mut Context<'_>) -> Poll<Result<(), CutOff>> {
        self.entry.wait(context.waker());
        if self.entry.is_shed() {
            return Poll::Ready(Err(CutOff::Shed));
        }
        let is_half = self.is_half;
        self.idle.poll(context).map(|()| if is_half { Ok(()) } else { Err(CutOff::Upstream) })
    }
}

impl Way {
    fn new(buffer: Vec<u8>, patience: Duration) -> Way {
        let stalled = Deadline::new();
        Way { buffer, written: 0, moved: 0, ended: false, shut: false, is_cut: false, stalled, patience }
    }

    fn poll(
        &mut self,
        context: &mut Context<'_>,
        from: &mut Side<'_>,
        to: &mut Side<'_>,
    ) -> Poll<Result<(), Fault>> {
        let mut to = to.outlet(&mut self.stalled, self.patience);
        loop {
            if self.written < self.buffer.len() {
                let wrote = to.poll_write(context, &self.buffer[self.written..]);
                let count = ready!(wrote).map_err(|error| Fault::of_writing(&error))?;
                self.written += count;
                self.moved += count as u64;
                continue;
            }
            self.buffer.clear();
            self.written = 0;
            if self.ended {
                rest(&mut self.buffer);
                if !self.shut && !self.is_cut {
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
                Poll::Ready(Err(_)) => return Poll::Ready(Err(Fault::Source)),
                Poll::Pending => {
                    rest(&mut self.buffer);
                    // A TLS stream may hold records back until it is flushed.
                    return match to.poll_flush(context) {
                        Poll::Ready(Err(error)) => Poll::Ready(Err(Fault::of_writing(&error))),
                        _ => Poll::Pending,
                    };
                }
            }
        }
    }
}

impl Fault {
    fn of_writing(error: &io::Error) -> Fault {
        if is_elapsed(error) { Fault::Slow } else { Fault::Sink }
    }
}

fn rest(buffer: &mut Vec<u8>) {
    if buffer.is_empty() && buffer.capacity() > 0 {
        buffers::give(std::mem::take(buffer));
    }
}
