//! The tables: what stands in each, out of what was seen, with the columns of the dashboard's page.
//!
//! A board is data: its name, its columns and where its rows come from. Pure. Next: `boards/rows`, the sources; `listing`, which sorts
//! and filters; `draw/table` and `plain`, which show.

mod cells;
mod rows;

pub use cells::Cell;
pub use cells::Mark;
use cells::{ago_clock, count, failing, number, size, text, time};
pub use rows::Row;
use rows::{answered, hits};

use super::figures::{bytes, percent, short};
use super::seen::Seen;

/// A column of a board.
#[derive(Debug)]
pub struct Column {
    /// What stands above it.
    pub name: &'static str,
    /// Text stands left, and is what a filter looks in; figures stand right.
    pub is_text: bool,
    /// Whether it may be cut to any width, being a sentence.
    pub is_wide: bool,
    /// What stands in it.
    pub of: fn(&Row<'_>) -> Cell,
}

/// A table.
#[derive(Debug)]
pub struct Board {
    /// Its name.
    pub name: &'static str,
    /// What is said where nothing is in it.
    pub nothing: &'static str,
    /// Its columns; the first is always shown.
    pub columns: &'static [Column],
    /// The column by which it is sorted at first.
    pub sorted: usize,
    /// Its rows.
    pub rows: for<'a> fn(&'a Seen) -> Vec<Row<'a>>,
}

const fn left(name: &'static str, of: fn(&Row<'_>) -> Cell) -> Column {
    Column { name, is_text: true, is_wide: false, of }
}

const fn wide(name: &'static str, of: fn(&Row<'_>) -> Cell) -> Column {
    Column { name, is_text: true, is_wide: true, of }
}

const fn right(name: &'static str, of: fn(&Row<'_>) -> Cell) -> Column {
    Column { name, is_text: false, is_wide: false, of }
}

/// All of them, in the order of their numbers.
pub const BOARDS: &[Board] = &[
    Board {
        name: "Misses",
        nothing: "every response that could come from the cache did, or there were no requests yet",
        columns: MISS,
        sorted: 1,
        rows: rows::misses,
    },
    Board {
        name: "Upstreams",
        nothing: "no upstream is configured",
        columns: PEER,
        sorted: 3,
        rows: rows::peers,
    },
    Board {
        name: "Caches",
        nothing: "no cache is configured: proxy_cache_path makes one",
        columns: CACHE,
        sorted: 1,
        rows: rows::caches,
    },
    Board {
        name: "Locations",
        nothing: "nothing was asked for yet",
        columns: LOCATION,
        sorted: 1,
        rows: rows::locations,
    },
    Board {
        name: "Servers",
        nothing: "nothing was asked for yet",
        columns: SERVER,
        sorted: 1,
        rows: rows::servers,
    },
    Board {
        name: "Events",
        nothing: "neither errors nor reloads since the start",
        columns: EVENT,
        sorted: 0,
        rows: rows::notes,
    },
    Board {
        name: "URLs",
        nothing: "no request missed the cache yet",
        columns: URL,
        sorted: 1,
        rows: rows::urls,
    },
];

const MISS: &[Column] = &[
    left("location", |row| text(row.name)),
    right("API time", |row| time(number(row.told, "/count").zip(row.rate).map(|(count, each)| count * each))),
    right("count", |row| count(row.told, "/count")),
    right("each", |row| time(row.rate)),
    wide("why", |row| {
        let why = row.told["text"].as_str().unwrap_or_default();
        text(&if row.is_refusal { format!("not stored: {why}") } else { why.to_owned() })
    }),
    wide("what helps", |row| text(row.told["help"].as_str().unwrap_or_default())),
    left("written in", |row| text(row.beside)),
];

const URL: &[Column] = &[
    left("URL", |row| text(row.name)),
    right("API time", |row| time(number(row.told, "/time"))),
    right("misses", |row| count(row.told, "/count")),
    right("each", |row| time(row.rate)),
    wide("why, the last time", |row| text(row.told["text"].as_str().unwrap_or_default())),
    left("location", |row| text(row.beside)),
];

const PEER: &[Column] = &[
    left("server", |row| text(row.name)),
    left("state", |row| {
        let state = row.told["state"].as_str().unwrap_or("?");
        let mark = match state {
            "up" => Mark::Good,
            "down" | "draining" | "checking" => Mark::Odd,
            _ => Mark::Bad,
        };
        let backup = if row.told["backup"] == true { ", backup" } else { "" };
        Cell { mark, ..text(&format!("● {state}{backup}")) }
    }),
    right("req/s", |row| Cell::of(row.rate, short)),
    right("requests", |row| count(row.told, "/requests")),
    right("active", |row| count(row.told, "/active")),
    right("5xx", |row| failing(row.told, "/responses/5xx")),
    right("failed", |row| failing(row.told, "/fails")),
    right("response", |row| time(number(row.told, "/response_time"))),
    right("head", |row| time(number(row.told, "/header_time"))),
    right("outages", |row| failing(row.told, "/unavail")),
    right("ejections", |row| failing(row.told, "/ejections")),
    right("checks failed", |row| {
        let checks = number(row.told, "/health_checks/checks").filter(|&checks| checks > 0.0);
        let fails = checks.and_then(|_| number(row.told, "/health_checks/fails"));
        Cell::of(fails, |fails| format!("{} of {}", short(fails), short(checks.unwrap_or(0.0))))
    }),
    right("down for", |row| time(number(row.told, "/downtime").filter(|&time| time > 0.0))),
    left("upstream", |row| text(row.beside)),
];

const CACHE: &[Column] = &[
    left("zone", |row| text(row.name)),
    right("responses/s", |row| Cell::of(row.rate, short)),
    right("from cache", |row| share(&row.told_answers())),
    right("hits", |row| Cell::of(Some(hits(&row.told_answers())), short)),
    right("misses", |row| count(row.told, "/miss/responses")),
    right("bypassed", |row| count(row.told, "/bypass/responses")),
    right("entries", |row| count(row.told, "/memory/entries")),
    right("memory", |row| size(number(row.told, "/memory/bytes"), number(row.told, "/memory/max_bytes"))),
    right("evicted", |row| count(row.told, "/memory/evictions")),
    right("disk", |row| {
        let used = number(row.told, "/disk/bytes");
        size(used, used.and_then(|_| number(row.told, "/max_size")))
    }),
    right("files", |row| count(row.told, "/disk/files")),
];

const NAME: Column = left("name", |row| text(row.name));
const RATE: Column = right("req/s", |row| Cell::of(row.rate, short));
const REQUESTS: Column = right("requests", |row| count(row.told, "/requests"));
const MEDIAN: Column = right("median", |row| time(number(row.told, "/latency/p50")));
const SLOWEST: Column = right("99 %", |row| time(number(row.told, "/latency/p99")));
const CLASS_2: Column = right("2xx", |row| count(row.told, "/responses/2xx"));
const CLASS_3: Column = right("3xx", |row| count(row.told, "/responses/3xx"));
const CLASS_4: Column = right("4xx", |row| count(row.told, "/responses/4xx"));
const CLASS_5: Column = right("5xx", |row| failing(row.told, "/responses/5xx"));
const UNANSWERED: Column = right("no response", |row| count(row.told, "/discarded"));
const SENT: Column = right("sent", |row| Cell::of(number(row.told, "/sent"), bytes));

const SERVER: &[Column] =
    &[NAME, RATE, REQUESTS, MEDIAN, SLOWEST, CLASS_5, CLASS_4, CLASS_3, CLASS_2, UNANSWERED, SENT];

const LOCATION: &[Column] = &[
    NAME,
    RATE,
    right("from cache", |row| share(&row.told_cache())),
    REQUESTS,
    right("to the API", |row| count(row.told, "/origin/requests")),
    MEDIAN,
    SLOWEST,
    CLASS_5,
    right("API time", |row| time(number(row.told, "/origin/time"))),
    right("saved", |row| time(number(row.told, "/origin/saved_time"))),
    CLASS_4,
    CLASS_3,
    CLASS_2,
    UNANSWERED,
    SENT,
];

const EVENT: &[Column] = &[
    Column {
        is_text: false,
        ..left("time", |row| {
            let at = number(row.told, "/at");
            Cell::of(at, ago_clock)
        })
    },
    wide("what happened", |row| {
        let mark = if row.told["well"] == true { Mark::None } else { Mark::Bad };
        Cell { mark, ..text(row.name) }
    }),
];

/// The share of a cache's answers that came out of it.
fn share(counts: &[(&str, f64)]) -> Cell {
    let (part, whole) = (hits(counts), answered(counts));
    Cell { rank: cells::Rank::Figure((whole > 0.0).then(|| part / whole)), ..text(&percent(part, whole)) }
}
