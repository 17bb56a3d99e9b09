//! The tables: what each shows of the state, with the columns of the dashboard's page.
//!
//! A table is data: its name, its columns and where its rows come from. Pure. Next: `tables/rows`, the sources; `view`, which sorts
//! and filters; `draw/table` and `snapshot`, which show them.

mod cells;
mod rows;

pub use cells::{Cell, Mark};
use cells::{Rank, clock_time, count, failing, number, size, text, time};
pub use rows::Row;
use rows::{hits, responses};

use super::figures::{bytes, percent, short};
use super::grid::{columns, graphemes};
use super::state::State;
use serde_json::Value;

#[derive(Debug)]
pub struct Column {
    pub name: &'static str,
    /// Text is aligned to the left, and is what a filter looks in; figures are aligned to the right.
    pub is_text: bool,
    /// Whether it may be cut to any width, being a sentence.
    pub is_wide: bool,
    pub cell: fn(&Row<'_>) -> Cell,
}

impl Column {
    /// A text in so many columns of the screen: cut, or filled up with blanks.
    pub fn aligned(&self, text: &str, width: usize) -> String {
        let length = columns(text);
        if length > width {
            let mut used = 0;
            let kept = graphemes(text).take_while(|(_, columns)| {
                used += columns;
                used < width
            });
            return kept.map(|(symbol, _)| symbol).chain(["…"]).collect();
        }
        let blanks = " ".repeat(width - length);
        if self.is_text { format!("{text}{blanks}") } else { format!("{blanks}{text}") }
    }
}

#[derive(Debug)]
pub struct Table {
    pub name: &'static str,
    /// What is shown if it has no rows.
    pub nothing: &'static str,
    /// Of a feature that has to be switched on: without rows it is not named among the others.
    pub is_special: bool,
    /// The first is always shown.
    pub columns: &'static [Column],
    /// The column by which it is sorted at first.
    pub sorted: usize,
    pub rows: for<'a> fn(&'a State) -> Vec<Row<'a>>,
}

const fn left(name: &'static str, cell: fn(&Row<'_>) -> Cell) -> Column {
    Column { name, is_text: true, is_wide: false, cell }
}

const fn wide(name: &'static str, cell: fn(&Row<'_>) -> Cell) -> Column {
    Column { name, is_text: true, is_wide: true, cell }
}

const fn right(name: &'static str, cell: fn(&Row<'_>) -> Cell) -> Column {
    Column { name, is_text: false, is_wide: false, cell }
}

/// All of them, in the order of their numbers.
#[rustfmt::skip]
pub const TABLES: &[Table] = &[
    Table {
        name: "Misses", columns: MISS, sorted: 1, rows: rows::misses, is_special: false,
        nothing: "no request missed the cache yet",
    },
    Table { name: "Upstreams", columns: PEER, sorted: 3, rows: rows::peers, is_special: false, nothing: "no upstream is configured" },
    Table {
        name: "Caches", columns: CACHE, sorted: 1, rows: rows::caches, is_special: false,
        nothing: "no cache is configured: define one with proxy_cache_path",
    },
    Table { name: "Locations", columns: LOCATION, sorted: 1, rows: rows::locations, is_special: false, nothing: "no requests yet" },
    Table { name: "Servers", columns: SERVER, sorted: 1, rows: rows::servers, is_special: false, nothing: "no requests yet" },
    Table {
        name: "Events", columns: EVENT, sorted: 0, rows: rows::notes, is_special: false,
        nothing: "no errors or reloads since the start",
    },
    Table { name: "URLs", columns: URL, sorted: 1, rows: rows::urls, is_special: false, nothing: "no request missed the cache yet" },
    Table {
        name: "Shadow", columns: SHADOW, sorted: 2, rows: rows::shadow, is_special: true,
        nothing: "no location is observed: write \"shadow on;\" in a location that passes requests on and has no cache",
    },
    Table {
        name: "Cluster", columns: CLUSTER, sorted: 0, rows: rows::cluster, is_special: true,
        nothing: "no cache zone is part of a cluster: see the directive cluster",
    },
];

const MISS: &[Column] = &[
    left("location", |row| text(row.name)),
    right("API time", |row| time(number(row.json, "/count").zip(row.rate).map(|(count, each)| count * each))),
    right("count", |row| count(row.json, "/count")),
    right("each", |row| time(row.rate)),
    wide("cause", |row| {
        let why = row.json["text"].as_str().unwrap_or_default();
        text(&if row.is_refusal { format!("not stored: {why}") } else { why.to_owned() })
    }),
    wide("advice", |row| text(row.json["help"].as_str().unwrap_or_default())),
    left("defined in", |row| text(row.parent)),
];

const URL: &[Column] = &[
    left("URL", |row| text(row.name)),
    right("API time", |row| time(number(row.json, "/time"))),
    right("misses", |row| count(row.json, "/count")),
    right("each", |row| time(row.rate)),
    wide("last cause", |row| text(row.json["text"].as_str().unwrap_or_default())),
    left("location", |row| text(row.parent)),
];

const SHADOW: &[Column] = &[
    left("route", |row| text(row.name)),
    right("requests", |row| count(row.json, "/requests")),
    right("API time", |row| time(seconds(row.json, "/api_seconds"))),
    right("keep for", |row| match number(row.json, "/keep_seconds") {
        Some(seconds) => {
            Cell { mark: Mark::Good, ..Cell::of(Some(seconds), |seconds| format!("{seconds:.0} s")) }
        }
        None if row.json["needs"].is_null() => text("never"),
        None => text("not yet"),
    }),
    right("hit ratio", |row| {
        let both = number(row.json, "/hit_ratio/0").zip(number(row.json, "/hit_ratio/1"));
        let both = both.filter(|_| !row.json["keep_seconds"].is_null());
        Cell::of(both.map(|(least, most)| f64::midpoint(least, most)), |share| percent(share, 1.0))
    }),
    right("saved", |row| {
        time(seconds(row.json, "/saved_seconds").filter(|_| !row.json["keep_seconds"].is_null()))
    }),
    left("varies by", |row| text(&joined(&row.json["varies_by"]))),
    wide("verdict", |row| text(row.json["reason"].as_str().unwrap_or_default())),
    left("location", |row| text(row.parent)),
];

const CLUSTER: &[Column] = &[
    left("node", |row| text(row.name)),
    left("zone", |row| text(row.parent)),
    left("state", |row| {
        let state = row.json["state"].as_str().unwrap_or("?");
        let mark = match state {
            "confirmed" | "connected" => Mark::Good,
            "joining" | "replaying" => Mark::Odd,
            _ => Mark::Bad,
        };
        let own = if row.json["nodes"].is_array() { ", this node" } else { "" };
        Cell { mark, ..text(&format!("● {}{own}", state.replace('_', " "))) }
    }),
    right("lag", |row| count(row.json, "/lag")),
    right("sequence", |row| count(row.json, "/sequence")),
    right("cut off for", |row| time(seconds(row.json, "/cut_off_seconds"))),
    right("last seen", |row| time(seconds(row.json, "/silent_seconds"))),
    right("not published", |row| count(row.json, "/unpublished")),
    wide("engine", |row| text(row.json["failure"].as_str().unwrap_or_default())),
];

/// In milliseconds.
fn seconds(json: &Value, pointer: &str) -> Option<f64> {
    number(json, pointer).map(|seconds| seconds * 1_000.0)
}

fn joined(list: &Value) -> String {
    let words = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    words.collect::<Vec<_>>().join(", ")
}

const PEER: &[Column] = &[
    left("server", |row| text(row.name)),
    left("state", |row| {
        let state = row.json["state"].as_str().unwrap_or("?");
        let mark = match state {
            "up" => Mark::Good,
            "down" | "draining" | "checking" => Mark::Odd,
            _ => Mark::Bad,
        };
        let backup = if row.json["backup"] == true { ", backup" } else { "" };
        Cell { mark, ..text(&format!("● {state}{backup}")) }
    }),
    right("req/s", |row| Cell::of(row.rate, short)),
    right("requests", |row| count(row.json, "/requests")),
    right("active", |row| count(row.json, "/active")),
    right("5xx", |row| failing(row.json, "/responses/5xx")),
    right("failed", |row| failing(row.json, "/fails")),
    right("response", |row| time(number(row.json, "/response_time"))),
    right("head", |row| time(number(row.json, "/header_time"))),
    right("outages", |row| failing(row.json, "/unavail")),
    right("ejections", |row| failing(row.json, "/ejections")),
    right("checks failed", |row| {
        let checks = number(row.json, "/health_checks/checks").filter(|&checks| checks > 0.0);
        let fails = checks.and_then(|_| number(row.json, "/health_checks/fails"));
        Cell::of(fails, |fails| format!("{} of {}", short(fails), short(checks.unwrap_or(0.0))))
    }),
    right("down for", |row| time(number(row.json, "/downtime").filter(|&time| time > 0.0))),
    left("upstream", |row| text(row.parent)),
];

const CACHE: &[Column] = &[
    left("zone", |row| text(row.name)),
    right("responses/s", |row| Cell::of(row.rate, short)),
    right("from cache", |row| share(row.json, responses)),
    right("hits", |row| Cell::of(Some(hits(row.json, responses).0), short)),
    right("misses", |row| count(row.json, "/miss/responses")),
    right("bypassed", |row| count(row.json, "/bypass/responses")),
    right("entries", |row| count(row.json, "/memory/entries")),
    right("memory", |row| size(number(row.json, "/memory/bytes"), number(row.json, "/memory/max_bytes"))),
    right("evicted", |row| count(row.json, "/memory/evictions")),
    right("disk", |row| {
        let used = number(row.json, "/disk/bytes");
        size(used, used.and_then(|_| number(row.json, "/max_size")))
    }),
    right("files", |row| count(row.json, "/disk/files")),
];

const NAME: Column = left("name", |row| text(row.name));
const RATE: Column = right("req/s", |row| Cell::of(row.rate, short));
const REQUESTS: Column = right("requests", |row| count(row.json, "/requests"));
const MEDIAN: Column = right("median", |row| time(number(row.json, "/latency/p50")));
const SLOWEST: Column = right("99 %", |row| time(number(row.json, "/latency/p99")));
const CLASS_2: Column = right("2xx", |row| count(row.json, "/responses/2xx"));
const CLASS_3: Column = right("3xx", |row| count(row.json, "/responses/3xx"));
const CLASS_4: Column = right("4xx", |row| count(row.json, "/responses/4xx"));
const CLASS_5: Column = right("5xx", |row| failing(row.json, "/responses/5xx"));
const UNANSWERED: Column = right("no response", |row| count(row.json, "/discarded"));
const SENT: Column = right("sent", |row| Cell::of(number(row.json, "/sent"), bytes));

const SERVER: &[Column] =
    &[NAME, RATE, REQUESTS, MEDIAN, SLOWEST, CLASS_5, CLASS_4, CLASS_3, CLASS_2, UNANSWERED, SENT];

const LOCATION: &[Column] = &[
    NAME,
    RATE,
    right("from cache", |row| share(&row.json["cache"], Value::as_f64)),
    REQUESTS,
    right("to the API", |row| count(row.json, "/origin/requests")),
    MEDIAN,
    SLOWEST,
    CLASS_5,
    right("API time", |row| time(number(row.json, "/origin/time"))),
    right("saved", |row| time(number(row.json, "/origin/saved_time"))),
    CLASS_4,
    CLASS_3,
    CLASS_2,
    UNANSWERED,
    SENT,
];

const EVENT: &[Column] = &[
    right("time", |row| Cell::of(number(row.json, "/at"), clock_time)),
    wide("event", |row| {
        let mark = if row.json["well"] == true { Mark::None } else { Mark::Bad };
        Cell { mark, ..text(row.name) }
    }),
];

/// The share of requests that a cache answered alone.
fn share(cache: &Value, count: fn(&Value) -> Option<f64>) -> Cell {
    let (hits, all) = hits(cache, count);
    Cell { rank: Rank::Figure((all > 0.0).then(|| hits / all)), ..text(&percent(hits, all)) }
}
