//! Why requests were not answered from the cache, location by location and URL by URL. Each miss has one cause.
//!
//! Counts are those of the process and outlive reloads; the locations are those of the configuration in force. The list of URLs is
//! bounded (`missed_urls` of the metrics).

use super::explain::{ConfigurationPlace, help_against_miss, help_of};
use crate::generation::Shared;
use crate::location_text::written;
use millstream_cache::policy;
use millstream_conf::model::{LocationId, ProxyCache};
use millstream_telemetry::metrics::{Cause, CauseFamily, LocationSnapshot, MissedUrl};
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
    /// Those of them whose response was not stored, by cause; these are not in `requests`.
    not_stored: BTreeMap<&'static str, Reason>,
    /// The URLs that most of them were for.
    urls: Vec<OfUrl>,
}

/// A URL with its misses.
#[derive(Debug, Serialize)]
struct OfUrl {
    /// Host and path, without query and without secrets.
    url: String,
    /// How often it was missed.
    count: u64,
    /// How long the upstream took for these, in milliseconds.
    time: f64,
    /// Why it was missed last.
    text: &'static str,
}

impl OfLocation {
    /// How long the upstream took for its misses, in milliseconds, as far as that can be known.
    fn cost(&self) -> f64 {
        let all = self.requests.values().chain(self.not_stored.values());
        let count: u64 = all.map(|reason| reason.told.count).sum();
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
    /// What helps, or what happened.
    help: &'static str,
    #[serde(flatten)]
    told: Told,
}

/// The causes of a family that came up in a location.
fn causes(of: &LocationSnapshot, family: CauseFamily) -> impl Iterator<Item = (&'static str, Told)> {
    Cause::ALL.iter().zip(&of.causes).filter_map(move |(cause, counted)| {
        let (its, word) = cause.of();
        let told = Told { count: counted.misses(family), last: counted.last };
        (its == family && told.count > 0).then_some((word, told))
    })
}

/// What is said of an answer that was not stored.
fn refused((word, told): (&'static str, Told)) -> (&'static str, Reason) {
    let reason = policy::Reason::ALL.iter().find(|reason| reason.name() == word);
    let (text, help) = reason.map_or(("", ""), |reason| (reason.text(), help_of(*reason)));
    (word, Reason { text, help, told })
}

/// What is said of a request that was not answered from the cache of these settings.
fn missed((word, told): (&'static str, Told), cache: Option<&ProxyCache>) -> (&'static str, Reason) {
    (word, Reason { text: meaning(word), help: help_against_miss(word, cache), told })
}

fn meaning(word: &str) -> &'static str {
    Cause::described(CauseFamily::Miss).find(|(name, _)| *name == word).map_or("", |(_, text)| text.trim())
}

/// Locations in a frame at most.
const MOST_LOCATIONS: usize = 50;
/// URLs of all locations together at most.
const MOST_URLS: usize = 50;

/// The URLs that most misses were for, those that took the upstream longest first.
fn urls(mut counted: Vec<MissedUrl>) -> Vec<MissedUrl> {
    counted.sort_by_key(|one| std::cmp::Reverse((one.time, one.count)));
    counted.truncate(MOST_URLS);
    counted
}

fn of_url(one: &MissedUrl) -> OfUrl {
    let (family, word) = one.cause.of();
    let text = match family {
        CauseFamily::Miss => meaning(word),
        CauseFamily::NotStored => {
            policy::Reason::ALL.iter().find(|it| it.name() == word).map_or("", |it| it.text())
        }
    };
    OfUrl { url: one.url.clone(), count: one.count, time: one.time as f64 / 1000.0, text }
}

/// The locations whose misses took the upstream the most time.
pub(super) fn most_valuable(shared: &Shared) -> Vec<OfLocation> {
    let mut all = all(shared);
    all.sort_by(|a, b| b.cost().total_cmp(&a.cost()));
    all.truncate(MOST_LOCATIONS);
    all
}

/// All locations that had misses.
pub(super) fn all(shared: &Shared) -> Vec<OfLocation> {
    let snapshot = shared.registry.snapshot();
    let (counted, urls) = (snapshot.locations, urls(snapshot.missed_urls));
    let locations = (0..).map(LocationId).zip(&shared.configuration.http.locations);
    locations
        .filter_map(|(id, location)| {
            let number = shared.status_zones.location(id);
            let of = counted.get(number as usize)?;
            let cache = location.settings.cache();
            let requests: BTreeMap<_, _> =
                causes(of, CauseFamily::Miss).map(|cause| missed(cause, cache)).collect();
            let not_stored: BTreeMap<_, _> = causes(of, CauseFamily::NotStored).map(refused).collect();
            let at = shared.configuration.sources.locate(location.span);
            let location = ConfigurationPlace { name: written(&location.matches), at };
            (!requests.is_empty() || !not_stored.is_empty()).then_some(OfLocation {
                location,
                origin_time: of.origin.mean_time() as f64 / 1000.0,
                requests,
                not_stored,
                urls: urls.iter().filter(|one| one.location == number).map(of_url).collect(),
            })
        })
        .collect()
}
