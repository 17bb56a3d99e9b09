//! Whether two runs differ by more than noise: the rate by its slices, each percentile by its order statistics.
//!
//! Pure functions of two outcomes. The formulas with their sources stand in `docs/comparing.md`; `student` is Student's
//! distribution, `series` turns slices that depend on each other into means that hardly do, `order` bounds percentiles,
//! `kind` says where two runs are not of one kind, `text` prints.

mod student;
mod series;
mod order;
mod kind;
mod text;

pub use order::EXPECTED_BEYOND;
pub use series::FEWEST;
pub use text::text;

use crate::histogram;
use crate::outcome::{Outcome, Slice};
use crate::plan::Mode;
use crate::report::json::{self, JsonError};
use serde::Serialize;
use std::path::Path;

/// How sure the interval of a rate is.
pub const RATE_LEVEL: f64 = 0.95;

/// The percentiles that are compared.
pub const COMPARED: [f64; 5] = [50.0, 75.0, 90.0, 99.0, 99.9];

/// How sure the interval of each percentile is: so that all of them together are wrong in one comparison of twenty at the
/// most (Bonferroni).
pub const PERCENTILE_LEVEL: f64 = 1.0 - (1.0 - RATE_LEVEL) / COMPARED.len() as f64;

/// What two runs have to say of each other: `b` against `a`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// What makes the comparison doubtful, a sentence each.
    pub warnings: Vec<String>,
    /// Requests per second.
    pub rate: Finding,
    /// How the rate was judged.
    pub rate_method: String,
    /// Latency by percentile, microseconds.
    pub percentiles: Vec<Finding>,
    /// How the percentiles were judged.
    pub percentile_method: String,
}

/// One quantity of both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// `Requests/s`, `Latency 99%`.
    pub name: String,
    /// Of the first run.
    pub a: f64,
    /// Of the second.
    pub b: f64,
    /// `b / a` with the interval that the true ratio is in; `None`: not to be told.
    pub ratio: Option<Ratio>,
    /// Whether they differ.
    pub verdict: Difference,
}

/// A ratio and the interval that the true one is in.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    /// The best guess.
    pub value: f64,
    /// No less than this.
    pub low: f64,
    /// No more than this.
    pub high: f64,
}

impl Ratio {
    fn excludes_one(self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}

/// Whether two figures differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// By more than noise.
    Differs,
    /// Not by more than noise.
    Noise,
    /// It cannot be told, and why.
    Unknown(String),
}

impl Difference {
    fn of(ratio: Ratio) -> Difference {
        if ratio.excludes_one() { Difference::Differs } else { Difference::Noise }
    }
}

/// Compares two files of `millstream bench --json`, in words; the error names the file and says what is wrong with it.
pub fn files(a: &Path, b: &Path) -> Result<String, JsonError> {
    let comparison = compare(&json::read_file(a)?, &json::read_file(b)?);
    Ok(text(&comparison, (&a.display().to_string(), &b.display().to_string())))
}

/// Compares `b` with `a`.
pub fn compare(a: &Outcome, b: &Outcome) -> Comparison {
    let (rate, rate_method) = rates(a, b);
    Comparison {
        warnings: kind::warnings(a, b),
        rate,
        rate_method,
        percentiles: percentiles(a, b),
        percentile_method: format!(
            "order statistics of each histogram, as many as would be independent by the spread of the slices and the clustering of \
             slow answers; {:.0} % intervals, so that all {} together are wrong in one comparison of {:.0}",
            PERCENTILE_LEVEL * 100.0,
            COMPARED.len(),
            1.0 / (1.0 - RATE_LEVEL)
        ),
    }
}

/// A percentile that is at least what it says can only be told from a known one that it lies above.
fn certain(verdict: Difference, are_known: [bool; 2], is_shorter_known: bool) -> Difference {
    match verdict {
        Difference::Differs if is_shorter_known => verdict,
        Difference::Differs | Difference::Noise if are_known != [true; 2] => Difference::Unknown(
            "too many requests had no answer at the end: it is longer, by how much is not known".to_owned(),
        ),
        _ => verdict,
    }
}

/// Slices that are whole: the last one may have been cut, and its rate would be another's.
fn whole(outcome: &Outcome) -> Vec<&Slice> {
    let longest = outcome.slices.iter().map(|slice| slice.seconds).fold(0.0, f64::max);
    outcome.slices.iter().filter(|slice| slice.seconds > longest / 2.0).collect()
}

fn rates(a: &Outcome, b: &Outcome) -> (Finding, String) {
    let unknown = |why: &str| Finding {
        name: "Requests/s".to_owned(),
        a: a.rate(),
        b: b.rate(),
        ratio: None,
        verdict: Difference::Unknown(why.to_owned()),
    };
    if matches!(a.mode, Mode::Open { .. }) || matches!(b.mode, Mode::Open { .. }) {
        return (unknown("an open loop sets the rate itself"), String::new());
    }
    let of = |outcome: &Outcome| {
        let rates: Vec<f64> =
            whole(outcome).iter().map(|slice| slice.answers as f64 / slice.seconds).collect();
        series::batches(&rates)
    };
    let (Some(first), Some(second)) = (of(a), of(b)) else {
        return (unknown(&format!("too short: fewer than {FEWEST} slices")), String::new());
    };
    let Some((ratio, test)) = series::ratio(&first, &second, RATE_LEVEL) else {
        return (unknown("nothing was answered"), String::new());
    };
    let method = format!(
        "Welch's t test of the logarithms of two means, {} and {} batches of {} and {} slices (correlation of neighbours {:.2} and \
         {:.2}, corrected for): t = {:.2}, {:.1} degrees of freedom, p {}; {:.0} % interval",
        first.means,
        second.means,
        first.size,
        second.size,
        first.correlation,
        second.correlation,
        test.t,
        test.freedom,
        if test.p < 0.001 { "< 0.001".to_owned() } else { format!("= {:.3}", test.p) },
        RATE_LEVEL * 100.0
    );
    let finding = Finding {
        name: "Requests/s".to_owned(),
        a: first.mean,
        b: second.mean,
        ratio: Some(ratio),
        verdict: Difference::of(ratio),
    };
    (finding, method)
}

fn percentiles(a: &Outcome, b: &Outcome) -> Vec<Finding> {
    let read = |outcome: &Outcome| {
        let histogram = histogram::decode(&outcome.latency.histogram)?;
        Ok::<_, String>(order::Distribution::new(histogram, &whole(outcome)))
    };
    let both = read(a).and_then(|first| Ok((first, read(b)?)));
    let find = |percent: f64| {
        let name = format!("Latency {percent}%");
        let (of_a, of_b) = (a.latency.percentile(percent) as f64, b.latency.percentile(percent) as f64);
        let result = match &both {
            Err(why) => Err(why.clone()),
            Ok((first, second)) => first.bounds(percent, PERCENTILE_LEVEL).and_then(|first| {
                let second = second.bounds(percent, PERCENTILE_LEVEL)?;
                Ok(order::ratio(first, second))
            }),
        };
        let is_apart = both.as_ref().is_ok_and(|(first, second)| first.is_apart(second));
        let verdict = match &result {
            Ok(ratio) => Difference::of(*ratio),
            Err(_) if is_apart => Difference::Differs,
            Err(why) => Difference::Unknown(why.clone()),
        };
        let shorter = if of_b > of_a { a } else { b };
        let verdict = certain(
            verdict,
            [a, b].map(|outcome| outcome.latency.is_known(percent)),
            shorter.latency.is_known(percent),
        );
        Finding { name, a: of_a, b: of_b, ratio: result.ok(), verdict }
    };
    COMPARED.into_iter().map(find).collect()
}

#[cfg(test)]
mod tests;
