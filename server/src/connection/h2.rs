//! An HTTP/2 connection: one task that reads frames, answers what is at hand, lets its streams go on, and writes what all have framed
//! (RFC 9113).
//!
//! ```text
//! preface ─▶ ┌ read ─▶ frames ─▶ answers at hand ─▶ streams ─▶ one write ┐ ─▶ departure ─▶ closed
//!            └──────────────────────── round ────────────────────────────┘
//! ```
//! A hit is answered from the frames of its request, with no future of its own; every other stream is a future of this task. While nothing
//! is under way the connection holds no buffer. Its parts: `framed`, the socket with what is on its way; `table`, the streams; `heads`, how a
//! block becomes a request; `due`, `patience` and `turn`, the bounds; `departure`, the end. Next: `frames`, what each frame means; `serving`,
//! how a request is answered.

mod patience;
mod turn;
mod due;
mod framed;
mod departure;
mod table;
mod heads;
mod serving;
mod frames;

use super::accepted::Accepted;
use super::lingering;
use super::opening::Opened;
use crate::worker::{Awaits, ConnectionSlot, Stage};
use departure::Departure;
use due::ClientDue;
use framed::FramedSocket;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use heads::HeaderBlocks;
use millstream_net::clock;
use millstream_net::stream::Stream;
use millstream_net::streams;
use millstream_telemetry::metrics::{Counter, Gauge};
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::settings::{self, DEFAULT_WINDOW};
use millstream_wire::h2::write;
use patience::{Overdrawn, Patience, Work};
use serving::Serving;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;
use table::StreamTable;
use tokio::task::unconstrained;
use turn::FrameTurn;

/// Longest wait for a client that takes nothing at the end.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Rounds of a connection before other tasks get their turn.
const ROUNDS: usize = 8;

struct Http2Connection {
    accepted: Accepted,
    place: ConnectionSlot,
    framed: FramedSocket,
    preamble: Preamble,
    blocks: HeaderBlocks,
    streams: StreamTable,
    serving: FuturesUnordered<Serving>,
    /// The highest urgency among streams opened in this turn that have not run yet.
    unheard: Option<u8>,
    due: ClientDue,
    patience: Patience,
    turn: FrameTurn,
    departure: Departure,
}

#[cfg(test)]
pub(super) const SIZE: usize = size_of::<Http2Connection>();

/// RFC 9113 §3.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Preamble {
    /// How much of it has come.
    Preface(u8),
    Settings,
    Done,
}

enum Fate {
    Over,
    /// A connection error (RFC 9113 §5.4.1).
    Broken(ErrorCode, &'static str),
    /// The client is gone, or takes nothing.
    Gone,
}

pub(super) fn serve(opened: Opened, came: Vec<u8>) -> Pin<Box<dyn Future<Output = ()>>> {
    // In a box of its own, because a future has what it is given twice.
    let mut connection = Box::new(Http2Connection::new(opened, came));
    Box::pin(async move { connection.run().await })
}

impl Http2Connection {
    fn new(opened: Opened, came: Vec<u8>) -> Http2Connection {
        let Opened { accepted, socket, place } = opened;
        let now = clock::now();
        let http2 = &accepted.server().settings.http2;
        let streams = StreamTable::new(http2.max_concurrent_streams, http2.body_preread as u32);
        accepted.worker.metrics.add(Counter::Http2Connections, 1);
        Http2Connection {
            accepted,
            place,
            framed: FramedSocket::new(socket, came),
            preamble: Preamble::Preface(0),
            blocks: HeaderBlocks::default(),
            streams,
            serving: FuturesUnordered::new(),
            unheard: None,
            due: ClientDue::new(),
            patience: Patience::new(now),
            turn: FrameTurn::begin(now),
            departure: Departure::Staying,
        }
    }

    async fn run(&mut self) {
        self.greet();
        let end = poll_fn(|cx| self.poll(cx)).await;
        self.accepted.counted.is(None);
        let is_shed = self.place.is_shed();
        self.place.set_busy();
        self.streams.leave();
        self.departure.say_last(&end, self.streams.last(), &self.accepted, &self.framed.carrier);
        self.framed.close_output();
        let mut serving = std::mem::take(&mut self.serving);
        let mut closing = Box::pin(async {
            let (framed, accepted) = (&mut self.framed, &self.accepted);
            accepted.until_logged().await;
            let timeout = LAST_WORDS.min(accepted.settings().send.timeout);
            let is_open = !matches!(end, Fate::Gone) && framed.write_rest(timeout).await;
            if is_open {
                let lingering = pin!(linger(&mut framed.socket, accepted, &end, is_shed));
                // Where its place is needed, what the client still sends is reset.
                _ = self.place.unless_shed(Awaits::Close(clock::now()), lingering).await;
            }
        });
        let mut is_closed = false;
        let mut left = Vec::new();
        poll_fn(|cx| {
            is_closed = is_closed || closing.as_mut().poll(cx).is_ready();
            while let Poll::Ready(Some(served)) = serving.poll_next_unpin(cx) {
                left.push(served);
            }
            if is_closed && serving.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        drop(closing);
        // What it owes is of no use any more.
        left.into_iter().for_each(|served| _ = self.settle(served));
    }

    /// Sends SETTINGS (RFC 9113 §3.4) and the connection's window.
    fn greet(&self) {
        let [streams, window] = self.streams.settings();
        let settings =
            [streams, window, (settings::ENABLE_CONNECT_PROTOCOL, 1), (settings::NO_RFC7540_PRIORITIES, 1)];
        self.framed.carrier.frame(|out| {
            write::settings(out, &settings);
            write::window_update(out, 0, streams::CONNECTION_WINDOW - DEFAULT_WINDOW);
        });
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Fate> {
        let now = clock::now();
        self.framed.begin_turn();
        self.turn = FrameTurn::begin(now);
        // A connection that never has to wait hears of a stop too.
        self.departure.leave_in_time(now, &self.accepted, &self.framed.carrier);
        for _ in 0..ROUNDS {
            if let Err(end) = self.take_frames().and_then(|()| self.go_on(cx)) {
                return Poll::Ready(end);
            }
            self.patience.earn_pieces(self.framed.carrier.take_pieces());
            let (was_clogged, was_full) = (self.framed.is_clogged(), self.framed.is_full());
            let was_out = self.framed.is_out();
            let is_out = match unbudgeted(cx, |cx| self.poll_write(cx)) {
                Poll::Ready(Ok(())) => true,
                Poll::Ready(Err(_)) => return Poll::Ready(Fate::Gone),
                Poll::Pending => false,
            };
            if is_out && !was_out {
                // Nothing is waited for until the client has what it asked for.
                self.accepted.last_used = clock::now();
            }
            if self.is_over() && is_out {
                return Poll::Ready(Fate::Over);
            }
            if self.turn.is_over() {
                break;
            }
            if was_full || was_clogged && is_out {
                // There may be room again for what frames make us say that have come already.
                continue;
            }
            match unbudgeted(cx, |cx| self.framed.poll_read(cx)) {
                Poll::Ready(Ok(count)) if count > 0 => continue,
                Poll::Ready(_) => {
                    return Poll::Ready(if self.streams.is_empty() { Fate::Over } else { Fate::Gone });
                }
                Poll::Pending => {}
            }
            // There may be room now for streams that wait for their turn.
            if !(is_out && self.framed.carrier.grant()) {
                return self.poll_waiting(cx);
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Runs the streams that can go on, as far as there is room for their output.
    fn go_on(&mut self, cx: &mut Context<'_>) -> Result<(), Fate> {
        self.unheard = None;
        loop {
            while let Poll::Ready(Some(served)) = self.serving.poll_next_unpin(cx) {
                self.settle(served)?;
            }
            if !self.framed.carrier.grant() {
                return Ok(());
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let timeout = self.accepted.settings().send.timeout;
        self.framed.poll_write(cx, timeout, &mut self.due)
    }

    fn is_over(&self) -> bool {
        self.departure.is_closing() && self.streams.is_empty()
    }

    fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Poll<Fate> {
        self.framed.rest();
        let (has_streams, is_out) = (!self.streams.is_empty(), self.framed.is_out());
        let is_idle = !has_streams && is_out;
        let is_reading = is_idle && (!self.framed.input.is_empty() || self.blocks.has_begun());
        self.accepted.counted.is(match is_idle {
            false => Some(Gauge::ConnectionsWriting),
            true => is_reading.then_some(Gauge::ConnectionsReading),
        });
        let waits_for_client = has_streams && (!is_out || self.streams.all_wait_for_client());
        self.due.is(is_reading || waits_for_client);
        self.place.wait(self.due.awaits(is_idle, &self.accepted), cx.waker());
        if !is_idle && !waits_for_client {
            // It is told of a stop, and has no place to give.
            self.place.set_busy();
        }
        self.accepted.follow_generation();
        if self.accepted.worker.stage() == Stage::Stopping {
            return Poll::Ready(Fate::Gone);
        }
        if self.place.is_shed() {
            return Poll::Ready(Fate::Over);
        }
        self.departure.leave_in_time(clock::now(), &self.accepted, &self.framed.carrier);
        let has_asked = self.streams.last() > 0;
        let end = match self.departure {
            Departure::Announced(end) => Some(end),
            _ => is_idle.then(|| self.due.end_of_idling(has_asked, &self.accepted)),
        };
        if self.due.poll_end(cx, end).is_ready() {
            if !self.departure.is_announced() {
                return Poll::Ready(Fate::Over);
            }
            self.departure.say_farewell(self.streams.last(), &self.framed.carrier);
        }
        // What is not out yet comes back here by itself.
        if self.framed.has_more() || self.is_over() && is_out {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn charge(&mut self, work: Work) -> Result<(), Fate> {
        self.patience.charge(work, clock::now()).map_err(|Overdrawn| {
            Fate::Broken(ErrorCode::EnhanceYourCalm, "too many frames that cause useless work")
        })
    }
}

/// Polls the connection's socket outside tokio's budget. Its streams may have used that up, and a client with
/// requests in the socket would seem idle, or one that reads to take nothing. `ROUNDS` and `turn` bound the
/// work instead.
fn unbudgeted<T>(cx: &mut Context<'_>, poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    pin!(unconstrained(poll_fn(poll))).poll(cx)
}

/// Closes so that the client can read the last frames. It still sends acknowledgements and windows while it
/// reads, and a reset for those would discard the rest.
async fn linger(socket: &mut Stream, accepted: &Accepted, end: &Fate, is_shed: bool) {
    let mut lingering = accepted.settings().lingering.clone();
    if let Fate::Broken(..) = end {
        // It may still be sending, and is to read why there is an end; more is not owed to it.
        (lingering.time, lingering.timeout) =
            (lingering.time.min(LAST_WORDS), lingering.timeout.min(LAST_WORDS));
    }
    let may_speak = !is_shed || socket.has_unread();
    lingering::close(socket, &lingering, may_speak).await;
}
