//! A run whose rate changed midway: no law of means holds over it, so nothing else is concluded from one.

use crate::outcome::{Outcome, Slice};
use crate::report::quantity::{Rate, seconds};

/// By how many times the rate before a moment must differ from that after it.
const CHANGED: f64 = 5.0;
/// The part before it and the part after it are each as long as so many answers, so that a batch of them is no change.
const ANSWERS: f64 = 5.0;
/// And of the faster rate, the shorter part has so many: fewer differ by chance.
const LEAST: f64 = 30.0;

/// From when on a run had which rate, and that it has no single limit; `None` where its rate was one.
pub fn midway(outcome: &Outcome) -> Option<String> {
    let side = (ANSWERS * outcome.latency.percentile(50.0) as f64 / 1e6).max(1.0);
    let rate = |slices: &[Slice]| {
        let time: f64 = slices.iter().map(|slice| slice.seconds).sum();
        (slices.iter().map(|slice| slice.answers as f64).sum::<f64>() / time, time)
    };
    let parts = (1..outcome.slices.len()).filter_map(|place| {
        let (before, after) = outcome.slices.split_at(place);
        let ((before, first), (after, second)) = (rate(before), rate(after));
        let (most, shorter) = (before.max(after), first.min(second));
        let times = most / before.min(after).max(1e-3);
        (shorter >= side && most * shorter >= LEAST && times >= CHANGED)
            .then_some((times, first, before, after))
    });
    let (_, at, before, after) = parts.max_by(|one, other| one.0.total_cmp(&other.0))?;
    let ([before, after], at) = ([before, after].map(Rate), seconds(at));
    Some(format!(
        "Unknown: the rate changed midway. It was {before} in the first {at} and {after} from then on, so the run has \
         no single limit: measure each part separately."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    /// Slices of a tenth of a second with so many answers each, in a run whose median latency is so long.
    fn run(answers: impl Iterator<Item = u64>, p50: u64) -> Outcome {
        let mut outcome = samples::closed();
        let slice =
            |(place, answers)| Slice { at: place as f64 / 10.0, seconds: 0.1, answers, ..Slice::default() };
        outcome.slices = answers.enumerate().map(slice).collect();
        outcome.latency.percentiles.p50_us = p50;
        outcome
    }

    #[test]
    fn a_run_that_was_fast_and_then_slow_has_no_single_limit_and_says_from_when_on() {
        let said = midway(&run((0..100).map(|place| if place < 50 { 950 } else { 5 }), 1_000));
        let begin = "Unknown: the rate changed midway. It was 9,500/s in the first 5s and 50/s from then on";
        assert!(said.as_ref().is_some_and(|said| said.starts_with(begin)), "{said:?}");
        let stopped = midway(&run((0..60).map(|place| if place < 20 { 950 } else { 0 }), 1_000));
        assert!(stopped.is_some_and(|said| said.contains("9,500/s in the first 2s and 0/s")));
    }

    #[test]
    fn a_rate_that_goes_up_and_down_and_answers_that_come_in_batches_are_no_change() {
        assert_eq!(midway(&samples::closed()), None);
        assert_eq!(midway(&run((0..100).map(|place| if place % 20 < 10 { 900 } else { 90 }), 1_000)), None);
        // Fifty connections, each answer after three seconds.
        assert_eq!(
            midway(&run((0..120).map(|place| if place % 30 == 29 { 50 } else { 0 }), 3_000_000)),
            None
        );
        assert_eq!(
            midway(&run((0..15).map(|place| if place < 5 { 950 } else { 0 }), 1_000)),
            None,
            "too short"
        );
    }
}
