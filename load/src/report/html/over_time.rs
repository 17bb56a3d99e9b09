//! How a run went over time: rate, errors and latency as pictures, and the same in figures.

use super::{row, scale_remark};
use crate::outcome::{Outcome, Slice};
use crate::report::axis::{Scale, ends, time_ticks};
use crate::report::page::{folded, table};
use crate::report::plot::{Curve, Plot};
use crate::report::quantity::{count, duration, rate, span, tick};

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

/// The pictures, and their table.
pub(super) fn over_time(outcome: &Outcome) -> String {
    let slices = merged(&outcome.slices, POINTS);
    let (Some(first), Some(last)) = (slices.first(), slices.last()) else {
        return "<h2>Over time</h2><p>The run was too short to be told apart in time.</p>".to_owned();
    };
    let (end, each) = (last.at + last.seconds, span(first.seconds));
    let x = |slice: &Slice| ((slice.at + slice.seconds / 2.0) / end).clamp(0.0, 1.0);
    let curve = |(name, class), scale: Scale, value: &dyn Fn(&Slice) -> Option<f64>| {
        let points = slices.iter().filter_map(|slice| Some((x(slice), scale.place(value(slice)?))));
        Curve { name, class, points: points.collect() }
    };
    let figure = |(id, caption), description: &str, upwards, curves, below: &str| {
        Plot { id, caption, description, across: time_ticks(end), upwards, curves }.figure(below)
    };
    let answers = |slice: &Slice| Some(slice.answers as f64 / slice.seconds);
    let errors = |slice: &Slice| Some(slice.errors as f64 / slice.seconds);
    let (least, most) = ends(slices.iter().filter_map(answers));
    let scale = Scale::linear(most);
    let mut html = figure(
        ("rate", "Rate over time"),
        &format!("Between {} and {} answers per second, in slices of {each}.", rate(least), rate(most)),
        scale.ticks(tick),
        vec![curve(("answers per second", "first"), scale, &answers)],
        "",
    );
    let (_, most) = ends(slices.iter().filter_map(errors));
    if most > 0.0 {
        // On a scale of their own: beside many answers a few would be a line at the bottom.
        let scale = Scale::linear(most);
        html += &figure(
            ("errors", "Errors over time"),
            &format!("At the most {} per second.", rate(most)),
            scale.ticks(tick),
            vec![curve(("errors per second", "error"), scale, &errors)],
            "",
        );
    }
    // A slice in which nothing was answered has no latency; it is left out, not drawn as 0.
    let p50 = |slice: &Slice| (slice.max > 0).then_some(slice.p50 as f64);
    let p99 = |slice: &Slice| (slice.max > 0).then_some(slice.p99 as f64);
    let scale = Scale::fitting(slices.iter().filter_map(p50).chain(slices.iter().filter_map(p99)));
    let latencies = figure(
        ("latency", "Latency over time"),
        &format!("Median and 99th percentile of each slice of {each}{}.", scale_remark(scale)),
        scale.ticks(|value| span(value / 1e6)),
        vec![curve(("median", "first"), scale, &p50), curve(("99th percentile", "second"), scale, &p99)],
        &times(outcome),
    );
    html + &latencies
}

fn times(outcome: &Outcome) -> String {
    let cells = |slice: &Slice| {
        let times = [slice.p50, slice.p99, slice.max].map(|microseconds| duration(microseconds as f64));
        let counts = [rate(slice.answers as f64 / slice.seconds), count(slice.errors)];
        row(&format!("{:.1}s", slice.at), counts.into_iter().chain(times))
    };
    let rows: Vec<Vec<String>> = merged(&outcome.slices, ROWS).iter().map(cells).collect();
    let head = ["From", "Answers/s", "Errors", "Median", "99%", "Longest"];
    folded("Both in figures", &table("Rate and latency over time", &head, &rows, &[]))
}
