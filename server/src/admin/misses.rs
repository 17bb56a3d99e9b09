//! Why requests were not answered from the cache, location by location.

use super::explain::{Place, at, written};
use crate::misses::Tally;
use crate::request::Request;
use serde::Serialize;
use std::collections::BTreeMap;

/// A location with a cache that had misses.
#[derive(Debug, Serialize)]
pub(super) struct OfLocation {
    /// The location.
    location: Place,
    /// Requests that were no hits, by `$upstream_cache_status`.
    requests: BTreeMap<&'static str, Told>,
    /// Answers that were not stored, by reason.
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

fn told(tally: &Tally) -> Told {
    Told { count: tally.count(), last: tally.last() }
}

/// All locations that had misses since this configuration came into force.
pub(super) fn all(request: &Request) -> Vec<OfLocation> {
    let shared = &request.generation.shared;
    let locations = shared.configuration.http.locations.iter().zip(&shared.misses);
    locations
        .filter_map(|(location, misses)| {
            let misses = misses.as_ref()?;
            let requests: BTreeMap<_, _> =
                misses.statuses().map(|(status, tally)| (status.name(), told(tally))).collect();
            let not_stored: BTreeMap<_, _> = misses
                .reasons()
                .map(|(reason, tally)| (reason.name(), Reason { text: reason.text(), told: told(tally) }))
                .collect();
            let location = Place { name: written(&location.matches), at: at(request, location.span) };
            (!requests.is_empty() || !not_stored.is_empty()).then_some(OfLocation {
                location,
                requests,
                not_stored,
            })
        })
        .collect()
}
