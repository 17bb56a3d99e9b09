//! The tables of a run: statistics, percentiles, errors, stages, and what became of each URL.
//!
//! A latency of which nothing was measured has no figure. Next: `run`, what else there is to say of one; `text` and `html`, which
//! show them.

use super::quantity::{Count, Number, Quantity, Share, Time, Unknown, plural, seconds};
use super::table::{FigureTable, row};
use crate::outcome::{Latency, OfUrl, Outcome, PERCENTILES, ScheduleOutcome, StageOutcome};
use crate::plan::Mode;

/// A figure of a latency, microseconds; there is none where nothing was measured.
fn if_any(is_any: bool, microseconds: f64) -> Quantity {
    if is_any { Time(microseconds) } else { Unknown }
}

/// A percentile, where it tells anything, and whether it is only known to be so long at least; 100 is the longest.
pub(super) fn told(latency: &Latency, percent: f64) -> String {
    let at_least = if latency.is_known(percent) { "" } else { "≥ " };
    let is_any = !latency.is_empty() && latency.tells(percent);
    format!("{}{}", if is_any { at_least } else { "" }, if_any(is_any, latency.percentile(percent) as f64))
}

pub(super) fn statistics(outcome: &Outcome) -> FigureTable {
    let latency = |name: &str, latency: &Latency| {
        let time = |microseconds: f64| if_any(!latency.is_empty(), microseconds);
        let [mean, deviation] = [latency.mean, latency.deviation].map(time);
        let (most, least) = (time(latency.max as f64), if_any(latency.min > 0, latency.min as f64));
        let within = within_deviation(latency).map_or(Unknown, Share);
        row(name, [mean, deviation, most, within, least])
    };
    let mut rows = vec![latency("Latency", &outcome.latency)];
    if outcome.mode != Mode::Closed {
        rows.push(latency("From send", &outcome.service));
    }
    rows.push(latency("1st byte", &outcome.first_byte));
    let slices = outcome.slices.iter().filter(|slice| slice.seconds > 0.0);
    let rates: Vec<f64> = slices.map(|slice| slice.answers as f64 / slice.seconds).collect();
    if let Some(most) = rates.iter().copied().reduce(f64::max) {
        let least = rates.iter().copied().fold(most, f64::min);
        let number = rates.len() as f64;
        let mean = rates.iter().sum::<f64>() / number;
        let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
        let deviation = (squares / (number - 1.0).max(1.0)).sqrt();
        let within = rates.iter().filter(|rate| (*rate - mean).abs() <= deviation).count() as f64 / number;
        rows.push(row(
            "Req/Sec",
            [Number(mean), Number(deviation), Number(most), Share(within), Number(least)],
        ));
    }
    FigureTable::of("Stats", &["Avg", "Stdev", "Max", "+/- Stdev", "Min"], &[], rows)
}

/// The share of all values within one standard deviation of the mean; `None` where there is nothing.
fn within_deviation(latency: &Latency) -> Option<f64> {
    let histogram = latency.decoded();
    let within = latency.mean - latency.deviation..=latency.mean + latency.deviation;
    let steps = histogram.iter_recorded().filter(|step| within.contains(&(step.value_iterated_to() as f64)));
    let within: u64 = steps.map(|step| step.count_since_last_iteration()).sum();
    (!histogram.is_empty()).then(|| within as f64 / histogram.len() as f64)
}

pub(super) fn percentiles(outcome: &Outcome) -> FigureTable {
    let mut columns = vec![("Latency", &outcome.latency), ("1st byte", &outcome.first_byte)];
    if outcome.mode != Mode::Closed {
        columns[0].0 = "From due";
        columns.insert(1, ("From send", &outcome.service));
    }
    let percents = PERCENTILES.into_iter().filter(|percent| outcome.latency.tells(*percent));
    let percents = percents.map(|percent| (format!("{percent}%"), percent));
    let cells = |(name, percent)| row(name, columns.iter().map(|(_, latency)| told(latency, percent)));
    let head: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let percents = percents.chain([("max".to_owned(), 100.0)]);
    FigureTable::of("Latency Distribution", &head, &[], percents.map(cells))
}

pub(super) fn errors(outcome: &Outcome) -> FigureTable {
    let counts = &outcome.counts;
    let failing = || counts.statuses.iter().filter(|(status, _)| **status >= 400);
    // Other statuses may have been refused (`--status`), and these may have been asked for.
    let are_all = failing().map(|(_, number)| number).sum::<u64>() == counts.errors.status;
    let statuses = failing().map(|(status, _)| status.to_string()).collect::<Vec<_>>().join(", ");
    let cells = |(kind, number, meaning): (&str, u64, &str)| {
        let which = if are_all && kind == "status" { format!(" {statuses}") } else { String::new() };
        row(format!("{kind}{which}"), [Count(number).to_string(), meaning.to_owned()])
    };
    FigureTable::of("Errors by kind", &["Requests", "Meaning"], &[2], counts.errors.found().map(cells))
}

pub(super) fn stages(outcome: &Outcome) -> FigureTable {
    let stages = match &outcome.schedule {
        Some(ScheduleOutcome::Stages(stages)) => stages.as_slice(),
        _ => &[],
    };
    // What had no answer at the end has waited in the last one that has any time, what was given up in any with errors.
    let (counts, last) = (&outcome.counts, stages.iter().rposition(|stage| stage.p99 > 0));
    let cells = |(place, stage): (usize, &StageOutcome)| {
        let is_cut = counts.unfinished > 0 && last == Some(place);
        let is_least = if is_cut || counts.errors.timeout > 0 && stage.errors > 0 { "≥ " } else { "" };
        let p99 = format!("{is_least}{}", if_any(stage.p99 > 0, stage.p99 as f64));
        let cells = [seconds(stage.seconds), Number(stage.answered), Count(stage.errors)];
        row(Number(stage.rate), cells.map(|cell| cell.to_string()).into_iter().chain([p99]))
    };
    let head = ["Within", "Responses/s", "Errors", "Longest 99%"];
    FigureTable::of("Stages, to requests/s", &head, &[], stages.iter().enumerate().map(cells))
}

/// What became of the requests for each URL, where there are several: so many at the most by themselves, and all that had errors.
pub(super) fn by_url(outcome: &Outcome, most: usize) -> FigureTable {
    let cells = |of: &OfUrl| {
        // As `Latency::tells`.
        let [p50, p99, longest] = [(of.p50, 2), (of.p99, 100), (of.max, 1)]
            .map(|(time, least)| if_any(of.answers >= least, time as f64));
        let others = || format!("({})", plural(of.urls as u64, "other"));
        let url = of.url.clone().unwrap_or_else(others);
        row(url, [Count(of.answers), Count(of.errors), p50, p99, longest])
    };
    let (shown, left): (Vec<_>, Vec<_>) =
        outcome.by_url.iter().enumerate().partition(|(place, of)| *place < most || of.errors > 0);
    let mut rows: Vec<Vec<String>> = shown.into_iter().map(|(_, of)| cells(of)).collect();
    match left.as_slice() {
        [] => {}
        [(_, of)] => rows.push(cells(of)),
        _ => {
            let urls = left.iter().map(|(_, of)| of.urls).sum::<usize>();
            let answers = Count(left.iter().map(|(_, of)| of.answers).sum());
            let which = if left.iter().any(|(_, of)| of.url.is_none()) { " for the most asked" } else { "" };
            let name = format!("{} more without errors, see --json or --html{which}", Count(urls as u64));
            rows.push(row(name, [answers, Count(0), Unknown, Unknown, Unknown]));
        }
    }
    let head = ["Responses", "Errors", "Median", "99%", "Longest"];
    FigureTable::of("By URL, slowest in total first", &head, &[], rows)
}
