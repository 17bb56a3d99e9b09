//! The miss path: a request passed to an upstream server, its answer passed to the client and into the cache.
//!
//! ```text
//! destination → request body → search → asked (⟲ the next server) → final head ┬ 101 ─────── tunnel
//!                                                                             ├ storable ── filling (and the client follows)
//!                                                                             └ else ────── transfer
//! ```
//!
//! What goes upstream is written anew from the parsed request, never copied. Nothing is sent to the client before a final
//! head is accepted, so until then every failure still has a status. Whether another server is asked is decided in
//! `millstream-upstream`'s `retry`; whether an answer may be stored, in `millstream-cache`'s `policy`.
//! Each stage is a value that the next one uses up: a search for a server (`ServerSearch`), one that is asked (`Asked`), its
//! response (`Answered`), a body on its way (`Transfer`). What is common needs no future: `begun`.
//! Next: `search`, `asked`, `settling`, then the ways of a body.

mod report;
mod sticky;
mod destination;
mod unkeyed;
mod request_head;
mod params;
mod request_body;
mod replacement;
mod cookie;
mod answer_head;
mod learning;
mod watching;
mod queueing;
mod broken;
mod handshake;
mod opening;
mod accounts;
mod sending;
mod upward;
mod answered;
mod judging;
mod asked;
mod probe;
mod search;
mod spill;
mod storing;
mod transfer;
mod filling;
mod combining;
mod tunnel;
mod settling;
pub mod unserved;
mod probing;
mod begun;

#[cfg(test)]
mod tests;

use crate::cache_report::CacheReport;
use crate::client::{Client, ClientFailure};
use crate::generation::Generation;
use crate::representation::chosen::Unmet;
use crate::request::Request;
use crate::tries::Tries;
use crate::watched::Watched;
pub use begun::{Begun, begin, go_on};
pub use combining::Rest;
use destination::Destination;
use millstream_cache::policy::Reason;
use millstream_cache::{Awaited, Entry, Failure, FillPermit, Follower, Hit, Moment, Now, StaleCause};
use millstream_conf::model::{Pass, Store};
use millstream_net::clock;
use millstream_upstream::Condition;
use millstream_wire::Method;
use millstream_wire::h1::head::ResponseHead;
pub(crate) use probe::{ProbeExtent, Probed, probe, probe_grpc};
use request_body::RequestBody;
pub use request_body::hold;
use search::{ServerSearch, Stop};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

pub enum Proxied {
    /// Responded, or cut halfway; the status stands.
    Done,
    Failed(u16),
    /// `proxy_intercept_errors`: the response was dropped for an `error_page` of this status.
    Intercepted(u16),
    /// Nothing was sent, and `proxy_cache_use_stale` allows the stale entry. The status is used if that
    /// cannot be read.
    Stale(u16),
    ClientFailed(ClientFailure),
    /// Nothing was sent: the response does not satisfy the request's conditions.
    Unmet(Unmet),
    /// A 304 confirmed the stale entry, which is the response.
    Revalidated(Arc<Entry>),
    /// `X-Accel-Redirect`: nothing was sent; continue with this URI or `@name`.
    Redirect(Vec<u8>),
    /// Nothing was sent and the response was useless: request the whole. [`answer`] never returns it.
    Again(Filling),
}

impl From<Result<(), ClientFailure>> for Proxied {
    fn from(sent: Result<(), ClientFailure>) -> Proxied {
        sent.map_or_else(Proxied::ClientFailed, |()| Proxied::Done)
    }
}

pub enum Filling {
    No,
    Permit(FillPermit),
    /// The client's range and conditions are passed on; a 206 is stored as a part.
    Part(FillPermit),
    /// Requests only the rest of a stored part; the whole is stored.
    Rest(FillPermit, Box<Rest>),
    /// Not stored, but requested as a whole and read through a fill.
    Along(FillPermit),
    /// As [`Filling::Along`], for no client: nothing is noted for its key. It is observed by this alone.
    Check(Option<Box<Watched>>),
}

pub enum OpenedFill {
    Stream(Follower, Box<Tries>, Option<Box<CacheReport>>),
    Ended(Proxied, Option<Box<CacheReport>>),
}

type Tap = oneshot::Sender<OpenedFill>;

/// A request that is being passed on, as each step of it sees it.
struct Passing<'a> {
    request: &'a mut Request,
    client: Option<&'a mut Client>,
    proxy: &'a Pass,
    destination: &'a Destination,
    terms: &'a mut Terms,
}

/// What an exchange keeps from step to step.
struct Terms {
    body: RequestBody,
    /// As sent: GET for a HEAD whose response is to be stored.
    method: Method,
    asked_at: Instant,
    /// Whether a client that leaves ends it.
    watching: bool,
    /// The client left while the cache was filled.
    left: bool,
    cache: ForCache,
    /// Until the response has a head.
    watched: Option<Box<Watched>>,
}

/// What the cache has to do with an exchange.
#[derive(Default)]
struct ForCache {
    /// Whether the response may be stored, so that the client's conditions and ranges are removed.
    caching: bool,
    stale: Option<Rc<Hit>>,
    rest: Option<Box<Rest>>,
    /// Reads the response through its fill instead of a client.
    tap: Option<Tap>,
    /// Other waiters for a fill, and how long it goes on after its client has left.
    awaited: Option<(Awaited, Duration)>,
    /// A time before sending: later purges also apply to what is learned from the response.
    since: Option<Moment>,
}

thread_local! {
    /// Reused for its list of fields.
    static HEAD: Cell<Option<Box<ResponseHead>>> = const { Cell::new(None) };
}

/// `client` is `None` for a background refresh; `stale` is the entry to revalidate or to fall back on,
/// dropped once another response is passed on.
pub async fn answer(
    request: &mut Request,
    client: Option<&mut Client>,
    filling: Filling,
    stale: &mut Option<Rc<Hit>>,
) -> Proxied {
    let mut cache = ForCache { stale: stale.take(), ..ForCache::default() };
    let proxied = pass_on(request, client, filling, &mut cache).await;
    *stale = cache.stale;
    proxied
}

/// `tap` reads the response through a fill if it is the requested slice; any other goes to the client.
pub async fn open_piece(
    request: &mut Request,
    client: &mut Client,
    tap: oneshot::Sender<OpenedFill>,
) -> Proxied {
    let mut cache = ForCache { tap: Some(tap), ..ForCache::default() };
    pass_on(request, Some(client), Filling::No, &mut cache).await
}

/// `tap` reads the response through its fill, stored or not.
pub async fn open(
    mut request: Request,
    filling: Filling,
    stale: Option<Rc<Hit>>,
    tap: oneshot::Sender<OpenedFill>,
) {
    let mut cache = ForCache { stale, tap: Some(tap), ..ForCache::default() };
    let ending = pass_on(&mut request, None, filling, &mut cache).await;
    if let Some(tap) = cache.tap {
        // Nobody may be there any more.
        _ = tap.send(OpenedFill::Ended(ending, request.cache.report.take()));
    }
}

async fn pass_on(
    request: &mut Request,
    mut client: Option<&mut Client>,
    filling: Filling,
    cache: &mut ForCache,
) -> Proxied {
    let generation = request.generation.clone();
    let Some(proxy) = pass_of(request, &generation) else { return Proxied::Failed(500) };
    // Before the server is chosen, as the choice may be made by `$request_body`.
    let body = match body_of(request, client.as_deref_mut(), proxy).await {
        Ok(body) => body,
        Err(ending) => return ending,
    };
    request.has_asked.set(true);
    let destination = match destination_of(request, &generation, proxy).await {
        Ok(destination) => destination,
        Err(status) => {
            request_body::give_back(request, body, client.as_deref());
            return Proxied::Failed(status);
        }
    };
    let mut filling = match filling {
        Filling::Rest(permit, rest) => {
            cache.rest = Some(rest);
            Filling::Permit(permit)
        }
        filling => filling,
    };
    cache.caching = matches!(filling, Filling::Permit(_) | Filling::Along(_) | Filling::Check(_));
    let zone = proxy.cache.as_ref().filter(|_| !cache.caching).map(|cache| cache.zone.0 as usize);
    cache.since = zone.map(|zone| generation.fronts[zone].borrow().moment());
    let watched = match &mut filling {
        Filling::Check(watched) => watched.take(),
        _ => probing::observed(request),
    };
    let mut terms = Terms::of(request, proxy, body, (std::mem::take(cache), watched));
    let outcome = loop {
        terms.cache.awaited = awaited(&filling, proxy);
        let mut passing = Passing {
            request: &mut *request,
            client: client.as_deref_mut(),
            proxy,
            destination: &destination,
            terms: &mut terms,
        };
        let search = ServerSearch::begin(&mut passing, clock::now());
        match passing.run(search, filling).await {
            _ if terms.left => break Proxied::ClientFailed(ClientFailure::Gone),
            Proxied::Again(again) if terms.body.is_replayable() => {
                (terms.cache.stale, terms.cache.rest, filling) = (None, None, again);
            }
            Proxied::Again(_) => break Proxied::Failed(502),
            outcome => break outcome,
        }
    };
    if !terms.left {
        request_body::give_back(request, terms.body, client.as_deref());
    }
    *cache = terms.cache;
    outcome
}

/// Borrowed from the configuration: counting references on it would bounce a cache line between workers.
fn pass_of<'g>(request: &Request, generation: &'g Generation) -> Option<&'g Pass> {
    generation.http().location(request.route.location).settings.pass()
}

async fn destination_of(
    request: &Request,
    generation: &Generation,
    proxy: &Pass,
) -> Result<Destination, u16> {
    match destination::known(request, generation, proxy) {
        Some(destination) => Ok(destination),
        None => Box::pin(destination::find(request, generation, proxy)).await,
    }
}

async fn body_of(
    request: &mut Request,
    client: Option<&mut Client>,
    proxy: &Pass,
) -> Result<RequestBody, Proxied> {
    let body = match client {
        Some(client) if client.body_pending() || request_body::lacks_empty_file(request) => {
            Box::pin(request_body::read(request, client, proxy)).await?
        }
        _ => {
            if request_body::lacks_file(request, proxy) {
                Box::pin(request_body::put_in_file(request)).await?;
            }
            request_body::kept(request)?
        }
    };
    Ok(request_body::as_sent(body, request, proxy))
}

/// Other waiters, and how long a fill goes on without its client if no one waits.
fn awaited(filling: &Filling, proxy: &Pass) -> Option<(Awaited, Duration)> {
    let bound = proxy.cache.as_ref().filter(|_| !proxy.exchange.ignore_client_abort)?.unread_timeout?;
    let (Filling::Permit(permit) | Filling::Along(permit)) = filling else { return None };
    Some((permit.awaited(), bound))
}

/// `proxy_method`, or GET for a HEAD whose response is to be stored.
fn method(request: &Request, proxy: &Pass, caching: bool) -> Method {
    match proxy.http().and_then(|http| http.method.as_ref()) {
        _ if caching && request.method == Method::Head => Method::Get,
        Some(template) => Method::of(&crate::variables::value(template, request)),
        None => request.method,
    }
}

/// The response is for this request only: waiters for the key go upstream themselves, at once.
fn alone(filling: Filling, reason: Option<Reason>) {
    if let Filling::Permit(permit) | Filling::Along(permit) = filling {
        permit.uncacheable(reason, Now::read());
    }
}

impl Terms {
    fn of(
        request: &Request,
        proxy: &Pass,
        body: RequestBody,
        (cache, watched): (ForCache, Option<Box<Watched>>),
    ) -> Terms {
        let may_leave = !cache.caching && proxy.store.place == Store::Off;
        Terms {
            method: method(request, proxy, cache.caching),
            body,
            asked_at: request.received.started,
            watching: may_leave && !proxy.exchange.ignore_client_abort,
            left: false,
            cache,
            watched,
        }
    }
}

impl Passing<'_> {
    /// Ready when the client has left and that ends the request.
    fn poll_left(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.client {
            Some(client) if self.terms.watching => client.poll_gone(context),
            _ => Poll::Pending,
        }
    }

    async fn run(&mut self, search: ServerSearch, filling: Filling) -> Proxied {
        let mut head = HEAD.take().unwrap_or_default();
        let proxied = match search.run(self, &mut head).await {
            Ok(answered) => answered.settle(self, filling, &mut head).await,
            Err(stop) => self.stopped(stop, filling),
        };
        head.clear();
        HEAD.set(Some(head));
        proxied
    }

    /// Returns a permit after a failure. Waiters are told only of a server that is down or slow, not of a failure
    /// of this request.
    fn failed(&self, filling: Filling, condition: Condition) {
        let (Filling::Permit(permit) | Filling::Part(permit)) = filling else { return };
        let (status, told) = match condition {
            Condition::Timeout => (504, Some(StaleCause::Timeout)),
            Condition::Status(status @ 502..=504) => (status, Some(StaleCause::Status(status))),
            Condition::Status(status) => (status, None),
            Condition::Error | Condition::InvalidHeader => (502, None),
        };
        let upstream = self.request.route.location.0;
        permit.failed(status, told.map(|cause| Failure { cause, status, upstream }), Now::read());
    }

    fn stopped(&mut self, stop: Stop, filling: Filling) -> Proxied {
        match stop {
            Stop::Client(failure) => Proxied::ClientFailed(failure),
            Stop::Upstream(condition, status) => {
                self.failed(filling, condition);
                self.fall_back(condition, status)
            }
        }
    }

    /// A final failure: the stale entry if allowed, else a status.
    fn fall_back(&self, condition: Condition, status: u16) -> Proxied {
        let cause = match condition {
            Condition::Error => StaleCause::Error,
            Condition::Timeout => StaleCause::Timeout,
            Condition::InvalidHeader => StaleCause::InvalidHeader,
            Condition::Status(status) => StaleCause::Status(status),
        };
        if self.stale_covers(cause) { Proxied::Stale(status) } else { Proxied::Failed(status) }
    }
}
