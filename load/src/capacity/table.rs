//! The table as text, and as a page.

use super::{Alone, Below, Capacity, CapacityRow, Published, Rounds};
use crate::report::aligned::aligned;
use crate::report::paragraph::wrapped;
use crate::report::quantity;
use crate::report::quantity::{Rate, Time};
use crate::report::steps::{Bar, Page, Row};
use crate::report::table::FigureTable;
use crate::sizing::Pool;
use crate::verdict::{count, duration, percent};
use std::time::Duration;

/// A column: its heading, and its cell of a row.
type CapacityColumn = (&'static str, fn(&CapacityRow) -> String);

/// The columns that every table has.
const COLUMNS: [CapacityColumn; 7] = [
    ("", |row| row.name.clone()),
    ("each alone", each_alone),
    ("sum", |row| quantity::rate(row.sum())),
    ("proxy's ceiling", |row| quantity::rate(row.passing)),
    ("expected", |row| quantity::rate(row.expected())),
    ("measured", |row| quantity::rate(row.together.run.rate)),
    ("of expected", of_expected),
];
/// The article's, where a row is one of its.
const PUBLISHED: CapacityColumn = ("the article", |row| published(row).map_or_else(String::new, article));
/// Local ports that connections to one address can have by default on Linux.
const PORTS: f64 = 28_232.0;
/// Seconds that a closed connection stays in TIME_WAIT.
const TIME_WAIT: f64 = 60.0;

/// The whole as text, every line ended.
pub fn table(capacity: &Capacity) -> String {
    let is_published = capacity.is_simulated && capacity.rows.iter().any(|row| published(row).is_some());
    let columns: Vec<CapacityColumn> = COLUMNS.into_iter().chain(is_published.then_some(PUBLISHED)).collect();
    let heading = columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
    let cells = |row| columns.iter().map(|(_, cell)| cell(row)).collect();
    let lines: Vec<Vec<String>> = std::iter::once(heading).chain(capacity.rows.iter().map(cells)).collect();
    let mut out = capacity.cut_short.map_or_else(String::new, |cut| format!("{}\n\n", cut.words()));
    // The answer first.
    for row in &capacity.rows {
        let name = if capacity.rows.len() > 1 { format!("{}: ", row.name) } else { String::new() };
        out.push_str(&wrapped(&format!("{name}{}", row.sentence), 0));
    }
    out.push('\n');
    out.push_str(&opening(capacity));
    out.push_str(&aligned(&lines, 1));
    out.push_str(&ceilings(capacity));
    for row in &capacity.rows {
        out.push_str(&format!("\n{}\n", row.name));
        for paragraph in paragraphs(row) {
            out.push_str(&wrapped(&paragraph, 2));
        }
    }
    out
}

fn opening(capacity: &Capacity) -> String {
    let what = match capacity.is_simulated {
        true => {
            "Simulated: the servers are embedded and only sleep; nothing here says anything about your API.\n"
        }
        false => "",
    };
    format!(
        "{what}Requests per second of {} alone and behind the proxy (worker_processes {}; {} cores, shared by all that runs \
         here).\n\n",
        quantity::plural(capacity.urls.len() as u64, "server"),
        capacity.workers,
        capacity.cores
    )
}

/// What the columns mean that nobody has measured before.
fn ceilings(capacity: &Capacity) -> String {
    let highest = capacity.rows.iter().map(|row| row.ceiling).fold(0.0, f64::max);
    let floor = if capacity.rows.iter().flat_map(|row| &row.alone).any(|alone| alone.is_floor) {
        " +: the generator was the limit; the server can do more."
    } else {
        ""
    };
    let turns = match capacity.rows.iter().any(CapacityRow::is_uneven) {
        true => {
            "the slowest server's rate times the number of servers, because each gets the same number of requests"
        }
        false => "the sum",
    };
    format!(
        "The proxy's ceiling is what it passes on from a server that answers at once; with \"return 200\" it answers \
         {} by itself.\nThe expected rate is {turns}, or the ceiling where that is lower.{floor}\n",
        quantity::rate(highest)
    )
}

fn published(row: &CapacityRow) -> Option<&'static Published> {
    row.service_seconds.and_then(|seconds| Published::of(Duration::from_secs_f64(seconds)))
}

fn article(row: &Published) -> String {
    let [one, other] = row.alone;
    format!("{} of {}", count(row.together), count(one + other))
}

fn each_alone(row: &CapacityRow) -> String {
    let floor = |alone: &Alone| if alone.is_floor { "+" } else { "" };
    let told = row.alone.iter().map(|alone| format!("{}{}", quantity::rate(alone.run.rate), floor(alone)));
    told.collect::<Vec<_>>().join(" ")
}

fn of_expected(row: &CapacityRow) -> String {
    let share = row.together.run.rate / row.expected();
    if share.is_finite() { percent(share) } else { String::new() }
}

/// What is to be said of a row besides its sentence: what limits, and the pool.
fn paragraphs(row: &CapacityRow) -> Vec<String> {
    let mut all = vec![row.verdict.text()];
    all.extend(different(row));
    if row.closes() {
        all.push(closes(row));
    } else {
        all.push(pool(row));
        all.extend(row.below.map(|below| fewer(row, below)));
    }
    all
}

/// Servers that give something else each are not the same API.
fn different(row: &CapacityRow) -> Option<String> {
    const OTHER: f64 = 1.25;
    let length = |alone: &Alone| alone.once.body_bytes;
    let by_length = |one: &&Alone, other: &&Alone| length(one).total_cmp(&length(other));
    let (shortest, longest) = (row.alone.iter().min_by(by_length)?, row.alone.iter().max_by(by_length)?);
    (length(longest) > OTHER * length(shortest)).then(|| {
        format!(
            "The servers give different answers: {} has {} bytes, {} has {}. Their rate together then says nothing \
             about a second server.",
            shortest.url,
            count(length(shortest)),
            longest.url,
            count(length(longest))
        )
    })
}

/// Where no keepalive of the proxy can help.
fn closes(row: &CapacityRow) -> String {
    format!(
        "The servers close their connections: the proxy opened {} per second for {} answers, and one run left {} in \
         TIME_WAIT. The proxy's keepalive cannot change that; let the servers keep connections (Gunicorn: --worker-class gthread \
         --keep-alive 75).",
        count(row.together.opened_per_second),
        count(row.together.run.rate),
        quantity::count(row.together.time_wait)
    )
}

fn pool(row: &CapacityRow) -> String {
    let Pool { in_use, idle_least, idle_most } = row.pool;
    let keep =
        if idle_least == idle_most { idle_least.to_string() } else { format!("{idle_least} to {idle_most}") };
    format!(
        "Connections to the servers: {} per second of {} each is {} in use at once; keep {keep} more idle (10 to 30 \
         %): keepalive {idle_most}. The proxy opened {} per second.",
        count(row.together.run.rate),
        duration(if row.together.run.rate > 0.0 { in_use / row.together.run.rate } else { 0.0 }),
        count(in_use),
        count(row.together.opened_per_second),
    )
}

/// What came of fewer kept connections.
fn fewer(row: &CapacityRow, below: Below) -> String {
    let mut text = format!(
        "With a lower keepalive of {} the proxy opened {} connections per second and left {} in TIME_WAIT after the \
         run (instead of {} and {}), at {} answers per second instead of {}.",
        below.keepalive,
        count(below.opened_per_second),
        quantity::count(below.time_wait),
        count(row.together.opened_per_second),
        quantity::count(row.together.time_wait),
        count(below.rate),
        count(row.together.run.rate),
    );
    let to_one = below.opened_per_second / row.alone.len().max(1) as f64;
    if to_one * TIME_WAIT > PORTS {
        text.push_str(&format!(
            " The {} ports to one address last {} at that pace.",
            count(PORTS),
            duration(PORTS / to_one)
        ));
    }
    text
}

/// The same for a browser: `report::steps::html` makes it.
pub fn page(capacity: &Capacity) -> Page {
    let mut warnings: Vec<String> = capacity.cut_short.map(|cut| cut.words()).into_iter().collect();
    if capacity.is_simulated {
        warnings.push("Simulated: the servers are embedded and only sleep.".to_owned());
    }
    Page {
        title: "Does another server help?".to_owned(),
        subtitle: format!("{} alone, and all behind the proxy", capacity.urls.join(", ")),
        warnings,
        rows: capacity.rows.iter().map(page_row).collect(),
        tables: vec![page_table(capacity)],
        verdict: capacity.rows.iter().map(|row| format!("{}: {}", row.name, row.sentence)).collect(),
        notes: capacity.rows.iter().map(|row| format!("{}: {}", row.name, row.verdict.text())).collect(),
    }
}

/// All together, then each alone: who, how many per second, and what the rounds say.
fn measured(row: &CapacityRow) -> Vec<(&str, f64, &Rounds)> {
    let together = ("together", row.together.run.rate, &row.together.rounds);
    let alone = row.alone.iter().map(|alone| (alone.url.as_str(), alone.run.rate, &alone.rounds));
    std::iter::once(together).chain(alone).collect()
}

fn page_row(row: &CapacityRow) -> Row {
    let bar = |(party, rate, rounds): (&str, f64, &Rounds)| Bar {
        party: party.to_owned(),
        rates: Some([rate, rounds.low, rounds.high]),
        told: Rate(rate).to_string(),
    };
    let bars = measured(row).into_iter().map(bar).collect();
    Row { name: row.name.clone(), expected: Some(row.expected()), bars }
}

fn page_table(capacity: &Capacity) -> FigureTable {
    let cells = |row: &CapacityRow, (party, rate, rounds): (&str, f64, &Rounds)| {
        let [rate, low, high, expected] = [rate, rounds.low, rounds.high, row.expected()].map(quantity::rate);
        let [p50, p99] = [rounds.p50, rounds.p99].map(|time| Time(time as f64).to_string());
        vec![row.name.clone(), party.to_owned(), rate, format!("{low} – {high}"), expected, p50, p99]
    };
    let rows = capacity.rows.iter().flat_map(|row| measured(row).into_iter().map(move |of| cells(row, of)));
    FigureTable {
        caption: "What each case brings".to_owned(),
        head: vec!["by", "requests/s", "lowest – highest", "expected/s", "median", "99%"],
        rows: rows.collect(),
        words: &[1],
    }
}
