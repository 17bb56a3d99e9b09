//! `bench --find-max`: the search, then what was found, and each rate with what its trials showed.

use super::plan;
use crate::cli::Load;
use crate::measure::end::End;
use crate::measure::output::Output;
use millstream_load::find_max::{self, SearchSight};
use millstream_load::outcome::{Goal, Outcome, Tried};
use millstream_load::plan::{Mode, Plan};
use millstream_load::progress::Live;
use millstream_load::report;
use millstream_load::report::quantity::{Count, Quantity, Rate, Share, Time};
use millstream_load::report::table::{FigureTable, row};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const ERRORS: f64 = 0.001;
/// Trials of a usual search: some twenty to find a rate, the rest to confirm it.
const TRIALS: u32 = 35;
const RATES: usize = 10;

/// Returns the best trial; `None` if stopped before the first.
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
    live.note(&format!(
        "Searching for the highest rate that holds: {goal}; about {TRIALS} trials of {trial} each, about {whole} in all"
    ));
    let found = find_max::run(plan, plan::arrivals(flags), goal, stop, &mut |sight| match sight {
        SearchSight::Begins(None) => live.label("first guess"),
        SearchSight::Begins(Some(rate)) => live.label(&Rate(rate).to_string()),
        SearchSight::Lengthened(rate, trial) => live.note(&lengthened(rate, trial)),
        SearchSight::Goes(progress) => live.show(progress),
        SearchSight::Ended(trial) => live.note(&line(trial)),
    });
    drop(live);
    let Some(mut best) = found.map_err(|error| error.to_string())? else { return Ok(None) };
    best.thresholds = flags.fail.iter().map(|bound| bound.judge(&best)).collect();
    let columns = output.columns();
    if let Some(search) = &best.search {
        output.put(&format!("{}\n\n", search.found));
        output.put_whole(&(rates(&search.trials, best.mode).text(0, columns) + "\n"));
    }
    output.put(&report::text::report(&best, columns));
    Ok(Some(best))
}

fn rates(trials: &[Tried], mode: Mode) -> FigureTable {
    let found = if let Mode::Open { rate, .. } = mode { rate } else { 1.0 };
    let mut all: Vec<f64> = Vec::new();
    for trial in trials {
        if !all.contains(&trial.rate) {
            all.push(trial.rate);
        }
    }
    let distance = |rate: &f64| (rate / found).ln().abs();
    all.sort_by(|one, other| distance(one).total_cmp(&distance(other)));
    let mut shown: Vec<f64> = all.iter().copied().take(RATES).collect();
    shown.sort_by(|one, other| other.total_cmp(one));
    let cells = |rate: &f64| {
        let of = || trials.iter().filter(|trial| trial.rate == *rate);
        let (telling, held) =
            (of().filter(|trial| !trial.is_late), of().filter(|trial| trial.miss.is_none()));
        let longest = of().map(|trial| trial.p99).max().unwrap_or_default();
        let why = of().filter_map(|trial| trial.miss.clone()).next_back().unwrap_or_default();
        let held = format!("{} of {}", held.count(), telling.count());
        row(Rate(*rate), [held, Time(longest as f64).to_string(), why])
    };
    let caption = match all.len() > RATES {
        true => format!("Nearest of {} rates (all: --json)", all.len()),
        false => "Rate".to_owned(),
    };
    FigureTable::of(caption, &["Held", "Longest p99", "Reason"], &[3], shown.iter().map(cells))
}

fn lengthened(rate: f64, trial: Duration) -> String {
    let (rate, trial) = (Rate(rate), Quantity::from(trial));
    format!("{rate:>14}  needs trials of {trial}: shorter trials cannot show whether it holds")
}

/// `     8,000/s  held            p99 1.2ms, 3 under way at the end (12 allowed for)`.
fn line(trial: &Tried) -> String {
    let (rate, p99) = (Rate(trial.rate), Time(trial.p99 as f64));
    let (what, why) = match &trial.miss {
        None if trial.is_further => ("held again", format!("p99 {p99}")),
        None => ("held", format!("p99 {p99}")),
        Some(miss) if trial.is_late => ("inconclusive", miss.clone()),
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
    format!("{rate:>14}  {what:<14}  {why}{errors}{under_way}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_load::plan::Arrivals;

    #[test]
    fn a_rate_that_takes_longer_trials_says_how_long_they_are() {
        assert_eq!(
            lengthened(41.5, Duration::from_millis(1_400)),
            "        41.5/s  needs trials of 1.4s: shorter trials cannot show whether it holds"
        );
    }

    #[test]
    fn each_rate_has_one_line_and_of_many_those_nearest_to_the_result_are_told() {
        let trial = |rate: f64, miss: Option<&str>| Tried {
            rate,
            p99: 1_000,
            miss: miss.map(str::to_owned),
            ..Tried::default()
        };
        let mut trials: Vec<Tried> = (0..15).map(|_| trial(1e3, None)).collect();
        trials.extend([trial(1.1e3, None), trial(1.1e3, Some("it fell behind")), trial(500.0, None)]);
        let mode = Mode::Open { rate: 1e3, arrivals: Arrivals::Constant };
        let lines = "Rate       Held  Longest p99  Reason\n1,100/s   1 of 2          1ms  it fell behind\n1,000/s  15 of 15 \
                     1ms\n500/s     1 of 1          1ms\n";
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(squeezed(&rates(&trials, mode).text(0, 80)), squeezed(lines));
        trials.extend((1..40).map(|place| trial(2e3 * f64::from(place), Some("no"))));
        let table = rates(&trials, mode);
        assert_eq!((table.rows.len(), table.caption.as_str()), (RATES, "Nearest of 42 rates (all: --json)"));
        assert!(
            table.rows.iter().any(|row| row[0] == "1,000/s")
                && table.rows.iter().all(|row| row[0] != "78,000/s")
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
        let words = "p99 1.2ms, 3 under way at the end (12 allowed for)";
        assert_eq!(line(&held), format!("       8,000/s  held again      {words}"));
        let late = Tried {
            is_late: true,
            under_way: 0,
            miss: Some("it was late".to_owned()),
            error_share: 0.3,
            ..held
        };
        assert_eq!(line(&late), "       8,000/s  inconclusive    it was late, 30 % were errors");
    }
}
