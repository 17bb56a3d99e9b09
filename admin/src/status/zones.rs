//! The zones of servers and locations, and those of limits.
//!
//! Beside NGINX Plus's figures stand ours: what the cache did for a location, what its upstream was asked and spared, how long
//! clients waited.

use super::classes;
use millstream_server::generation::Shared;
use millstream_telemetry::metrics::{
    CacheStatus, HttpSnapshot, LimitOutcome, LimitSnapshot, LocationSnapshot, Snapshot,
};
use serde_json::{Map, Value, json};

pub(super) fn servers(snapshot: &Snapshot) -> Value {
    let told = snapshot.servers.iter().map(|(name, zone)| (name.clone(), Value::Object(http(zone))));
    Value::Object(told.collect())
}

pub(super) fn locations(snapshot: &Snapshot) -> Value {
    let told = snapshot.locations.iter().map(|zone| {
        let LocationSnapshot { name, http: requests, origin, .. } = zone;
        let mut object = http(requests);
        object.insert(
            "origin".to_owned(),
            json!({
                "requests": origin.requests,
                "time": origin.time / 1000,
                "saved_requests": origin.saved_requests,
                "saved_time": origin.saved_time / 1000,
            }),
        );
        (name.clone(), Value::Object(object))
    });
    Value::Object(told.collect())
}

fn http(zone: &HttpSnapshot) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("processing".to_owned(), zone.processing.into());
    object.insert("requests".to_owned(), zone.requests().into());
    let mut responses = classes(&zone.responses);
    responses["codes"] = zone.codes.iter().map(|(code, count)| (code.to_string(), json!(count))).collect();
    object.insert("responses".to_owned(), responses);
    object.insert("discarded".to_owned(), zone.discarded().into());
    object.insert("received".to_owned(), zone.received.into());
    object.insert("sent".to_owned(), zone.sent.into());
    let cache =
        CacheStatus::ALL.map(|status| (status.name().to_ascii_lowercase(), zone.cached(status).into()));
    object.insert("cache".to_owned(), Value::Object(cache.into_iter().collect()));
    let milliseconds = |quantile| zone.latency.quantile(quantile).map(|found| found as f64 / 1000.0);
    object.insert("latency".to_owned(), json!({ "p50": milliseconds(0.5), "p99": milliseconds(0.99) }));
    object
}

pub(super) fn request_limits(shared: &Shared, snapshot: &Snapshot) -> Value {
    let zones = shared.configuration.http.request_zones.iter().map(|zone| zone.zone.name.as_str());
    limits(zones, &snapshot.request_limits, &LimitOutcome::ALL)
}

pub(super) fn connection_limits(shared: &Shared, snapshot: &Snapshot) -> Value {
    let zones = shared.configuration.http.connection_zones.iter().map(|zone| zone.zone.name.as_str());
    limits(zones, &snapshot.connection_limits, &LimitOutcome::OF_CONNECTIONS)
}

fn limits<'a>(
    zones: impl Iterator<Item = &'a str>,
    counted: &[(String, LimitSnapshot)],
    outcomes: &[LimitOutcome],
) -> Value {
    let told = zones.map(|name| {
        let counts = counted.iter().find(|(known, _)| known == name).map(|(_, counts)| *counts);
        let counts = counts.unwrap_or_default();
        let each = outcomes.iter().map(|outcome| (outcome.name().to_owned(), counts.count(*outcome).into()));
        (name.to_owned(), Value::Object(each.collect()))
    });
    Value::Object(told.collect())
}
