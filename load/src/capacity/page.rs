//! The whole for people: the answer, a table of the cases, what limits each, and a bar for each server.
//!
//! What it looks like, in a terminal and on a page, is `report::steps`'s to say.

use super::{Alone, Below, Capacity, CapacityRow, Pool, Rounds};
use crate::report::quantity::{Number, Rate, Share, Time, plural, seconds};
use crate::report::steps::{Bar, Page, Row};
use crate::report::table::{FigureTable, row};
use crate::verdict::{Limit, delayed_ack};
use std::time::Duration;

/// Local ports that connections to one address can have by default on Linux.
const PORTS: f64 = 28_232.0;
/// Seconds that a closed connection stays in TIME_WAIT.
const TIME_WAIT: f64 = 60.0;

pub fn page(capacity: &Capacity) -> Page {
    let Capacity { rows, workers, cores, .. } = capacity;
    let simulated = capacity.is_simulated.then(|| {
        "Simulated: the servers are embedded and only sleep; these figures are not about your API.".to_owned()
    });
    let named = |row: &CapacityRow, words: &str| match rows.len() {
        1 => words.to_owned(),
        _ => format!("{}: {words}", row.name),
    };
    let reasons = |row: &CapacityRow| -> Vec<String> {
        paragraphs(row).into_iter().map(|words| named(row, &words)).collect()
    };
    let servers = plural(capacity.urls.len() as u64, "server");
    Page {
        title: "Does another server help?".to_owned(),
        subtitle: format!(
            "Requests per second of {servers} alone and behind the proxy (worker_processes {workers}; {cores} cores, \
             shared by all processes here)."
        ),
        warnings: capacity.cut_short.map(|cut| cut.words()).into_iter().chain(simulated).collect(),
        answer: rows.iter().map(|row| named(row, &row.sentence)).collect(),
        commands: Vec::new(),
        verdict: rows.iter().flat_map(reasons).collect(),
        rows: rows.iter().map(bars).collect(),
        tables: vec![cases(capacity), rounds(rows)],
        notes: ceilings(rows),
    }
}

fn cases(capacity: &Capacity) -> FigureTable {
    let published = |row: &CapacityRow| {
        let service = row.service_seconds.filter(|_| capacity.is_simulated)?;
        Published::of(Duration::from_secs_f64(service))
    };
    let is_published = capacity.rows.iter().any(|row| published(row).is_some());
    let alone =
        |alone: &Alone| format!("{}{}", Number(alone.run.rate), if alone.is_floor { "+" } else { "" });
    let cells = |case: &CapacityRow| {
        let (expected, measured) = (case.expected(), case.together.run.rate);
        let each = case.alone.iter().map(alone).collect::<Vec<_>>().join(" ");
        let rates = [case.sum(), case.passing, expected, measured].map(|rate| Number(rate).to_string());
        let share = if expected > 0.0 { Share(measured / expected).to_string() } else { String::new() };
        let article = published(case).map_or_else(String::new, |article| {
            format!("{} of {}", Number(article.together), Number(article.alone.iter().sum()))
        });
        let article = is_published.then_some(article);
        row(&case.name, [each].into_iter().chain(rates).chain([share]).chain(article))
    };
    let mut head = vec!["each alone", "sum", "proxy's ceiling", "expected", "measured", "of expected"];
    head.extend(is_published.then_some("the article"));
    FigureTable::of("Case", &head, &[], capacity.rows.iter().map(cells))
}

fn ceilings(rows: &[CapacityRow]) -> Vec<String> {
    let highest = Number(rows.iter().map(|row| row.ceiling).fold(0.0, f64::max));
    let turns = match rows.iter().any(CapacityRow::is_uneven) {
        true => {
            "the slowest server's rate times the number of servers, because each gets the same number of requests"
        }
        false => "the sum",
    };
    let meaning = format!(
        "The proxy's ceiling is its rate in front of a server that responds at once; with \"return 200\" it serves {highest} by itself. The expected \
        rate is {turns}, or the ceiling if that is lower."
    );
    let is_floor = rows.iter().flat_map(|row| &row.alone).any(|alone| alone.is_floor);
    let floor = is_floor.then(|| "+: the generator was the limit; the server can do more.".to_owned());
    [meaning].into_iter().chain(floor).collect()
}

fn paragraphs(row: &CapacityRow) -> Vec<String> {
    let pool = match row.closes() {
        true => vec![closes(row)],
        false => [pool(row)].into_iter().chain(row.below.map(|below| fewer(row, below))).collect(),
    };
    let late = row.alone.iter().find_map(|alone| delayed_ack(&alone.run, &alone.once));
    [row.verdict.text()].into_iter().chain(late).chain(different(row)).chain(pool).collect()
}

fn different(row: &CapacityRow) -> Option<String> {
    const OTHER: f64 = 1.25;
    let length = |alone: &Alone| alone.once.body_bytes;
    let by_length = |one: &&Alone, other: &&Alone| length(one).total_cmp(&length(other));
    let (shortest, longest) = (row.alone.iter().min_by(by_length)?, row.alone.iter().max_by(by_length)?);
    (length(longest) > OTHER * length(shortest)).then(|| {
        let [least, most] = [shortest, longest].map(|alone| Number(length(alone)));
        format!(
            "The servers send different responses: {} sends {least} bytes, {} sends {most}. Therefore their combined \
            rate shows nothing about a second server.",
            shortest.url, longest.url
        )
    })
}

const COST: &str =
    "Each connection costs a handshake and, after it is closed, a port for a minute (TIME_WAIT)";

fn opened(per_second: f64) -> String {
    match per_second > 0.0 {
        true => format!("opened {} connections per second to the servers", Number(per_second)),
        false => "opened no connections to the servers during the measurement".to_owned(),
    }
}

fn closes(row: &CapacityRow) -> String {
    let (opened, rate) = (opened(row.together.opened_per_second), Number(row.together.run.rate));
    format!(
        "The servers close their connections: the proxy {opened} for {rate} responses. {COST}. The proxy's keepalive cannot change that: only the \
        servers can keep connections open."
    )
}

fn pool(row: &CapacityRow) -> String {
    let Pool { in_use, keepalive } = row.pool;
    let rate = row.together.run.rate;
    let each = seconds(if rate > 0.0 { in_use / rate } else { 0.0 });
    let ([rate, in_use], kept) =
        ([rate, in_use].map(Number), u64::from(row.connections) * row.alone.len() as u64);
    // If connections were opened although so many could be kept, no smaller number is shown to be enough.
    let keepalive = if row.together.opened_per_second > 0.0 { keepalive.max(kept) } else { keepalive };
    // Where the limit is unknown, more requests may come on a quieter machine, and this figure is no advice.
    let advice = match row.verdict.limit {
        Limit::Unknown => String::new(),
        _ => format!(
            " Set keepalive to at least {keepalive}, so that all of them stay open when they are briefly idle."
        ),
    };
    format!(
        "{rate} requests per second that take {each} each keep {in_use} connections to the servers in use at \
         once.{advice} In this measurement, keepalive was {kept}, and the proxy {}.",
        opened(row.together.opened_per_second)
    )
}

fn fewer(row: &CapacityRow, below: Below) -> String {
    let (opened, [rate, usual]) =
        (opened(below.opened_per_second), [below.rate, row.together.run.rate].map(Number));
    let to_one = below.opened_per_second / row.alone.len().max(1) as f64;
    let ports = match to_one * TIME_WAIT > PORTS {
        true => format!(
            ": the {} ports to one address are exhausted after {}",
            Number(PORTS),
            seconds(PORTS / to_one)
        ),
        false => String::new(),
    };
    let cost = if below.opened_per_second > 0.0 { format!(" {COST}{ports}.") } else { String::new() };
    format!(
        "With keepalive {}, the proxy {opened} and passed on {rate} responses per second instead of {usual}.{cost}",
        below.keepalive
    )
}

fn measured(row: &CapacityRow) -> impl Iterator<Item = (&str, f64, &Rounds)> {
    let together = ("together", row.together.run.rate, &row.together.rounds);
    let alone = row.alone.iter().map(|alone| (alone.url.as_str(), alone.run.rate, &alone.rounds));
    std::iter::once(together).chain(alone)
}

fn bars(row: &CapacityRow) -> Row {
    let bar = |(party, rate, rounds): (&str, f64, &Rounds)| Bar {
        party: party.to_owned(),
        rates: Some([rate, rounds.low, rounds.high]),
        told: Rate(rate).to_string(),
    };
    Row { name: row.name.clone(), expected: Some(row.expected()), bars: measured(row).map(bar).collect() }
}

fn rounds(rows: &[CapacityRow]) -> FigureTable {
    let cells = |case: &CapacityRow, (party, rate, rounds): (&str, f64, &Rounds)| {
        let [rate, low, high] = [rate, rounds.low, rounds.high].map(Number);
        let [p50, p99] = [rounds.p50, rounds.p99].map(|time| Time(time as f64).to_string());
        row(&case.name, [party.to_owned(), rate.to_string(), format!("{low} – {high}"), p50, p99])
    };
    let rows = rows.iter().flat_map(|case| measured(case).map(move |of| cells(case, of)));
    let head = ["by", "requests/s", "lowest – highest", "median", "99%"];
    FigureTable::of("Rounds", &head, &[1], rows)
}

/// What the founding article measured with two servers behind nginx, requests per second. Its machine was another; what counts is the shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// How long its API slept.
    pub service: Duration,
    pub alone: [f64; 2],
    pub together: f64,
}

/// Its four rows: doubled twice, then the proxy is the limit. Of the last only the sum of both is told.
pub const ARTICLE: [Published; 4] = [
    Published { service: Duration::from_millis(200), alone: [158.0, 158.0], together: 317.0 },
    Published { service: Duration::from_millis(70), alone: [454.0, 454.0], together: 905.0 },
    Published { service: Duration::from_millis(2), alone: [9_367.0, 9_335.0], together: 12_295.0 },
    Published { service: Duration::ZERO, alone: [18_829.0 / 2.0, 18_829.0 / 2.0], together: 12_408.0 },
];

impl Published {
    pub fn of(service: Duration) -> Option<&'static Published> {
        ARTICLE.iter().find(|row| row.service == service)
    }
}
