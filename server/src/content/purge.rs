//! Answering a request that purges: PURGE, BAN and PURGEKEYS in a location with a cache, `proxy_cache_purge`.
//!
//! Who is allowed is asked first; then what is meant is worked out whole, and only when all of it has an exact meaning is
//! anything done. The answer says what was done, once it holds over a restart. Next: `asked`, `orders`.

pub mod pattern;
pub mod asked;
mod spelled;
pub mod orders;
pub mod nodes;

use super::fixed;
use crate::client::Client;
use crate::generation::Generation;
use crate::location_text::located;
use crate::outcome::Outcome;
use crate::request::Request;
use crate::right;
use crate::variables::any_holds;
use asked::{Hosts, PurgeMethod, PurgeScope};
use millstream_cache::{How, Now, Purge, Store, What, key};
use millstream_cluster::{How as OrderedHow, What as Ordered};
use millstream_conf::model::{Handler, Level, ProxyCache, PurgeAt};
use millstream_telemetry::about::About;
use millstream_telemetry::metrics::{Counter, WorkerMetrics};
use millstream_wire::{Headers, Method};
use nodes::{NodeOutcome, OnTheirWay, WaitFor};
use orders::{Orders, PurgeItem};
use pattern::Unmappable;
use serde::{Deserialize, Serialize};
use spelled::SpelledKeys;
use std::borrow::Cow;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub status: u16,
    pub text: Cow<'static, str>,
}

impl Refusal {
    pub fn bad(text: impl Into<Cow<'static, str>>) -> Refusal {
        Refusal { status: 400, text: text.into() }
    }
}

impl From<Unmappable> for Refusal {
    fn from(unmappable: Unmappable) -> Refusal {
        Refusal::bad(unmappable.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purging {
    Method(PurgeMethod),
    /// `proxy_cache_purge` with a true condition: responds 204, as NGINX Plus.
    Condition,
    /// `proxy_cache_purge ZONE KEY` of the location.
    Location,
}

impl Purging {
    pub fn explanation(self) -> &'static str {
        match self {
            Purging::Method(_) | Purging::Condition => {
                "the request is a purge, by its method or by a condition of proxy_cache_purge"
            }
            Purging::Location => "every request to this location is a purge (proxy_cache_purge ZONE KEY)",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    pub zone: String,
    /// `key`, `prefix`, `tag` or `all`.
    pub by: String,
    pub text: String,
    /// Whether memory held exactly this key; absent unless one whole key was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_memory: Option<bool>,
    /// Whether the key's file existed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_disk: Option<bool>,
}

const NOT_FOUND: &str = "not_found";
const PENDING: &str = "pending";

impl Done {
    fn is_of_nothing(&self) -> bool {
        self.by == BY_KEY && self.in_memory != Some(true) && self.on_disk != Some(true)
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct PurgeReport {
    /// `ok`, or `not_found` if only single keys were named, none was stored, and there are no other nodes.
    pub status: String,
    pub soft: bool,
    pub purged: Vec<Done>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The nodes of the cluster that was waited for, this one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeOutcome>,
}

impl PurgeReport {
    pub fn of(soft: bool, done: CarriedOut, notes: Vec<String>) -> PurgeReport {
        let CarriedOut { purged, nodes, status } = done;
        let is_of_nothing = nodes.is_empty() && purged.iter().all(Done::is_of_nothing);
        let status = match status {
            202 => PENDING,
            _ if is_of_nothing => NOT_FOUND,
            _ => "ok",
        };
        PurgeReport { status: status.to_owned(), soft, purged, notes, nodes }
    }

    /// Whether a node of a cluster may not have carried it out yet.
    pub fn is_pending(&self) -> bool {
        self.status == PENDING
    }

    /// Whether only single keys were named and none was stored.
    pub fn found_nothing(&self) -> bool {
        self.status == NOT_FOUND
    }
}

/// What was purged, and where.
pub struct CarriedOut {
    pub purged: Vec<Done>,
    pub nodes: Vec<NodeOutcome>,
    /// 200, or 202 if a node of a cluster has not confirmed it yet.
    pub status: u16,
}

/// Costs one comparison if not.
#[inline]
pub fn in_cached_location(request: &Request, cache: &ProxyCache) -> Option<Purging> {
    if any_holds(&cache.purge, request) {
        return Some(Purging::Condition);
    }
    if request.method != Method::Other || !cache.purge_methods {
        return None;
    }
    PurgeMethod::of(request).map(Purging::Method)
}

pub async fn answer(request: &mut Request, client: &mut Client, purging: Purging) -> Outcome {
    let generation = request.generation.clone();
    let settings = &generation.http().location(request.route.location).settings;
    let cache = settings.cache();
    let (right, soft) = match (purging, &settings.content, cache) {
        (Purging::Location, Handler::Purge(at), _) => (&at.right, at.soft),
        (Purging::Method(_) | Purging::Condition, _, Some(cache)) => (&cache.purge_right, cache.purge_soft),
        _ => return Outcome::Status(500),
    };
    if !right::admits(right, request, right::PURGE, request.route.location) {
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
    match carry_out(request, orders, soft, WaitFor::All).await {
        Ok(done) => {
            let status = done.status;
            let report = PurgeReport::of(soft, done, Vec::new());
            match purging {
                Purging::Condition if report.found_nothing() => Outcome::Status(404),
                Purging::Condition => fixed::whole(request, client, 204, &Headers::default(), &[]).await,
                _ if report.found_nothing() => json(request, client, 404, &report).await,
                _ => json(request, client, status, &report).await,
            }
        }
        Err(error) => {
            let text = format!("the purge is in force, but would be lost at a restart: {error}");
            refuse(request, client, &Refusal { status: 500, text: text.into() }).await
        }
    }
}

/// Checks the rights of the other affected locations. A client that its own location admits learns which one
/// refuses.
fn refusing(orders: &Orders, request: &Request) -> Option<Refusal> {
    let admits = |right, id| right::admits(right, request, right::PURGE, id);
    let (_, id) = orders.rights.iter().find(|(right, id)| !admits(right, *id))?;
    let text = format!(
        "this would also purge responses of {}, whose proxy_cache_purge_allow or proxy_cache_purge_token does not \
         admit the request: purge single URLs, or use millstream purge or the API",
        located(request, *id)
    );
    Some(Refusal { status: 403, text: text.into() })
}

fn by_method(request: &Request, method: PurgeMethod) -> Result<(Orders, Option<bool>), Refusal> {
    let asked = asked::read(request, method)?;
    Ok((orders::of_request(request, &asked.wanted)?, asked.soft))
}

/// As NGINX Plus, by the request's own key; if that contains the method, by the key of a GET.
fn by_condition(request: &Request) -> Result<Orders, Refusal> {
    let target = asked::origin_form(request);
    let wanted = match target.strip_suffix(b"*") {
        Some(prefix) => PurgeScope::Prefix(prefix.to_vec(), Hosts::Own),
        None => PurgeScope::Target(target.to_vec(), Hosts::Own),
    };
    orders::of_request(request, &wanted)
}

/// For `proxy_cache_purge zone key`: the keys of requests for the captured URL if its key is among them, else
/// everything under its key.
fn by_location(request: &mut Request, at: &PurgeAt) -> Orders {
    let own = keys_of_each_method(request, at);
    let texts = own.keys.iter().map(|key| key::text(key));
    if texts.clone().any(|text| text.ends_with(b"*")) {
        let prefixes = texts.map(|text| PurgeItem::Prefix(text.strip_suffix(b"*").unwrap_or(text).to_vec()));
        return Orders::of_zone(at.zone, prefixes);
    }
    let mut stored = Orders::default();
    for target in &own.targets {
        // A target that no request may have, or that is not cached, has no keys.
        let Ok(found) = orders::of_request(request, &PurgeScope::Target(target.clone(), Hosts::Own)) else {
            continue;
        };
        let is_own = |item: &PurgeItem| match item {
            PurgeItem::Key(key) => own.has(key::text(key)),
            PurgeItem::Prefix(slices) => slices.strip_suffix(b"bytes=").is_some_and(|text| own.has(text)),
            _ => false,
        };
        stored
            .items
            .extend(found.items.into_iter().filter(|(zone, item)| *zone == at.zone.0 && is_own(item)));
    }
    if !stored.items.is_empty() {
        return stored;
    }
    let both = |key: &Vec<u8>| [PurgeItem::Key(key.clone()), PurgeItem::Text(key::text(key).to_vec())];
    Orders::of_zone(at.zone, own.keys.iter().flat_map(both))
}

/// The keys of such a location. If they contain the method, as stored requests have it: HEAD has its own, and
/// the purging request may be neither.
fn keys_of_each_method(request: &mut Request, at: &PurgeAt) -> SpelledKeys {
    let own = request.method;
    let mut found = SpelledKeys::of(request, &at.key);
    for method in [Method::Get, Method::Head] {
        request.method = method;
        request.route.made.clear();
        found = found.and(SpelledKeys::of(request, &at.key));
    }
    request.method = own;
    request.route.made.clear();
    found
}

/// Returns when all zones have applied them durably, and with [`WaitFor::All`] the other nodes of their
/// clusters too, or have not in time. On error a purge is in force but may be lost at a restart.
pub async fn carry_out(
    request: &Request,
    orders: Orders,
    soft: bool,
    wait: WaitFor,
) -> std::io::Result<CarriedOut> {
    let (how, ordered) = if soft { (How::Soft, OrderedHow::Soft) } else { (How::Hard, OrderedHow::Hard) };
    let generation: &Generation = &request.generation;
    let metrics: &WorkerMetrics = &request.worker.metrics;
    let now = Now::read();
    let mut taken_out = Vec::with_capacity(orders.items.len());
    let mut travelling = Vec::new();
    for (zone, item) in orders.items {
        let store = &generation.shared.zones.stores[zone as usize];
        let (counter, by, text) = described(&item);
        metrics.add(counter, 1);
        log(request, store.name(), by, &text, soft);
        let by_key = by == BY_KEY;
        let done =
            Done { zone: store.name().to_owned(), by: by.to_owned(), text, in_memory: None, on_disk: None };
        if generation.shared.clusters.door(zone as usize).is_some() {
            travelling.push((zone as usize, ordered_item(&item)));
        }
        taken_out.push((done, by_key, store, store.take_out(Purge { what: what(item), how }, now)));
    }
    // In force from here on; all of them are written down side by side.
    let ruled_out = |(done, by_key, store, purging)| (done, by_key, Store::rule_out(store, purging));
    let under_way: Vec<_> = taken_out.into_iter().map(ruled_out).collect();
    let mut on_their_way = OnTheirWay::default();
    for (zone, what) in travelling {
        on_their_way.give(&generation.shared, zone, (what, ordered), wait);
    }
    let mut purged = Vec::with_capacity(under_way.len());
    let mut failed = None;
    for (mut done, by_key, lasting) in under_way {
        match lasting.await {
            Ok(outcome) => {
                done.in_memory = by_key.then_some(outcome.in_memory);
                done.on_disk = by_key.then_some(outcome.on_disk);
                note(&mut purged, done);
            }
            Err(error) => {
                metrics.add(Counter::PurgesFailed, 1);
                failed = Some(error);
            }
        }
    }
    let (nodes, is_everywhere) = on_their_way.arrive().await;
    let status = if is_everywhere { 200 } else { 202 };
    failed.map_or(Ok(CarriedOut { purged, nodes, status }), Err)
}

/// As other nodes carry it out.
fn ordered_item(item: &PurgeItem) -> Ordered {
    match item {
        PurgeItem::Key(key) | PurgeItem::Text(key) => Ordered::Key(key.clone()),
        PurgeItem::Prefix(text) => Ordered::Prefix(text.clone()),
        PurgeItem::Tag(name) => Ordered::Tag(name.clone()),
        PurgeItem::All => Ordered::All,
    }
}

/// Keys with the same text are reported once.
fn note(purged: &mut Vec<Done>, done: Done) {
    let is_same =
        |known: &&mut Done| (&known.zone, &known.by, &known.text) == (&done.zone, &done.by, &done.text);
    match purged.iter_mut().find(is_same) {
        Some(known) => {
            known.in_memory = known.in_memory.max(done.in_memory);
            known.on_disk = known.on_disk.max(done.on_disk);
        }
        None => purged.push(done),
    }
}

const BY_KEY: &str = "key";

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
        PurgeItem::Key(key) => (Counter::PurgesKey, BY_KEY, shown(key::text(key))),
        PurgeItem::Text(text) => (Counter::PurgesKey, BY_KEY, shown(text)),
        PurgeItem::Prefix(text) => (Counter::PurgesPrefix, "prefix", shown(text)),
        PurgeItem::Tag(name) => (Counter::PurgesTag, "tag", shown(name)),
        PurgeItem::All => (Counter::PurgesAll, "all", String::new()),
    }
}

fn log(request: &Request, zone: &str, by: &str, text: &str, soft: bool) {
    let log = &request.generation.shared.logs.errors[request.route.location.0 as usize];
    if log.enabled(Level::Info) {
        let how = if soft { "marked stale" } else { "purged" };
        let what = format_args!("cache zone \"{zone}\": {by} \"{text}\" {how}");
        log.tell(Level::Info, what, || About::client(request.client_text()));
    }
}

pub async fn refuse(request: &mut Request, client: &mut Client, refusal: &Refusal) -> Outcome {
    let report = serde_json::json!({ "error": { "status": refusal.status, "text": refusal.text } });
    json(request, client, refusal.status, &report).await
}

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
