//! Bounds that a run must keep, such as `p99>50ms`: what is written says when the run has failed.
//!
//! Judged by what was measured: a percentile that is only known to be at least so much (requests without an answer) has passed
//! a bound above it for certain and one below it never. Next: `outcome::Judged`, which reports carry.

use crate::metric::Metric;
use crate::outcome::{Judged, Kept, Outcome};
use crate::report::quantity::Count;

/// A bound: the run has failed where this holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    pub expression: String,
    pub metric: Metric,
    pub is_above: bool,
    /// Whether it holds at the limit, too.
    pub or_equal: bool,
    /// In the metric's unit.
    pub limit: f64,
}

impl Threshold {
    pub fn judge(&self, outcome: &Outcome) -> Judged {
        let (value, is_known) = (self.metric.of(outcome), self.metric.is_known(outcome));
        // There is no time without an answer, and no share of nothing.
        let is_time = matches!(self.metric, Metric::Latency(_) | Metric::Mean);
        let is_none =
            is_time && outcome.latency.is_empty() || self.metric == Metric::ErrorShare && outcome.due() == 0;
        let is_beyond = if self.is_above { value > self.limit } else { value < self.limit };
        let holds = is_beyond || self.or_equal && value == self.limit;
        let verdict = match holds {
            _ if is_none => Kept::Unknown,
            // What is at least so much may be more: that can make the one hold, and the other not.
            holds if !is_known && holds != self.is_above => Kept::Unknown,
            true => Kept::Failed,
            false => Kept::Passed,
        };
        let found =
            if is_none { "there was no response".to_owned() } else { self.found(outcome, value, is_known) };
        Judged {
            expression: self.expression.clone(),
            unit: self.metric.unit().to_owned(),
            limit: self.limit,
            value,
            found,
            verdict,
        }
    }

    /// What was found, in words: `p99 was 21.7ms`.
    fn found(&self, outcome: &Outcome, value: f64, is_known: bool) -> String {
        let name = self.expression.split(['<', '>']).next().unwrap_or_default().trim();
        let verb = if matches!(self.metric, Metric::ErrorShare | Metric::Errors) { "were" } else { "was" };
        let at_least = if is_known { "" } else { "at least " };
        let [told, limit] = [value, self.limit].map(|value| self.metric.told(value).to_string());
        // Where both are rounded to the same, the verdict would look wrong.
        let beside = match told == limit {
            true if value > self.limit => "just above ",
            true if value < self.limit => "just below ",
            _ => "",
        };
        let is_longest = matches!(self.metric, Metric::Latency(percent) if !outcome.latency.tells(percent));
        let count = Count(outcome.latency.decoded().len());
        let longest = if is_longest { format!(", the longest of {count}") } else { String::new() };
        format!("{name} {verb} {at_least}{beside}{told}{longest}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    /// A bound by what is judged, `>`, `>=`, `<` or `<=`, and its limit.
    fn check(
        (name, metric, sign, limit): (&str, Metric, &str, f64),
        outcome: &Outcome,
        verdict: Kept,
        found: &str,
    ) {
        let (is_above, or_equal) = (sign.starts_with('>'), sign.ends_with('='));
        let expression = format!("{name}{sign}{limit}");
        let judged = Threshold { expression, metric, is_above, or_equal, limit }.judge(outcome);
        assert_eq!((judged.verdict, judged.found.as_str()), (verdict, found), "{}", judged.expression);
    }

    #[test]
    fn what_is_written_says_when_a_run_has_failed() {
        let run = samples::failing();
        check(("errors", Metric::ErrorShare, ">", 0.01), &run, Kept::Passed, "errors were 0.23 %");
        check(("errors", Metric::ErrorShare, ">", 0.002), &run, Kept::Failed, "errors were 0.23 %");
        check(("errors", Metric::Errors, ">=", 2126.0), &run, Kept::Failed, "errors were 2,126");
        check(("errors", Metric::Errors, ">", 2126.0), &run, Kept::Passed, "errors were 2,126");
        let run = samples::closed();
        check(("rate", Metric::Rate, "<", 1e3), &run, Kept::Passed, "rate was 91,387/s");
        check(("p95 ", Metric::Latency(95.0), ">", 1.0), &run, Kept::Failed, "p95 was 1.68ms");
        check(("max", Metric::Latency(100.0), "<=", 60e6), &run, Kept::Failed, "max was 14.6ms");
        check(("mean", Metric::Mean, ">=", 1.5e6), &run, Kept::Passed, "mean was 1.15ms");
    }

    #[test]
    fn a_value_that_rounding_makes_the_limit_is_told_to_be_beside_it() {
        let run = |microseconds: u64| {
            let mut histogram = crate::histogram::empty();
            (0..200).for_each(|_| histogram.saturating_record(microseconds));
            Outcome { latency: crate::outcome::Latency::of(&histogram), ..samples::closed() }
        };
        let p99 = |sign| ("p99", Metric::Latency(99.0), sign, 50_000.0);
        for (microseconds, sign, verdict, found) in [
            (50_040, ">", Kept::Failed, "p99 was just above 50ms"),
            (50_040, ">=", Kept::Failed, "p99 was just above 50ms"),
            (50_040, "<", Kept::Passed, "p99 was just above 50ms"),
            (50_040, "<=", Kept::Passed, "p99 was just above 50ms"),
            (49_980, ">", Kept::Passed, "p99 was just below 50ms"),
            (49_980, "<", Kept::Failed, "p99 was just below 50ms"),
            (49_400, "<=", Kept::Failed, "p99 was 49.4ms"),
        ] {
            check(p99(sign), &run(microseconds), verdict, found);
        }
        let rate = Outcome { seconds: 1.0, counts: Default::default(), ..samples::closed() };
        let rate = |answers| Outcome {
            counts: crate::outcome::Counts { answers, ..rate.counts.clone() },
            ..rate.clone()
        };
        check(
            ("rate", Metric::Rate, "<", 1_000.4),
            &rate(1_000),
            Kept::Failed,
            "rate was just below 1,000/s",
        );
        check(("rate", Metric::Rate, "<=", 1_000.0), &rate(1_000), Kept::Failed, "rate was 1,000/s");
        check(("rate", Metric::Rate, "<", 1_000.0), &rate(1_000), Kept::Passed, "rate was 1,000/s");
    }

    #[test]
    fn a_percentile_of_too_few_answers_is_told_to_be_the_longest() {
        let mut histogram = crate::histogram::empty();
        (1..=20).for_each(|number| histogram.saturating_record(number * 1_000));
        let run = Outcome { latency: crate::outcome::Latency::of(&histogram), ..samples::closed() };
        for (name, percent, found) in [
            ("p50", 50.0, "p50 was 10ms"),
            ("p95", 95.0, "p95 was 19ms"),
            ("p99", 99.0, "p99 was 20ms, the longest of 20"),
            ("max", 100.0, "max was 20ms"),
        ] {
            check((name, Metric::Latency(percent), ">", 1e6), &run, Kept::Passed, found);
        }
    }

    #[test]
    fn what_is_only_known_to_be_at_least_so_much_passes_no_bound_above_it() {
        let run = samples::killed();
        assert!(!run.latency.is_known(99.0));
        let p99 = |sign, limit| ("p99", Metric::Latency(99.0), sign, limit);
        let found = "p99 was at least 4.91s";
        check(p99(">", 1e3), &run, Kept::Failed, found);
        check(p99(">", 60e6), &run, Kept::Unknown, found);
        check(p99("<", 60e6), &run, Kept::Unknown, found);
        check(p99("<", 1e3), &run, Kept::Passed, found);
    }

    #[test]
    fn without_an_answer_there_is_no_time_and_no_share_and_a_rate_of_none() {
        let nothing = Outcome { counts: Default::default(), ..samples::nothing() };
        let none = "there was no response";
        for (bound, verdict, found) in [
            (("p50", Metric::Latency(50.0), ">", 1e6), Kept::Unknown, none),
            (("p50", Metric::Latency(50.0), "<", 1e6), Kept::Unknown, none),
            (("mean", Metric::Mean, "<=", 1e6), Kept::Unknown, none),
            (("errors", Metric::ErrorShare, ">", 0.01), Kept::Unknown, none),
            (("errors", Metric::Errors, ">", 10.0), Kept::Passed, "errors were 0"),
            (("rate", Metric::Rate, "<", 500.0), Kept::Failed, "rate was 0/s"),
        ] {
            check(bound, &nothing, verdict, found);
        }
        check(
            ("errors", Metric::ErrorShare, ">", 0.01),
            &samples::nothing(),
            Kept::Failed,
            "errors were 100 %",
        );
    }
}
