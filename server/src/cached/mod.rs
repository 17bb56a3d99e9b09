//! Answering with the cache in between: a look-up's course carried out for a client.
//!
//! ```text
//! what is stored ──▶ from the entry; where its file has vanished, the next look-up
//! on its way ──────▶ from the fill as it arrives
//! upstream ────────▶ exchange, which fills; a stale entry stands in for a failure where it may
//! ```
//! Next: `course` (which of these, and who may fill), `hit` (the fast door for entries in memory), `exchange` (the
//! upstream's side).

pub mod stored;
pub mod course;
pub mod partial;
pub mod slices;
mod verify;

use crate::caching::query;
use crate::client::Client;
use crate::counting;
use crate::exchange::{self, Begun, Filling, Proxied};
use crate::filter::encoder::{self, Effort};
use crate::intercepted;
use crate::outcome::Outcome;
use crate::representation::chosen::{self, Chosen};
use crate::representation::follow::{self, Followed};
use crate::representation::hit::{self, Ready};
use crate::request::Request;
use crate::restart::Restart;
use crate::tracing;
use crate::variables::personal::{shown_by, shown_by_answer};
use bytes::Bytes;
use course::{Course, LOOKUPS, Right, find, missed};
use millstream_cache::{CodingPermit, Follower, Hit, Lookup, Now, Prepared, StoredHead};
use millstream_conf::model::{PassTarget, ProxyCache};
use millstream_net::{blocking, buffers};
use millstream_telemetry::metrics::{CacheStatus, Cause};
use millstream_wire::Coding;
use millstream_wire::h1::framing::Framing;
use partial::PartialDecision;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// Of a location without a cache; `None` if it has one.
pub fn explanation(request: &Request) -> Option<&'static str> {
    request.location().settings.cache().is_none().then_some("the location has no proxy_cache")
}

pub enum FoundAtOnce {
    Ready(Ready),
    /// For [`answer`]; `None` if the cache is not involved.
    Rest(Option<(Vec<u8>, Lookup)>),
}

/// Looks the request up; writes a hit in memory that needs nothing else to `out`.
#[inline]
pub fn find_at_once(request: &mut Request, cache: &ProxyCache, now: Now, out: &mut Vec<u8>) -> FoundAtOnce {
    let began = tracing::moment(request);
    let found = find(request, cache, now);
    if found.is_some() {
        tracing::note(request, began, "cache look-up", ("millstream.cache.tier", "memory"));
    }
    match found {
        Some((key, Lookup::Fresh(found))) if request.received.framing == Framing::None => {
            request.cache.status = Some(CacheStatus::Hit);
            report_entry(request, &found, now);
            let chosen = hit::choose(request, &found.entry);
            match hit::ready(request, &found, &chosen, now, out) {
                Some(ready) => {
                    buffers::give(key);
                    verify::at_hit(request, cache, &found.entry);
                    FoundAtOnce::Ready(ready)
                }
                None => FoundAtOnce::Rest(Some((key, Lookup::Fresh(found)))),
            }
        }
        found => FoundAtOnce::Rest(found),
    }
}

pub fn report_entry(request: &mut Request, hit: &Hit, now: Now) {
    if let Some(report) = &mut request.cache.report {
        report.note_lifetime(&hit.head().lifetime, now);
    }
}

pub async fn answer(request: &mut Request, client: &mut Client, found: Option<(Vec<u8>, Lookup)>) -> Outcome {
    // The configuration is borrowed through a handle of this thread: no count that other workers share is touched.
    let generation = request.generation.clone();
    let settings = &generation.http().location(request.route.location).settings;
    let Some(cache) = settings.cache() else {
        return upstream(request, client, Filling::No, None).await;
    };
    let mut found = found;
    if query::waits_for_body(request, cache) {
        if let Err(failure) = Box::pin(query::read_body(request, client)).await {
            return Outcome::Client(failure);
        }
        found = find(request, cache, Now::read());
    }
    let Some((key, lookup)) = found else {
        return upstream(request, client, Filling::No, None).await;
    };
    let outcome = Box::pin(with_lookup(request, client, cache, &key, lookup)).await;
    buffers::give(key);
    outcome
}

async fn with_lookup(
    request: &mut Request,
    client: &mut Client,
    cache: &ProxyCache,
    key: &[u8],
    mut lookup: Lookup,
) -> Outcome {
    for _ in 0..LOOKUPS {
        if course::is_refused(request, &lookup) {
            return Outcome::Status(504);
        }
        lookup = match partial::step(request, client, cache, key, lookup).await {
            PartialDecision::On(lookup) => lookup,
            PartialDecision::Answered(outcome) => return outcome,
            PartialDecision::Ask(filling) => {
                missed(request, Cause::Absent, None);
                let filling = if request.cache.wish.no_store { Filling::No } else { filling };
                return upstream(request, client, filling, None).await;
            }
        };
        lookup = match course::step(request, cache, key, lookup).await {
            ControlFlow::Continue(lookup) => lookup,
            ControlFlow::Break(Course::Entry(found)) => {
                verify::at_hit(request, cache, &found.entry);
                match from_entry(request, client, found).await {
                    Ok(outcome) => return outcome,
                    Err(vanished) => course::after_vanished(request, cache, key, &vanished),
                }
            }
            ControlFlow::Break(course) => return take(request, client, course).await,
        };
    }
    let course = course::given_up(request);
    take(request, client, course).await
}

async fn take(request: &mut Request, client: &mut Client, course: Course) -> Outcome {
    match course {
        Course::Entry(found) => from_entry(request, client, found).await.unwrap_or(Outcome::Status(502)),
        Course::Follow(follower) => follow(request, client, follower).await,
        Course::Ask(right, fallback) => {
            let filling = match right {
                // A permit not taken goes to whoever waits.
                _ if request.cache.wish.no_store => Filling::No,
                Right::Fill(permit) => Filling::Permit(permit),
                // Its own conditions and ranges go with it, as without a cache.
                Right::Apart(permit) => Filling::Part(permit),
                Right::None => Filling::No,
            };
            upstream(request, client, filling, fallback).await
        }
        Course::Failed(proxied, fallback) => settle(request, client, proxied, fallback).await,
    }
}

async fn upstream(
    request: &mut Request,
    client: &mut Client,
    filling: Filling,
    fallback: Option<Rc<Hit>>,
) -> Outcome {
    let mut fallback = fallback;
    let proxied = exchange::answer(request, Some(&mut *client), filling, &mut fallback).await;
    settle(request, client, proxied, fallback).await
}

pub async fn go_on(request: &mut Request, client: &mut Client, begun: Begun) -> Outcome {
    let proxied = exchange::go_on(request, client, begun).await;
    settle(request, client, proxied, None).await
}

/// `fallback`: a stale entry to use on failure.
pub async fn settle(
    request: &mut Request,
    client: &mut Client,
    proxied: Proxied,
    fallback: Option<Rc<Hit>>,
) -> Outcome {
    match proxied {
        Proxied::Done => Outcome::Done,
        // An error page may lead on.
        Proxied::Failed(status) => {
            if let Some(PassTarget::Variables(target)) =
                request.location().settings.pass().map(|pass| &pass.target)
            {
                request.route.shows.way |= shown_by(target, request);
            }
            Outcome::Status(status)
        }
        Proxied::Intercepted(status) => {
            request.route.shows.way |= shown_by_answer(request);
            Outcome::Status(status)
        }
        Proxied::ClientFailed(failure) => Outcome::Client(failure),
        Proxied::Redirect(uri) => {
            Restart::accelerated(request, &uri).map_or_else(Outcome::Status, Outcome::Restart)
        }
        Proxied::Stale(status) => {
            request.cache.status = Some(CacheStatus::Stale);
            if let Some(report) = &mut request.cache.report {
                report.detail = Some("stale_on_error");
            }
            match fallback {
                Some(hit) => {
                    counting::stale_on_error(request);
                    let sent = Box::pin(from_entry(request, client, hit)).await;
                    sent.unwrap_or(Outcome::Status(status))
                }
                None => Outcome::Status(status),
            }
        }
        Proxied::Again(_) => Outcome::Status(502),
        Proxied::Unmet(unmet) => Outcome::Status(chosen::refuse(request, unmet)),
        Proxied::Revalidated(entry) => {
            request.cache.status = Some(CacheStatus::Revalidated);
            let hit = Rc::new(Hit { entry, prepared: Prepared::default() });
            Box::pin(from_entry(request, client, hit)).await.unwrap_or(Outcome::Status(502))
        }
    }
}

/// The entry is dropped before waiting for a slow client. `Err` returns it if its file has vanished; nothing
/// was sent.
pub async fn from_entry(
    request: &mut Request,
    client: &mut Client,
    hit: Rc<Hit>,
) -> Result<Outcome, Rc<Hit>> {
    let now = Now::read();
    report_entry(request, &hit, now);
    if let Some(status) = intercepted::of_stored(request, hit.head().status, hit.head().fields()) {
        hit::remember(request, hit.head(), now);
        return Ok(Outcome::Status(status));
    }
    let mut chosen = hit::choose(request, &hit.entry);
    if let Chosen::Whole(Some(wanted)) = chosen
        && !coded(request, &hit, wanted).await
    {
        chosen = Chosen::Whole(None);
    }
    let mut out = buffers::take();
    if let Some(ready) = hit::ready(request, &hit, &chosen, now, &mut out) {
        drop(hit);
        return Ok(send_ready(request, client, out, ready).await);
    }
    buffers::give(out);
    stored::answer(request, client, hit, now).await
}

pub async fn send_ready(request: &mut Request, client: &mut Client, out: Vec<u8>, ready: Ready) -> Outcome {
    let mut head = Some(out);
    let begun = poll_fn(|context| {
        let head = head.take().unwrap_or_default();
        Poll::Ready(client.poll_whole(context, request, head, ready.whole()))
    })
    .await;
    drop(ready);
    let sent = match begun {
        Poll::Ready(sent) => sent,
        Poll::Pending => client.flush(request).await,
    };
    sent.into()
}

/// Creates the coded form of an entry in one thread if it is missing; whether it exists now.
async fn coded(request: &Request, hit: &Hit, coding: Coding) -> bool {
    if hit.entry.coded_body(coding).is_some() {
        return true;
    }
    let Some(cache) = request.location().settings.cache() else {
        return false;
    };
    let store = &request.generation.shared.zones.stores[cache.zone.0 as usize];
    let (Some(permit), Some(body)) =
        (CodingPermit::claim(store, &hit.entry, coding), hit.entry.body().memory().cloned())
    else {
        return false;
    };
    let length = u64::try_from(body.len()).ok();
    let effort = Effort::of(&request.location().settings, coding, length);
    let squeezed = if effort.is_short(body.len()) {
        encoder::whole(&body, effort)
    } else {
        blocking::run(move || encoder::whole(&body, effort)).await
    };
    if let Some(squeezed) = squeezed {
        permit.set(Bytes::from(squeezed));
    }
    hit.entry.coded_body(coding).is_some()
}

async fn follow(request: &mut Request, client: &mut Client, follower: Follower) -> Outcome {
    let stored: Arc<StoredHead> = follower.head().clone();
    let now = Now::read();
    hit::remember(request, stored.view(), now);
    if let Some(status) = intercepted::of_stored(request, stored.view().status, stored.view().fields()) {
        return Outcome::Status(status);
    }
    let age = Some(stored.view().age(now));
    let outcome = follow::serve(request, client, follower, age, &|_| None).await;
    followed(request, outcome)
}

pub fn followed(request: &mut Request, followed: Followed) -> Outcome {
    match followed {
        Followed::Done => Outcome::Done,
        Followed::Client(failure) => Outcome::Client(failure),
        Followed::Unmet(unmet) => Outcome::Status(chosen::refuse(request, unmet)),
    }
}
