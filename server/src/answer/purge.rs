//! Answering a request that purges: PURGE, BAN and PURGEKEYS in a location with a cache, `proxy_cache_purge`.
//!
//! Who is allowed is asked first; then what is meant is worked out whole, and only when all of it has an exact meaning is
//! anything done. The answer says what was done, once it holds over a restart. Next: `asked`, `orders`.

pub mod pattern;
pub mod asked;
pub mod orders;

use super::{Outcome, fixed};
use crate::client::Client;
use crate::generation::Generation;
use crate::location_text::located;
use crate::request::Request;
use crate::right;
use crate::variables::{self, holds};
use asked::{Hosts, PurgeMethod, PurgeScope};
use millstream_cache::{How, Purge, What, key};
use millstream_conf::model::{Handler, Level, ProxyCache, PurgeAt};
use millstream_telemetry::about::About;
use millstream_telemetry::metrics::{Counter, WorkerMetrics};
use millstream_wire::{Headers, Method};
use orders::{Orders, PurgeItem};
use pattern::Unmappable;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Why nothing was purged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The status.
    pub status: u16,
    /// What is wrong, and what to write.
    pub text: Cow<'static, str>,
}

impl Refusal {
    /// A request that has no exact meaning.
    pub fn bad(text: impl Into<Cow<'static, str>>) -> Refusal {
        Refusal { status: 400, text: text.into() }
    }
}

impl From<Unmappable> for Refusal {
    fn from(unmappable: Unmappable) -> Refusal {
        Refusal::bad(unmappable.0)
    }
}

/// How a request came to be one that purges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purging {
    /// By its method.
    Method(PurgeMethod),
    /// `proxy_cache_purge` with a condition that holds: answered with 204, as NGINX Plus does.
    Condition,
    /// `proxy_cache_purge ZONE KEY` of the location.
    Location,
}

/// One thing that was purged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// The zone.
    pub zone: String,
    /// `key`, `prefix`, `tag` or `all`.
    pub by: String,
    /// The key, the prefix of keys, or the tag; empty for `all`.
    pub text: String,
    /// Whether something under exactly this key was in memory; absent where not one whole key was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_memory: Option<bool>,
    /// Whether the key's file was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_disk: Option<bool>,
}

/// What was done, as purging requests and the API answer it.
#[derive(Debug, Serialize, Deserialize)]
pub struct PurgeReport {
    /// `ok`.
    pub status: String,
    /// Whether it was only made stale.
    pub soft: bool,
    /// Each thing that was purged.
    pub purged: Vec<Done>,
    /// What may not have been meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl PurgeReport {
    /// Of a purge that is in force.
    pub fn of(soft: bool, purged: Vec<Done>, notes: Vec<String>) -> PurgeReport {
        PurgeReport { status: "ok".to_owned(), soft, purged, notes }
    }
}

/// Whether a request in a location with a cache purges. Costs a comparison where it does not.
#[inline]
pub fn in_cached_location(request: &Request, cache: &ProxyCache) -> Option<Purging> {
    if !cache.purge.is_empty() {
        let mut scratch = Vec::new();
        if cache.purge.iter().any(|condition| holds(condition, request, &mut scratch)) {
            return Some(Purging::Condition);
        }
    }
    if request.method != Method::Other || !cache.purge_methods {
        return None;
    }
    PurgeMethod::of(request).map(Purging::Method)
}

/// Purges, or refuses to.
pub async fn answer(request: &mut Request, client: &mut Client, purging: Purging) -> Outcome {
    let generation = request.generation.clone();
    let settings = &generation.http().location(request.location).settings;
    let cache = settings.cache();
    let (right, soft) = match (purging, &settings.content, cache) {
        (Purging::Location, Handler::Purge(at), _) => (&at.right, at.soft),
        (Purging::Method(_) | Purging::Condition, _, Some(cache)) => (&cache.purge_right, cache.purge_soft),
        _ => return Outcome::Status(500),
    };
    if !right::admits(right, request, right::PURGE, request.location) {
        return Outcome::Status(403);
    }
    let found = match (purging, &settings.content) {
        (Purging::Method(method), _) => by_method(request, method),
        (Purging::Location, Handler::Purge(at)) => Ok((by_location(request, at), None)),
        _ => by_condition(request).map(|orders| (orders, None)),
    };
    let (orders, asked_soft) = match found {
        Ok(found) => found,
        Err(refusal) => return refuse(request, client, &refusal).await,
    };
    if let Some(refused) = refusing(&orders, request) {
        return refuse(request, client, &refused).await;
    }
    let soft = asked_soft.unwrap_or(soft);
    match carry_out(request, orders, soft).await {
        Ok(_) if purging == Purging::Condition => {
            fixed::whole(request, client, 204, &Headers::default(), &[]).await
        }
        Ok(purged) => json(request, client, 200, &PurgeReport::of(soft, purged, Vec::new())).await,
        Err(error) => {
            let text = format!("the purge is in force, but would not outlive a restart: {error}");
            refuse(request, client, &Refusal { status: 500, text: text.into() }).await
        }
    }
}

/// The same for the other locations that are touched. Whom the request's own location admits is told which one does not.
fn refusing(orders: &Orders, request: &Request) -> Option<Refusal> {
    let admits = |right, id| right::admits(right, request, right::PURGE, id);
    let (_, id) = orders.rights.iter().find(|(right, id)| !admits(right, *id))?;
    let text = format!(
        "this would also purge for {}, whose proxy_cache_purge_allow or proxy_cache_purge_token does not admit the \
         request: purge single URLs, or by the command or the API",
        located(request, *id)
    );
    Some(Refusal { status: 403, text: text.into() })
}

fn by_method(request: &Request, method: PurgeMethod) -> Result<(Orders, Option<bool>), Refusal> {
    let asked = asked::read(request, method)?;
    Ok((orders::of_request(request, &asked.wanted)?, asked.soft))
}

/// NGINX Plus goes by the key that the request itself has; where its method is a part of that, by that of a GET.
fn by_condition(request: &Request) -> Result<Orders, Refusal> {
    let target = request.head.query.map_or(request.head.path.end, |query| query.end);
    let target = request.bytes[request.head.path.start as usize..target as usize].to_vec();
    let wanted = match target.strip_suffix(b"*") {
        Some(prefix) => PurgeScope::Prefix(prefix.to_vec(), Hosts::Own),
        None => PurgeScope::Target(target, Hosts::Own),
    };
    orders::of_request(request, &wanted)
}

fn by_location(request: &Request, at: &PurgeAt) -> Orders {
    let mut key = variables::value(&at.key, request);
    let item = if key.last() == Some(&b'*') {
        key.pop();
        PurgeItem::Prefix(key)
    } else {
        PurgeItem::Text(key)
    };
    Orders::of_zone(at.zone, std::iter::once(item))
}

/// Gives the orders to the zones; done once all of them hold, also after a restart.
///
/// # Errors
/// Where one could not be written down. It is in force all the same.
pub async fn carry_out(request: &Request, orders: Orders, soft: bool) -> std::io::Result<Vec<Done>> {
    let how = if soft { How::Soft } else { How::Hard };
    let generation: &Generation = &request.generation;
    let metrics: &WorkerMetrics = &request.worker.metrics;
    let mut under_way = Vec::with_capacity(orders.items.len());
    for (zone, item) in orders.items {
        let store = &generation.shared.stores[zone as usize];
        let (counter, by, text) = described(&item);
        metrics.add(counter, 1);
        log(request, store.name(), by, &text, soft);
        let by_key = matches!(item, PurgeItem::Key(_));
        let done =
            Done { zone: store.name().to_owned(), by: by.to_owned(), text, in_memory: None, on_disk: None };
        // In force from here on; all of them are written down side by side.
        under_way.push((done, by_key, store.purge(Purge { what: what(item), how })));
    }
    let mut purged = Vec::with_capacity(under_way.len());
    let mut failed = None;
    for (mut done, by_key, lasting) in under_way {
        match lasting.await {
            Ok(outcome) => {
                done.in_memory = by_key.then_some(outcome.in_memory);
                done.on_disk = by_key.then_some(outcome.on_disk);
                purged.push(done);
            }
            Err(error) => {
                metrics.add(Counter::PurgesFailed, 1);
                failed = Some(error);
            }
        }
    }
    failed.map_or(Ok(purged), Err)
}

fn what(item: PurgeItem) -> What {
    match item {
        PurgeItem::Key(key) | PurgeItem::Text(key) => What::Key(key),
        PurgeItem::Prefix(text) => What::Prefix(text),
        PurgeItem::Tag(name) => What::Tag(name),
        PurgeItem::All => What::All,
    }
}

fn described(item: &PurgeItem) -> (Counter, &'static str, String) {
    let shown = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    match item {
        PurgeItem::Key(key) => (Counter::PurgesKey, "key", shown(key::text(key))),
        PurgeItem::Text(text) => (Counter::PurgesKey, "key", shown(text)),
        PurgeItem::Prefix(text) => (Counter::PurgesPrefix, "prefix", shown(text)),
        PurgeItem::Tag(name) => (Counter::PurgesTag, "tag", shown(name)),
        PurgeItem::All => (Counter::PurgesAll, "all", String::new()),
    }
}

fn log(request: &Request, zone: &str, by: &str, text: &str, soft: bool) {
    let log = &request.generation.shared.error_logs[request.location.0 as usize];
    if log.enabled(Level::Info) {
        let how = if soft { "marked stale" } else { "purged" };
        let what = format_args!("cache zone \"{zone}\": {by} \"{text}\" {how}");
        log.tell(Level::Info, what, || About::client(request.client_text()));
    }
}

#[derive(Serialize)]
struct RefusalReport<'a> {
    error: RefusalText<'a>,
}

#[derive(Serialize)]
struct RefusalText<'a> {
    status: u16,
    text: &'a str,
}

/// Answers with what is wrong.
pub async fn refuse(request: &mut Request, client: &mut Client, refusal: &Refusal) -> Outcome {
    let error = RefusalText { status: refusal.status, text: &refusal.text };
    json(request, client, refusal.status, &RefusalReport { error }).await
}

/// Answers with a value as JSON, which nobody stores.
pub async fn json(
    request: &mut Request,
    client: &mut Client,
    status: u16,
    value: &impl Serialize,
) -> Outcome {
    let Ok(mut body) = serde_json::to_vec(value) else { return Outcome::Status(500) };
    body.push(b'\n');
    let mut headers = Headers::default();
    headers.push(b"Content-Type", b"application/json");
    headers.push(b"Cache-Control", b"no-store");
    fixed::whole(request, client, status, &headers, &body).await
}
