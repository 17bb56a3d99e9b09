//! `bench --find-max`: the search with its trials told one by one.

use super::plan;
use crate::cli::Load;
use crate::measure::end::End;
use crate::measure::output::Output;
use millstream_load::find_max::{self, Found, Goal, Miss, SearchSight, Trial};
use millstream_load::outcome::{Confirmed, Outcome, SearchOutcome};
use millstream_load::plan::Plan;
use millstream_load::progress::Live;
use millstream_load::report::{self, quantity};
use std::sync::atomic::AtomicBool;

/// The most that may be errors where nothing is said.
const ERRORS: f64 = 0.001;

/// Searches and tells; the outcome of the best trial, none where the user stopped before there was one.
pub(super) fn search(
    flags: &Load,
    plan: &Plan,
    stop: &AtomicBool,
    output: &Output,
) -> Result<Option<Outcome>, End> {
    let goal = Goal { p99: flags.p99, errors: flags.errors.unwrap_or(ERRORS) };
    let mut live = (!flags.quiet).then(Live::to_stderr);
    output.put(&format!("Searching the highest rate that holds: {}\n", words(goal)));
    let found = find_max::run(plan, plan::arrivals(flags), goal, stop, &mut |sight| match sight {
        SearchSight::Begins(rate) => {
            if let Some(live) = &mut live {
                live.label(
                    &rate.map_or("first guess".to_owned(), |rate| format!("{}/s", quantity::scaled(rate))),
                );
            }
        }
        SearchSight::Goes(progress) => {
            if let Some(live) = &mut live {
                live.show(progress);
            }
        }
        SearchSight::Ended(trial) => {
            if let Some(live) = &mut live {
                live.clear();
            }
            output.put(&line(trial));
        }
    });
    drop(live);
    let found = found.map_err(|error| error.to_string())?;
    let is_stopped = stop.load(std::sync::atomic::Ordering::Relaxed);
    match found {
        Found { best: Some(mut best), confirmed, failed, tried } => {
            best.outcome.thresholds = flags.fail.iter().map(|bound| bound.judge(&best.outcome)).collect();
            let found = conclusion(&best, confirmed, failed.as_ref(), is_stopped);
            output.put(&format!("\n{found}\n\n"));
            output.put(&report::text::report(&best.outcome));
            let search = SearchOutcome {
                p99: goal.p99_microseconds(),
                errors: goal.errors,
                found,
                confirmed,
                trials: tried,
            };
            Ok(Some(Outcome { search: Some(search), ..best.outcome }))
        }
        Found { best: None, failed: Some((rate, miss)), .. } if !is_stopped => {
            Err(format!("no rate held, not even {} a second: {miss}", quantity::rate(rate)).into())
        }
        Found { best: None, .. } => Ok(None),
    }
}

fn words(goal: Goal) -> String {
    let errors = format!("at most {} errors", quantity::percent(goal.errors));
    match goal.p99 {
        Some(p99) => format!("p99 at most {}, {errors}", quantity::duration(p99.as_micros() as f64)),
        None => format!("the server keeps up, {errors}"),
    }
}

/// `    8,000/s  held        p99 1.20ms`.
fn line(trial: &Trial) -> String {
    let rate = quantity::rate(trial.rate);
    let p99 = quantity::duration(trial.outcome.latency.percentile(99.0) as f64);
    let again = if trial.is_further { " again" } else { "" };
    match &trial.miss {
        None => format!("{rate:>12}/s  {:<14}  p99 {p99}\n", format!("held{again}")),
        Some(miss) => format!("{rate:>12}/s  did not hold    {miss}\n"),
    }
}

/// What was found, how often it held, and what lies above.
fn conclusion(
    best: &Trial,
    confirmed: Option<Confirmed>,
    failed: Option<&(f64, Miss)>,
    is_stopped: bool,
) -> String {
    let rate = quantity::rate(best.rate);
    let Some(Confirmed { held, of }) = confirmed else {
        let why = if is_stopped { "the search was stopped" } else { "there are no more trials" };
        return format!("{rate} requests a second held once, which is not confirmed: {why}");
    };
    let above = match failed {
        Some((above, miss)) => format!("; at {} {miss}", quantity::rate(*above)),
        None => "; no trial above it failed".to_owned(),
    };
    let at_least = if matches!(failed, Some((_, Miss::Generator(_))) | None) { "At least " } else { "" };
    format!("{at_least}{rate} requests a second hold, in {held} of {of} further trials{above}")
}
