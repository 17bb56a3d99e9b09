//! What was demanded of a run in lines: its warm-up, its stages, a rate that was not reached, bounds that had to be kept.

use super::super::quantity::{count, duration, rate, span};
use crate::outcome::{Cause, Judged, Kept, Outcome, ScheduleOutcome};
use crate::plan::{Plan, Schedule};

/// What is said of the way to the rate, before it is gone.
pub(super) fn announced(plan: &Plan) -> String {
    match &plan.schedule {
        Some(Schedule::Stages(stages)) => {
            let each = stages
                .iter()
                .map(|stage| format!("{}/s within {}", rate(stage.rate), span(stage.duration.as_secs_f64())));
            let each = each.collect::<Vec<_>>().join(", to ");
            format!("  in stages, of whose rates that is the mean: to {each}; no warm-up")
        }
        Some(Schedule::Log { speed, .. }) => {
            let speed = rate(*speed);
            format!(
                "  at the log's own moments, {speed} times as fast, of which that is the mean; no warm-up"
            )
        }
        None if plan.warm_up.is_zero() => {
            "  no warm-up: what it takes to open connections is in the first latencies".to_owned()
        }
        None => {
            let warm_up = span(plan.warm_up.as_secs_f64());
            format!("  the first {warm_up} are a warm-up and not counted (--warm-up 0 counts all)")
        }
    }
}

/// Why a rate was not reached.
pub(super) fn not_reached(outcome: &Outcome, cause: Cause) -> String {
    let busy = || format!("all {} connections were busy", count(u64::from(outcome.connections)));
    match cause {
        Cause::Generator => "the generator is at its limit".to_owned(),
        Cause::Connections => "connections fail, see below".to_owned(),
        Cause::Server => "the server does not keep up".to_owned(),
        Cause::Bound if outcome.service.is_empty() => busy() + ", which -c bounds",
        Cause::Bound => {
            let each = outcome.service.mean;
            let carried = f64::from(outcome.connections) * f64::from(outcome.pipeline) / (each / 1e6);
            format!(
                "{}, and they carry {} a second at {} per answer; more connections (-c) show whether the server can do more",
                busy(),
                rate(carried),
                duration(each)
            )
        }
    }
}

/// Each stage with what came of it.
pub(super) fn stages(outcome: &Outcome) -> Vec<String> {
    let Some(ScheduleOutcome::Stages(stages)) = &outcome.schedule else { return Vec::new() };
    let mut lines = vec!["  Stages     to rate     within   answered/s     errors    p99 at most".to_owned()];
    lines.extend(stages.iter().map(|stage| {
        format!(
            "  {:>16} {:>10} {:>12} {:>10} {:>14}",
            rate(stage.rate),
            span(stage.seconds),
            rate(stage.answered),
            count(stage.errors),
            if stage.p99 == 0 { "-".to_owned() } else { duration(stage.p99 as f64) }
        )
    }));
    lines
}

/// Each bound with what became of it.
pub(super) fn thresholds(outcome: &Outcome) -> Vec<String> {
    outcome.thresholds.iter().map(sentence).collect()
}

/// `FAILED: p99>50ms: it was 60.2 ms`.
pub fn sentence(judged: &Judged) -> String {
    let (verdict, found) = match judged.verdict {
        Kept::Passed => ("passed", "it was "),
        Kept::Failed => ("FAILED", "it was "),
        Kept::Unknown => ("UNKNOWN", "all that is known is: "),
    };
    format!("{verdict}: {}: {found}{}", super::printable(&judged.expression), judged.found)
}
