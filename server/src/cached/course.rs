//! What a look-up comes to: what is there, what somebody else fetches, or the upstream; for answers and for their pieces.
//!
//! ```text
//! Fresh ─────────────────────────────▶ the entry (HIT)
//! Ahead ─────────────────────────────▶ the entry (HIT), a detached task refreshes
//! Stale, somebody updates ───────────▶ the entry (UPDATING)
//! Stale, ours to update ─┬ background ▶ the entry (STALE), a detached task refreshes
//!                        └ else ──────▶ upstream (EXPIRED), the entry as a fall-back
//! Miss ──────────────────────────────▶ upstream (MISS), filling
//! OwnWrite ──────────────────────────▶ upstream (BYPASS), filling
//! Apart ─────────────────────────────▶ upstream (BYPASS), stored where it says that it is for all
//! Busy ─────── waits ─┬ streaming ───▶ the fill as it arrives (HIT)
//!                     ├ our turn ────▶ upstream, filling
//!                     ├ failed ──────▶ the entry where it may be stale, else the failure
//!                     └ too long ────▶ upstream, storing nothing
//! Disk ────────────────────────────────▶ one of the others
//! ```
//! It looks, waits and notes what it found; who carries it out is `cached` for a client, `slices/piece` for a piece.

use crate::cache_report::{CacheReport, Forward};
use crate::caching::keyed::{self, Use, usage};
use crate::caching::query;
use crate::counting;
use crate::exchange::{self, Filling, Proxied};
use crate::request::Request;
use crate::sender;
use crate::tracing;
use crate::variables;
use millstream_cache::policy::{Usable, Why, Wish};
use millstream_cache::{FillPermit, Follower, Front, Hit, Lookup, Now, Sliced, StaleCause, Waiter, Woken};
use millstream_conf::model::ProxyCache;
use millstream_net::clock;
use millstream_telemetry::metrics::{CacheStatus, Cause};
use millstream_wire::Method;
use millstream_wire::h1::framing::Framing;
use std::ops::ControlFlow;
use std::rc::Rc;

/// Look-ups per request: an entry may vanish between look-up and read, but not for ever.
pub const LOOKUPS: usize = 8;

/// The result of a look-up. `$upstream_cache_status` is set, and a miss is counted.
pub enum Course {
    Entry(Rc<Hit>),
    Follow(Follower),
    /// Send to the upstream, with an entry to revalidate or to fall back on.
    Ask(Right, Option<Rc<Hit>>),
    /// The awaited fill failed; an entry to fall back on.
    Failed(Proxied, Option<Rc<Hit>>),
}

pub enum Right {
    Fill(FillPermit),
    /// The request has a credential: store it only if the response says that it is public.
    Apart(FillPermit),
    None,
}

/// `None` if the cache is not involved.
pub fn find(request: &mut Request, cache: &ProxyCache, now: Now) -> Option<(Vec<u8>, Lookup)> {
    if query::waits_for_body(request, cache) {
        return None;
    }
    keyed::note(request, cache);
    request.cache.asker = keyed::asker(request, cache);
    match usage(request, cache) {
        Use::None => {
            request.cache.report = CacheReport::begin(cache, None);
            missed(request, Cause::NotCachedMethod, None);
            None
        }
        Use::Past => past(request, cache, Cause::NotKeyed, "not_keyed"),
        Use::Off => past(request, cache, Cause::Leak, "leak"),
        Use::Bypass(key) => {
            request.cache.status = Some(CacheStatus::Bypass);
            request.cache.wish = Wish::read(cache, request.fields());
            request.cache.report = CacheReport::begin(cache, Some(&key));
            missed(request, Cause::Bypass, None);
            let front = request.generation.fronts[cache.zone.0 as usize].borrow();
            let permit = front.beside(&key, request.cache.asker);
            drop(front);
            Some((key, Lookup::Miss(permit)))
        }
        Use::Lookup(key) => {
            request.cache.status = None;
            request.cache.wish = Wish::read(cache, request.fields());
            request.cache.report = CacheReport::begin(cache, Some(&key));
            let lookup = look_up(request, cache, &key, now);
            // The purge came after the look-up, or it is off by now: no right to fill is left.
            if cache.verify.is_some() && keyed::is_off(request) {
                return past(request, cache, Cause::Leak, "leak");
            }
            Some((key, lookup))
        }
    }
}

/// Neither looked up nor stored.
fn past(
    request: &mut Request,
    cache: &ProxyCache,
    cause: Cause,
    detail: &'static str,
) -> Option<(Vec<u8>, Lookup)> {
    request.cache.status = Some(CacheStatus::Bypass);
    request.cache.report = CacheReport::begin(cache, None);
    missed(request, cause, Some(detail));
    None
}

#[inline]
fn look_up(request: &Request, cache: &ProxyCache, key: &[u8], now: Now) -> Lookup {
    let mut front = request.generation.fronts[cache.zone.0 as usize].borrow_mut();
    let who = (request.fields(), request.cache.asker, || sender::client(request));
    let lookup = front.lookup_for((key, request.cache.whole.as_deref().map(Sliced::key)), who, cache, now);
    let lookup =
        if request.cache.wish.is_none() { lookup } else { wished(&front, request, key, lookup, now) };
    if front.store().membership().is_cut_off(now) {
        unconfirmed(&front, request, key, lookup)
    } else {
        lookup
    }
}

/// While the node cannot know all purges of its cluster (`cut_off`): what is stored is confirmed by the upstream for each
/// request, and what others asked for before is not waited for.
#[cold]
fn unconfirmed(front: &Front, request: &Request, key: &[u8], lookup: Lookup) -> Lookup {
    let own = || front.beside(key, request.cache.asker);
    match lookup {
        Lookup::Fresh(hit) | Lookup::Ahead(hit, _) | Lookup::Stale(hit, _) | Lookup::Busy(_, Some(hit)) => {
            Lookup::Stale(hit, Some(own()))
        }
        Lookup::Busy(_, None) => Lookup::Miss(own()),
        lookup => lookup,
    }
}

/// Applies the request's Cache-Control (`proxy_cache_client_control`).
fn wished(front: &Front, request: &Request, key: &[u8], lookup: Lookup, now: Now) -> Lookup {
    let suits = |hit: &Hit| hit.head().satisfies(&request.cache.wish, now) == Usable::Yes;
    match lookup {
        Lookup::Fresh(hit) | Lookup::Ahead(hit, _) if !suits(&hit) => {
            Lookup::Stale(hit, Some(front.beside(key, request.cache.asker)))
        }
        // A permit that came with it goes back to whoever waits.
        Lookup::Stale(hit, _) | Lookup::Busy(_, Some(hit)) if suits(&hit) => Lookup::Fresh(hit),
        lookup => lookup,
    }
}

pub fn missed(request: &mut Request, cause: Cause, detail: Option<&'static str>) {
    counting::missed(request, cause);
    let forward = match cause {
        Cause::NotCachedMethod => Forward::Method,
        Cause::Bypass | Cause::NotKeyed | Cause::Credentials | Cause::OwnWrite | Cause::Leak => {
            Forward::Bypass
        }
        Cause::Client => Forward::Request,
        Cause::Expired | Cause::Validate => Forward::Stale,
        _ => Forward::Miss,
    };
    request.report_forward(forward, detail);
}

/// `only-if-cached` without a usable entry (RFC 9111 §5.2.1.7).
pub fn is_refused(request: &Request, lookup: &Lookup) -> bool {
    request.cache.wish.only_if_cached
        && !matches!(lookup, Lookup::Fresh(_) | Lookup::Ahead(..) | Lookup::Disk(_))
}

/// Continues with the next look-up, or ends with a course.
pub async fn step(
    request: &mut Request,
    cache: &ProxyCache,
    key: &[u8],
    lookup: Lookup,
) -> ControlFlow<Course, Lookup> {
    ControlFlow::Break(match lookup {
        Lookup::Fresh(found) => {
            request.cache.status = Some(CacheStatus::Hit);
            Course::Entry(found)
        }
        Lookup::Ahead(found, permit) => {
            // A body that came with the request is there once, so such a request refreshes nothing.
            if request.received.framing == Framing::None {
                refresh_detached(request, permit, &found);
            }
            request.cache.status = Some(CacheStatus::Hit);
            Course::Entry(found)
        }
        Lookup::Stale(found, permit) => stale(request, cache, key, found, permit),
        Lookup::Miss(permit) => {
            if request.cache.status != Some(CacheStatus::Bypass) {
                request.cache.status = Some(CacheStatus::Miss);
                missed(request, Cause::Absent, None);
            }
            let right = if goes_past(request, cache) { Right::None } else { Right::Fill(permit) };
            Course::Ask(right, None)
        }
        Lookup::OwnWrite(permit) => {
            request.cache.status = Some(CacheStatus::Bypass);
            missed(request, Cause::OwnWrite, Some("own_write"));
            // A new piece among old ones would cut what others are answered until the turn has come.
            let right = if request.cache.whole.is_some() { Right::None } else { Right::Fill(permit) };
            Course::Ask(right, None)
        }
        // A request with a credential, for which there is nothing that is for everybody.
        Lookup::Apart(permit) => {
            request.cache.status = Some(CacheStatus::Bypass);
            missed(request, Cause::Credentials, Some("credentials"));
            Course::Ask(Right::Apart(permit), None)
        }
        Lookup::Scarce => {
            request.cache.status = Some(CacheStatus::Miss);
            missed(request, Cause::Scarce, Some("not_to_be_stored_yet"));
            Course::Ask(Right::None, None)
        }
        Lookup::Busy(waiter, fallback) => match busy(request, cache, waiter, fallback).await {
            Some(course) => course,
            None => return ControlFlow::Continue(look_up(request, cache, key, Now::read())),
        },
        Lookup::Disk(probe) => {
            let began = tracing::moment(request);
            let found = probe.load(request.fields(), cache, Now::read()).await;
            tracing::note(request, began, "cache look-up", ("millstream.cache.tier", "disk"));
            let front = request.generation.fronts[cache.zone.0 as usize].borrow();
            let now = Now::read();
            let found = wished(&front, request, key, found, now);
            return ControlFlow::Continue(match front.store().membership().is_cut_off(now) {
                true => unconfirmed(&front, request, key, found),
                false => found,
            });
        }
    })
}

pub fn given_up(request: &mut Request) -> Course {
    request.cache.status = Some(CacheStatus::Miss);
    missed(request, Cause::Absent, None);
    Course::Ask(Right::None, None)
}

/// The entry has vanished between look-up and read.
pub fn after_vanished(request: &Request, cache: &ProxyCache, key: &[u8], vanished: &Hit) -> Lookup {
    request.generation.shared.zones.stores[cache.zone.0 as usize].forget(&vanished.entry);
    look_up(request, cache, key, Now::read())
}

pub fn beside(request: &Request, cache: &ProxyCache, key: &[u8]) -> FillPermit {
    request.generation.fronts[cache.zone.0 as usize].borrow().beside(key, request.cache.asker)
}

/// Whether the request tells that the response is neither looked up nor stored: then the client's range and
/// conditions are passed on. A HEAD is excluded, as it may invalidate an entry.
fn goes_past(request: &Request, cache: &ProxyCache) -> bool {
    request.cache.status == Some(CacheStatus::Bypass)
        && request.method == Method::Get
        && variables::any_holds(&cache.no_cache, request)
}

/// Serves a stale entry if allowed, else revalidates it, with the entry to fall back on.
fn stale(
    request: &mut Request,
    cache: &ProxyCache,
    key: &[u8],
    found: Rc<Hit>,
    permit: Option<FillPermit>,
) -> Course {
    let now = Now::read();
    let insists = insists(request, &found, now);
    // Somebody else updates it, which may not be soon enough.
    let Some(permit) = permit.or_else(|| insists.then(|| beside(request, cache, key))) else {
        request.cache.status = Some(CacheStatus::Updating);
        return Course::Entry(found);
    };
    let may = found.entry.may_serve_stale(StaleCause::Updating, cache, now);
    let detached = found.entry.is_updated_behind(cache, now);
    let is_cut_off = request.is_cut_off(cache, now);
    // A body that came with the request is there once, so such a request asks for itself.
    if insists || is_cut_off || !(may && detached && request.received.framing == Framing::None) {
        request.cache.status = Some(CacheStatus::Expired);
        let cause = match () {
            () if insists => Cause::Client,
            () if is_cut_off || found.head().lifetime.always_validate => Cause::Validate,
            () => Cause::Expired,
        };
        missed(request, cause, None);
        return Course::Ask(Right::Fill(permit), Some(found));
    }
    request.cache.status = Some(CacheStatus::Stale);
    refresh_detached(request, permit, &found);
    Course::Entry(found)
}

fn insists(request: &Request, hit: &Hit, now: Now) -> bool {
    !request.cache.wish.is_none()
        && matches!(hit.head().satisfies(&request.cache.wish, now), Usable::Validate(why) if why != Why::Stale)
}

/// Waits for another fill. `None`: look up again.
async fn busy(
    request: &mut Request,
    cache: &ProxyCache,
    waiter: Waiter,
    fallback: Option<Rc<Hit>>,
) -> Option<Course> {
    let (status, cause) = match fallback {
        Some(_) => (CacheStatus::Expired, Cause::Expired),
        None => (CacheStatus::Miss, Cause::Absent),
    };
    let (since, began) = (clock::now(), tracing::moment(request));
    let woken = waiter.wait(request.fields(), cache, Now::read()).await;
    counting::waited(request, clock::now().saturating_duration_since(since));
    tracing::note(request, began, "cache lock", ("millstream.cache.lock", outcome(&woken)));
    Some(match woken {
        Woken::Retry => return None,
        // A fallback may have the key of the location whose upstream failed.
        Woken::Failed(failure) if failure.upstream != request.route.location.0 => return None,
        Woken::Streaming(follower) => {
            request.cache.status = Some(CacheStatus::Hit);
            request.report_forward(Forward::Miss, None);
            if let Some(report) = &mut request.cache.report {
                report.collapsed = true;
                report.note_lifetime(&follower.head().lifetime, Now::read());
            }
            Course::Follow(follower)
        }
        Woken::Fill(permit) => {
            request.cache.status = Some(status);
            missed(request, cause, None);
            Course::Ask(Right::Fill(permit), fallback)
        }
        Woken::Failed(failure) => {
            let now = Now::read();
            let may = |found: &Rc<Hit>| found.entry.may_serve_stale(failure.cause, cache, now);
            let proxied = match fallback.as_ref().is_some_and(may) {
                true => Proxied::Stale(failure.status),
                false => Proxied::Failed(failure.status),
            };
            request.cache.status = Some(status);
            missed(request, cause, Some("upstream_failed"));
            if let Some(report) = &mut request.cache.report {
                report.collapsed = true;
                report.forward_status = Some(failure.status);
            }
            Course::Failed(proxied, fallback)
        }
        Woken::Timeout => {
            request.cache.status = Some(CacheStatus::Miss);
            missed(request, Cause::LockTimeout, Some("proxy_cache_lock_timeout"));
            Course::Ask(Right::None, fallback)
        }
    })
}

fn outcome(woken: &Woken) -> &'static str {
    match woken {
        Woken::Retry => "retry",
        Woken::Streaming(_) => "follow",
        Woken::Fill(_) => "fill",
        Woken::Failed(_) => "failed",
        Woken::Timeout => "timeout",
    }
}

/// Sends a copy of the request upstream without anyone waiting for it (RFC 5861 §3).
fn refresh_detached(request: &Request, permit: FillPermit, found: &Rc<Hit>) {
    let mut copy = request.for_refresh();
    let fallback = found.clone();
    tokio::task::spawn_local(async move {
        let refreshed = exchange::answer(&mut copy, None, Filling::Permit(permit), &mut Some(fallback)).await;
        let has_failed = matches!(refreshed, Proxied::Stale(_) | Proxied::Failed(_));
        if has_failed || copy.tries.list.last().is_some_and(|last| last.status >= 500) {
            counting::stale_on_error(&copy);
        }
    });
}
