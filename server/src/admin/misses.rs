//! Why requests were not answered from the cache, location by location: the words and counts of the metrics.
//!
//! Counts are those of the process and outlive reloads; told are the locations of the configuration in force.

use super::explain::{ConfigurationPlace, at};
use crate::location_text::written;
use crate::request::Request;
use millstream_cache::policy;
use millstream_conf::model::LocationId;
use millstream_telemetry::metrics::{Cause, CauseFamily, LocationSnapshot, MissCount};
use serde::Serialize;
use std::collections::BTreeMap;

/// A location with a cache that had misses.
#[derive(Debug, Serialize)]
pub(super) struct OfLocation {
    /// The location.
    location: ConfigurationPlace,
    /// Requests that were not answered from the cache, by cause.
    requests: BTreeMap<&'static str, Told>,
    /// Answers that were not stored, by cause.
    not_stored: BTreeMap<&'static str, Reason>,
}

/// How often, and when last.
#[derive(Debug, Serialize)]
struct Told {
    count: u64,
    /// Milliseconds since 1970.
    last: i64,
}

/// The same, with a sentence.
#[derive(Debug, Serialize)]
struct Reason {
    text: &'static str,
    #[serde(flatten)]
    told: Told,
}

/// The causes of a family that came up in a location.
fn causes(of: &LocationSnapshot, family: CauseFamily) -> impl Iterator<Item = (&'static str, Told)> {
    let counted = Cause::ALL.iter().zip(&of.causes).filter(|(_, counted)| counted.count > 0);
    counted.filter_map(move |(cause, &MissCount { count, last })| {
        let (its, word) = cause.of();
        (its == family).then_some((word, Told { count, last }))
    })
}

/// The sentence of a word.
fn text(word: &str) -> &'static str {
    policy::Reason::ALL.iter().find(|reason| reason.name() == word).map_or("", |reason| reason.text())
}

/// All locations that had misses.
pub(super) fn all(request: &Request) -> Vec<OfLocation> {
    let shared = &request.generation.shared;
    let counted = shared.registry.snapshot().locations;
    let locations = (0..).map(LocationId).zip(&shared.configuration.http.locations);
    locations
        .filter_map(|(id, location)| {
            let of = counted.get(shared.status_zones.location(id) as usize)?;
            let requests: BTreeMap<_, _> = causes(of, CauseFamily::Miss).collect();
            let not_stored: BTreeMap<_, _> = causes(of, CauseFamily::NotStored)
                .map(|(word, told)| (word, Reason { text: text(word), told }))
                .collect();
            let location =
                ConfigurationPlace { name: written(&location.matches), at: at(request, location.span) };
            (!requests.is_empty() || !not_stored.is_empty()).then_some(OfLocation {
                location,
                requests,
                not_stored,
            })
        })
        .collect()
}
