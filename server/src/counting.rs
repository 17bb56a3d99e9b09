//! What is counted of a request, in the zones of its server, its location and its cache. It decides nothing.
//!
//! Next: `millstream-telemetry`'s `metrics`.

use crate::request::Request;
use crate::url_text;
use millstream_conf::model::{ConnectionZoneId, RequestZoneId};
use millstream_net::clock;
use millstream_telemetry::metrics::{Cause, CauseFamily, Finished, LimitOutcome};
use std::time::{Duration, Instant};

pub fn finished(request: &Request, now: Instant) {
    let (zones, metrics) = (&request.generation.shared.zones.status, &request.worker.metrics);
    let location = zones.location(request.route.location);
    metrics.finished(
        zones.server(request.route.server),
        location,
        &Finished {
            status: request.sent.status,
            received: request.received.head.length as u64 + request.received.body_received,
            sent: request.sent.bytes,
            cache: request.cache.status,
            took: now.saturating_duration_since(request.received.started),
        },
    );
    if let (Some(status), Some(zone)) = (request.cache.status, cache_zone(request)) {
        metrics.cached(zone, status, request.sent.bytes);
    }
    let tries = &request.tries.list;
    let took = tries.iter().filter_map(|one| one.response_time).sum();
    if !tries.is_empty() {
        metrics.asked(location, tries.len() as u64, took);
    }
    missed_url(request, took);
}

pub fn zones(request: &Request) -> (u32, u32) {
    let zones = &request.generation.shared.zones.status;
    (zones.server(request.route.server), zones.location(request.route.location))
}

pub fn missed(request: &mut Request, cause: Cause) {
    let zone = request.generation.shared.zones.status.location(request.route.location);
    request.worker.metrics.miss(zone, cause, clock::wall().unix_milliseconds());
    request.cache.missed = Some((zone, cause));
}

/// Explains the miss of the request that fetched it, if any.
pub fn not_stored(request: &mut Request, reason: Cause) {
    let zone = request.generation.shared.zones.status.location(request.route.location);
    let metrics = &request.worker.metrics;
    metrics.miss(zone, reason, clock::wall().unix_milliseconds());
    if let Some((zone, cause)) = &mut request.cache.missed
        && cause.of().0 == CauseFamily::Miss
    {
        metrics.explain_miss(*zone, *cause, reason);
        *cause = reason;
    }
}

/// Under the requested URL without its query.
fn missed_url(request: &Request, took: Duration) {
    if let Some((zone, cause)) = request.cache.missed {
        let path = request.received.head.path.of(&request.received.bytes);
        let url = url_text::shown(&request.route.host, path);
        request.worker.metrics.missed_url(zone, &url, cause, took);
    }
}

pub fn request_limited(request: &Request, zone: RequestZoneId, outcome: LimitOutcome) {
    let zones = &request.generation.shared.zones.status;
    request.worker.metrics.request_limited(zones.request_limit(zone), outcome);
}

pub fn connection_limited(request: &Request, zone: ConnectionZoneId, outcome: LimitOutcome) {
    let zones = &request.generation.shared.zones.status;
    request.worker.metrics.connection_limited(zones.connection_limit(zone), outcome);
}

/// A stale entry was used, or kept, because the upstream failed.
pub fn stale_on_error(request: &Request) {
    if let Some(zone) = cache_zone(request) {
        request.worker.metrics.stale_on_error(zone);
    }
}

pub fn cache_zone(request: &Request) -> Option<u32> {
    let cache = request.location().settings.cache()?;
    Some(request.generation.shared.zones.status.cache(cache.zone))
}

pub fn waited(request: &Request, time: Duration) {
    if let Some(zone) = cache_zone(request) {
        request.worker.metrics.waited(zone, time);
    }
}
