//! Whether something has changed: several runs of the one and several of the other, compared by the exact rank test.
//!
//! One run is one value of each quantity: what differs from run to run is then in the comparison, which no run by itself knows. One
//! metric is judged; the others are told with their p. How well that does stands in `docs/comparing.md`. Next: `rank` has the test.

use crate::metric::Metric;
use crate::outcome::Outcome;
use crate::plan::Mode;
use crate::rank::{self, Compared, FALSE_CLAIMS};
use crate::report::json::{self, Kind};
use crate::report::quantity::{Quantity, Share, plural, seconds};
use crate::report::run::{doubts, setup};
use crate::report::table::{FigureTable, printable, row};
use serde::Serialize;
use std::path::PathBuf;

/// What `millstream bench compare --json` writes.
pub const COMPARISON: Kind = "millstream.compare/2";

pub const METRICS: [Metric; 6] = [
    Metric::Rate,
    Metric::Latency(50.0),
    Metric::Latency(75.0),
    Metric::Latency(90.0),
    Metric::Latency(99.0),
    Metric::Latency(99.9),
];

#[derive(Debug, Clone)]
pub struct RunFile {
    pub name: String,
    pub outcome: Outcome,
}

/// What the runs of two sides have to say of each other: `b` against `a`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub warnings: Vec<String>,
    pub verdict: Change,
    pub why: Option<String>,
    pub judged: Metric,
    pub findings: Vec<Finding>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// No difference beyond chance was found.
    Same,
    Better,
    Worse,
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    pub quantity: Metric,
    /// What the numbers of both sides are: `us`, `per_second`.
    pub unit: &'static str,
    pub a: Vec<f64>,
    pub b: Vec<f64>,
    #[serde(flatten)]
    pub compared: Compared,
}

pub fn read(files: &[PathBuf]) -> Result<Vec<RunFile>, String> {
    let read =
        |file: &PathBuf| Ok(RunFile { name: file.display().to_string(), outcome: json::read_file(file)? });
    files.iter().map(read).collect()
}

/// Compares the runs of `b` with those of `a`, of which neither is empty, by `judged`; where that is `None` by the rate, and where an open loop
/// sets that itself by the 99th percentile of latency.
pub fn compare(a: &[RunFile], b: &[RunFile], judged: Option<Metric>) -> Comparison {
    let is_open = a.iter().chain(b).any(|run| run.outcome.mode != Mode::Closed);
    let judged = judged.unwrap_or(if is_open { Metric::Latency(99.0) } else { Metric::Rate });
    let (verdict, why) = match judge(&find(judged, a, b), a, b, is_open) {
        Ok(change) => (change, None),
        Err(why) => (Change::Unknown, Some(why)),
    };
    let findings = METRICS.map(|metric| find(metric, a, b)).into();
    Comparison { warnings: warnings(a, b), verdict, why, judged, findings }
}

fn find(metric: Metric, a: &[RunFile], b: &[RunFile]) -> Finding {
    let [a, b] = [a, b].map(|runs| runs.iter().map(|run| metric.of(&run.outcome)).collect::<Vec<_>>());
    Finding { quantity: metric, unit: metric.unit(), compared: rank::compare(&a, &b), a, b }
}

fn judge(finding: &Finding, a: &[RunFile], b: &[RunFile], is_open: bool) -> Result<Change, String> {
    let (metric, is_rate) = (finding.quantity, finding.quantity == Metric::Rate);
    if is_open && a.iter().chain(b).any(|run| run.outcome.mode == Mode::Closed) {
        let why = "a closed loop counts latency from sending, and an open one from when a request was due; compare runs of one kind";
        return Err(why.to_owned());
    }
    if is_rate && is_open {
        return Err("an open loop sets the rate itself".to_owned());
    }
    if let Some(run) = b.iter().find(|run| a.iter().any(|other| other.outcome == run.outcome)) {
        return Err(format!("{} belongs to both sides, and a run cannot be compared with itself", run.name));
    }
    if let Some(run) = a.iter().chain(b).find(|run| !is_rate && run.outcome.latency.is_empty()) {
        return Err(format!("no request got a response in {}, so it has no latency", run.name));
    }
    if !rank::can_tell(a.len(), b.len()) {
        let [one, other] = [a, b].map(|runs| plural(runs.len() as u64, "run"));
        let of_100 = 100.0 * rank::smallest(a.len(), b.len());
        return Err(format!(
            "the difference between {one} and {other} may be chance: runs of the same kind differ as much in \
            {of_100:.0} of 100 comparisons. At least four runs of each side are needed"
        ));
    }
    let is_more = rank::median(finding.b.clone()) > rank::median(finding.a.clone());
    let is_known = |runs: &[RunFile]| runs.iter().all(|run| metric.is_known(&run.outcome));
    let differs = finding.compared.is_apart();
    // What is at least so long can be longer than what is known, and nothing else.
    let is_enough = if differs { is_known(if is_more { a } else { b }) } else { is_known(a) && is_known(b) };
    let why = "too many requests had no response at the end, so their latency is unknown";
    match differs {
        _ if !is_enough => Err(why.to_owned()),
        false => Ok(Change::Same),
        // More of the rate is better, of a latency worse.
        true => Ok(if is_more == is_rate { Change::Better } else { Change::Worse }),
    }
}

/// Runs below this many seconds hardly see a moment that is not like the others.
const SHORT: f64 = 5.0;

fn warnings(a: &[RunFile], b: &[RunFile]) -> Vec<String> {
    let runs: Vec<&RunFile> = a.iter().chain(b).collect();
    let mut found: Vec<(String, Vec<(&str, String)>)> = Vec::new();
    for (place, run) in runs.iter().enumerate() {
        let again = runs[..place].iter().find(|other| other.outcome == run.outcome);
        let again = again.map(|other| {
            format!("it is the same run as {}, and a run cannot be compared with itself", other.name)
        });
        let again = again.map(|why| ("SAME RUN".to_owned(), why));
        for (what, why) in again.into_iter().chain(apart(runs[0], run)).chain(weak(run)) {
            match found.iter_mut().find(|(other, _)| *other == what) {
                Some((_, of)) => of.push((&run.name, why)),
                None => found.push((what, vec![(&run.name, why)])),
            }
        }
    }
    let told = |(what, of): (String, Vec<(&str, String)>)| {
        let ((name, why), number) = (&of[0], of.len());
        let is_one = of.iter().all(|(_, other)| other == why);
        let (such, first) = if is_one { ("", "") } else { (", such as ", *name) };
        match number {
            1 => format!("{what} in {name}: {why}"),
            _ => format!("{what} in {number} of {} runs{such}{first}: {why}", runs.len()),
        }
    };
    found.into_iter().map(told).chain(in_turn(a, b)).collect()
}

fn apart<'a>(first: &'a RunFile, run: &'a RunFile) -> impl Iterator<Item = (String, String)> + use<'a> {
    let both = setup(&first.outcome).into_iter().zip(setup(&run.outcome));
    both.filter(|((_, one), (_, other))| one != other).map(|((what, one), (_, other))| {
        (format!("{what} differs"), format!("{other}, and {one} in {}", first.name))
    })
}

fn weak(RunFile { outcome, .. }: &RunFile) -> impl Iterator<Item = (String, String)> {
    let short = (outcome.seconds < SHORT)
        .then(|| ("SHORT", format!("{}; slow moments may be missing", seconds(outcome.seconds))));
    doubts(outcome).into_iter().chain(short).map(|(what, why)| (what.to_owned(), why))
}

fn in_turn(a: &[RunFile], b: &[RunFile]) -> Option<String> {
    let began = |run: &RunFile| run.outcome.began_unix_milliseconds;
    let all_before =
        |one: &[RunFile], other: &[RunFile]| one.iter().map(began).max() < other.iter().map(began).min();
    ((all_before(a, b) || all_before(b, a)) && a.len() + b.len() > 2).then(|| {
        "all runs of one side came before all runs of the other: a change on the machine in between looks like a \
         difference. Run the sides alternately"
            .to_owned()
    })
}

pub fn text(comparison: &Comparison, columns: usize) -> String {
    let mut text = sentence(comparison) + "\n";
    text.extend(comparison.warnings.iter().map(|warning| format!("WARNING: {}\n", printable(warning))));
    let runs = comparison.findings.first().map_or([0; 2], |finding| [finding.a.len(), finding.b.len()]);
    let [a, b] = runs.map(|runs| plural(runs as u64, "run"));
    let (caption, head) = (format!("Medians of {a} and {b}"), ["a", "b", "b / a", "interval", "p"]);
    let table = FigureTable::of(caption, &head, &[], comparison.findings.iter().map(cells));
    text + &format!(
        "\n{}\np: how often runs of the same kind differ as much by chance (exact Mann-Whitney rank test). Only {} is \
         judged, at {FALSE_CLAIMS}; of the other lines, one in twenty has such a small p by chance.\n",
        table.text(0, columns),
        name(comparison.judged)
    )
}

fn cells(finding: &Finding) -> Vec<String> {
    let (ratio, interval) = match finding.compared.ratio {
        Some(ratio) => (format!("{:.3}", ratio.value), format!("{:.3} – {:.3}", ratio.low, ratio.high)),
        None => ("-".to_owned(), "-".to_owned()),
    };
    // A latency of 0 is that of a run without an answer.
    let is_any = |runs: &[f64]| finding.quantity == Metric::Rate || runs.iter().all(|value| *value > 0.0);
    let [a, b] = [&finding.a, &finding.b].map(|runs| match is_any(runs) {
        true => finding.quantity.told(rank::median(runs.clone())),
        false => Quantity::Unknown,
    });
    row(
        name(finding.quantity),
        [a.to_string(), b.to_string(), ratio, interval, format!("{:.3}", finding.compared.p)],
    )
}

fn name(metric: Metric) -> String {
    match metric {
        Metric::Latency(percent) => format!("Latency {percent}%"),
        _ => "Requests/s".to_owned(),
    }
}

fn sentence(comparison: &Comparison) -> String {
    let finding = comparison.findings.iter().find(|finding| finding.quantity == comparison.judged);
    let (by, between) = match finding.and_then(|finding| finding.compared.ratio) {
        Some(ratio) => (
            format!("{} ", Share((ratio.value - 1.0).abs())),
            format!(" ({:+.1} % to {:+.1} %)", (ratio.low - 1.0) * 100.0, (ratio.high - 1.0) * 100.0),
        ),
        None => (String::new(), String::new()),
    };
    let latency = name(comparison.judged).replace("Latency ", "latency at ");
    let is_rate = comparison.judged == Metric::Rate;
    let (better, worse) = if is_rate { ("more", "fewer") } else { ("shorter", "longer") };
    let is_better = comparison.verdict == Change::Better;
    let (is, than) = if is_better { ("faster", better) } else { ("slower", worse) };
    match comparison.verdict {
        Change::Unknown => {
            format!("Whether they differ is unknown: {}.", comparison.why.as_deref().unwrap_or_default())
        }
        Change::Same => {
            let what = if is_rate { "requests per second".to_owned() } else { latency };
            format!(
                "No difference beyond chance was found in {what}; b / a may be anywhere in its interval{between}."
            )
        }
        _ if is_rate => format!("b is {is}: it serves {by}{than} requests per second than a{between}."),
        _ => format!("b is {is}: its {latency} is {by}{than} than a's{between}."),
    }
}

#[cfg(test)]
mod tests;
