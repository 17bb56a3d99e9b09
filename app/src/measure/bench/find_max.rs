//! `bench --find-max`: the search with its trials told one by one.

use super::plan;
use crate::cli::Load;
use crate::measure::end::End;
use crate::measure::output::Output;
use millstream_load::find_max::{self, SearchSight};
use millstream_load::outcome::{Goal, Outcome, Tried};
use millstream_load::plan::Plan;
use millstream_load::progress::Live;
use millstream_load::report;
use millstream_load::report::quantity::{Count, Quantity, Rate, Share, Time};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The most that may be errors where nothing is said.
const ERRORS: f64 = 0.001;
/// A search takes about so many trials: some twenty until a rate is found, and those that confirm it.
const TRIALS: u32 = 35;

/// Searches and tells; the outcome of the best trial, none where the user stopped before there was one.
pub(super) fn search(
    flags: &Load,
    plan: &Plan,
    stop: &AtomicBool,
    output: &Output,
) -> Result<Option<Outcome>, End> {
    let p99 = flags.p99.map(|p99| u64::try_from(p99.as_micros()).unwrap_or(u64::MAX));
    let goal = Goal { p99, errors: flags.errors.unwrap_or(ERRORS) };
    let mut live = Live::unless(flags.quiet);
    let trial = plan.duration.unwrap_or_default();
    let whole = (trial + plan.warm_up) * TRIALS;
    let [trial, whole] = [trial, whole].map(Quantity::from);
    output.put(&format!(
        "Searching the highest rate that holds: {goal}; some {TRIALS} trials of {trial} each, about {whole} in all\n"
    ));
    let found = find_max::run(plan, plan::arrivals(flags), goal, stop, &mut |sight| match sight {
        SearchSight::Begins(None) => live.label("first guess"),
        SearchSight::Begins(Some(rate)) => live.label(&Rate(rate).to_string()),
        SearchSight::Lengthened(rate, trial) => {
            live.clear();
            output.put(&lengthened(rate, trial));
        }
        SearchSight::Goes(progress) => live.show(progress),
        SearchSight::Ended(trial) => {
            live.clear();
            output.put(&line(trial));
        }
    });
    drop(live);
    let Some(mut best) = found.map_err(|error| error.to_string())? else { return Ok(None) };
    best.thresholds = flags.fail.iter().map(|bound| bound.judge(&best)).collect();
    output.put(&best.search.iter().map(|search| format!("\n{}\n\n", search.found)).collect::<String>());
    output.put(&report::text::report(&best));
    Ok(Some(best))
}

/// That trials of this rate, and of those after it, are longer than was asked for.
fn lengthened(rate: f64, trial: Duration) -> String {
    let (rate, trial) = (Rate(rate), Quantity::from(trial));
    format!("{rate:>14}  takes trials of {trial}: shorter ones could not tell whether it holds\n")
}

/// `     8,000/s  held            p99 1.2ms, 3 under way at the end (12 allowed for)`.
fn line(trial: &Tried) -> String {
    let (rate, p99) = (Rate(trial.rate), Time(trial.p99 as f64));
    let (what, why) = match &trial.miss {
        None if trial.is_further => ("held again", format!("p99 {p99}")),
        None => ("held", format!("p99 {p99}")),
        Some(miss) if trial.is_late => ("says nothing", miss.clone()),
        Some(miss) => ("did not hold", miss.clone()),
    };
    let errors = match trial.error_share > 0.0 && !why.contains("were errors") {
        true => format!(", {} were errors", Share(trial.error_share)),
        false => String::new(),
    };
    let under_way = match trial.under_way {
        0 => String::new(),
        under_way => {
            let [under_way, allowed] = [under_way, trial.under_way_allowed].map(Count);
            format!(", {under_way} under way at the end ({allowed} allowed for)")
        }
    };
    format!("{rate:>14}  {what:<14}  {why}{errors}{under_way}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_takes_longer_trials_says_how_long_they_are() {
        assert_eq!(
            lengthened(41.5, Duration::from_millis(1_400)),
            "        41.5/s  takes trials of 1.4s: shorter ones could not tell whether it holds\n"
        );
    }

    #[test]
    fn a_trial_says_what_was_under_way_and_what_of_it_is_allowed_for() {
        let held = Tried {
            rate: 8_000.0,
            p99: 1_200,
            is_further: true,
            under_way: 3,
            under_way_allowed: 12,
            ..Tried::default()
        };
        let words = "p99 1.2ms, 3 under way at the end (12 allowed for)\n";
        assert_eq!(line(&held), format!("       8,000/s  held again      {words}"));
        let late = Tried {
            is_late: true,
            under_way: 0,
            miss: Some("it was late".to_owned()),
            error_share: 0.3,
            ..held
        };
        assert_eq!(line(&late), "       8,000/s  says nothing    it was late, 30 % were errors\n");
    }
}
