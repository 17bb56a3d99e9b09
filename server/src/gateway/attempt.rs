//! Asking: one attempt after another until a server's final head is accepted or nobody else is to be asked.
//!
//! An attempt is recorded as a [`Try`] from the moment it has a connection. Interim answers go to the client as they
//! come (RFC 9110 §15.2). An answer that arrives before the request's body is out ends the sending of it.
//! Next: `request_head` for what is sent, `millstream-upstream`'s `retry` for what follows a failure.

use super::destination::Destination;
use super::request_body::{PIECE, RequestBody, read_at};
use super::request_head::{self, Framed, Plan, Written};
use super::{Passing, answer_head, params, report};
use crate::client::{BodyProgress, Client, ClientFailure};
use crate::tries::Try;
use crate::worker::Worker;
use millstream_cache::Awaited;
use millstream_conf::model::{Level, Protocol};
use millstream_net::limits::is_out_of_descriptors;
use millstream_net::timer::Deadline;
use millstream_net::{buffers, clock};
use millstream_telemetry::metrics::{Counter, Timing};
use millstream_upstream::retry::is_peer_failure;
use millstream_upstream::{
    Ask, Attempt, Condition, Connection, Decision, ExchangeError, Peer, Speaker, Turn, decide,
};
use millstream_wire::h1::head::ResponseHead;
use millstream_wire::{Fields, Headers};
use std::fs::File;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::{Duration, Instant};

/// How often a request looks again for a descriptor that something other than connections has taken.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// An accepted answer: its head is parsed, its body is on the connection.
pub(super) struct Asked {
    pub(super) connection: Box<Connection>,
    pub(super) turn: Turn,
}

/// Why there is no answer.
pub(super) enum Stop {
    /// The client's fault.
    Client(ClientFailure),
    /// The upstream's: what happened, and the status to answer with.
    Upstream(Condition, u16),
}

/// How one attempt failed.
enum Broken {
    Client(ClientFailure),
    Exchange(Failure),
}

/// A failed exchange.
struct Failure {
    error: ExchangeError,
    /// What was being done, in nginx's words.
    doing: &'static str,
    /// The connection was merely stale.
    stale: bool,
    /// Some of the request had been sent.
    sent: bool,
}

impl Passing<'_> {
    /// Asks servers until one gives a head that is accepted.
    pub(super) async fn ask(&mut self, head: &mut ResponseHead) -> Result<Asked, Stop> {
        let Destination { peers, key, .. } = self.destination;
        let mut tried = peers.tried(self.proxy.exchange.next_upstream_tries);
        let started = clock::now();
        let mut now = started;
        loop {
            let Ok(turn) = peers.choose(Ask { key, tried: &mut tried, now }) else {
                self.nobody(peers.group());
                return Err(Stop::Upstream(Condition::Error, 502));
            };
            if let Some(ending) = self.ask_peer(turn, head, tried.left(), started, now).await {
                return ending;
            }
            self.count(Counter::UpstreamRetries, 1);
            now = clock::now();
        }
    }

    /// Asks one server, a second time where the first connection was stale. `None`: the next one is to be asked.
    async fn ask_peer(
        &mut self,
        turn: Turn,
        head: &mut ResponseHead,
        tries_left: u32,
        started: Instant,
        mut now: Instant,
    ) -> Option<Result<Asked, Stop>> {
        let mut fresh = false;
        loop {
            let (connection, failure) = match self.attempt(turn.peer(), fresh, now, head).await {
                Ok(connection) if !may_ask_again(head.status) => return Some(Ok(Asked { connection, turn })),
                Ok(connection) => (Some(connection), None),
                Err(Broken::Client(failure)) => return Some(Err(Stop::Client(failure))),
                Err(Broken::Exchange(failure)) => (None, Some(failure)),
            };
            now = clock::now();
            let condition =
                failure.as_ref().map_or(Condition::Status(head.status), |failure| failure.error.condition());
            let attempt = Attempt {
                condition,
                method: self.method,
                request_sent: failure.as_ref().is_none_or(|failure| failure.sent),
                body_replayable: self.body.is_replayable(),
                stale: failure.as_ref().is_some_and(|failure| failure.stale) && !fresh,
                tries_left,
                elapsed: now.saturating_duration_since(started),
            };
            let decision = decide(&self.proxy.exchange, &attempt);
            if decision == Decision::Fresh {
                self.note_failure(condition);
                fresh = true;
                continue;
            }
            if let (Decision::GiveUp(_), Some(connection)) = (decision, connection) {
                return Some(Ok(Asked { connection, turn }));
            }
            if let Some(failure) = &failure {
                self.report_failure(turn.peer(), failure);
            }
            if failure.is_none_or(|failure| !failure.error.is_our_own()) {
                self.hold_against(turn, condition, now);
            }
            return match decision {
                Decision::GiveUp(status) => Some(Err(Stop::Upstream(condition, status))),
                Decision::Next | Decision::Fresh => None,
            };
        }
    }

    /// One attempt with one server, up to a final head.
    async fn attempt(
        &mut self,
        peer: &Peer,
        fresh: bool,
        started: Instant,
        head: &mut ResponseHead,
    ) -> Result<Box<Connection>, Broken> {
        self.asked_at = started;
        self.count(Counter::UpstreamRequests, 1);
        let pooled = if fresh { None } else { self.destination.pooled(peer, started) };
        let mut connection = match pooled {
            Some(connection) => {
                self.count(Counter::UpstreamConnectionsReused, 1);
                connection
            }
            // What is rare is boxed: each future that is awaited in place is moved into its caller's.
            None => Box::pin(self.connect(peer)).await?,
        };
        let connected = if connection.is_pooled() { started } else { clock::now() };
        self.request.tries.list.push(Try {
            peer: connection.peer_name().clone(),
            status: 0,
            connect_time: Some(connected.saturating_duration_since(started)),
            header_time: None,
            response_time: None,
            response_length: 0,
            bytes_sent: 0,
            bytes_received: 0,
        });
        let mut out = buffers::take();
        let confirm = self.stale.as_ref().filter(|_| self.revalidates()).map(|hit| &*hit.entry);
        let plan = Plan {
            request: self.request,
            proxy: self.proxy,
            method: self.method,
            uri: self.destination.uri.as_deref(),
            caching: self.caching,
            confirm,
            rest: self.rest.as_deref(),
            framed: self.body.framed(),
        };
        let (speaker, written) = match &self.proxy.protocol {
            Protocol::Http(http) => {
                let speaker = Speaker::http1(plan.framed == Framed::Chunked);
                (speaker, request_head::write(&mut out, &plan, http))
            }
            Protocol::FastCgi(fastcgi) => {
                let url = report::url(self.request, self.proxy, &peer.name, None);
                let complaints = report::complaints(self.request, fastcgi, &url);
                (Speaker::fastcgi(complaints), params::write(&mut out, &plan, fastcgi))
            }
        };
        connection.begin(speaker, self.method, written.keep);
        let outcome = self.converse(&mut connection, out, head, written).await;
        match &outcome {
            Ok(()) => self.note_head(&connection, head),
            Err(_) => self.note_end(&connection, 0, clock::now()),
        }
        outcome.map(|()| connection)
    }

    async fn connect(&mut self, peer: &Peer) -> Result<Box<Connection>, Broken> {
        self.count(Counter::UpstreamConnections, 1);
        let opening = open(&self.request.worker, self.destination, peer, self.proxy.exchange.connect_timeout);
        let watched = self.client.as_deref_mut().filter(|_| self.watching);
        match watch(watched, opening).await.map_err(Broken::Client)? {
            Ok(connection) => Ok(connection),
            Err(error) => {
                let status = if error.condition() == Condition::Timeout { 504 } else { 502 };
                let response_time = Some(clock::now().saturating_duration_since(self.asked_at));
                self.request.tries.list.push(Try {
                    peer: Rc::from(&*peer.name),
                    status,
                    connect_time: None,
                    header_time: None,
                    response_time,
                    response_length: 0,
                    bytes_sent: 0,
                    bytes_received: 0,
                });
                let doing = match &error {
                    ExchangeError::Handshake(_) => "while SSL handshaking to upstream",
                    _ => "while connecting to upstream",
                };
                Err(Broken::Exchange(Failure { error, doing, stale: false, sent: false }))
            }
        }
    }

    /// Sends the request and reads heads until a final one. The request's own head goes once it is sent: the answer may
    /// take long.
    async fn converse(
        &mut self,
        connection: &mut Connection,
        out: Vec<u8>,
        head: &mut ResponseHead,
        written: Written,
    ) -> Result<(), Broken> {
        let sent = self.send(connection, &out).await;
        buffers::give(out);
        let mut whole = match sent {
            Ok(whole) => whole,
            Err(error @ ExchangeError::Write(_)) => {
                // The upstream may have answered, a 413 say, and closed without reading all of the request.
                let timeout = self.proxy.exchange.read_timeout;
                let answered =
                    Box::pin(connection.read_head(head, self.proxy.exchange.buffer_size, timeout)).await;
                if answered.is_ok() && !head.is_interim() && head.status != 101 {
                    return Ok(());
                }
                return Err(broken(connection, error, "while sending request to upstream"));
            }
            Err(error) => return Err(broken(connection, error, "while sending request to upstream")),
        };
        loop {
            if !whole {
                whole = Box::pin(self.send_stream(connection)).await?;
            }
            if whole {
                connection.sent_whole();
            }
            let reading =
                connection.read_head(head, self.proxy.exchange.buffer_size, self.proxy.exchange.read_timeout);
            let watched = self.client.as_deref_mut();
            let read = match &self.awaited {
                _ if self.watching => watch(watched, reading).await,
                Some((awaited, bound)) => watch_for_others(watched, reading, awaited, *bound).await,
                None => Ok(reading.await),
            };
            if let Err(error) = read.map_err(Broken::Client)? {
                return Err(broken(connection, error, "while reading response header from upstream"));
            }
            if head.is_interim() {
                let fields = head.view(connection.head_bytes());
                Box::pin(self.pass_interim(head.status, fields)).await?;
                continue;
            }
            let may_upgrade = written.upgrade && self.client.is_some() && self.request.is_http11();
            if head.status == 101 && !may_upgrade {
                let error = ExchangeError::UnexpectedUpgrade;
                return Err(broken(connection, error, "while reading response header from upstream"));
            }
            return Ok(());
        }
    }

    /// Sends the head and a body that is kept. `false`: the body is to be passed on as it comes.
    async fn send(&mut self, connection: &mut Connection, out: &[u8]) -> Result<bool, ExchangeError> {
        let timeout = self.proxy.exchange.send_timeout;
        match &self.body {
            RequestBody::None => connection.send(out, b"", true, timeout).await?,
            RequestBody::Memory(bytes) => connection.send(out, bytes, true, timeout).await?,
            RequestBody::File(file, length) => {
                connection.send(out, b"", false, timeout).await?;
                Box::pin(send_file(connection, file, *length, timeout)).await?;
            }
            RequestBody::Stream { .. } => {
                connection.send(out, b"", false, timeout).await?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Passes the body on as it comes. `false`: the upstream speaks before all of it is out.
    async fn send_stream(&mut self, connection: &mut Connection) -> Result<bool, Broken> {
        let RequestBody::Stream { begun, .. } = &mut self.body else { return Ok(true) };
        let Some(client) = self.client.as_deref_mut() else { return Ok(true) };
        let mut piece = buffers::take();
        let outcome = loop {
            piece.clear();
            let step = {
                let mut reading = pin!(client.read_body(self.request, &mut piece));
                poll_fn(|context| match reading.as_mut().poll(context) {
                    Poll::Ready(progress) => Poll::Ready(Some(progress)),
                    Poll::Pending => connection.poll_speaks(context).map(|()| None),
                })
                .await
            };
            let progress = match step {
                None => {
                    client.set_busy();
                    break Ok(false);
                }
                Some(Err(failure)) => break Err(Broken::Client(failure)),
                Some(Ok(progress)) => progress,
            };
            *begun = true;
            let ended = progress == BodyProgress::End;
            match connection.send(b"", &piece, ended, self.proxy.exchange.send_timeout).await {
                Ok(()) if ended => break Ok(true),
                Ok(()) => {}
                // What it has to say, if anything, is read next.
                Err(ExchangeError::Write(_)) => break Ok(false),
                Err(error) => break Err(broken(connection, error, "while sending request to upstream")),
            }
        };
        buffers::give(piece);
        outcome
    }

    async fn pass_interim(&mut self, status: u16, fields: Fields<'_>) -> Result<(), Broken> {
        // 100 answers an Expect, which is not passed on: the client had its own from us.
        let (true, Some(client)) = (status != 100, self.client.as_deref_mut()) else { return Ok(()) };
        let visible = answer_head::visible(&self.proxy.exchange, fields);
        let fields = Fields::new(fields.bytes(), &visible);
        client.interim(self.request, status, fields).await.map_err(Broken::Client)
    }

    /// Records that a head has come.
    fn note_head(&mut self, connection: &Connection, head: &ResponseHead) {
        let elapsed = clock::now().saturating_duration_since(self.asked_at);
        let Some(last) = self.request.tries.list.last_mut() else { return };
        last.status = head.status;
        last.header_time = Some(elapsed);
        self.request.worker.metrics.observe(Timing::UpstreamHeader, elapsed);
        if self.request.generation.shared.keeps_upstream_heads {
            let fields = head.view(connection.head_bytes());
            self.request.tries.headers = Some(Rc::new(Headers::copied_from(fields, |_, _, _| true)));
        }
    }

    /// No server is live.
    fn nobody(&mut self, group: &str) {
        self.count(Counter::UpstreamNoPeers, 1);
        let url = report::url(self.request, self.proxy, group, self.destination.uri.as_deref());
        let what = format_args!("no live upstreams while connecting to upstream");
        report::write(self.request, Level::Error, what, Some(&url));
        self.request.tries.list.push(Try {
            peer: group.into(),
            status: 502,
            connect_time: None,
            header_time: None,
            response_time: Some(Duration::ZERO),
            response_length: 0,
            bytes_sent: 0,
            bytes_received: 0,
        });
    }

    /// Logs and counts a failure, and puts its status into the try.
    fn report_failure(&mut self, peer: &Peer, failure: &Failure) {
        let condition = failure.error.condition();
        self.count(
            match condition {
                Condition::Timeout => Counter::UpstreamTimeouts,
                Condition::InvalidHeader => Counter::UpstreamInvalidHeaders,
                Condition::Error | Condition::Status(_) => Counter::UpstreamErrors,
            },
            1,
        );
        self.note_failure(condition);
        let url = report::url(self.request, self.proxy, &peer.name, self.destination.uri.as_deref());
        let what = format_args!("{} {}", failure.error, failure.doing);
        report::write(self.request, Level::Error, what, Some(&url));
    }

    fn note_failure(&mut self, condition: Condition) {
        if let Some(last) = self.request.tries.list.last_mut() {
            last.status = if condition == Condition::Timeout { 504 } else { 502 };
        }
    }

    /// A failure of its server takes it out after `max_fails` of them; 403 and 404 say nothing about it.
    fn hold_against(&mut self, turn: Turn, condition: Condition, now: Instant) {
        if let Condition::Status(status) = condition
            && !is_peer_failure(&self.proxy.exchange.next_upstream, status)
        {
            return;
        }
        let name = turn.peer().name.clone();
        if turn.failed(now) {
            self.count(Counter::UpstreamPeersFailed, 1);
            let url = report::url(self.request, self.proxy, &name, self.destination.uri.as_deref());
            let what = format_args!("upstream server temporarily disabled while connecting to upstream");
            report::write(self.request, Level::Warn, what, Some(&url));
        }
    }

    pub(super) fn count(&self, counter: Counter, by: u64) {
        self.request.worker.metrics.add(counter, by);
    }

    /// The exchange has ended: records it, and keeps the connection where it can be used again.
    pub(super) fn finished(&mut self, connection: Box<Connection>, turn: Turn, length: u64) {
        let now = clock::now();
        self.note_end(&connection, length, now);
        self.report_leftover(&connection);
        self.destination.pool.put(connection, now);
        turn.succeeded();
    }

    /// Says so where the upstream sent more than it announced.
    pub(super) fn report_leftover(&mut self, connection: &Connection) {
        if connection.has_leftover() {
            let url = report::url(
                self.request,
                self.proxy,
                connection.peer_name(),
                self.destination.uri.as_deref(),
            );
            let what =
                format_args!("upstream sent more data than its response is long while reading upstream");
            report::write(self.request, Level::Warn, what, Some(&url));
        }
    }

    /// Records the end of an answer's body.
    pub(super) fn note_end(&mut self, connection: &Connection, length: u64, now: Instant) {
        self.note_traffic(connection.traffic(), length, now);
    }

    /// As [`Passing::note_end`], of an exchange whose connection is somebody else's by now.
    pub(super) fn note_traffic(&mut self, (received, sent): (u64, u64), length: u64, now: Instant) {
        self.count(Counter::UpstreamBytesReceived, received);
        self.count(Counter::UpstreamBytesSent, sent);
        if let Some(last) = self.request.tries.list.last_mut() {
            last.response_time = Some(now.saturating_duration_since(self.asked_at));
            last.response_length = length;
            (last.bytes_received, last.bytes_sent) = (received, sent);
        }
    }

    /// A body broke off: logged; the client will see the cut.
    pub(super) fn broke_off(&mut self, connection: &Connection, error: &ExchangeError, length: u64) {
        self.note_end(connection, length, clock::now());
        let timed_out = error.condition() == Condition::Timeout;
        self.count(if timed_out { Counter::UpstreamTimeouts } else { Counter::UpstreamErrors }, 1);
        let url =
            report::url(self.request, self.proxy, connection.peer_name(), self.destination.uri.as_deref());
        report::write(self.request, Level::Error, format_args!("{error} while reading upstream"), Some(&url));
    }
}

/// A connection to a server, once there is a descriptor for it; both within `timeout`.
async fn open(
    worker: &Rc<Worker>,
    destination: &Destination,
    peer: &Peer,
    timeout: Duration,
) -> Result<Box<Connection>, ExchangeError> {
    let (mut whole, mut pause) = (Deadline::new(), Deadline::new());
    loop {
        let place = match worker.try_upstream() {
            Some(place) => place,
            None => {
                complain_of_shortage(worker);
                whole.set(whole.at().unwrap_or_else(|| clock::now() + timeout));
                worker.upstream(&mut whole).await.ok_or(ExchangeError::NoDescriptor)?
            }
        };
        match destination.connect(peer, timeout).await {
            // Files took what was reserved for connections.
            Err(ExchangeError::Connect(error)) if is_out_of_descriptors(&error) => {
                complain_of_shortage(worker);
                let now = clock::now();
                whole.set(whole.at().unwrap_or(now + timeout));
                if whole.at().is_some_and(|end| end <= now) {
                    return Err(ExchangeError::NoDescriptor);
                }
                worker.make_room(now);
                pause.set(now + LOOK_AGAIN);
                pause.passed().await;
            }
            Ok(mut connection) => {
                connection.hold(Box::new(place));
                return Ok(connection);
            }
            Err(error) => return Err(error),
        }
    }
}

fn complain_of_shortage(worker: &Worker) {
    if worker.may_complain(clock::now()) {
        let log = &worker.generation().shared.main_log;
        log.write(
            Level::Crit,
            format_args!("the limit of open files is reached, requests wait for connections to upstreams"),
        );
    }
}

/// Sends a body that is kept in a file.
async fn send_file(
    connection: &mut Connection,
    file: &Arc<File>,
    length: u64,
    timeout: Duration,
) -> Result<(), ExchangeError> {
    let (mut sent, mut piece) = (0, Vec::new());
    loop {
        let size = usize::try_from(length - sent).unwrap_or(PIECE).min(PIECE);
        piece = read_at(file, piece, sent, size).await.map_err(ExchangeError::Write)?;
        sent += size as u64;
        connection.send(b"", &piece, sent == length, timeout).await?;
        if sent == length {
            return Ok(());
        }
    }
}

/// Statuses that `proxy_next_upstream` can name.
fn may_ask_again(status: u16) -> bool {
    matches!(status, 403 | 404 | 429 | 500 | 502 | 503 | 504)
}

fn broken(connection: &Connection, error: ExchangeError, doing: &'static str) -> Broken {
    let (received, sent) = connection.traffic();
    let stale = connection.is_pooled() && received == 0 && error.is_stale();
    Broken::Exchange(Failure { error, doing, stale, sent: sent > 0 })
}

/// What a future gives, unless the client leaves first.
async fn watch<F: Future>(client: Option<&mut Client>, future: F) -> Result<F::Output, ClientFailure> {
    let mut future = pin!(future);
    let Some(client) = client else { return Ok(future.await) };
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending => client.poll_gone(context).map(|()| Err(ClientFailure::Gone)),
    })
    .await
}

/// As [`watch`], for an answer that is asked for the cache: a client that leaves ends it after `bound`, unless others wait
/// for the answer then.
async fn watch_for_others<F: Future>(
    client: Option<&mut Client>,
    future: F,
    awaited: &Awaited,
    bound: Duration,
) -> Result<F::Output, ClientFailure> {
    let mut future = pin!(future);
    let Some(client) = client else { return Ok(future.await) };
    let (mut has_left, mut deadline) = (false, Deadline::new());
    poll_fn(|context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Ok(output));
        }
        if !has_left {
            ready!(client.poll_gone(context));
            has_left = true;
        }
        loop {
            if deadline.at().is_none() {
                deadline.set(clock::now() + bound);
            }
            ready!(deadline.poll(context));
            deadline.clear();
            if !awaited.by_others() {
                return Poll::Ready(Err(ClientFailure::Gone));
            }
        }
    })
    .await
}
