//! Where the rows of each board come from: a place in the tables that the stream brings. Forms are those of the API.

use super::super::seen::Seen;
use super::cells::number;
use serde_json::{Map, Value};

/// A row, before it is cut into cells.
#[derive(Debug)]
pub struct Row<'a> {
    /// What it is about.
    pub name: &'a str,
    /// What that belongs to.
    pub beside: &'a str,
    /// What is told of it.
    pub told: &'a Value,
    /// How fast its count grows, in a second; of a miss or a URL, how long each takes the API, in milliseconds.
    pub rate: Option<f64>,
    /// Whether it is an answer that was not stored.
    pub is_refusal: bool,
}

impl<'a> Row<'a> {
    fn new(name: &'a str, told: &'a Value) -> Row<'a> {
        Row { name, beside: "", told, rate: None, is_refusal: false }
    }

    /// What a cache zone did, by status.
    pub fn told_answers(&self) -> Vec<(&'a str, f64)> {
        answers(self.told)
    }

    /// What the cache did for a location, by status.
    pub fn told_cache(&self) -> Vec<(&'a str, f64)> {
        let all = fields(&self.told["cache"]);
        all.map(|(status, count)| (status.as_str(), count.as_f64().unwrap_or(0.0))).collect()
    }
}

/// The requests that a cache answered alone.
pub fn hits(counts: &[(&str, f64)]) -> f64 {
    let own = counts.iter().filter(|(status, _)| ["hit", "stale", "updating"].contains(status));
    own.map(|(_, count)| count).sum()
}

/// All in which it had a part.
pub fn answered(counts: &[(&str, f64)]) -> f64 {
    counts.iter().map(|(_, count)| count).sum()
}

fn answers(zone: &Value) -> Vec<(&str, f64)> {
    let all = fields(zone);
    all.filter_map(|(status, told)| Some((status.as_str(), number(told, "/responses")?))).collect()
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The growth of a count in a second, where there is one to compare with.
fn rate(seen: &Seen, now: Option<f64>, then: Option<f64>) -> Option<f64> {
    Some((now? - then?).max(0.0) / seen.elapsed)
}

fn zones<'a>(seen: &'a Seen, kind: &str, count: fn(&Value) -> Option<f64>) -> Vec<Row<'a>> {
    let before = seen.before.as_ref().map(|before| &before[kind]);
    let row = |(name, told): (&'a String, &'a Value)| {
        let then = before.and_then(|before| count(before.get(name)?));
        Row { rate: rate(seen, count(told), then), ..Row::new(name, told) }
    };
    fields(&seen.tables[kind]).map(row).collect()
}

fn requests(told: &Value) -> Option<f64> {
    number(told, "/requests")
}

/// Zones of servers.
pub fn servers(seen: &Seen) -> Vec<Row<'_>> {
    zones(seen, "server_zones", requests)
}

/// Zones of locations.
pub fn locations(seen: &Seen) -> Vec<Row<'_>> {
    zones(seen, "location_zones", requests)
}

/// Zones of caches.
pub fn caches(seen: &Seen) -> Vec<Row<'_>> {
    zones(seen, "caches", |zone| Some(answered(&answers(zone))))
}

/// Servers of upstreams.
pub fn peers(seen: &Seen) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for (upstream, told) in fields(&seen.tables["upstreams"]) {
        let before = seen.before.as_ref().map(|before| &before["upstreams"][upstream]["peers"]);
        for peer in elements(&told["peers"]) {
            let then = before.and_then(|peers| elements(peers).find(|other| other["id"] == peer["id"]));
            let rate = rate(seen, requests(peer), then.and_then(requests));
            let name = peer["server"].as_str().unwrap_or("?");
            rows.push(Row { beside: upstream, rate, ..Row::new(name, peer) });
        }
    }
    rows
}

/// Causes of misses, and of answers that were not stored, by location.
pub fn misses(seen: &Seen) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for told in elements(&seen.tables["misses"]) {
        let name = told.pointer("/location/name").and_then(Value::as_str).unwrap_or("?");
        let beside = told.pointer("/location/at").and_then(Value::as_str).unwrap_or_default();
        for (kind, is_refusal) in [("requests", false), ("not_stored", true)] {
            let each = number(told, "/origin_time");
            let row = |(_, cause)| Row { beside, rate: each, is_refusal, ..Row::new(name, cause) };
            rows.extend(fields(&told[kind]).map(row));
        }
    }
    rows
}

/// The URLs that most misses were for.
pub fn urls(seen: &Seen) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for told in elements(&seen.tables["misses"]) {
        let beside = told.pointer("/location/name").and_then(Value::as_str).unwrap_or("?");
        rows.extend(elements(&told["urls"]).map(|url| {
            let each = number(url, "/time").zip(number(url, "/count").filter(|&count| count > 0.0));
            let rate = each.map(|(time, count)| time / count);
            Row { beside, rate, ..Row::new(url["url"].as_str().unwrap_or("?"), url) }
        }));
    }
    rows
}

/// Reloads, and errors of the log.
pub fn notes(seen: &Seen) -> Vec<Row<'_>> {
    seen.notes.iter().map(|note| Row::new(note["text"].as_str().unwrap_or_default(), note)).collect()
}
