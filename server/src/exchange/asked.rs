//! A server that is asked: the request sent over one connection, and what comes up to a final head.
//!
//! It is recorded as a [`Try`] from the moment it has a connection. Interim responses go to the client as they
//! come (RFC 9110 §15.2). A response that arrives before the request's body is out ends the sending of it.
//! Next: `request_head`, what is sent; `settling`, what is made of the response.

use super::broken::{AttemptFailure, ExchangeFailure, broken};
use super::destination::Destination;
use super::opening::open;
use super::request_head::{RequestFraming, RequestPlan, WrittenHead};
use super::sending::send_on;
use super::watching::{watch, watch_for_others};
use super::{Passing, answer_head, handshake, params, report, request_head};
use crate::client::ClientFailure;
use crate::request;
use crate::tries::Try;
use crate::variables;
use millstream_conf::model::{HttpVersion, Protocol};
use millstream_net::{buffers, clock};
use millstream_telemetry::metrics::Counter;
use millstream_upstream::{Connection, ExchangeError, Speaker, Turn};
use millstream_wire::Fields;
use millstream_wire::h1::head::ResponseHead;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

const SENDING: &str = "while sending request to upstream";
const READING: &str = "while reading response header from upstream";

pub(super) struct Asked {
    pub(super) connection: Box<Connection>,
    written: WrittenHead,
    at: At,
}

enum At {
    /// The head as written, and how much of it is out.
    Sending(Vec<u8>, usize),
    Sent,
    Read(Result<Box<ResponseHead>, ExchangeError>),
}

impl Asked {
    /// Over an idle connection, unless a fresh one is wanted, else over a new one.
    pub(super) async fn begin(
        passing: &mut Passing<'_>,
        turn: &Turn,
        fresh: bool,
        now: Instant,
    ) -> Result<Asked, AttemptFailure> {
        if !fresh && let Some(asked) = Asked::over_idle(passing, turn, now).map_err(AttemptFailure::Client)? {
            return Ok(asked);
        }
        passing.terms.asked_at = now;
        // What is rare is boxed: each future that is awaited in place is moved into its caller's.
        let connection = Box::pin(connect(passing, turn)).await?;
        let connected = if connection.is_pooled() { now } else { clock::now() };
        Asked::write(passing, connection, turn, connected).map_err(AttemptFailure::Client)
    }

    /// `None` without an idle connection. Fails if the protocol cannot express the request.
    pub(super) fn over_idle(
        passing: &mut Passing<'_>,
        turn: &Turn,
        now: Instant,
    ) -> Result<Option<Asked>, ClientFailure> {
        let octets = passing.terms.body.octets();
        let Destination { pool, dial, .. } = passing.destination;
        let Some(connection) = pool.take(turn.peer(), dial, octets, now) else { return Ok(None) };
        passing.terms.asked_at = now;
        passing.count(Counter::UpstreamRequests, 1);
        passing.count(Counter::UpstreamConnectionsReused, 1);
        Asked::write(passing, connection, turn, now).map(Some)
    }

    /// Writes the head without sending it.
    fn write(
        passing: &mut Passing<'_>,
        mut connection: Box<Connection>,
        turn: &Turn,
        connected: Instant,
    ) -> Result<Asked, ClientFailure> {
        let asked_at = passing.terms.asked_at;
        let mut begun = Try::of(connection.peer_name().clone(), Some(turn.counts().clone()), asked_at);
        begun.span = request::begin_try(passing.request);
        begun.connected(connected.saturating_duration_since(asked_at), !connection.is_pooled());
        passing.request.tries.list.push(begun);
        let mut out = buffers::take();
        let revalidates = passing.revalidates();
        let plan = RequestPlan {
            request: passing.request,
            proxy: passing.proxy,
            method: passing.terms.method,
            uri: passing.destination.uri.as_deref(),
            caching: passing.terms.cache.caching,
            confirm: passing.terms.cache.stale.as_ref().filter(|_| revalidates).map(|hit| &*hit.entry),
            rest: passing.terms.cache.rest.as_deref(),
            framed: passing.terms.body.framed(),
            codings: request_head::codings_of(passing.request, passing.proxy),
        };
        let (speaker, written) = write_head(&mut out, &plan, &turn.peer().name)?;
        connection.begin(speaker, passing.terms.method, written.keep);
        Ok(Asked { connection, written, at: At::Sending(out, 0) })
    }

    /// As much of a request without a body as the socket takes.
    pub(super) fn send_at_once(&mut self, context: &mut Context<'_>, passing: &Passing<'_>) {
        let (At::Sending(out, sent), exchange) = (&mut self.at, &passing.proxy.exchange) else { return };
        match self.connection.send_at_once(context, out, exchange.send_timeout) {
            Ok(()) => {
                buffers::give(std::mem::take(out));
                self.at = At::Sent;
                self.connection.sent_whole();
                self.connection.wait_for_head_until(passing.terms.asked_at + exchange.read_timeout);
            }
            Err(count) => *sent = count,
        }
    }

    pub(super) fn is_sent(&self) -> bool {
        matches!(self.at, At::Sent)
    }

    pub(super) fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        passing: &Passing<'_>,
        head: &mut ResponseHead,
    ) -> Poll<Result<(), ExchangeError>> {
        let exchange = &passing.proxy.exchange;
        self.connection.poll_read_head(context, head, exchange.buffer_size, exchange.read_timeout)
    }

    /// For [`Asked::answer`].
    pub(super) fn has_read(&mut self, read: Result<Box<ResponseHead>, ExchangeError>) {
        self.at = At::Read(read);
    }

    /// Continues up to a final head, and records the result.
    pub(super) async fn answer(
        self,
        passing: &mut Passing<'_>,
        head: &mut ResponseHead,
    ) -> Result<Box<Connection>, AttemptFailure> {
        let Asked { mut connection, written, at } = self;
        let outcome = exchange_heads(passing, &mut connection, written, at, head).await;
        match &outcome {
            Ok(()) => passing.note_head(&connection, head, clock::now()),
            Err(_) => passing.note_end(&connection, 0, clock::now()),
        }
        outcome.map(|()| connection)
    }
}

/// The beginning of a request as it goes out, in the words of whichever protocol is spoken.
pub(super) fn write_head(
    out: &mut Vec<u8>,
    plan: &RequestPlan<'_>,
    peer: &str,
) -> Result<(Speaker, WrittenHead), ClientFailure> {
    Ok(match &plan.proxy.protocol {
        Protocol::Http(http) if http.http_version == HttpVersion::Http2 => {
            let method = http.method.as_ref();
            (Speaker::Http2, request_head::write_block(out, plan, method, http.passes_trailers))
        }
        Protocol::Grpc(_) => (Speaker::Http2, request_head::write_block(out, plan, None, true)),
        Protocol::Http(http) => {
            let speaker = Speaker::http1(plan.framed == RequestFraming::Chunked);
            (speaker, request_head::write(out, plan, http))
        }
        Protocol::FastCgi(fastcgi) => {
            let url = report::url(plan.request, plan.proxy, peer, None);
            let complaints = report::complaints(plan.request, fastcgi, &url);
            (Speaker::fastcgi(complaints), params::write_fastcgi(out, plan, fastcgi))
        }
        Protocol::Uwsgi(uwsgi) => (Speaker::Cgi, params::write_uwsgi(out, plan, uwsgi)?),
        Protocol::Scgi(scgi) => (Speaker::Cgi, params::write_scgi(out, plan, scgi)),
    })
}

async fn connect(passing: &mut Passing<'_>, turn: &Turn) -> Result<Box<Connection>, AttemptFailure> {
    let (peer, timeout) = (turn.peer(), passing.proxy.exchange.connect_timeout);
    passing.count(Counter::UpstreamRequests, 1);
    passing.count(Counter::UpstreamConnections, 1);
    let opening =
        open(&passing.request.worker, passing.destination, peer, passing.terms.body.octets(), timeout);
    let watched = passing.client.as_deref_mut().filter(|_| passing.terms.watching);
    match watch(watched, opening).await.map_err(AttemptFailure::Client)? {
        Ok(connection) => Ok(connection),
        Err(error) => {
            let status = error.condition().status();
            let response_time = Some(clock::now().saturating_duration_since(passing.terms.asked_at));
            let failed = Try::of(Rc::from(&*peer.name), Some(turn.counts().clone()), passing.terms.asked_at);
            passing.request.tries.list.push(Try { status, response_time, ..failed });
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

/// Sends the request and reads up to a final head. Frees the request's own head once sent: the response
/// may take long.
async fn exchange_heads(
    passing: &mut Passing<'_>,
    connection: &mut Connection,
    written: WrittenHead,
    at: At,
    head: &mut ResponseHead,
) -> Result<(), AttemptFailure> {
    let (mut sent, mut read) = match at {
        At::Sending(out, from) => {
            let timeout = passing.proxy.exchange.send_timeout;
            let sending = passing.terms.body.send(connection, &out[from..], timeout);
            let watched = passing.client.as_deref_mut().filter(|_| passing.terms.watching);
            let sent = watch(watched, sending).await.map_err(AttemptFailure::Client)?;
            buffers::give(out);
            (sent, None)
        }
        At::Sent => (Ok(true), None),
        At::Read(outcome) => (Ok(true), Some(outcome)),
    };
    loop {
        if let Ok(false) = sent {
            sent = Box::pin(send_on(passing, connection)).await?;
        }
        let (is_whole, failed) = match sent {
            Ok(is_whole) => (is_whole, None),
            // The server has responded, perhaps with 413, and may accept no more.
            Err(error @ ExchangeError::Write(_)) => (false, Some(error)),
            Err(error) => return Err(broken(connection, error, SENDING)),
        };
        if is_whole {
            connection.sent_whole();
        }
        let outcome = match read.take() {
            Some(outcome) => outcome.map(|read| *head = *read),
            None => read_head(passing, connection, head).await.map_err(AttemptFailure::Client)?,
        };
        if let Err(error) = outcome {
            return Err(match failed {
                Some(error) => broken(connection, error, SENDING),
                None => broken(connection, error, READING),
            });
        }
        if head.is_interim() {
            let fields = head.view(connection.head_bytes());
            Box::pin(pass_interim(passing, head.status, fields)).await?;
            sent = Ok(is_whole);
            continue;
        }
        let may_upgrade = written.upgrade && passing.client.is_some() && passing.request.may_switch();
        return match head.status {
            101 if may_upgrade => handshake::check(passing.request, passing.proxy, connection, head),
            101 => Err(ExchangeError::UnexpectedUpgrade),
            _ => Ok(()),
        }
        .map_err(|error| broken(connection, error, READING));
    }
}

async fn read_head(
    passing: &mut Passing<'_>,
    connection: &mut Connection,
    head: &mut ResponseHead,
) -> Result<Result<(), ExchangeError>, ClientFailure> {
    let timeout = passing.proxy.exchange.read_timeout;
    let callers = callers_patience(passing).filter(|patience| *patience < timeout);
    let reading = async {
        let size = passing.proxy.exchange.buffer_size;
        match connection.read_head(head, size, callers.unwrap_or(timeout)).await {
            Err(ExchangeError::ReadTimeout) if callers.is_some() => Err(ExchangeError::CallTimeout),
            outcome => outcome,
        }
    };
    let watched = passing.client.as_deref_mut();
    match &passing.terms.cache.awaited {
        _ if passing.terms.watching => watch(watched, reading).await,
        Some((awaited, bound)) => watch_for_others(watched, reading, awaited, *bound).await,
        None => Ok(reading.await),
    }
}

/// The rest of the gRPC caller's timeout, if any.
fn callers_patience(passing: &Passing<'_>) -> Option<Duration> {
    let named = passing.proxy.grpc().and_then(|_| passing.request.fields().named(b"grpc-timeout"))?;
    let most = call_timeout(named)?;
    Some(most.saturating_sub(clock::now().saturating_duration_since(passing.request.received.started)))
}

/// gRPC over HTTP/2, "Timeout": at most 8 digits and a unit; `None` if malformed.
fn call_timeout(text: &[u8]) -> Option<Duration> {
    let (unit, digits) = text.split_last()?;
    if digits.is_empty() || digits.len() > 8 {
        return None;
    }
    let value = millstream_wire::octets::decimal(digits)?;
    Some(match unit {
        b'H' => Duration::from_secs(value * 3600),
        b'M' => Duration::from_secs(value * 60),
        b'S' => Duration::from_secs(value),
        b'm' => Duration::from_millis(value),
        b'u' => Duration::from_micros(value),
        b'n' => Duration::from_nanos(value),
        _ => return None,
    })
}

async fn pass_interim(
    passing: &mut Passing<'_>,
    status: u16,
    fields: Fields<'_>,
) -> Result<(), AttemptFailure> {
    // 100 answers an Expect, which is not passed on: the client had its own from us.
    let passes = match status {
        100 => false,
        103 => passing
            .request
            .location()
            .settings
            .early_hints
            .strings
            .as_ref()
            .is_none_or(|strings| variables::any_holds(strings, passing.request)),
        _ => true,
    };
    let (true, Some(client)) = (passes, passing.client.as_deref_mut()) else { return Ok(()) };
    let visible = answer_head::visible(&passing.proxy.exchange, fields);
    let fields = Fields::new(fields.bytes(), &visible);
    client.interim(passing.request, status, fields).await.map_err(AttemptFailure::Client)
}

#[cfg(test)]
mod tests {
    use super::call_timeout;
    use std::time::Duration;

    #[test]
    fn a_timeout_is_at_most_eight_digits_and_a_unit() {
        for (text, expected) in [
            ("1H", Some(Duration::from_secs(3600))),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3600))),
            ("2M", Some(Duration::from_secs(120))),
            ("5S", Some(Duration::from_secs(5))),
            ("50m", Some(Duration::from_millis(50))),
            ("1u", Some(Duration::from_micros(1))),
            ("0n", Some(Duration::ZERO)),
            ("100000000n", None),
            ("5", None),
            ("S", None),
            ("", None),
            ("-1S", None),
            ("5s", None),
        ] {
            assert_eq!(call_timeout(text.as_bytes()), expected, "{text}");
        }
    }
}
