//! Bounds that a run must keep, such as `p99>50ms`: what is written says when the run has failed.
//!
//! Judged by what was measured: a percentile that is only known to be at least so much (requests without an answer) has passed
//! a bound above it for certain and one below it never. Next: `outcome::Judged`, which reports carry.

use crate::histogram;
use crate::outcome::{Judged, Kept, Latency, Outcome};
use crate::report::quantity;
use std::fmt;
use std::str::FromStr;

/// A bound: the run has failed where this holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    expression: String,
    metric: Metric,
    relation: Relation,
    /// In the metric's unit.
    limit: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Metric {
    /// Microseconds at this percentile of latency; 100: the longest.
    Percentile(f64),
    /// Microseconds.
    Mean,
    /// A share, 0 to 1, or a count.
    Errors(ErrorUnit),
    /// Answers per second.
    Rate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ErrorUnit {
    Share,
    Count,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Above,
    AtLeast,
    Below,
    AtMost,
}

/// How they are written; the longer ones first, as the shorter begin them.
const RELATIONS: [(&str, Relation); 4] =
    [(">=", Relation::AtLeast), ("<=", Relation::AtMost), (">", Relation::Above), ("<", Relation::Below)];

/// Units of a time, in microseconds.
const TIMES: [(&str, f64); 5] = [("us", 1.0), ("µs", 1.0), ("ms", 1e3), ("s", 1e6), ("m", 60e6)];

/// What is wrong with a bound, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThresholdError {
    /// The first letter that is wrong, from 1.
    column: usize,
    what: String,
}

impl fmt::Display for ThresholdError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "column {}: {}", self.column, self.what)
    }
}

impl std::error::Error for ThresholdError {}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Threshold, ThresholdError> {
        let at = |byte: usize, what: &str| ThresholdError {
            column: text.get(..byte).map_or(0, |before| before.chars().count()) + 1,
            what: what.to_owned(),
        };
        let Some(sign) = text.find(['<', '>']) else {
            return Err(at(text.len(), "a comparison is missing: write p99>50ms, errors>1% or rate<500"));
        };
        let (sign_text, relation) = RELATIONS
            .into_iter()
            .find(|(written, _)| text[sign..].starts_with(written))
            .unwrap_or((">", Relation::Above));
        let name = text[..sign].trim();
        let begin = sign + sign_text.len();
        let value = text[begin..].trim();
        let value_at = begin + (text[begin..].len() - text[begin..].trim_start().len());
        let wrong_value = |what: &str| at(value_at, what);
        let (metric, limit) = match name {
            "errors" => match value.strip_suffix('%') {
                Some(share) => {
                    let share = number(share).filter(|share| *share <= 100.0);
                    let limit = share
                        .ok_or_else(|| wrong_value("write a share such as 1%, or a count such as 10"))?;
                    (Metric::Errors(ErrorUnit::Share), limit / 100.0)
                }
                None => {
                    let count = number(value).filter(|count| count.fract() == 0.0);
                    let limit = count
                        .ok_or_else(|| wrong_value("write a share such as 1%, or a count such as 10"))?;
                    (Metric::Errors(ErrorUnit::Count), limit)
                }
            },
            "rate" => (
                Metric::Rate,
                scaled(value).ok_or_else(|| wrong_value("write answers a second such as 500 or 2k"))?,
            ),
            _ => {
                let metric = latency(name)
                    .ok_or_else(|| at(0, "what is judged is p50, p99, p99.9 …, mean, max, errors or rate"))?;
                (metric, time(value).ok_or_else(|| wrong_value("write a time such as 50ms or 1.5s"))?)
            }
        };
        Ok(Threshold { expression: text.to_owned(), metric, relation, limit })
    }
}

fn latency(name: &str) -> Option<Metric> {
    match name {
        "mean" => Some(Metric::Mean),
        "max" => Some(Metric::Percentile(100.0)),
        _ => {
            let percent = number(name.strip_prefix('p')?)?;
            (percent > 0.0 && percent < 100.0).then_some(Metric::Percentile(percent))
        }
    }
}

/// Digits with a point, and nothing else that Rust reads as a number.
fn number(text: &str) -> Option<f64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse::<f64>().ok().filter(|_| is_plain)
}

fn scaled(text: &str) -> Option<f64> {
    match text.strip_suffix(['k', 'K']) {
        Some(thousands) => number(thousands).map(|number| number * 1e3),
        None => number(text),
    }
}

/// Microseconds.
fn time(text: &str) -> Option<f64> {
    TIMES.iter().find_map(|(unit, length)| number(text.strip_suffix(unit)?).map(|number| number * length))
}

impl Threshold {
    /// What became of it in a run.
    pub fn judge(&self, outcome: &Outcome) -> Judged {
        let latency = &outcome.latency;
        let (value, is_known) = match self.metric {
            Metric::Percentile(percent) => (percentile(latency, percent), latency.is_known(percent)),
            Metric::Mean => (latency.mean, latency.is_known(100.0)),
            Metric::Errors(ErrorUnit::Share) => (outcome.error_share(), true),
            Metric::Errors(ErrorUnit::Count) => (outcome.counts.errors.total() as f64, true),
            Metric::Rate => (outcome.rate(), true),
        };
        let is_latency = matches!(self.metric, Metric::Percentile(_) | Metric::Mean);
        let holds = match self.relation {
            Relation::Above => value > self.limit,
            Relation::AtLeast => value >= self.limit,
            Relation::Below => value < self.limit,
            Relation::AtMost => value <= self.limit,
        };
        let grows = matches!(self.relation, Relation::Above | Relation::AtLeast);
        let verdict = match (holds, is_known) {
            _ if is_latency && latency.is_empty() => Kept::Unknown,
            // What is at least so much may be more: that can make the one hold, and the other not.
            (false, false) if grows => Kept::Unknown,
            (true, false) if !grows => Kept::Unknown,
            (true, _) => Kept::Failed,
            (false, _) => Kept::Passed,
        };
        let found = match self.metric {
            _ if is_latency && latency.is_empty() => "no answer came".to_owned(),
            Metric::Percentile(_) | Metric::Mean if is_known => quantity::duration(value),
            Metric::Percentile(_) | Metric::Mean => format!("at least {}", quantity::duration(value)),
            Metric::Errors(ErrorUnit::Share) => quantity::percent(value),
            Metric::Errors(ErrorUnit::Count) => quantity::count(value as u64),
            Metric::Rate => format!("{}/s", quantity::rate(value)),
        };
        Judged { expression: self.expression.clone(), limit: self.limit, value, found, verdict }
    }
}

fn percentile(latency: &Latency, percent: f64) -> f64 {
    match histogram::decode(&latency.histogram) {
        Ok(histogram) if !histogram.is_empty() => {
            histogram.value_at_percentile(percent).min(histogram.max()) as f64
        }
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    fn check(expression: &str, outcome: &Outcome, verdict: Kept, found: &str) {
        let judged = expression.parse::<Threshold>().unwrap_or_else(|error| panic!("{error}")).judge(outcome);
        assert_eq!((judged.verdict, judged.found.as_str()), (verdict, found), "{expression}");
    }

    #[test]
    fn what_is_written_says_when_a_run_has_failed() {
        let run = samples::failing();
        check("errors>1%", &run, Kept::Passed, "0.23 %");
        check("errors > 0.2%", &run, Kept::Failed, "0.23 %");
        check("errors>=2126", &run, Kept::Failed, "2,126");
        check("errors>2126", &run, Kept::Passed, "2,126");
        let run = samples::closed();
        check("rate<1k", &run, Kept::Passed, &format!("{}/s", quantity::rate(run.rate())));
        check("p95>1us", &run, Kept::Failed, &quantity::duration(percentile(&run.latency, 95.0)));
        check("max<=1m", &run, Kept::Failed, &quantity::duration(run.latency.max as f64));
        check("mean>=1.5s", &run, Kept::Passed, &quantity::duration(run.latency.mean));
    }

    #[test]
    fn what_is_only_known_to_be_at_least_so_much_passes_no_bound_above_it() {
        let run = samples::killed();
        assert!(!run.latency.is_known(99.0));
        let p99 = percentile(&run.latency, 99.0);
        let found = format!("at least {}", quantity::duration(p99));
        check("p99>1ms", &run, Kept::Failed, &found);
        check("p99>60s", &run, Kept::Unknown, &found);
        check("p99<60s", &run, Kept::Unknown, &found);
        check("p99<1ms", &run, Kept::Passed, &found);
        check("p50>1s", &samples::nothing(), Kept::Unknown, "no answer came");
    }

    #[test]
    fn what_is_no_bound_is_told_with_its_place() {
        for (text, said) in [
            ("", "column 1: a comparison is missing"),
            ("p99", "column 4: a comparison is missing"),
            ("p99=5ms", "column 8: a comparison is missing"),
            ("pp>5ms", "column 1: what is judged"),
            ("p0>5ms", "column 1: what is judged"),
            ("p99>5", "column 5: write a time"),
            ("p99 >= soon", "column 8: write a time"),
            ("é>1", "column 1: what is judged"),
            ("errors>101%", "column 8: write a share"),
            ("errors>1.5", "column 8: write a share"),
            ("rate<-1", "column 6: write answers"),
            ("rate<inf", "column 6: write answers"),
        ] {
            let error = text.parse::<Threshold>().expect_err(text).to_string();
            assert!(error.starts_with(said), "{text}: {error}");
        }
    }
}
