//! An HTTP/2 connection: one task that reads frames, answers what is at hand, lets its streams go on, and writes what all have framed
//! (RFC 9113).
//!
//! ```text
//! preface ─▶ ┌ read ─▶ frames ─▶ answers at hand ─▶ streams ─▶ one write ┐ ─▶ departure ─▶ closed
//!            └──────────────────────── round ────────────────────────────┘
//! ```
//! A hit is answered from the frames of its request, with no future of its own; every other stream is a future of this task. While nothing
//! is under way the connection holds no buffer. Next: `frames`, what each frame means; `heads`, how a block becomes a request; `serving`,
//! how it is answered; `patience` and `departure`, the bounds and the end.

mod patience;
mod turn;
mod departure;
mod ended;
mod early;
mod websocket;
mod heads;
mod serving;
mod frames;

use super::accepted::Accepted;
use super::lingering;
use super::opening::Opened;
use crate::worker::{Awaits, ConnectionSlot, Stage, idle_since};
use departure::Departure;
use early::EarlyPriorities;
use ended::Ended;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use heads::HeaderBlock;
use millstream_net::outlet::Outlet;
use millstream_net::stream::Stream;
use millstream_net::streams::{self, Carrier};
use millstream_net::timer::Deadline;
use millstream_net::{buffers, clock};
use millstream_telemetry::metrics::{Counter, Gauge};
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::frame::HEAD_LENGTH;
use millstream_wire::h2::hpack::HpackDecoder;
use millstream_wire::h2::settings::{self, DEFAULT_MAX_FRAME_SIZE, DEFAULT_WINDOW, PeerSettings};
use millstream_wire::h2::window::LARGEST;
use millstream_wire::h2::write;
use patience::Patience;
use serving::Serving;
use std::future::{Future, poll_fn};
use std::io::IoSlice;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::task::unconstrained;
use turn::FrameTurn;

/// Longest wait for a client that takes nothing at the end.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Rounds of a connection before other tasks get their turn.
const ROUNDS: usize = 8;

struct Http2Connection {
    accepted: Accepted,
    socket: Stream,
    place: ConnectionSlot,
    carrier: Rc<Carrier>,
    input: Vec<u8>,
    output: Vec<u8>,
    written: usize,
    is_out: bool,
    sent_now: usize,
    /// The highest urgency among streams opened in this turn that have not run yet.
    unheard: Option<u8>,
    writing: Deadline,
    waiting: Deadline,
    preamble: Preamble,
    decoder: HpackDecoder,
    block: Option<Box<HeaderBlock>>,
    /// Since when only the client is awaited: for a request's rest, for all bodies, or to read, less the
    /// worth of what moves meanwhile ([`idle_since`]).
    client_due_since: Option<Instant>,
    streams: Vec<Rc<streams::Http2Stream>>,
    serving: FuturesUnordered<Serving>,
    last: u32,
    /// The last stream that counts, as the client was told.
    last_told: u32,
    ended: Ended,
    early: EarlyPriorities,
    patience: Patience,
    turn: FrameTurn,
    departure: Departure,
    granted: Granted,
}

#[cfg(test)]
pub(super) const SIZE: usize = size_of::<Http2Connection>();

/// RFC 9113 §3.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Preamble {
    Preface(usize),
    Settings,
    Done,
}

struct Granted {
    streams: u32,
    /// Bytes of a body before anyone reads it.
    window: u32,
    is_known: bool,
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
        let granted = Granted {
            streams: http2.max_concurrent_streams,
            window: http2.body_preread as u32,
            is_known: false,
        };
        accepted.worker.metrics.add(Counter::Http2Connections, 1);
        Http2Connection {
            accepted,
            socket,
            place,
            carrier: Rc::new(Carrier::new(PeerSettings::default())),
            input: came,
            output: Vec::new(),
            written: 0,
            is_out: true,
            sent_now: 0,
            unheard: None,
            writing: Deadline::new(),
            waiting: Deadline::new(),
            preamble: Preamble::Preface(0),
            decoder: HpackDecoder::default(),
            block: None,
            client_due_since: None,
            streams: Vec::new(),
            serving: FuturesUnordered::new(),
            last: 0,
            last_told: LARGEST,
            ended: Ended::default(),
            early: EarlyPriorities::default(),
            patience: Patience::new(now),
            turn: FrameTurn::begin(now),
            departure: Departure::Staying,
            granted,
        }
    }

    async fn run(&mut self) {
        self.greet();
        let end = poll_fn(|cx| self.poll(cx)).await;
        self.accepted.counted.is(None);
        let is_shed = self.place.is_shed();
        self.place.set_busy();
        // The streams that are left have no client any more.
        self.streams.iter().for_each(|stream| stream.leave());
        self.say_last(&end);
        let mut serving = std::mem::take(&mut self.serving);
        let mut closing = Box::pin(async {
            let (socket, last_words) = (&mut self.socket, &self.output[self.written..]);
            let is_open = say(socket, last_words, &self.accepted, &end).await;
            if is_open {
                let lingering = pin!(linger(socket, &self.accepted, &end, is_shed));
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
        let settings = [
            (settings::MAX_CONCURRENT_STREAMS, self.granted.streams),
            (settings::INITIAL_WINDOW_SIZE, self.granted.window),
            (settings::ENABLE_CONNECT_PROTOCOL, 1),
            (settings::NO_RFC7540_PRIORITIES, 1),
        ];
        self.carrier.frame(|out| {
            write::settings(out, &settings);
            write::window_update(out, 0, streams::CONNECTION_WINDOW - DEFAULT_WINDOW);
        });
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Fate> {
        let now = clock::now();
        self.sent_now = 0;
        self.turn = FrameTurn::begin(now);
        // A connection that never has to wait hears of a stop too.
        self.leave_in_time(now);
        for _ in 0..ROUNDS {
            if let Err(end) = self.take_frames().and_then(|()| self.go_on(cx)) {
                return Poll::Ready(end);
            }
            self.patience.earn_pieces(self.carrier.take_pieces());
            let is_clogged = self.is_clogged();
            let is_out = match unbudgeted(cx, |cx| self.poll_write(cx)) {
                Poll::Ready(Ok(())) => true,
                Poll::Ready(Err(_)) => return Poll::Ready(Fate::Gone),
                Poll::Pending => false,
            };
            if is_out && !self.is_out {
                // Nothing is waited for until the client has what it asked for.
                self.accepted.last_used = clock::now();
            }
            self.is_out = is_out;
            if self.is_over() && is_out {
                return Poll::Ready(Fate::Over);
            }
            if self.turn.is_over() {
                break;
            }
            if is_clogged && is_out {
                // There is room again for what frames make us say that have come already.
                continue;
            }
            match unbudgeted(cx, |cx| self.poll_read(cx)) {
                Poll::Ready(Ok(count)) if count > 0 => continue,
                Poll::Ready(_) => {
                    return Poll::Ready(if self.streams.is_empty() { Fate::Over } else { Fate::Gone });
                }
                Poll::Pending => {}
            }
            // There may be room now for streams that wait for their turn.
            if !(is_out && self.carrier.grant()) {
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
            if !self.carrier.grant() {
                return Ok(());
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let timeout = self.accepted.settings().send.timeout;
        let mut outlet = Outlet::new(&mut self.socket, &mut self.writing, timeout);
        loop {
            if self.written == self.output.len() {
                self.output.clear();
                self.written = 0;
                self.carrier.take(&mut self.output);
                if self.output.is_empty() {
                    break;
                }
            }
            match outlet.poll_write(cx, &self.output[self.written..]) {
                Poll::Ready(Ok(count)) => {
                    self.written += count;
                    self.carrier.wrote(count);
                    self.client_due_since =
                        self.client_due_since.map(|since| idle_since(since, count, clock::now()));
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        // A TLS stream may hold records back until it is flushed.
        outlet.poll_flush(cx)
    }

    /// One read, unless too much output waits: input makes more.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<usize>> {
        if self.is_clogged() {
            return Poll::Pending;
        }
        if self.input.capacity() == 0 {
            self.input = buffers::take();
        } else if self.input.len() == self.input.capacity() {
            // Our largest frame, which we said nothing about, is a little larger than a buffer.
            self.input.reserve(DEFAULT_MAX_FRAME_SIZE as usize + HEAD_LENGTH);
        }
        self.socket.poll_read_into(cx, &mut self.input, usize::MAX)
    }

    /// Whether the client reads so little of our control frames that its input is ignored.
    fn is_clogged(&self) -> bool {
        self.carrier.queued() + self.output.len() - self.written >= 2 * streams::ROOM
    }

    fn is_over(&self) -> bool {
        self.departure == Departure::Closing && self.streams.is_empty()
    }

    fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Poll<Fate> {
        self.hold_nothing();
        let has_streams = !self.streams.is_empty();
        let is_idle = !has_streams && self.is_out;
        let is_reading = is_idle && !(self.input.is_empty() && self.block.is_none());
        self.accepted.counted.is(match is_idle {
            false => Some(Gauge::ConnectionsWriting),
            true => is_reading.then_some(Gauge::ConnectionsReading),
        });
        let waits_for_client =
            has_streams && (!self.is_out || self.streams.iter().all(|stream| stream.waits_for_client()));
        let is_due = is_reading || waits_for_client;
        self.client_due_since = is_due.then(|| self.client_due_since.unwrap_or_else(clock::now));
        self.place.wait(self.awaits(is_idle), cx.waker());
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
        self.leave_in_time(clock::now());
        if let Some(until) = self.until(is_idle) {
            self.waiting.set(until);
            if self.waiting.poll(cx).is_ready() {
                if !matches!(self.departure, Departure::Announced(_)) {
                    return Poll::Ready(Fate::Over);
                }
                self.say_farewell();
            }
        } else {
            self.waiting.clear();
        }
        // What is not out yet comes back here by itself.
        if self.carrier.queued() > 0 && self.output.is_empty() || self.is_over() && self.is_out {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn hold_nothing(&mut self) {
        for buffer in [&mut self.input, &mut self.output] {
            if buffer.is_empty() && buffer.capacity() > 0 {
                buffers::give(std::mem::take(buffer));
            }
        }
        self.carrier.rest();
    }

    fn awaits(&self, is_idle: bool) -> Awaits {
        match self.client_due_since {
            since if !is_idle => Awaits::Body(since.unwrap_or_else(clock::now)),
            Some(since) => Awaits::Head(since),
            None => Awaits::Request(self.accepted.last_used),
        }
    }

    /// Only waits for the client; responses have their own timeouts.
    fn until(&self, is_idle: bool) -> Option<Instant> {
        if let Departure::Announced(at) = self.departure {
            return Some(at);
        }
        let head_timeout = self.accepted.server().settings.client_header.timeout;
        let until = match self.client_due_since {
            _ if self.last == 0 => self.accepted.last_used + head_timeout,
            Some(since) => since + head_timeout,
            None => self.accepted.last_used + self.accepted.settings().keepalive.timeout,
        };
        is_idle.then_some(until)
    }
}

/// Polls the connection's socket outside tokio's budget. Its streams may have used that up, and a client with
/// requests in the socket would seem idle, or one that reads to take nothing. `ROUNDS` and `turn` bound the
/// work instead.
fn unbudgeted<T>(cx: &mut Context<'_>, poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    pin!(unconstrained(poll_fn(poll))).poll(cx)
}

/// Writes the last frames; whether the client may still read them.
async fn say(socket: &mut Stream, last_words: &[u8], accepted: &Accepted, end: &Fate) -> bool {
    accepted.until_logged().await;
    let mut deadline = Deadline::new();
    let outlet = Outlet::new(socket, &mut deadline, LAST_WORDS.min(accepted.settings().send.timeout));
    !matches!(end, Fate::Gone) && outlet.write_all(&mut [IoSlice::new(last_words)]).await.is_ok()
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
