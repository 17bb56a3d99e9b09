//! Whether something has changed: several runs of the one and several of the other, compared by the exact rank test.
//!
//! One run is one value of each quantity: what differs from run to run is then in the comparison, which no run by itself knows. One quantity
//! is judged; the others are told with their p. How well that does stands in `docs/comparing.md`. Next: `rank` has the test, `kind` says
//! where runs are not of one kind, `text` prints.

mod kind;
mod text;

pub use text::text;

use crate::outcome::Outcome;
use crate::plan::Mode;
use crate::rank::{self, Ratio};
use crate::report::json::{self, JsonError, Kind};
use serde::Serialize;
use std::path::PathBuf;

/// What `millstream bench compare --json` writes.
pub const COMPARISON: Kind = Kind { name: "millstream.compare", version: 1 };

/// A quantity that runs are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Answers as expected per second.
    Rate,
    /// A percentile of latency, microseconds.
    Latency(f64),
}

/// All of them, in the order that they are told.
pub const QUANTITIES: [Quantity; 6] = [
    Quantity::Rate,
    Quantity::Latency(50.0),
    Quantity::Latency(75.0),
    Quantity::Latency(90.0),
    Quantity::Latency(99.0),
    Quantity::Latency(99.9),
];

impl Quantity {
    fn of(self, outcome: &Outcome) -> f64 {
        match self {
            Quantity::Rate => outcome.rate(),
            Quantity::Latency(percent) => outcome.latency.percentile(percent) as f64,
        }
    }

    /// Whether a run says how large it is, or only that it is at least so large.
    fn is_known(self, outcome: &Outcome) -> bool {
        match self {
            Quantity::Rate => true,
            Quantity::Latency(percent) => outcome.latency.is_known(percent),
        }
    }

    /// Whether more of it is better.
    fn is_good(self) -> bool {
        self == Quantity::Rate
    }
}

/// A run and the file it came from.
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
    pub judged: Quantity,
    /// Every quantity.
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

/// One quantity of both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Which.
    pub quantity: Quantity,
    /// Of each run of the first side.
    pub a: Vec<f64>,
    /// Of each run of the second.
    pub b: Vec<f64>,
    /// `b / a` with the interval that the true ratio is in; `None`: not to be told.
    pub ratio: Option<Ratio>,
    /// How often runs of one kind are at least as far apart, 0 to 1.
    pub p: f64,
}

/// Reads the files of `millstream bench --json`; the error names the file and says what is wrong with it.
pub fn read(files: &[PathBuf]) -> Result<Vec<RunFile>, JsonError> {
    let read =
        |file: &PathBuf| Ok(RunFile { name: file.display().to_string(), outcome: json::read_file(file)? });
    files.iter().map(read).collect()
}

/// Compares the runs of `b` with those of `a`, of which neither is empty, by `judged`; where that is `None` by the rate, and where an open loop
/// sets that itself by the 99th percentile of latency.
pub fn compare(a: &[RunFile], b: &[RunFile], judged: Option<Quantity>) -> Comparison {
    let is_open = |run: &RunFile| matches!(run.outcome.mode, Mode::Open { .. });
    let usual = if a.iter().chain(b).any(is_open) { Quantity::Latency(99.0) } else { Quantity::Rate };
    let judged = judged.unwrap_or(usual);
    let findings: Vec<Finding> = QUANTITIES.iter().map(|quantity| find(*quantity, a, b)).collect();
    let (verdict, why) = match judge(judged, a, b) {
        Ok(change) => (change, None),
        Err(why) => (Change::Unknown, Some(why)),
    };
    Comparison { warnings: kind::warnings(a, b), verdict, why, judged, findings }
}

fn of(quantity: Quantity, runs: &[RunFile]) -> Vec<f64> {
    runs.iter().map(|run| quantity.of(&run.outcome)).collect()
}

fn find(quantity: Quantity, a: &[RunFile], b: &[RunFile]) -> Finding {
    let (first, second) = (of(quantity, a), of(quantity, b));
    let (ratio, p) = (rank::ratio(&first, &second), rank::probability(&first, &second));
    Finding { quantity, a: first, b: second, ratio, p }
}

/// Whether a quantity has changed; the error says why that cannot be told.
fn judge(quantity: Quantity, a: &[RunFile], b: &[RunFile]) -> Result<Change, String> {
    let (first, second) = (of(quantity, a), of(quantity, b));
    if quantity == Quantity::Rate
        && a.iter().chain(b).any(|run| matches!(run.outcome.mode, Mode::Open { .. }))
    {
        return Err("an open loop sets the rate itself".to_owned());
    }
    if !rank::can_tell(a.len(), b.len()) {
        return Err(format!(
            "{} against {} cannot be told from chance, which sets runs of one kind as far apart in {:.0} of 100 \
             comparisons. Four runs of each are the fewest",
            runs(a.len()),
            runs(b.len()),
            100.0 * rank::smallest(a.len(), b.len())
        ));
    }
    let is_more = rank::median(second.clone()) > rank::median(first.clone());
    let shorter = if is_more { a } else { b };
    let is_known = |runs: &[RunFile]| runs.iter().all(|run| quantity.is_known(&run.outcome));
    let differs = rank::differ(&first, &second);
    // What is at least so long can be longer than what is known, and nothing else.
    let is_enough = if differs { is_known(shorter) } else { is_known(a) && is_known(b) };
    if !is_enough {
        return Err("too many requests had no answer at the end, so that it is not known how long they take"
            .to_owned());
    }
    Ok(match (differs, is_more == quantity.is_good()) {
        (false, _) => Change::Same,
        (true, true) => Change::Better,
        (true, false) => Change::Worse,
    })
}

/// `1 run`, `3 runs`.
fn runs(count: usize) -> String {
    if count == 1 { "1 run".to_owned() } else { format!("{count} runs") }
}

#[cfg(test)]
mod tests;
