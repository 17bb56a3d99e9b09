//! Whether something has changed: several runs of the one and several of the other, compared by the exact rank test.
//!
//! One run is one value of each quantity: what differs from run to run is then in the comparison, which no run by itself knows. One
//! metric is judged; the others are told with their p. How well that does stands in `docs/comparing.md`. Next: `rank` has the test, `kind` says
//! where runs are not of one kind, `text` prints.

mod kind;
mod text;

pub use text::text;

use crate::metric::Metric;
use crate::outcome::Outcome;
use crate::plan::Mode;
use crate::rank::{self, Compared};
use crate::report::json::{self, Kind};
use crate::report::quantity::plural;
use serde::Serialize;
use std::path::PathBuf;

/// What `millstream bench compare --json` writes.
pub const COMPARISON: Kind = "millstream.compare/2";

/// What runs are compared by, in the order that it is told.
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
    /// The file's name.
    pub name: String,
    /// What is in it.
    pub outcome: Outcome,
}

/// What the runs of two sides have to say of each other: `b` against `a`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// What makes the comparison doubtful, a sentence each.
    pub warnings: Vec<String>,
    /// Whether there is a difference in what is judged.
    pub verdict: Change,
    /// Why nothing can be said, where that is so.
    pub why: Option<String>,
    /// What is judged.
    pub judged: Metric,
    pub findings: Vec<Finding>,
}

/// What became of what is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// No difference beyond chance was found.
    Same,
    /// It is better by more than chance.
    Better,
    /// It is worse by more than chance.
    Worse,
    /// It cannot be told.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Which.
    pub quantity: Metric,
    /// What the numbers of both sides are: `us`, `per_second`.
    pub unit: &'static str,
    /// Of each run of the first side.
    pub a: Vec<f64>,
    /// Of each run of the second.
    pub b: Vec<f64>,
    /// `b` against `a`.
    #[serde(flatten)]
    pub compared: Compared,
}

/// Reads the files of `millstream bench --json`; the error names the file and says what is wrong with it.
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
    Comparison { warnings: kind::warnings(a, b), verdict, why, judged, findings }
}

fn find(metric: Metric, a: &[RunFile], b: &[RunFile]) -> Finding {
    let [a, b] = [a, b].map(|runs| runs.iter().map(|run| metric.of(&run.outcome)).collect::<Vec<_>>());
    Finding { quantity: metric, unit: metric.unit(), compared: rank::compare(&a, &b), a, b }
}

/// Whether it has changed; the error says why that cannot be told.
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
        return Err(format!("{} is a run of both sides, and a run does not differ from itself", run.name));
    }
    if let Some(run) = a.iter().chain(b).find(|run| !is_rate && run.outcome.latency.is_empty()) {
        return Err(format!("no request got a response in {}, so it has no latency", run.name));
    }
    if !rank::can_tell(a.len(), b.len()) {
        let [one, other] = [a, b].map(|runs| plural(runs.len() as u64, "run"));
        let of_100 = 100.0 * rank::smallest(a.len(), b.len());
        return Err(format!(
            "the difference between {one} and {other} may be chance: chance alone sets runs of one kind as far apart in {of_100:.0} of 100 \
            comparisons. At least four runs of each are needed"
        ));
    }
    let is_more = rank::median(finding.b.clone()) > rank::median(finding.a.clone());
    let is_known = |runs: &[RunFile]| runs.iter().all(|run| metric.is_known(&run.outcome));
    let differs = finding.compared.is_apart();
    // What is at least so long can be longer than what is known, and nothing else.
    let is_enough = match differs {
        true => is_known(if is_more { a } else { b }),
        false => is_known(a) && is_known(b),
    };
    let why = "too many requests had no response at the end, so their latency is unknown";
    match differs {
        _ if !is_enough => Err(why.to_owned()),
        false => Ok(Change::Same),
        // More of the rate is better, of a latency worse.
        true => Ok(if is_more == is_rate { Change::Better } else { Change::Worse }),
    }
}

#[cfg(test)]
mod tests;
