//! Why requests were not answered from the cache, location by location: the words and counts of the metrics.
//!
//! Counts are those of the process and outlive reloads; told are the locations of the configuration in force.

use super::explain::{ConfigurationPlace, help_of};
use crate::generation::Shared;
use crate::location_text::written;
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
    /// How long the upstream takes for a request here on average, in milliseconds.
    origin_time: f64,
    /// Requests that were not answered from the cache, by cause.
    requests: BTreeMap<&'static str, Reason>,
    /// Answers that were not stored, by cause.
    not_stored: BTreeMap<&'static str, Reason>,
}

impl OfLocation {
    /// How long the upstream took for its misses, in milliseconds, as far as that can be known.
    fn cost(&self) -> f64 {
        let count: u64 = self.requests.values().map(|reason| reason.told.count).sum();
        count as f64 * self.origin_time
    }
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
    /// What would make a hit of it.
    help: &'static str,
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

/// What is said of an answer that was not stored.
fn refused((word, told): (&'static str, Told)) -> (&'static str, Reason) {
    let reason = policy::Reason::ALL.iter().find(|reason| reason.name() == word);
    let (text, help) = reason.map_or(("", ""), |reason| (reason.text(), help_of(*reason)));
    (word, Reason { text, help, told })
}

/// What is said of a request that was not answered from the cache.
fn missed((word, told): (&'static str, Told)) -> (&'static str, Reason) {
    let text =
        Cause::described(CauseFamily::Miss).find(|(name, _)| *name == word).map_or("", |(_, text)| text);
    (word, Reason { text: text.trim(), help: help(word), told })
}

/// What would answer such a request from the cache.
fn help(word: &str) -> &'static str {
    match word {
        "absent" => {
            "a first request has to miss; where that is most of them, keep answers for longer, leave out of proxy_cache_key what they do not \
             depend on, or see whether they are stored at all"
        }
        "expired" => {
            "keep answers for longer (max-age, proxy_cache_valid), or give the old one while a new one is fetched: proxy_cache_use_stale \
             updating with proxy_cache_background_update on"
        }
        "always_validate" => "have the API send max-age in place of no-cache",
        "client" => "write proxy_cache_client_control off",
        "bypass" => "take out the variable of proxy_cache_bypass that is neither empty nor 0",
        "credentials" => {
            "where the answer is the same for everybody, have the API send Cache-Control: public or s-maxage=…; where each has one of its \
             own, put the field into proxy_cache_key"
        }
        "not_keyed" => "put into proxy_cache_key what the request has beside its URL, or shorten the key",
        "method" => "proxy_cache_methods names the methods that are answered from the cache",
        "scarce" => "write a smaller proxy_cache_min_uses, or give the zone more room",
        "lock_timeout" => "write a longer proxy_cache_lock_timeout, so that more wait for the first answer",
        _ => "",
    }
}

/// Locations that are told to those who follow at the most.
const MOST_LOCATIONS: usize = 50;

/// The locations whose misses took the upstream the most time.
pub(super) fn most_valuable(shared: &Shared) -> Vec<OfLocation> {
    let mut all = all(shared);
    all.sort_by(|a, b| b.cost().total_cmp(&a.cost()));
    all.truncate(MOST_LOCATIONS);
    all
}

/// All locations that had misses.
pub(super) fn all(shared: &Shared) -> Vec<OfLocation> {
    let counted = shared.registry.snapshot().locations;
    let locations = (0..).map(LocationId).zip(&shared.configuration.http.locations);
    locations
        .filter_map(|(id, location)| {
            let of = counted.get(shared.status_zones.location(id) as usize)?;
            let requests: BTreeMap<_, _> = causes(of, CauseFamily::Miss).map(missed).collect();
            let not_stored: BTreeMap<_, _> = causes(of, CauseFamily::NotStored).map(refused).collect();
            let at = shared.configuration.sources.locate(location.span);
            let location = ConfigurationPlace { name: written(&location.matches), at };
            (!requests.is_empty() || !not_stored.is_empty()).then_some(OfLocation {
                location,
                origin_time: of.origin.mean_time() as f64 / 1000.0,
                requests,
                not_stored,
            })
        })
        .collect()
}
