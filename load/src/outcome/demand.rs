//! What was demanded of a run, and what became of that: a rate that was not reached, stages, bounds that had to be kept.

use super::{KEPT_UP, Outcome, Slice};
use crate::plan::{Mode, OPEN_CONNECTIONS, Schedule};
use serde::{Deserialize, Serialize};

/// What kept an open loop from its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The generator was at its limit, see `generator.limits`.
    Generator,
    /// More connections failed than answers came.
    Connections,
    /// All connections that the plan allows had a request on their way. Whether the server could do more is not known.
    Bound,
    /// The server answered too slowly.
    Server,
}

/// A rate that was not reached.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotReached {
    /// Requests per second that were asked for.
    pub asked: f64,
    /// Answers per second.
    pub answered: f64,
    /// Why.
    pub cause: Cause,
}

impl Outcome {
    /// Whether an open loop fell behind its rate, and why.
    pub fn not_reached(&self) -> Option<NotReached> {
        let Mode::Open { rate: asked, .. } = self.mode else { return None };
        let (counts, errors) = (&self.counts, &self.counts.errors);
        let cause = match () {
            () if self.kept_up() >= KEPT_UP => return None,
            () if self.generator.limits.is_some() => Cause::Generator,
            () if errors.connect + errors.tls + errors.closed > counts.answers => Cause::Connections,
            // Where as many as any rate takes are busy, the server has left them waiting.
            () if counts.ran_out && self.connections < OPEN_CONNECTIONS => Cause::Bound,
            () => Cause::Server,
        };
        Some(NotReached { asked, answered: self.rate(), cause })
    }
}

/// When requests were due, where that was not at one rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ScheduleOutcome {
    /// In stages.
    Stages(Vec<StageOutcome>),
    /// As in a log, so many times as fast.
    Log {
        /// 1: as fast as in the log.
        speed: f64,
    },
}

/// A stage of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageOutcome {
    /// How long it was, seconds.
    pub seconds: f64,
    /// Requests per second at its end.
    pub rate: f64,
    /// Answers as expected per second in it, to the slices that begin in it.
    pub answered: f64,
    /// Errors in these.
    pub errors: u64,
    /// The longest of the 99th percentiles of its slices, microseconds. What had no answer in time, or at the end, is in them with the
    /// time that it had waited.
    #[serde(rename = "p99_us")]
    pub p99: u64,
}

impl ScheduleOutcome {
    /// What became of a schedule.
    pub(crate) fn of(schedule: &Schedule, slices: &[Slice]) -> ScheduleOutcome {
        let stages = match schedule {
            Schedule::Log { speed, .. } => return ScheduleOutcome::Log { speed: *speed },
            Schedule::Stages(stages) => stages,
        };
        let mut start = 0.0;
        let stage = stages.iter().map(|stage| {
            let (from, seconds) = (start, stage.duration.as_secs_f64());
            start += seconds;
            // A slice belongs to the stage in which it begins; a hair of rounding is allowed for.
            let own = || slices.iter().filter(|slice| (from..start).contains(&(slice.at + 1e-6)));
            let time: f64 = own().map(|slice| slice.seconds).sum();
            let answers: u64 = own().map(|slice| slice.answers).sum();
            StageOutcome {
                seconds,
                rate: stage.rate,
                answered: if time > 0.0 { answers as f64 / time } else { 0.0 },
                errors: own().map(|slice| slice.errors).sum(),
                p99: own().map(|slice| slice.p99).max().unwrap_or(0),
            }
        });
        ScheduleOutcome::Stages(stage.collect())
    }
}

/// What became of a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// The run kept it.
    Passed,
    /// It did not.
    Failed,
    /// The value is only known to be at least so much, or there is none.
    Unknown,
}

/// A bound that was to be kept (`--fail`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Judged {
    /// As it was written: the run has failed where this holds.
    pub expression: String,
    /// What `limit` and `value` are: `us`, `share` (0 to 1), `count` or `per_second`.
    #[serde(default)]
    pub unit: String,
    /// Its number.
    pub limit: f64,
    /// What was measured.
    pub value: f64,
    /// The same in words: `p99 was 21.7ms`.
    pub found: String,
    /// What became of it.
    pub verdict: Kept,
}

#[cfg(test)]
mod tests {
    use crate::outcome::{Cause, Counts, NotReached, Outcome, ScheduleOutcome, Slice};
    use crate::plan::{Arrivals, Mode, RateStage, Schedule};
    use crate::report::samples;
    use std::time::Duration;

    #[test]
    fn what_is_on_its_way_at_the_end_of_a_ramp_is_not_late() {
        let stage = RateStage { duration: Duration::from_secs(10), rate: 1_000.0 };
        let slices: Vec<Slice> =
            samples::open().slices.iter().map(|slice| Slice { mean: 4e5, answers: 10, ..*slice }).collect();
        // From 0 to 1,000 a second, each answered after 0.4 seconds: of those due in the last 0.4 none has its answer yet.
        let run = |unfinished| Outcome {
            mode: Mode::Open { rate: 500.0, arrivals: Arrivals::Constant },
            schedule: Some(ScheduleOutcome::of(&Schedule::Stages(vec![stage]), &slices)),
            counts: Counts { answers: 5_000 - unfinished, unfinished, ..Counts::default() },
            slices: slices.clone(),
            ..samples::open()
        };
        assert_eq!(run(392).not_reached(), None);
        let cause = |missed: NotReached| missed.cause;
        assert_eq!(run(600).not_reached().map(cause), Some(Cause::Server));
    }
}
