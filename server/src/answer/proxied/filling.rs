//! An answer on its way into the cache, with the client that asked for it following the fill.
//!
//! Reading the upstream and serving the client are two halves of one task: a slow client does not slow the fill down, and
//! one that leaves does not stop it, as long as somebody wants it or it is being stored. A client that has its part goes
//! on to its next request, and the fill goes on alone. An answer that breaks off is never stored: the fill is dropped, and
//! its followers see the cut.

use super::{Opened, Passing, Proxied};
use crate::answer::follow::{self, Followed};
use crate::worker::Worker;
use bytes::Bytes;
use millstream_cache::{BodyReader, Fill};
use millstream_net::clock;
use millstream_telemetry::metrics::Counter;
use millstream_upstream::{Connection, ExchangeError, Part, Pool, Turn};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

/// What became of a fill.
struct Filled {
    connection: Box<Connection>,
    length: u64,
    error: Option<ExchangeError>,
    /// Whether it ended cleanly; else, without an error, nobody wanted it any more.
    whole: bool,
}

/// Stored bytes that belong before or behind those that come.
pub(super) struct Kept {
    pub(super) before: Option<BodyReader>,
    pub(super) after: Option<BodyReader>,
    /// How many bytes come.
    pub(super) expected: u64,
}

/// What the upstream's half tells the other.
#[derive(Default)]
struct Shared {
    /// Whether the client that asked is done with.
    alone: Cell<bool>,
    length: Cell<u64>,
    traffic: Cell<(u64, u64)>,
}

/// The upstream's half, which may outlive the request.
type Reading = Pin<Box<dyn Future<Output = Filled>>>;

impl<'a> Passing<'a> {
    /// Fills the cache and serves the client from the fill; `kept` is what is there already of the answer.
    pub(super) async fn fill(
        &mut self,
        connection: Box<Connection>,
        turn: Turn<'a>,
        fill: Fill,
        kept: Option<Kept>,
    ) -> Proxied {
        if let Some(tap) = self.tap.and_then(Cell::take)
            && let Some(follower) = fill.follow()
        {
            // Whoever waited for it may have left; the fill goes on where it is stored.
            let (tries, report) = (Box::new(self.request.tries.clone()), self.request.report.take());
            _ = tap.send(Opened::Stream(follower, tries, report));
        }
        let shared = Rc::new(Shared::default());
        shared.alone.set(self.client.is_none());
        let follower = self.client.is_some().then(|| fill.follow()).flatten();
        let age = initial_age(&fill);
        let mut reading: Reading =
            Box::pin(read_all(connection, fill, kept, self.proxy.read_timeout, shared.clone()));
        let Some(client) = self.client.take() else {
            let filled = reading.await;
            self.note(filled, turn);
            return Proxied::Done;
        };
        // Nothing was pushed yet, so there is a beginning to follow from.
        let Some(follower) = follower else { return Proxied::Failed(502) };
        let (filled, served) = {
            let mut filled = None;
            let mut serving = pin!(follow::serve(self.request, client, follower, age));
            let served = poll_fn(|context| {
                if filled.is_none()
                    && let Poll::Ready(ended) = reading.as_mut().poll(context)
                {
                    filled = Some(ended);
                }
                serving.as_mut().poll(context)
            })
            .await;
            (filled, served)
        };
        match filled {
            Some(filled) => self.note(filled, turn),
            None => {
                shared.alone.set(true);
                self.let_go(reading, turn, &shared);
            }
        }
        match served {
            Followed::Done => Proxied::Done,
            Followed::Unsatisfiable(length) => Proxied::Unsatisfiable(length),
            Followed::Client(failure) => Proxied::ClientFailed(failure),
        }
    }

    fn note(&mut self, filled: Filled, turn: Turn<'_>) {
        match &filled.error {
            Some(error) => self.broke_off(&filled.connection, error, filled.length),
            None if filled.whole => self.finished(filled.connection, turn, filled.length),
            None => self.note_end(&filled.connection, filled.length, clock::now()),
        }
    }

    /// The client is done with: the rest of the fill goes on by itself, and its connection to where it came from.
    fn let_go(&mut self, reading: Reading, turn: Turn<'_>, shared: &Shared) {
        if let Some(last) = self.request.tries.list.last_mut() {
            last.response_time = Some(clock::now().saturating_duration_since(self.asked_at));
            last.response_length = shared.length.get();
            (last.bytes_received, last.bytes_sent) = shared.traffic.get();
        }
        let generation = self.request.generation.clone();
        let own = self.destination.pool();
        let pool = generation.pools.iter().find(|pool| std::ptr::eq(&***pool, own)).cloned();
        let worker = self.request.worker.clone();
        turn.succeeded();
        tokio::task::spawn_local(async move {
            let filled = reading.await;
            conclude(&worker, pool.as_deref(), filled);
        });
    }
}

/// What is left to be done for a fill that went on alone.
fn conclude(worker: &Worker, pool: Option<&Pool>, filled: Filled) {
    let (received, sent) = filled.connection.traffic();
    worker.metrics.add(Counter::UpstreamBytesReceived, received);
    worker.metrics.add(Counter::UpstreamBytesSent, sent);
    match (filled.error, pool) {
        (Some(_), _) => worker.metrics.add(Counter::UpstreamErrors, 1),
        (None, Some(pool)) if filled.whole => pool.put(filled.connection, clock::now()),
        (None, _) => {}
    }
}

/// Only an answer that was old when it came has an age now.
fn initial_age(fill: &Fill) -> Option<u64> {
    let age = fill.head().lifetime.initial_age;
    (!age.is_zero()).then_some(age.as_secs())
}

/// Upstream to cache.
async fn read_all(
    mut connection: Box<Connection>,
    mut fill: Fill,
    kept: Option<Kept>,
    timeout: Duration,
    shared: Rc<Shared>,
) -> Filled {
    let expected = kept.as_ref().map(|kept| kept.expected);
    let (before, after) = kept.map_or((None, None), |kept| (kept.before, kept.after));
    let mut length = 0;
    let is_off = |length: u64, is_over: bool| {
        expected.is_some_and(|expected| length > expected || is_over && length < expected)
    };
    let mut outcome = add(&mut fill, before).await;
    while outcome.is_ok() {
        match connection.next_part() {
            Ok(Part::Data(piece)) => {
                length += piece.len() as u64;
                if is_off(length, false) {
                    break;
                }
                fill.push(Bytes::copy_from_slice(piece));
                shared.length.set(length);
                shared.traffic.set(connection.traffic());
                fill.ready().await;
                if shared.alone.get() && !fill.has_followers() && !fill.is_storing() {
                    break;
                }
            }
            Ok(Part::Empty) => {
                if let Err(error) = connection.fill_body(timeout).await {
                    outcome = Err(Some(error));
                }
            }
            // What comes is not what was announced, and must not be mixed with what is there.
            Ok(Part::End) if is_off(length, true) => break,
            Ok(Part::End) => {
                outcome = add(&mut fill, after).await;
                if outcome.is_err() {
                    break;
                }
                // Not stored where the disk is full or the entry was purged meanwhile; the followers have it all.
                _ = fill.finish().await;
                return Filled { connection, length, error: None, whole: true };
            }
            Err(error) => outcome = Err(Some(error)),
        }
    }
    drop(fill);
    Filled { connection, length, error: outcome.err().flatten(), whole: false }
}

/// Adds stored bytes to a fill; an error without a cause is a file that cannot be read.
async fn add(fill: &mut Fill, stored: Option<BodyReader>) -> Result<(), Option<ExchangeError>> {
    let Some(mut reader) = stored else { return Ok(()) };
    while let Some(piece) = reader.next().await {
        fill.push(piece.map_err(|_| None)?);
        fill.ready().await;
    }
    Ok(())
}
