//! Asking: one attempt after another until a server's final head is accepted or nobody else is to be asked.
//!
//! An attempt is recorded as a [`Try`] from the moment it has a connection. Interim answers go to the client as they
//! come (RFC 9110 §15.2). An answer that arrives before the request's body is out ends the sending of it.
//! Next: `request_head` for what is sent, `millstream-upstream`'s `retry` for what follows a failure.

use super::broken::{AttemptFailure, ExchangeFailure, broken};
use super::destination::Destination;
use super::opening::open;
use super::request_head::{RequestPlan, WrittenHead};
use super::watching::{watch, watch_for_others};
use super::{Passing, answer_head, asked_codings, call_timeout, handshake, saying, sticky};
use crate::client::ClientFailure;
use crate::request;
use crate::tries::Try;
use crate::variables;
use millstream_net::{buffers, clock};
use millstream_telemetry::metrics::Counter;
use millstream_upstream::{
    Ask, Attempt, Condition, Connection, Decision, ExchangeError, Tried, Turn, decide,
};
use millstream_wire::Fields;
use millstream_wire::h1::head::ResponseHead;
use std::rc::Rc;
use std::time::{Duration, Instant};

pub(super) struct AcceptedAnswer {
    pub(super) connection: Box<Connection>,
    pub(super) turn: Turn,
}

pub(super) enum Stop {
    Client(ClientFailure),
    Upstream(Condition, u16),
}

pub(super) struct Asking {
    pub(super) tried: Tried,
    pub(super) started: Instant,
    pub(super) turn: Turn,
    pub(super) underway: Option<Underway>,
}

pub(super) struct Underway {
    pub(super) connection: Box<Connection>,
    pub(super) written: WrittenHead,
    pub(super) at: At,
}

pub(super) enum At {
    Sending(Vec<u8>, usize),
    Sent,
    Read(Result<(), ExchangeError>),
}

/// Retries on a server that refused a request unprocessed: it may count calls longer than it takes to learn
/// of their end.
const MOST_REFUSALS: u32 = 8;

impl Passing<'_> {
    /// Tries servers until one sends an acceptable head. `begun`: the first is running already.
    pub(super) async fn ask(
        &mut self,
        begun: Option<Asking>,
        head: &mut ResponseHead,
    ) -> Result<AcceptedAnswer, Stop> {
        let Destination { peers, key, session, .. } = self.destination;
        let (mut tried, started, mut first) = match begun {
            Some(Asking { tried, started, turn, underway }) => (tried, started, Some((turn, underway))),
            None => {
                self.request.tries.begin();
                (peers.tried(self.proxy.exchange.next_upstream_tries), clock::now(), None)
            }
        };
        let mut now = started;
        loop {
            let (turn, underway) = match first.take() {
                Some(first) => first,
                None => match peers.choose(Ask { key, session: session.server(), tried: &mut tried, now }) {
                    Ok(turn) => (turn, None),
                    Err(_) => match self.queued(&mut tried).await.map_err(Stop::Client)? {
                        Some(turn) => {
                            now = clock::now();
                            (turn, None)
                        }
                        None => {
                            self.nobody(peers.group());
                            return Err(Stop::Upstream(Condition::Error, 502));
                        }
                    },
                },
            };
            sticky::chosen(self.request, self.destination, &turn);
            if let Some(ending) = self.ask_peer(turn, underway, head, tried.left(), started, now).await {
                return ending;
            }
            self.count(Counter::UpstreamRetries, 1);
            now = clock::now();
        }
    }

    /// Tries one server, twice if the first connection was stale. `None`: try the next one.
    async fn ask_peer(
        &mut self,
        mut turn: Turn,
        mut underway: Option<Underway>,
        head: &mut ResponseHead,
        tries_left: u32,
        started: Instant,
        mut now: Instant,
    ) -> Option<Result<AcceptedAnswer, Stop>> {
        let (mut fresh, mut refusals) = (false, 0);
        loop {
            let attempted = match underway.take() {
                Some(underway) => self.converse(underway, head).await,
                None => self.attempt(&turn, fresh, now, head).await,
            };
            let (connection, failure) = match attempted {
                Ok(connection) if !may_ask_again(head.status) => {
                    self.accepted(&mut turn);
                    return Some(Ok(AcceptedAnswer { connection, turn }));
                }
                Ok(connection) => (Some(connection), None),
                Err(AttemptFailure::Client(failure)) => return Some(Err(Stop::Client(failure))),
                Err(AttemptFailure::Exchange(failure)) => (None, Some(failure)),
            };
            now = clock::now();
            let is_refusal = failure.as_ref().is_some_and(|failure| failure.error.is_untouched());
            let may_be_fresh = !fresh || is_refusal && refusals < MOST_REFUSALS;
            let condition =
                failure.as_ref().map_or(Condition::Status(head.status), |failure| failure.error.condition());
            let attempt = Attempt {
                condition,
                method: self.method,
                request_sent: failure.as_ref().is_none_or(|failure| failure.sent),
                body_replayable: self.body.is_replayable(),
                stale: failure.as_ref().is_some_and(|failure| failure.stale) && may_be_fresh,
                tries_left: if failure.as_ref().is_some_and(|failure| failure.error.is_final()) {
                    0
                } else {
                    tries_left
                },
                elapsed: now.saturating_duration_since(started),
            };
            let decision = decide(&self.proxy.exchange, &attempt);
            if decision == Decision::Fresh {
                self.note_failure(condition);
                refusals += u32::from(is_refusal);
                fresh = true;
                continue;
            }
            if let (Decision::GiveUp(_), Some(connection)) = (decision, connection) {
                self.accepted(&mut turn);
                return Some(Ok(AcceptedAnswer { connection, turn }));
            }
            if let Some(failure) = &failure {
                self.report_failure(turn.peer(), failure);
            }
            if failure.is_none_or(|failure| !failure.error.is_not_its_fault()) {
                self.hold_against(turn, condition, now);
            }
            return match decision {
                Decision::GiveUp(status) => Some(Err(Stop::Upstream(condition, status))),
                Decision::Next | Decision::Fresh => None,
            };
        }
    }

    async fn attempt(
        &mut self,
        turn: &Turn,
        fresh: bool,
        started: Instant,
        head: &mut ResponseHead,
    ) -> Result<Box<Connection>, AttemptFailure> {
        self.asked_at = started;
        self.count(Counter::UpstreamRequests, 1);
        let pooled =
            if fresh { None } else { self.destination.pooled(turn.peer(), self.body.octets(), started) };
        let mut connection = match pooled {
            Some(connection) => {
                self.count(Counter::UpstreamConnectionsReused, 1);
                connection
            }
            // What is rare is boxed: each future that is awaited in place is moved into its caller's.
            None => Box::pin(self.connect(turn)).await?,
        };
        let connected = if connection.is_pooled() { started } else { clock::now() };
        let begun = self.begin_exchange(&mut connection, turn, connected);
        let (out, written) = begun.map_err(AttemptFailure::Client)?;
        self.converse(Underway { connection, written, at: At::Sending(out, 0) }, head).await
    }

    /// Writes the head without sending it. Fails if the protocol cannot express it.
    pub(super) fn begin_exchange(
        &mut self,
        connection: &mut Connection,
        turn: &Turn,
        connected: Instant,
    ) -> Result<(Vec<u8>, WrittenHead), ClientFailure> {
        let mut begun = Try::of(connection.peer_name().clone(), Some(turn.counts().clone()), self.asked_at);
        begun.span = request::begin_try(self.request);
        begun.connected(connected.saturating_duration_since(self.asked_at), !connection.is_pooled());
        self.request.tries.list.push(begun);
        let mut out = buffers::take();
        let confirm = self.stale.as_ref().filter(|_| self.revalidates()).map(|hit| &*hit.entry);
        let plan = RequestPlan {
            request: self.request,
            proxy: self.proxy,
            method: self.method,
            uri: self.destination.uri.as_deref(),
            caching: self.caching,
            confirm,
            rest: self.rest.as_deref(),
            framed: self.body.framed(),
            codings: asked_codings::class(self.request, self.proxy),
        };
        let (speaker, written) = saying::write(&mut out, &plan, &turn.peer().name)?;
        connection.begin(speaker, self.method, written.keep);
        Ok((out, written))
    }

    async fn connect(&mut self, turn: &Turn) -> Result<Box<Connection>, AttemptFailure> {
        let (peer, timeout) = (turn.peer(), self.proxy.exchange.connect_timeout);
        self.count(Counter::UpstreamConnections, 1);
        let opening = open(&self.request.worker, self.destination, peer, self.body.octets(), timeout);
        let watched = self.client.as_deref_mut().filter(|_| self.watching);
        match watch(watched, opening).await.map_err(AttemptFailure::Client)? {
            Ok(connection) => Ok(connection),
            Err(error) => {
                let status = error.condition().status();
                let response_time = Some(clock::now().saturating_duration_since(self.asked_at));
                let failed = Try::of(Rc::from(&*peer.name), Some(turn.counts().clone()), self.asked_at);
                self.request.tries.list.push(Try { status, response_time, ..failed });
                let doing = match &error {
                    ExchangeError::Handshake(_) | ExchangeError::PlainHttp(_) => {
                        "while SSL handshaking to upstream"
                    }
                    _ => "while connecting to upstream",
                };
                Err(AttemptFailure::Exchange(ExchangeFailure { error, doing, stale: false, sent: false }))
            }
        }
    }

    /// Continues up to a final head, and records the result.
    async fn converse(
        &mut self,
        Underway { mut connection, written, at }: Underway,
        head: &mut ResponseHead,
    ) -> Result<Box<Connection>, AttemptFailure> {
        let outcome = self.exchange_heads(&mut connection, written, at, head).await;
        match &outcome {
            Ok(()) => self.note_head(&connection, head, clock::now()),
            Err(_) => self.note_end(&connection, 0, clock::now()),
        }
        outcome.map(|()| connection)
    }

    /// Sends the request and reads up to a final head. Frees the request's own head once sent: the response
    /// may take long.
    async fn exchange_heads(
        &mut self,
        connection: &mut Connection,
        written: WrittenHead,
        at: At,
        head: &mut ResponseHead,
    ) -> Result<(), AttemptFailure> {
        let (mut whole, mut read) = match at {
            At::Sending(out, from) => {
                let sent = self.send(connection, &out[from..]).await;
                buffers::give(out);
                match sent {
                    Ok(whole) => (whole, None),
                    Err(error) => return self.answered_early(connection, error, head).await,
                }
            }
            At::Sent => (true, None),
            At::Read(outcome) => (true, Some(outcome)),
        };
        loop {
            if !whole {
                whole = Box::pin(self.send_stream(connection)).await?;
            }
            if whole {
                connection.sent_whole();
            }
            let outcome = match read.take() {
                Some(outcome) => outcome,
                None => self.read_head(connection, head).await.map_err(AttemptFailure::Client)?,
            };
            if let Err(error) = outcome {
                return Err(broken(connection, error, "while reading response header from upstream"));
            }
            if head.is_interim() {
                let fields = head.view(connection.head_bytes());
                Box::pin(self.pass_interim(head.status, fields)).await?;
                continue;
            }
            let may_upgrade = written.upgrade && self.client.is_some() && self.request.may_switch();
            return match head.status {
                101 if may_upgrade => handshake::check(self.request, self.proxy, connection, head),
                101 => Err(ExchangeError::UnexpectedUpgrade),
                _ => Ok(()),
            }
            .map_err(|error| broken(connection, error, "while reading response header from upstream"));
        }
    }

    /// After a failed send: the upstream may have responded, for example 413, and closed early.
    async fn answered_early(
        &mut self,
        connection: &mut Connection,
        error: ExchangeError,
        head: &mut ResponseHead,
    ) -> Result<(), AttemptFailure> {
        if let ExchangeError::Write(_) = error {
            let timeout = self.proxy.exchange.read_timeout;
            let answered =
                Box::pin(connection.read_head(head, self.proxy.exchange.buffer_size, timeout)).await;
            if answered.is_ok() && !head.is_interim() && head.status != 101 {
                return Ok(());
            }
        }
        Err(broken(connection, error, "while sending request to upstream"))
    }

    async fn read_head(
        &mut self,
        connection: &mut Connection,
        head: &mut ResponseHead,
    ) -> Result<Result<(), ExchangeError>, ClientFailure> {
        let timeout = self.proxy.exchange.read_timeout;
        let callers = self.callers_patience().filter(|patience| *patience < timeout);
        let reading = async {
            let size = self.proxy.exchange.buffer_size;
            match connection.read_head(head, size, callers.unwrap_or(timeout)).await {
                Err(ExchangeError::ReadTimeout) if callers.is_some() => Err(ExchangeError::CallTimeout),
                outcome => outcome,
            }
        };
        let watched = self.client.as_deref_mut();
        match &self.awaited {
            _ if self.watching => watch(watched, reading).await,
            Some((awaited, bound)) => watch_for_others(watched, reading, awaited, *bound).await,
            None => Ok(reading.await),
        }
    }

    /// The rest of the gRPC caller's timeout, if any.
    fn callers_patience(&self) -> Option<Duration> {
        let named = self.proxy.grpc().and_then(|_| self.request.fields().named(b"grpc-timeout"))?;
        let most = call_timeout::read(named)?;
        Some(most.saturating_sub(clock::now().saturating_duration_since(self.request.received.started)))
    }

    async fn pass_interim(&mut self, status: u16, fields: Fields<'_>) -> Result<(), AttemptFailure> {
        // 100 answers an Expect, which is not passed on: the client had its own from us.
        let passes = match status {
            100 => false,
            103 => self
                .request
                .location()
                .settings
                .early_hints
                .strings
                .as_ref()
                .is_none_or(|strings| variables::any_holds(strings, self.request)),
            _ => true,
        };
        let (true, Some(client)) = (passes, self.client.as_deref_mut()) else { return Ok(()) };
        let visible = answer_head::visible(&self.proxy.exchange, fields);
        let fields = Fields::new(fields.bytes(), &visible);
        client.interim(self.request, status, fields).await.map_err(AttemptFailure::Client)
    }
}

/// Statuses that `proxy_next_upstream` can name.
pub(super) fn may_ask_again(status: u16) -> bool {
    matches!(status, 403 | 404 | 429 | 500 | 502 | 503 | 504)
}
