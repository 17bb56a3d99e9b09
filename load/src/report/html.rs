//! One outcome as a page: what it came to, the distribution of its latencies, how it went over time, and the figures.
//!
//! Pictures say nothing that the tables below do not. Next: `run` for what is said, `steps` for several measurements beside each other.

mod over_time;

use super::axis::{Percentiles, Scale};
use super::page::{folded, page, paragraphs, section, warning};
use super::plot::{Curve, Plot};
use super::quantity::{Number, Share, Time};
use super::table::{FigureTable, row};
use super::{figures, run};
use crate::outcome::{Latency, Outcome, SearchOutcome};
use crate::plan::Mode;
use over_time::over_time;

/// How finely the distribution is gone through: steps for each halving of what is left.
const STEPS_PER_HALF: u32 = 8;

/// The page of a run.
pub fn html(outcome: &Outcome) -> String {
    let remarks = run::remarks(outcome).map(|(name, why)| warning(&format!("{name}: {why}")));
    let body = [
        remarks.collect(),
        paragraphs(outcome.limit.as_deref()),
        outcome.search.as_ref().map_or_else(String::new, search),
        distribution(outcome),
        over_time(outcome),
        section("Responses and errors"),
        figures::by_url(outcome, usize::MAX).html(),
        figures::errors(outcome).html(),
        figures::stages(outcome).html(),
        section("How it was measured"),
        facts(outcome).html(),
    ];
    let answer = run::answer(outcome);
    let title = format!("{answer}: {}", run::named(&outcome.urls, 1));
    page(&title, &answer, &run::subject(outcome), &body.concat())
}

/// What was searched for and found, and each rate that was tried.
fn search(search: &SearchOutcome) -> String {
    let trials = search.trials.iter().map(|trial| {
        let figures = [Number(trial.answered), Time(trial.p99 as f64), Share(trial.error_share)];
        let held = trial.miss.clone().unwrap_or_else(|| "held".to_owned());
        row(Number(trial.rate), figures.map(|figure| figure.to_string()).into_iter().chain([held]))
    });
    let head = ["Responses/s", "99%", "Errors", "What came of it"];
    let table = FigureTable::of("Requests/s in the order in which they were tried", &head, &[4], trials);
    let told = format!("{}. Searched for: {}. Below is the run at that rate.", search.found, search.goal);
    paragraphs([told.as_str()]) + &folded("Every rate that was tried", &table.html())
}

/// A distribution as shares and values, in order.
fn shares(latency: &Latency) -> Vec<(f64, f64)> {
    let histogram = latency.decoded();
    let steps = histogram.iter_quantiles(STEPS_PER_HALF).filter(|_| !histogram.is_empty());
    let value = |value: u64| value.min(histogram.max()) as f64;
    steps.map(|step| (step.quantile_iterated_to(), value(step.value_iterated_to()))).collect()
}

fn distribution(outcome: &Outcome) -> String {
    let latency = shares(&outcome.latency);
    if latency.is_empty() {
        return section("Latency by percentile")
            + &paragraphs(["No response arrived, so there is no latency."]);
    }
    let mut told = vec![("from when it was sent", "first", latency)];
    if outcome.mode != Mode::Closed {
        told[0].0 = "from when it should have started";
        told.push(("from when it was sent", "second", shares(&outcome.service)));
    }
    let axis = Percentiles::of(outcome.latency.decoded().len());
    let scale = Scale::fitting(told.iter().flat_map(|(.., shares)| shares).map(|(_, value)| *value));
    let curves = told.iter().map(|(name, class, shares)| {
        let points = shares.iter().map(|(share, value)| (axis.place(*share), scale.place(*value))).collect();
        Curve { name, class, points }
    });
    let told = [("half", 50.0), ("99%", 99.0), ("99.9%", 99.9)].into_iter();
    let told = told.filter(|(_, percent)| outcome.latency.tells(*percent));
    let time = |percent: f64| Time(outcome.latency.percentile(percent) as f64);
    let within: String = told.map(|(share, percent)| format!("{share} within {}, ", time(percent))).collect();
    let plot = Plot {
        id: "distribution",
        caption: "Latency by percentile",
        description: &format!(
            "Of all responses {within}the last after {}. Each nine is as wide as the one before{}.",
            time(100.0),
            scale.remark()
        ),
        across: axis.ticks(),
        upwards: scale.ticks(|value| Time(value).to_string()),
        curves: curves.collect(),
    };
    let tables = figures::percentiles(outcome).html() + &figures::statistics(outcome).html();
    plot.figure(&folded("The same in figures", &tables))
}

fn facts(outcome: &Outcome) -> FigureTable {
    let facts = run::setup(outcome).into_iter().chain(run::facts(outcome));
    FigureTable::of("The run", &["Value"], &[1], facts.map(|(name, words)| row(name, [words])))
}
