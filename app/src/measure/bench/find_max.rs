//! `bench --find-max`: the search with its trials told one by one.

use super::plan;
use crate::cli::Load;
use crate::measure::end::End;
use crate::measure::output::Output;
use millstream_load::find_max::{self, Found, Goal, SearchSight, Trial};
use millstream_load::outcome::{Outcome, SearchOutcome};
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
        Found { best: Some(best), failed, tried } => {
            let found = conclusion(&best, failed.as_ref(), is_stopped);
            output.put(&format!("\n{found}\n\n"));
            output.put(&report::text::report(&best.outcome));
            let search =
                SearchOutcome { p99: goal.p99_microseconds(), errors: goal.errors, found, trials: tried };
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
    match &trial.miss {
        None => format!("{rate:>12}/s  held            p99 {p99}\n"),
        Some(miss) => format!("{rate:>12}/s  did not hold    {miss}\n"),
    }
}

fn conclusion(best: &Trial, failed: Option<&(f64, find_max::Miss)>, is_stopped: bool) -> String {
    let rate = quantity::rate(best.rate);
    match failed {
        Some((above, find_max::Miss::Generator(why))) => {
            format!("At least {rate} requests a second hold; at {} {why}", quantity::rate(*above))
        }
        Some((above, miss)) => {
            format!("{rate} requests a second hold; at {} {miss}", quantity::rate(*above))
        }
        None if is_stopped => format!("At least {rate} requests a second hold: the search was stopped"),
        None => {
            format!("At least {rate} requests a second hold: no trial failed, and there are no more trials")
        }
    }
}
