//! Why requests were not answered from the cache, location by location and URL by URL. Each miss has one cause.
//!
//! Counts are those of the process and outlive reloads; the locations are those of the configuration in force. The list of URLs is
//! bounded (`missed_urls` of the metrics).

use crate::explain::{ConfigurationPlace, help_against_miss, help_of};
use millstream_cache::policy;
use millstream_conf::model::{LocationId, ProxyCache};
use millstream_server::generation::Shared;
use millstream_server::location_text::written;
use millstream_telemetry::metrics::{Cause, CauseFamily, LocationSnapshot, MissedUrl};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Debug, Serialize)]
pub(crate) struct OfLocation {
    location: ConfigurationPlace,
    /// Average time of the upstream for a request here, in milliseconds.
    origin_time: f64,
    /// Requests that missed the cache, by cause.
    requests: BTreeMap<&'static str, Reason>,
    /// Those whose response was not stored, by cause; not part of `requests`.
    not_stored: BTreeMap<&'static str, Reason>,
    urls: Vec<OfUrl>,
}

#[derive(Debug, Serialize)]
struct OfUrl {
    url: String,
    count: u64,
    /// Total time of the upstream, in milliseconds.
    time: f64,
    text: &'static str,
}

impl OfLocation {
    /// Estimated time of the upstream for its misses, in milliseconds.
    fn cost(&self) -> f64 {
        let all = self.requests.values().chain(self.not_stored.values());
        let count: u64 = all.map(|reason| reason.told.count).sum();
        count as f64 * self.origin_time
    }
}

#[derive(Debug, Serialize)]
struct Told {
    count: u64,
    /// Milliseconds since 1970.
    last: i64,
}

#[derive(Debug, Serialize)]
struct Reason {
    text: &'static str,
    help: &'static str,
    #[serde(flatten)]
    told: Told,
}

fn causes(of: &LocationSnapshot, family: CauseFamily) -> impl Iterator<Item = (&'static str, Told)> {
    Cause::ALL.iter().zip(&of.causes).filter_map(move |(cause, counted)| {
        let (its, word) = cause.of();
        let told = Told { count: counted.misses(family), last: counted.last };
        (its == family && told.count > 0).then_some((word, told))
    })
}

fn refused((word, told): (&'static str, Told)) -> (&'static str, Reason) {
    let reason = policy::Reason::ALL.iter().find(|reason| reason.name() == word);
    let (text, help) = reason.map_or(("", ""), |reason| (reason.text(), help_of(*reason)));
    (word, Reason { text, help, told })
}

fn missed((word, told): (&'static str, Told), cache: Option<&ProxyCache>) -> (&'static str, Reason) {
    (word, Reason { text: meaning(word), help: help_against_miss(word, cache), told })
}

fn meaning(word: &str) -> &'static str {
    Cause::described(CauseFamily::Miss).find(|(name, _)| *name == word).map_or("", |(_, text)| text.trim())
}

const MOST_LOCATIONS: usize = 50;
const MOST_URLS: usize = 50;

/// The URLs with most misses, those with the largest upstream time first.
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

pub(crate) fn most_valuable(shared: &Shared) -> Vec<OfLocation> {
    let mut all = all(shared);
    all.sort_by(|a, b| b.cost().total_cmp(&a.cost()));
    all.truncate(MOST_LOCATIONS);
    all
}

pub(crate) fn all(shared: &Shared) -> Vec<OfLocation> {
    let snapshot = shared.registry.snapshot();
    let (counted, urls) = (snapshot.locations, urls(snapshot.missed_urls));
    let locations = (0..).map(LocationId).zip(&shared.configuration.http.locations);
    locations
        .filter_map(|(id, location)| {
            let number = shared.zones.status.location(id);
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
