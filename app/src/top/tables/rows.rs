//! Where the rows of each table come from: a place in the JSON that the stream brings, in the shape of the API.

use super::super::state::State;
use super::cells::number;
use serde_json::{Map, Value};

/// A row, before it is cut into cells.
#[derive(Debug)]
pub struct Row<'a> {
    pub name: &'a str,
    /// What it belongs to.
    pub parent: &'a str,
    pub json: &'a Value,
    /// How fast its count grows, per second; of a miss or a URL, how long each takes the API, in milliseconds.
    pub rate: Option<f64>,
    /// Whether it is a response that was not stored.
    pub is_refusal: bool,
}

impl<'a> Row<'a> {
    fn new(name: &'a str, json: &'a Value) -> Row<'a> {
        Row { name, parent: "", json, rate: None, is_refusal: false }
    }
}

/// The requests that a cache answered alone, and all that it handled; `count` reads the count of one status.
pub fn hits(cache: &Value, count: fn(&Value) -> Option<f64>) -> (f64, f64) {
    let counts = fields(cache).filter_map(|(status, value)| Some((status.as_str(), count(value)?)));
    counts.fold((0.0, 0.0), |(hits, all), (status, count)| match status {
        "hit" | "stale" | "updating" => (hits + count, all + count),
        _ => (hits, all + count),
    })
}

/// The count of one status in a cache zone.
pub fn responses(json: &Value) -> Option<f64> {
    number(json, "/responses")
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn string<'a>(value: &'a Value, pointer: &str, otherwise: &'static str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or(otherwise)
}

/// The growth of a count per second, if there is one to compare with.
fn rate(state: &State, now: Option<f64>, before: Option<f64>) -> Option<f64> {
    Some((now? - before?).max(0.0) / state.elapsed)
}

fn zones<'a>(state: &'a State, kind: &str, count: fn(&Value) -> Option<f64>) -> Vec<Row<'a>> {
    let before = state.before.as_ref().map(|before| &before[kind]);
    let row = |(name, json): (&'a String, &'a Value)| {
        let before = before.and_then(|before| count(before.get(name)?));
        Row { rate: rate(state, count(json), before), ..Row::new(name, json) }
    };
    fields(&state.tables[kind]).map(row).collect()
}

fn requests(json: &Value) -> Option<f64> {
    number(json, "/requests")
}

pub fn servers(state: &State) -> Vec<Row<'_>> {
    zones(state, "server_zones", requests)
}

pub fn locations(state: &State) -> Vec<Row<'_>> {
    zones(state, "location_zones", requests)
}

pub fn caches(state: &State) -> Vec<Row<'_>> {
    zones(state, "caches", |zone| Some(hits(zone, responses).1))
}

pub fn peers(state: &State) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for (upstream, json) in fields(&state.tables["upstreams"]) {
        let before = state.before.as_ref().map(|before| &before["upstreams"][upstream]["peers"]);
        for peer in elements(&json["peers"]) {
            let before = before.and_then(|peers| elements(peers).find(|other| other["id"] == peer["id"]));
            let rate = rate(state, requests(peer), before.and_then(requests));
            rows.push(Row { parent: upstream, rate, ..Row::new(string(peer, "/server", "?"), peer) });
        }
    }
    rows
}

/// Causes of misses, and of responses that were not stored, by location.
pub fn misses(state: &State) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for location in elements(&state.tables["misses"]) {
        let name = string(location, "/location/name", "?");
        let (parent, rate) = (string(location, "/location/at", ""), number(location, "/origin_time"));
        for (kind, is_refusal) in [("requests", false), ("not_stored", true)] {
            let row = |(_, cause)| Row { parent, rate, is_refusal, ..Row::new(name, cause) };
            rows.extend(fields(&location[kind]).map(row));
        }
    }
    rows
}

/// The URLs with the most misses.
pub fn urls(state: &State) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for location in elements(&state.tables["misses"]) {
        rows.extend(elements(&location["urls"]).map(|url| {
            let each = number(url, "/time").zip(number(url, "/count").filter(|&count| count > 0.0));
            Row {
                parent: string(location, "/location/name", "?"),
                rate: each.map(|(time, count)| time / count),
                ..Row::new(string(url, "/url", "?"), url)
            }
        }));
    }
    rows
}

/// The routes of observed locations.
pub fn shadow(state: &State) -> Vec<Row<'_>> {
    let report = &state.tables["shadow"];
    let row = |route| {
        let location = number(route, "/location").unwrap_or_default();
        let parent = string(report, &format!("/locations/{location}"), "");
        Row { parent, ..Row::new(string(route, "/route", "?"), route) }
    };
    elements(&report["routes"]).map(row).collect()
}

/// This node in each clustered zone, and the others.
pub fn cluster(state: &State) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for zone in elements(&state.tables["cluster"]) {
        let row =
            |node| Row { parent: string(zone, "/zone", "?"), ..Row::new(string(node, "/node", "?"), node) };
        rows.push(row(zone));
        rows.extend(elements(&zone["nodes"]).map(row));
    }
    rows
}

/// Reloads, and errors of the log.
pub fn notes(state: &State) -> Vec<Row<'_>> {
    state.notes.iter().map(|note| Row::new(string(note, "/text", ""), note)).collect()
}
