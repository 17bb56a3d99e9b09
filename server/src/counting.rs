//! What is counted of a request, in the zones of its server, its location and its cache. It decides nothing.
//!
//! Next: `millstream-telemetry`'s `metrics`.

use crate::request::Request;
use millstream_conf::model::{ConnectionZoneId, RequestZoneId};
use millstream_net::clock;
use millstream_telemetry::metrics::{Cause, Finished, LimitOutcome};
use std::time::{Duration, Instant};

/// Counts a request that is over.
pub fn finished(request: &Request, now: Instant) {
    let (zones, metrics) = (&request.generation.shared.status_zones, &request.worker.metrics);
    let location = zones.location(request.location);
    metrics.finished(
        zones.server(request.server),
        location,
        &Finished {
            status: request.sent.status,
            received: request.head.length as u64 + request.body_received,
            sent: request.sent.bytes,
            cache: request.cache_status,
            took: now.saturating_duration_since(request.started),
        },
    );
    if let (Some(status), Some(cache)) = (request.cache_status, request.location().settings.cache()) {
        metrics.cached(zones.cache(cache.zone), status, request.sent.bytes);
    }
    let tries = &request.tries.list;
    if !tries.is_empty() {
        let took = tries.iter().filter_map(|one| one.response_time).sum();
        metrics.asked(location, tries.len() as u64, took);
    }
}

/// The zones that a request is in now: of its server, and of its location.
pub fn zones(request: &Request) -> (u32, u32) {
    let zones = &request.generation.shared.status_zones;
    (zones.server(request.server), zones.location(request.location))
}

/// Counts in its location why the cache did not answer a request, or the answer was not stored.
pub fn missed(request: &Request, cause: Cause) {
    let zone = request.generation.shared.status_zones.location(request.location);
    request.worker.metrics.miss(zone, cause, clock::wall().unix_milliseconds());
}

/// Counts what a zone of `limit_req` made of a request.
pub fn request_limited(request: &Request, zone: RequestZoneId, outcome: LimitOutcome) {
    let zones = &request.generation.shared.status_zones;
    request.worker.metrics.request_limited(zones.request_limit(zone), outcome);
}

/// The same of `limit_conn`.
pub fn connection_limited(request: &Request, zone: ConnectionZoneId, outcome: LimitOutcome) {
    let zones = &request.generation.shared.status_zones;
    request.worker.metrics.connection_limited(zones.connection_limit(zone), outcome);
}

/// Counts that a request waited for another's answer, in the zone of its cache.
pub fn waited(request: &Request, time: Duration) {
    if let Some(cache) = request.location().settings.cache() {
        let zones = &request.generation.shared.status_zones;
        request.worker.metrics.waited(zones.cache(cache.zone), time);
    }
}
