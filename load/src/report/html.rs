//! One outcome as a page: what it came to, the distribution of its latencies, how it went over time, and the figures.
//!
//! Pictures say nothing that the tables below do not. Next: `run` for what is said, `steps` for several measurements beside each other.

use super::page::{folded, page, paragraphs, section, warning};
use super::plot::{Curve, PercentileAxis, Plot, Scale, ends, time_ticks};
use super::quantity::{Count, Number, Share, Time, Unknown, seconds};
use super::table::{FigureTable, row};
use super::{figures, run};
use crate::outcome::{Latency, Outcome, SearchOutcome, Slice};
use crate::plan::Mode;

/// How finely the distribution is gone through: steps for each halving of what is left.
const STEPS_PER_HALF: u32 = 8;

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

fn search(search: &SearchOutcome) -> String {
    let trials = search.trials.iter().map(|trial| {
        let figures = [Number(trial.answered), Time(trial.p99 as f64), Share(trial.error_share)];
        let held = trial.miss.clone().unwrap_or_else(|| "held".to_owned());
        row(Number(trial.rate), figures.map(|figure| figure.to_string()).into_iter().chain([held]))
    });
    let head = ["Responses/s", "99%", "Errors", "Result"];
    let table = FigureTable::of("Requests/s in the order in which they were tried", &head, &[4], trials);
    let told = format!("{}. Searched for: {}. Below is the run at that rate.", search.found, search.goal);
    paragraphs([told.as_str()]) + &folded("Every rate that was tried", &table.html())
}

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
    let axis = PercentileAxis::of(outcome.latency.decoded().len());
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

/// The most points of a curve over time: more than that, and neighbours are drawn as one.
const POINTS: usize = 300;
/// The most rows of the table of times.
const ROWS: usize = 30;

/// Neighbouring slices as one where there are more than `most`: counts added, the median averaged, the rest the worst.
fn merged(slices: &[Slice], most: usize) -> Vec<Slice> {
    let whole: Vec<&Slice> = slices.iter().filter(|slice| slice.seconds > 0.0).collect();
    whole
        .chunks(whole.len().div_ceil(most).max(1))
        .map(|chunk| Slice {
            at: chunk[0].at,
            seconds: chunk.iter().map(|slice| slice.seconds).sum(),
            answers: chunk.iter().map(|slice| slice.answers).sum(),
            errors: chunk.iter().map(|slice| slice.errors).sum(),
            mean: chunk.iter().map(|slice| slice.mean).sum::<f64>() / chunk.len() as f64,
            p50: chunk.iter().map(|slice| slice.p50).sum::<u64>() / chunk.len() as u64,
            p99: chunk.iter().map(|slice| slice.p99).max().unwrap_or(0),
            max: chunk.iter().map(|slice| slice.max).max().unwrap_or(0),
        })
        .collect()
}

type Figure = fn(&Slice) -> Option<f64>;

fn over_time(outcome: &Outcome) -> String {
    let slices = merged(&outcome.slices, POINTS);
    let (Some(first), Some(last)) = (slices.first(), slices.last()) else {
        return section("Over time") + &paragraphs(["The run was too short for a chart over time."]);
    };
    let (end, each) = (last.at + last.seconds, seconds(first.seconds));
    let x = |slice: &Slice| ((slice.at + slice.seconds / 2.0) / end).clamp(0.0, 1.0);
    let figure = |(id, caption),
                  description: &str,
                  scale: Scale,
                  unit: fn(f64) -> String,
                  lines: &[(_, _, Figure)],
                  below: &str| {
        let curve = |&(name, class, value): &(_, _, Figure)| {
            let points = slices.iter().filter_map(|slice| Some((x(slice), scale.place(value(slice)?))));
            Curve { name, class, points: points.collect() }
        };
        let curves = lines.iter().map(curve).collect();
        Plot { id, caption, description, across: time_ticks(end), upwards: scale.ticks(unit), curves }
            .figure(below)
    };
    let answers: Figure = |slice| Some(slice.answers as f64 / slice.seconds);
    let errors: Figure = |slice| Some(slice.errors as f64 / slice.seconds);
    let number = |value: f64| Number(value).to_string();
    let (least, most) = ends(slices.iter().filter_map(answers));
    let mut html = figure(
        ("rate", "Rate over time"),
        &format!("Between {} and {} responses per second, in slices of {each}.", Number(least), Number(most)),
        Scale::linear(most),
        number,
        &[("responses per second", "first", answers)],
        "",
    );
    let (_, most) = ends(slices.iter().filter_map(errors));
    if most > 0.0 {
        // On a scale of their own: beside many answers a few would be a line at the bottom.
        html += &figure(
            ("errors", "Errors over time"),
            &format!("At the most {} per second.", Number(most)),
            Scale::linear(most),
            number,
            &[("errors per second", "error", errors)],
            "",
        );
    }
    // A slice in which nothing was answered has no latency; it is left out, not drawn as 0.
    let p50: Figure = |slice| (slice.max > 0).then_some(slice.p50 as f64);
    let p99: Figure = |slice| (slice.max > 0).then_some(slice.p99 as f64);
    let scale = Scale::fitting(slices.iter().filter_map(p50).chain(slices.iter().filter_map(p99)));
    html + &figure(
        ("latency", "Latency over time"),
        &format!(
            "Median and 99th percentile (of few, the longest) of each slice of {each}{}.",
            scale.remark()
        ),
        scale,
        |microseconds| Time(microseconds).to_string(),
        &[("median", "first", p50), ("99th percentile", "second", p99)],
        &folded("Both in figures", &times(outcome).html()),
    )
}

fn times(outcome: &Outcome) -> FigureTable {
    let cells = |slice: &Slice| {
        let [p50, p99, longest] = [slice.p50, slice.p99, slice.max].map(|time| Time(time as f64));
        // As `Latency::tells`.
        let p99 = if slice.answers < 100 { Unknown } else { p99 };
        let rate = Number(slice.answers as f64 / slice.seconds);
        row(format!("{:.1}s", slice.at), [rate, Count(slice.errors), p50, p99, longest])
    };
    let head = ["Responses/s", "Errors", "Median", "99%", "Longest"];
    FigureTable::of("Rate and latency over time", &head, &[], merged(&outcome.slices, ROWS).iter().map(cells))
}
