//! Answering with the cache in between: what each case of a look-up may do, and nothing else.
//!
//! ```text
//! Fresh ─────────────────────────────▶ from the entry (HIT)
//! Ahead ─────────────────────────────▶ from the entry (HIT), a detached task refreshes
//! Stale, somebody updates ───────────▶ from the entry (UPDATING)
//! Stale, ours to update ─┬ background ▶ from the entry (STALE), a detached task refreshes
//!                        └ else ──────▶ upstream (EXPIRED), the entry as a fall-back
//! Miss ──────────────────────────────▶ upstream (MISS), filling
//! Apart ─────────────────────────────▶ upstream (BYPASS), stored where it says that it is for all
//! Busy ─────── waits ─┬ streaming ───▶ from the fill as it arrives (HIT)
//!                     ├ our turn ────▶ upstream, filling
//!                     └ too long ────▶ upstream, storing nothing
//! ```
//! Next: `keyed` (who may ask, and under which key), `hit` (the fast door for entries in memory), `gateway` (the
//! upstream's side).

use super::Outcome;
use super::partial::{self, Step};
use super::stored;
use crate::cache_report::{CacheReport, Forward};
use crate::caching::keyed::{self, Use, usage};
use crate::caching::query;
use crate::client::Client;
use crate::filter::compressor::{self, Effort};
use crate::gateway::{self, Filling, Proxied};
use crate::representation::follow::{self, Followed};
use crate::representation::hit::{self, Ready};
use crate::representation::ranges;
use crate::request::Request;
use crate::restart::Restart;
use crate::variables;
use bytes::Bytes;
use millstream_cache::policy::{Usable, Why, Wish};
use millstream_cache::{
    FillPermit, Follower, Front, Hit, Lookup, Now, Prepared, StaleCause, StoredHead, Waiter, Woken,
};
use millstream_conf::model::ProxyCache;
use millstream_net::{blocking, buffers};
use millstream_telemetry::metrics::{CacheStatus, Cause};
use millstream_wire::h1::framing::Framing;
use millstream_wire::{Coding, Method};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// Look-ups for one request at the most: an entry may vanish between look-up and read, but not for ever.
const LOOKUPS: usize = 8;

/// What a request finds under its key; `None` where the cache has no part in it.
pub fn find(request: &mut Request, cache: &ProxyCache, now: Now) -> Option<(Vec<u8>, Lookup)> {
    if query::waits_for_body(request, cache) {
        return None;
    }
    keyed::part_with_named(request);
    request.asker = keyed::asker(request, cache);
    match usage(request, cache) {
        Use::None => {
            request.report = CacheReport::begin(cache, None);
            missed(request, Cause::NotCachedMethod, None);
            None
        }
        Use::Past => {
            request.cache_status = Some(CacheStatus::Bypass);
            request.report = CacheReport::begin(cache, None);
            missed(request, Cause::NotKeyed, Some("not_keyed"));
            None
        }
        Use::Bypass(key) => {
            request.cache_status = Some(CacheStatus::Bypass);
            request.wish = Wish::read(cache, request.fields());
            request.report = CacheReport::begin(cache, Some(&key));
            missed(request, Cause::Bypass, None);
            let front = request.generation.fronts[cache.zone.0 as usize].borrow();
            let permit = front.beside(&key, request.asker);
            drop(front);
            Some((key, Lookup::Miss(permit)))
        }
        Use::Lookup(key) => {
            request.cache_status = None;
            request.wish = Wish::read(cache, request.fields());
            request.report = CacheReport::begin(cache, Some(&key));
            let lookup = look_up(request, cache, &key, now);
            Some((key, lookup))
        }
    }
}

/// Looks a key up for a request.
#[inline]
fn look_up(request: &Request, cache: &ProxyCache, key: &[u8], now: Now) -> Lookup {
    let mut front = request.generation.fronts[cache.zone.0 as usize].borrow_mut();
    let lookup = front.lookup_for(key, (request.fields(), request.asker), cache, now);
    if request.wish.is_none() { lookup } else { wished(&front, request, key, lookup, now) }
}

/// What a request gets that asks for more than a fresh answer, or for less (`proxy_cache_client_control`).
pub(super) fn wished(front: &Front, request: &Request, key: &[u8], lookup: Lookup, now: Now) -> Lookup {
    let suits = |hit: &Hit| hit.head().satisfies(&request.wish, now) == Usable::Yes;
    match lookup {
        Lookup::Fresh(hit) | Lookup::Ahead(hit, _) if !suits(&hit) => {
            Lookup::Stale(hit, Some(front.beside(key, request.asker)))
        }
        // A permit that came with it goes back to whoever waits.
        Lookup::Stale(hit, _) | Lookup::Busy(_, Some(hit)) if suits(&hit) => Lookup::Fresh(hit),
        lookup => lookup,
    }
}

/// Counts why a request goes to the upstream, and notes it.
fn missed(request: &mut Request, cause: Cause, detail: Option<&'static str>) {
    request.count_miss(cause);
    let forward = match cause {
        Cause::NotCachedMethod => Forward::Method,
        Cause::Bypass | Cause::NotKeyed | Cause::Credentials => Forward::Bypass,
        Cause::Client => Forward::Request,
        Cause::Expired | Cause::Validate => Forward::Stale,
        _ => Forward::Miss,
    };
    request.report_forward(forward, detail);
}

/// Notes that the answer is that of an entry.
pub fn report_entry(request: &mut Request, hit: &Hit, now: Now) {
    if let Some(report) = &mut request.report {
        report.note_lifetime(&hit.head().lifetime, now);
    }
}

/// Whether a request insists on an answer that was validated now.
pub(super) fn insists(request: &Request, hit: &Hit, now: Now) -> bool {
    !request.wish.is_none()
        && matches!(hit.head().satisfies(&request.wish, now), Usable::Validate(why) if why != Why::Stale)
}

/// Answers from the cache or, through it, from the upstream.
pub async fn answer(request: &mut Request, client: &mut Client, found: Option<(Vec<u8>, Lookup)>) -> Outcome {
    // The configuration is borrowed through a handle of this thread: no count that other workers share is touched.
    let generation = request.generation.clone();
    let settings = &generation.http().location(request.location).settings;
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
        let may_be_stored = matches!(lookup, Lookup::Fresh(_) | Lookup::Ahead(..) | Lookup::Disk(_));
        if request.wish.only_if_cached && !may_be_stored {
            return Outcome::Status(504);
        }
        lookup = match partial::step(request, client, cache, key, lookup).await {
            Step::On(lookup) => lookup,
            Step::Answered(outcome) => return outcome,
            Step::Ask(_) if request.wish.only_if_cached => return Outcome::Status(504),
            Step::Ask(filling) => {
                missed(request, Cause::Absent, None);
                let filling = if request.wish.no_store { Filling::No } else { filling };
                return upstream(request, client, filling, None).await;
            }
        };
        lookup = match lookup {
            Lookup::Fresh(found) => {
                request.cache_status = Some(CacheStatus::Hit);
                match from_entry(request, client, found).await {
                    Ok(outcome) => return outcome,
                    Err(vanished) => again(request, cache, key, Some(&vanished)),
                }
            }
            Lookup::Ahead(found, permit) => {
                // A body that came with the request is there once, so such a request refreshes nothing.
                if request.framing == Framing::None {
                    refresh_detached(request, permit, &found);
                }
                Lookup::Fresh(found)
            }
            Lookup::Stale(found, permit) => match stale(request, client, cache, key, found, permit).await {
                Ok(outcome) => return outcome,
                Err(vanished) => again(request, cache, key, Some(&vanished)),
            },
            Lookup::Miss(permit) => {
                if request.cache_status != Some(CacheStatus::Bypass) {
                    request.cache_status = Some(CacheStatus::Miss);
                    missed(request, Cause::Absent, None);
                }
                let filling = if goes_past(request, cache) { Filling::No } else { filling(request, permit) };
                return upstream(request, client, filling, None).await;
            }
            Lookup::Apart(permit) => return apart(request, client, permit).await,
            Lookup::Scarce => {
                request.cache_status = Some(CacheStatus::Miss);
                missed(request, Cause::Scarce, Some("not_to_be_stored_yet"));
                return upstream(request, client, Filling::No, None).await;
            }
            Lookup::Busy(waiter, fallback) => match busy(request, client, cache, waiter, fallback).await {
                Some(outcome) => return outcome,
                None => again(request, cache, key, None),
            },
            Lookup::Disk(probe) => {
                let found = probe.load(request.fields(), cache, Now::read()).await;
                let front = request.generation.fronts[cache.zone.0 as usize].borrow();
                wished(&front, request, key, found, Now::read())
            }
        };
    }
    request.cache_status = Some(CacheStatus::Miss);
    missed(request, Cause::Absent, None);
    upstream(request, client, Filling::No, None).await
}

/// Whether neither look-up nor answer have to do with the cache, as far as the request tells: then the client's own range
/// and conditions go on. A HEAD might make what is stored for others look outdated.
fn goes_past(request: &Request, cache: &ProxyCache) -> bool {
    let mut scratch = Vec::new();
    request.cache_status == Some(CacheStatus::Bypass)
        && request.method == Method::Get
        && cache.no_cache.iter().any(|condition| variables::holds(condition, request, &mut scratch))
}

/// The answer to a request that says no-store is not stored; a permit not taken goes to whoever waits.
fn filling(request: &Request, permit: FillPermit) -> Filling {
    if request.wish.no_store { Filling::No } else { Filling::Permit(permit) }
}

/// A request with a credential, for which there is nothing that is for everybody: its own conditions and ranges go with it,
/// as without a cache.
async fn apart(request: &mut Request, client: &mut Client, permit: FillPermit) -> Outcome {
    request.cache_status = Some(CacheStatus::Bypass);
    missed(request, Cause::Credentials, Some("credentials"));
    let filling = if request.wish.no_store { Filling::No } else { Filling::Part(permit) };
    upstream(request, client, filling, None).await
}

fn again(request: &Request, cache: &ProxyCache, key: &[u8], vanished: Option<&Rc<Hit>>) -> Lookup {
    if let Some(hit) = vanished {
        request.generation.shared.stores[cache.zone.0 as usize].forget(&hit.entry);
    }
    look_up(request, cache, key, Now::read())
}

/// A stale entry: answered as it is where that is allowed, else asked of the upstream with the entry to fall back on.
async fn stale(
    request: &mut Request,
    client: &mut Client,
    cache: &ProxyCache,
    key: &[u8],
    found: Rc<Hit>,
    permit: Option<FillPermit>,
) -> Result<Outcome, Rc<Hit>> {
    let now = Now::read();
    let insists = insists(request, &found, now);
    let permit = match permit {
        // Somebody else updates it, which is not soon enough.
        None if insists => Some(beside(request, cache, key)),
        permit => permit,
    };
    match permit {
        None => request.cache_status = Some(CacheStatus::Updating),
        Some(permit) => {
            let may = found.entry.may_serve_stale(StaleCause::Updating, cache, now);
            let detached = found.entry.is_updated_behind(cache, now);
            // A body that came with the request is there once, so such a request asks for itself.
            if insists || !(may && detached && request.framing == Framing::None) {
                request.cache_status = Some(CacheStatus::Expired);
                let cause = match () {
                    () if insists => Cause::Client,
                    () if found.head().lifetime.always_validate => Cause::Validate,
                    () => Cause::Expired,
                };
                missed(request, cause, None);
                let filling = filling(request, permit);
                return Ok(upstream(request, client, filling, Some(found)).await);
            }
            request.cache_status = Some(CacheStatus::Stale);
            refresh_detached(request, permit, &found);
        }
    }
    from_entry(request, client, found).await
}

/// The right to fill a key beside whoever fills it.
pub(super) fn beside(request: &Request, cache: &ProxyCache, key: &[u8]) -> FillPermit {
    request.generation.fronts[cache.zone.0 as usize].borrow().beside(key, request.asker)
}

/// Waits for somebody else's fill. `None`: look up again.
async fn busy(
    request: &mut Request,
    client: &mut Client,
    cache: &ProxyCache,
    waiter: Waiter,
    fallback: Option<Rc<Hit>>,
) -> Option<Outcome> {
    match waiter.wait(request.fields(), cache, Now::read()).await {
        Woken::Retry => None,
        Woken::Streaming(follower) => {
            request.cache_status = Some(CacheStatus::Hit);
            request.report_forward(Forward::Miss, None);
            if let Some(report) = &mut request.report {
                report.collapsed = true;
                report.note_lifetime(&follower.head().lifetime, Now::read());
            }
            Some(follow(request, client, follower).await)
        }
        Woken::Fill(permit) => {
            let expired = fallback.is_some();
            request.cache_status = Some(if expired { CacheStatus::Expired } else { CacheStatus::Miss });
            missed(request, if expired { Cause::Expired } else { Cause::Absent }, None);
            let filling = filling(request, permit);
            Some(upstream(request, client, filling, fallback).await)
        }
        Woken::Failed(failure) => {
            let now = Now::read();
            let may = |found: &Rc<Hit>| found.entry.may_serve_stale(failure.cause, cache, now);
            let proxied = match fallback.as_ref().is_some_and(may) {
                true => Proxied::Stale(failure.status),
                false => Proxied::Failed(failure.status),
            };
            let expired = fallback.is_some();
            request.cache_status = Some(if expired { CacheStatus::Expired } else { CacheStatus::Miss });
            missed(request, if expired { Cause::Expired } else { Cause::Absent }, Some("upstream_failed"));
            if let Some(report) = &mut request.report {
                report.collapsed = true;
                report.forward_status = Some(failure.status);
            }
            Some(settle(request, client, proxied, fallback).await)
        }
        Woken::Timeout => {
            request.cache_status = Some(CacheStatus::Miss);
            missed(request, Cause::LockTimeout, Some("proxy_cache_lock_timeout"));
            Some(upstream(request, client, Filling::No, fallback).await)
        }
    }
}

async fn upstream(
    request: &mut Request,
    client: &mut Client,
    filling: Filling,
    fallback: Option<Rc<Hit>>,
) -> Outcome {
    let mut fallback = fallback;
    let proxied = gateway::answer(request, Some(&mut *client), filling, &mut fallback).await;
    settle(request, client, proxied, fallback).await
}

/// What follows from how a request fared that was passed on; `fallback` is the entry it could fall back on.
pub async fn settle(
    request: &mut Request,
    client: &mut Client,
    proxied: Proxied,
    fallback: Option<Rc<Hit>>,
) -> Outcome {
    match proxied {
        Proxied::Done => Outcome::Done,
        Proxied::Failed(status) | Proxied::Intercepted(status) => Outcome::Status(status),
        Proxied::ClientFailed(failure) => Outcome::Client(failure),
        Proxied::Redirect(uri) => {
            Restart::accelerated(request, &uri).map_or_else(Outcome::Status, Outcome::Restart)
        }
        Proxied::Stale(status) => {
            request.cache_status = Some(CacheStatus::Stale);
            if let Some(report) = &mut request.report {
                report.detail = Some("stale_on_error");
            }
            match fallback {
                Some(hit) => {
                    let sent = Box::pin(from_entry(request, client, hit)).await;
                    sent.unwrap_or(Outcome::Status(status))
                }
                None => Outcome::Status(status),
            }
        }
        Proxied::Again(_) => Outcome::Status(502),
        Proxied::Unsatisfiable(length) => Outcome::Status(ranges::refuse(request, length)),
        Proxied::Revalidated(entry) => {
            request.cache_status = Some(CacheStatus::Revalidated);
            let hit = Rc::new(Hit { entry, prepared: Prepared::default() });
            Box::pin(from_entry(request, client, hit)).await.unwrap_or(Outcome::Status(502))
        }
    }
}

/// A copy of the request goes to the upstream on its own; nobody waits for it (RFC 5861 §3).
pub fn refresh_detached(request: &Request, permit: FillPermit, found: &Rc<Hit>) {
    let mut copy = request.for_refresh();
    let fallback = found.clone();
    tokio::task::spawn_local(async move {
        _ = gateway::answer(&mut copy, None, Filling::Permit(permit), &mut Some(fallback)).await;
    });
}

/// Answers from an entry, which is let go of before a slow client is waited for. It comes back where its file has
/// vanished: nothing was sent.
pub async fn from_entry(
    request: &mut Request,
    client: &mut Client,
    hit: Rc<Hit>,
) -> Result<Outcome, Rc<Hit>> {
    let now = Now::read();
    report_entry(request, &hit, now);
    let mut coding = hit::coding(request, &hit.entry);
    if let Some(wanted) = coding
        && !coded(request, &hit, wanted).await
    {
        coding = None;
    }
    let mut out = buffers::take();
    if let Some(ready) = hit::ready(request, &hit, coding, now, &mut out) {
        drop(hit);
        return Ok(send_ready(request, client, out, ready).await);
    }
    buffers::give(out);
    stored::answer(request, client, hit, now).await
}

/// Writes a prepared answer.
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
    sent.map_or_else(Outcome::Client, |()| Outcome::Done)
}

/// Makes the coded form of an entry where it is missing; whether it is there now. One thread makes it.
async fn coded(request: &Request, hit: &Hit, coding: Coding) -> bool {
    if hit.entry.coded_body(coding).is_some() {
        return true;
    }
    let Some(cache) = request.location().settings.cache() else {
        return false;
    };
    let store = &request.generation.shared.stores[cache.zone.0 as usize];
    let (Some(permit), Some(body)) =
        (store.claim_coding(&hit.entry, coding), hit.entry.body().memory().cloned())
    else {
        return false;
    };
    let effort = Effort::of(&request.location().settings, coding);
    let squeezed = if effort.is_short(body.len()) {
        compressor::whole(&body, effort)
    } else {
        blocking::run(move || compressor::whole(&body, effort)).await
    };
    if let Some(squeezed) = squeezed {
        permit.set(Bytes::from(squeezed));
    }
    hit.entry.coded_body(coding).is_some()
}

/// Streams what somebody else's fill brings, as it arrives.
async fn follow(request: &mut Request, client: &mut Client, follower: Follower) -> Outcome {
    let stored: Arc<StoredHead> = follower.head().clone();
    let now = Now::read();
    hit::remember(request, stored.view(), now);
    let age = Some(stored.view().age(now));
    let outcome = follow::serve(request, client, follower, age).await;
    followed(request, outcome)
}

/// What follows from how following a fill went.
pub fn followed(request: &mut Request, followed: Followed) -> Outcome {
    match followed {
        Followed::Done => Outcome::Done,
        Followed::Client(failure) => Outcome::Client(failure),
        Followed::Unsatisfiable(length) => Outcome::Status(ranges::refuse(request, length)),
    }
}
