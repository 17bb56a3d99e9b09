//! What was demanded of a run in lines: its warm-up, its stages, a rate that was not reached, bounds that had to be kept.

use super::super::quantity::{count, duration, rate, span};
use crate::outcome::{Cause, Judged, Kept, NotReached, Outcome, ScheduleOutcome};
use crate::plan::{Plan, Schedule};
use std::fmt::Write as _;

/// What is said of the way to the rate, before it is gone.
pub(super) fn announced(text: &mut String, plan: &Plan) {
    // Writing to a String cannot fail.
    let _ = match &plan.schedule {
        Some(Schedule::Stages(stages)) => {
            let each: Vec<String> = stages
                .iter()
                .map(|stage| format!("{}/s within {}", rate(stage.rate), span(stage.duration.as_secs_f64())))
                .collect();
            writeln!(
                text,
                "  in stages, of whose rates that is the mean: to {}; no warm-up",
                each.join(", to ")
            )
        }
        Some(Schedule::Log { speed, .. }) => {
            writeln!(
                text,
                "  at the log's own moments, {} times as fast, of which that is the mean; no warm-up",
                rate(*speed)
            )
        }
        None if plan.warm_up.is_zero() => {
            writeln!(text, "  no warm-up: what it takes to open connections is in the first latencies")
        }
        None => writeln!(
            text,
            "  the first {} are a warm-up and not counted (--warm-up 0 counts all)",
            span(plan.warm_up.as_secs_f64())
        ),
    };
}

/// Why a rate was not reached.
pub(super) fn not_reached(text: &mut String, outcome: &Outcome, found: NotReached) {
    let most = outcome.connections;
    let busy = format!("all {} connections were busy", count(u64::from(most)));
    let why = match found.cause {
        Cause::Generator => "the generator is at its limit, see below".to_owned(),
        Cause::Connections => "connections fail, see below".to_owned(),
        Cause::Server => "the server does not keep up".to_owned(),
        Cause::Bound if outcome.service.is_empty() => busy + ", which -c bounds",
        Cause::Bound => {
            let carried = f64::from(most) * f64::from(outcome.pipeline) / (outcome.service.mean / 1e6);
            format!(
                "{busy}, and they carry {1} a second at {0} per answer; more connections (-c) show whether the server can do \
                 more",
                duration(outcome.service.mean),
                rate(carried)
            )
        }
    };
    let _ = writeln!(
        text,
        "  NOT REACHED: {} requests/s were asked for, {} answered: {why}",
        rate(found.asked),
        rate(found.answered)
    );
}

/// Each stage with what came of it.
pub(super) fn stages(text: &mut String, outcome: &Outcome) {
    let Some(ScheduleOutcome::Stages(stages)) = &outcome.schedule else { return };
    let _ = writeln!(text, "  Stages     to rate     within   answered/s     errors    p99 at most");
    for stage in stages {
        let _ = writeln!(
            text,
            "  {:>16} {:>10} {:>12} {:>10} {:>14}",
            rate(stage.rate),
            span(stage.seconds),
            rate(stage.answered),
            count(stage.errors),
            if stage.p99 == 0 { "-".to_owned() } else { duration(stage.p99 as f64) }
        );
    }
}

/// Each bound with what became of it.
pub(super) fn thresholds(text: &mut String, outcome: &Outcome) {
    for judged in &outcome.thresholds {
        let _ = writeln!(text, "{}", sentence(judged));
    }
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
