//! Bounds that a run must keep, such as `p99>50ms`: what is written says when the run has failed.
//!
//! Judged by what was measured: a percentile that is only known to be at least so much (requests without an answer) has passed
//! a bound above it for certain and one below it never. Next: `outcome::Judged`, which reports carry.

use crate::metric::Metric;
use crate::outcome::{Judged, Kept, Outcome};

/// A bound: the run has failed where this holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// As it was written.
    pub expression: String,
    /// What is judged.
    pub metric: Metric,
    /// Whether it holds above the limit; else below it.
    pub is_above: bool,
    /// Whether it holds at the limit, too.
    pub or_equal: bool,
    /// In the metric's unit.
    pub limit: f64,
}

impl Threshold {
    /// What became of it in a run.
    pub fn judge(&self, outcome: &Outcome) -> Judged {
        let (value, is_known) = (self.metric.of(outcome), self.metric.is_known(outcome));
        // There is no time without an answer.
        let is_none = matches!(self.metric, Metric::Latency(_) | Metric::Mean) && outcome.latency.is_empty();
        let is_beyond = if self.is_above { value > self.limit } else { value < self.limit };
        let holds = is_beyond || self.or_equal && value == self.limit;
        let verdict = match holds {
            _ if is_none => Kept::Unknown,
            // What is at least so much may be more: that can make the one hold, and the other not.
            holds if !is_known && holds != self.is_above => Kept::Unknown,
            true => Kept::Failed,
            false => Kept::Passed,
        };
        let found = match is_known {
            _ if is_none => "no answer came".to_owned(),
            true => self.metric.told(value).to_string(),
            false => format!("at least {}", self.metric.told(value)),
        };
        Judged { expression: self.expression.clone(), limit: self.limit, value, found, verdict }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    /// A bound by what is judged, `>`, `>=`, `<` or `<=`, and its limit.
    fn check((metric, sign, limit): (Metric, &str, f64), outcome: &Outcome, verdict: Kept, found: &str) {
        let (is_above, or_equal) = (sign.starts_with('>'), sign.ends_with('='));
        let expression = format!("{metric:?}{sign}{limit}");
        let judged = Threshold { expression, metric, is_above, or_equal, limit }.judge(outcome);
        assert_eq!((judged.verdict, judged.found.as_str()), (verdict, found), "{}", judged.expression);
    }

    #[test]
    fn what_is_written_says_when_a_run_has_failed() {
        let run = samples::failing();
        check((Metric::ErrorShare, ">", 0.01), &run, Kept::Passed, "0.23 %");
        check((Metric::ErrorShare, ">", 0.002), &run, Kept::Failed, "0.23 %");
        check((Metric::Errors, ">=", 2126.0), &run, Kept::Failed, "2,126");
        check((Metric::Errors, ">", 2126.0), &run, Kept::Passed, "2,126");
        let run = samples::closed();
        check((Metric::Rate, "<", 1e3), &run, Kept::Passed, "91,387/s");
        let p95 = run.latency.decoded().value_at_percentile(95.0);
        check(
            (Metric::Latency(95.0), ">", 1.0),
            &run,
            Kept::Failed,
            &Metric::Mean.told(p95 as f64).to_string(),
        );
        let longest = Metric::Mean.told(run.latency.max as f64).to_string();
        check((Metric::Latency(100.0), "<=", 60e6), &run, Kept::Failed, &longest);
        check(
            (Metric::Mean, ">=", 1.5e6),
            &run,
            Kept::Passed,
            &Metric::Mean.told(run.latency.mean).to_string(),
        );
    }

    #[test]
    fn what_is_only_known_to_be_at_least_so_much_passes_no_bound_above_it() {
        let run = samples::killed();
        assert!(!run.latency.is_known(99.0));
        let p99 = Metric::Latency(99.0);
        let found = format!("at least {}", p99.told(p99.of(&run)));
        check((p99, ">", 1e3), &run, Kept::Failed, &found);
        check((p99, ">", 60e6), &run, Kept::Unknown, &found);
        check((p99, "<", 60e6), &run, Kept::Unknown, &found);
        check((p99, "<", 1e3), &run, Kept::Passed, &found);
        check((Metric::Latency(50.0), ">", 1e6), &samples::nothing(), Kept::Unknown, "no answer came");
    }
}
