//! An answer on its way into the cache, with the client that asked for it following the fill.
//!
//! Reading the upstream and serving the client are two halves of one task: a slow client does not slow the fill down, and
//! one that leaves does not stop it, as long as somebody wants it or it is being stored. A client that has its part goes
//! on to its next request, and the fill goes on alone. An answer that breaks off is never stored: the fill is dropped, and
//! its followers see the cut. One that nobody reads any more is ended after `proxy_cache_unread_timeout`.

use super::answer_head::passed_trailers;
use super::answered::Answered;
use super::{Filling, OpenedFill, Passing, Proxied, answer_head, report};
use crate::representation::follow::{self, Followed};
use crate::request::Request;
use crate::worker::Worker;
use bytes::Bytes;
use millstream_cache::policy::Lifetime;
use millstream_cache::{BodyReader, Fill, FillBounds, FillPermit, Now, Part as StoredPart, StoredHead, Tags};
use millstream_net::clock;
use millstream_telemetry::metrics::Counter;
use millstream_upstream::{Condition, Connection, ExchangeError, Part, Pool};
use millstream_wire::h1::head::ResponseHead;
use millstream_wire::{Fields, Headers};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

struct Filled {
    connection: Option<Box<Connection>>,
    /// Bytes received from and sent to the upstream.
    traffic: (u64, u64),
    ended: Instant,
    length: u64,
    error: Option<ExchangeError>,
    /// Whether it ended cleanly; if not and without an error, no one wanted it any more.
    whole: bool,
    /// Why there is no file for the data of slow readers.
    file_error: Option<io::Error>,
}

impl Filled {
    fn new(
        connection: Box<Connection>,
        length: u64,
        error: Option<ExchangeError>,
        file_error: Option<io::Error>,
    ) -> Filled {
        let (traffic, ended) = (connection.traffic(), clock::now());
        Filled { connection: Some(connection), traffic, ended, length, error, whole: false, file_error }
    }

    /// Returns a reusable connection to the pool; logs surplus data first.
    fn give_back(&mut self, pool: &Pool) {
        let is_good = |connection: &mut Box<Connection>| self.whole && !connection.has_leftover();
        if let Some(connection) = self.connection.take_if(is_good) {
            pool.put(connection, self.ended);
        }
    }
}

pub(super) struct StoredParts {
    pub(super) before: Option<BodyReader>,
    pub(super) after: Option<BodyReader>,
    pub(super) expected: u64,
}

#[derive(Default)]
struct FillProgress {
    length: Cell<u64>,
    traffic: Cell<(u64, u64)>,
    trailers: Cell<Option<Headers>>,
}

/// The upstream half, which may outlive the request.
type Reading = Pin<Box<dyn Future<Output = Filled>>>;

/// `kept`: the stored part of the response.
pub(super) async fn fill(
    passing: &mut Passing<'_>,
    answered: Answered,
    mut fill: Fill,
    kept: Option<StoredParts>,
) -> Proxied {
    fill.hold_to(bounds(passing));
    if passing.terms.left {
        // It has been read, and nobody reads it any more.
        drop(fill.follow());
    }
    let is_tapped = give_to_tap(passing, &fill);
    let shared = Rc::new(FillProgress::default());
    let follower = (passing.client.is_some() && !is_tapped).then(|| fill.follow()).flatten();
    let age = initial_age(&fill);
    // The turn counts as the server's load for as long as the upstream is read, and no longer.
    let mut reading: Reading =
        Box::pin(read_all(answered, fill, kept, passing.proxy.exchange.read_timeout, shared.clone()));
    let Some(client) = passing.client.take() else {
        let filled = reading.await;
        note(passing, filled);
        return Proxied::Done;
    };
    if is_tapped {
        // The client's answer is made by who reads it.
        let_go(passing, reading, &shared);
        return Proxied::Done;
    }
    // Nothing was pushed yet, so there is a beginning to follow from.
    let Some(follower) = follower else { return Proxied::Failed(502) };
    let (filled, served) = {
        let mut filled: Option<Filled> = None;
        let (pool, proxy) = (&passing.destination.pool, passing.proxy);
        let trailers = |request: &mut Request| {
            let came = shared.trailers.take();
            passed_trailers(proxy, request, came.as_ref().map(Headers::view))
        };
        let mut serving = pin!(follow::serve(passing.request, client, follower, age, &trailers));
        let served = poll_fn(|context| {
            if filled.is_none()
                && let Poll::Ready(mut ended) = reading.as_mut().poll(context)
            {
                // A slow client does not hold the connection.
                ended.give_back(pool);
                filled = Some(ended);
            }
            serving.as_mut().poll(context)
        })
        .await;
        (filled, served)
    };
    match filled {
        Some(filled) => note(passing, filled),
        None => let_go(passing, reading, &shared),
    }
    match served {
        Followed::Done => Proxied::Done,
        Followed::Unmet(unmet) => Proxied::Unmet(unmet),
        Followed::Client(failure) => Proxied::ClientFailed(failure),
    }
}

/// Hands a fill to a reader other than the client; false without one.
fn give_to_tap(passing: &mut Passing<'_>, fill: &Fill) -> bool {
    let Some(tap) = passing.terms.cache.tap.take() else { return false };
    let Some(follower) = fill.follow() else { return false };
    // Whoever waited for it may have left; the fill goes on where it is stored.
    let (tries, report) = (Box::new(passing.request.tries.clone()), passing.request.cache.report.take());
    _ = tap.send(OpenedFill::Stream(follower, tries, report));
    true
}

pub(super) fn begun(
    passing: &mut Passing<'_>,
    permit: FillPermit,
    (lifetime, tags): (Lifetime, Tags),
    (status, fields, remaining, part): (u16, Fields<'_>, Option<u64>, Option<StoredPart>),
    now: Now,
) -> Fill {
    let length = remaining.or(part.map(|part| part.last - part.first + 1));
    let mut stored = StoredHead::new(status, fields, length, lifetime, now);
    stored.tags = tags;
    stored.part = part;
    match permit.objection(length) {
        None => passing.report_stored(&lifetime, now),
        Some(reason) => passing.report_not_stored(reason),
    }
    let permit = if lifetime.always_validate { permit.aside(now) } else { permit };
    permit.begin(stored, passing.request.fields(), now)
}

/// Stores a response that an error page replaces, so that each page does not need the upstream. No one
/// waits for its body.
pub(super) fn keep_behind_page(
    passing: &mut Passing<'_>,
    answered: Answered,
    head: &ResponseHead,
    filling: Filling,
) {
    let fields = answered.fields(head);
    let rewritten = answer_head::rewritten(passing.request, passing.proxy, fields);
    let (Filling::Permit(permit), Some(cache), Ok(rewritten)) = (filling, &passing.proxy.cache, rewritten)
    else {
        return answered.discard(passing);
    };
    let (fields, now) = (rewritten.as_ref().map_or(fields, Headers::view), Now::read());
    match passing.terms_of(&answered, cache, (head.status, false), fields, now) {
        Ok(terms) => {
            let answer = (head.status, fields, answered.connection.remaining(), None);
            let begun = begun(passing, permit, terms, answer, now);
            fill_alone(passing, answered, begun);
        }
        Err(reason) => {
            passing.report_not_stored(reason);
            match head.status {
                500.. => passing.failed(Filling::Permit(permit), Condition::Status(head.status)),
                _ => permit.uncacheable(Some(reason), now),
            }
            answered.discard(passing);
        }
    }
}

fn fill_alone(passing: &mut Passing<'_>, answered: Answered, mut fill: Fill) {
    fill.hold_to(bounds(passing));
    // As if it had been read by one who has left: nobody holds the upstream by it for longer than by that.
    drop(fill.follow());
    let (shared, timeout) = (Rc::new(FillProgress::default()), passing.proxy.exchange.read_timeout);
    let reading = read_all(answered, fill, None, timeout, shared.clone());
    let_go(passing, Box::pin(reading), &shared);
}

fn bounds(passing: &Passing<'_>) -> FillBounds {
    let cache = passing.proxy.cache.as_ref();
    FillBounds {
        unread: cache.and_then(|cache| cache.unread_timeout),
        arriving: cache.and_then(|cache| cache.fill_timeout),
        folder: passing.proxy.exchange.temp_path.path.clone(),
        in_file: passing.proxy.exchange.max_temp_file_size,
    }
}

fn note(passing: &mut Passing<'_>, mut filled: Filled) {
    if let Some(error) = &filled.file_error {
        report::lost_file(passing.request, &passing.proxy.exchange.temp_path.path, error);
    }
    match (&filled.error, &filled.connection) {
        (Some(error), Some(connection)) => return passing.broke_off(connection, error, filled.length),
        (None, Some(connection)) if filled.whole => passing.report_leftover(connection),
        _ => {}
    }
    passing.note_traffic(filled.traffic, filled.length, filled.ended);
    filled.give_back(&passing.destination.pool);
    if let Some(connection) = filled.connection.take_if(|_| filled.whole) {
        passing.destination.pool.put(connection, filled.ended);
    }
}

/// The client is done: the rest of the fill continues in its own task.
fn let_go(passing: &mut Passing<'_>, reading: Reading, shared: &FillProgress) {
    let asked_at = passing.terms.asked_at;
    let mut whole = None;
    if let Some(last) = passing.request.tries.list.last_mut() {
        whole = Some(last.clone());
        last.response_time = Some(clock::now().saturating_duration_since(asked_at));
        last.response_length = shared.length.get();
        (last.bytes_received, last.bytes_sent) = shared.traffic.get();
    }
    let pool = passing.destination.pool.clone();
    let worker = passing.request.worker.clone();
    tokio::task::spawn_local(async move {
        let filled = reading.await;
        if let Some(mut whole) = whole {
            // The request's own is told as far as it went; the server's counts know all of it.
            let time = filled.ended.saturating_duration_since(asked_at);
            whole.ended(time, filled.length, filled.traffic);
        }
        conclude(&worker, &pool, filled);
    });
}

fn conclude(worker: &Worker, pool: &Pool, filled: Filled) {
    let (received, sent) = filled.traffic;
    worker.metrics.add(Counter::UpstreamBytesReceived, received);
    worker.metrics.add(Counter::UpstreamBytesSent, sent);
    match (filled.error, filled.connection) {
        (Some(_), _) => worker.metrics.add(Counter::UpstreamErrors, 1),
        (None, Some(connection)) if filled.whole => pool.put(connection, filled.ended),
        (None, _) => {}
    }
}

/// `None` unless it was already old on arrival.
fn initial_age(fill: &Fill) -> Option<u64> {
    let age = fill.head().lifetime.initial_age;
    (!age.is_zero()).then_some(age.as_secs())
}

async fn read_all(
    mut answered: Answered,
    mut fill: Fill,
    kept: Option<StoredParts>,
    timeout: Duration,
    shared: Rc<FillProgress>,
) -> Filled {
    let expected = kept.as_ref().map(|kept| kept.expected);
    let (before, after) = kept.map_or((None, None), |kept| (kept.before, kept.after));
    let mut length = 0;
    let is_off = |length: u64, is_over: bool| {
        expected.is_some_and(|expected| length > expected || is_over && length < expected)
    };
    let mut outcome = add(&mut fill, before).await;
    let mut file_error = None;
    while outcome.is_ok() {
        if poll_fn(|context| Poll::Ready(fill.poll_unwanted(context))).await.is_ready() {
            break;
        }
        match answered.next_part() {
            Ok(Part::Data(piece)) => {
                length += piece.len() as u64;
                if is_off(length, false) {
                    break;
                }
                fill.push(Bytes::copy_from_slice(piece));
                shared.length.set(length);
                shared.traffic.set(answered.connection.traffic());
                fill.ready().await;
                file_error = file_error.or_else(|| fill.take_file_error());
            }
            Ok(Part::Empty) => {
                let came = poll_fn(|context| match answered.poll_fill_body(context, timeout) {
                    Poll::Ready(came) => Poll::Ready(Some(came)),
                    Poll::Pending => fill.poll_unwanted(context).map(|()| None),
                });
                match came.await {
                    Some(Ok(())) => {}
                    Some(Err(error)) => outcome = Err(Some(error)),
                    None => break,
                }
            }
            // What comes is not what was announced, and must not be mixed with what is there.
            Ok(Part::End) if is_off(length, true) => break,
            Ok(Part::End) => {
                outcome = add(&mut fill, after).await;
                if outcome.is_err() {
                    break;
                }
                // Those of a rest are not the whole's.
                let trailers = answered.connection.trailers().filter(|_| expected.is_none());
                shared.trailers.set(trailers.map(Headers::from));
                // Not stored where the disk is full or the entry was purged meanwhile; the followers have it all.
                _ = fill.finish().await;
                let filled = Filled::new(answered.connection, length, None, file_error);
                answered.turn.succeeded(filled.ended);
                return Filled { whole: true, ..filled };
            }
            Err(error) => outcome = Err(Some(error)),
        }
    }
    drop(fill);
    Filled::new(answered.connection, length, outcome.err().flatten(), file_error)
}

/// An error without a cause is an unreadable file.
async fn add(fill: &mut Fill, stored: Option<BodyReader>) -> Result<(), Option<ExchangeError>> {
    let Some(mut reader) = stored else { return Ok(()) };
    while let Some(piece) = reader.next().await {
        fill.push(piece.map_err(|_| None)?);
        fill.ready().await;
    }
    Ok(())
}
