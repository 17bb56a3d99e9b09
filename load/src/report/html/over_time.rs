//! How a run went over time: rate, errors and latency as pictures, and the same in figures.

use super::{TICKS, row, scale_remark};
use crate::outcome::{Outcome, Slice};
use crate::report::axis::{Scale, duration_ticks, rate_ticks, time_ticks};
use crate::report::page::{folded, table};
use crate::report::plot::{Curve, Plot};
use crate::report::quantity::{count, duration, rate, span};

/// The most points of a curve over time: more than that, and neighbours are drawn as one.
const POINTS: usize = 300;
/// The most rows of the table of times.
const ROWS: usize = 30;

/// Neighbouring slices as one where there are more than `most`: counts added, the median averaged, the rest the worst.
fn merged(slices: &[Slice], most: usize) -> Vec<Slice> {
    let whole: Vec<&Slice> = slices.iter().filter(|slice| slice.seconds > 0.0).collect();
    let together = whole.len().div_ceil(most).max(1);
    whole
        .chunks(together)
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
    let end = last.at + last.seconds;
    let x = |slice: &Slice| middle(slice, end);
    let answers = |slice: &Slice| slice.answers as f64 / slice.seconds;
    let scale = Scale::linear(slices.iter().map(answers).fold(0.0, f64::max), TICKS);
    let curve = |name, class, scale: Scale, value: &dyn Fn(&Slice) -> f64| Curve {
        name,
        class,
        points: slices.iter().map(|slice| (x(slice), scale.place(value(slice)))).collect(),
    };
    let (least, most) = slices
        .iter()
        .map(answers)
        .fold((f64::INFINITY, 0.0f64), |(least, most), value| (least.min(value), most.max(value)));
    let each = span(first.seconds);
    let rates = Plot {
        id: "rate",
        caption: "Rate over time",
        description: &format!(
            "Between {} and {} answers per second, in slices of {each}.",
            rate(least),
            rate(most)
        ),
        across: time_ticks(end, 10),
        upwards: rate_ticks(scale, TICKS),
        curves: vec![curve("answers per second", "first", scale, &answers)],
    };
    // A slice in which nothing was answered has no latency; it is left out, not drawn as 0.
    let answered: Vec<Slice> = slices.iter().copied().filter(|slice| slice.max > 0).collect();
    let scale = Scale::fitting(answered.iter().flat_map(|slice| [slice.p50 as f64, slice.p99 as f64]), TICKS);
    let curve = |name, class, value: fn(&Slice) -> u64| Curve {
        name,
        class,
        points: answered.iter().map(|slice| (x(slice), scale.place(value(slice) as f64))).collect(),
    };
    let latencies = Plot {
        id: "latency",
        caption: "Latency over time",
        description: &format!("Median and 99th percentile of each slice of {each}{}.", scale_remark(scale)),
        across: time_ticks(end, 10),
        upwards: duration_ticks(scale, TICKS),
        curves: vec![
            curve("median", "first", |slice| slice.p50),
            curve("99th percentile", "second", |slice| slice.p99),
        ],
    };
    rates.figure("") + &errors(&slices, end) + &latencies.figure(&times(outcome))
}

/// Errors on a scale of their own: beside many answers a few would be a line at the bottom. Nothing where there are none.
fn errors(slices: &[Slice], end: f64) -> String {
    let errors = |slice: &Slice| slice.errors as f64 / slice.seconds;
    let most = slices.iter().map(errors).fold(0.0, f64::max);
    if most == 0.0 {
        return String::new();
    }
    let scale = Scale::linear(most, TICKS);
    let plot = Plot {
        id: "errors",
        caption: "Errors over time",
        description: &format!("At the most {} per second.", rate(most)),
        across: time_ticks(end, 10),
        upwards: rate_ticks(scale, TICKS),
        curves: vec![Curve {
            name: "errors per second",
            class: "error",
            points: slices.iter().map(|slice| (middle(slice, end), scale.place(errors(slice)))).collect(),
        }],
    };
    plot.figure("")
}

/// Where the middle of a slice stands in a run that ends at `end`, from 0 to 1.
fn middle(slice: &Slice, end: f64) -> f64 {
    ((slice.at + slice.seconds / 2.0) / end).clamp(0.0, 1.0)
}

fn times(outcome: &Outcome) -> String {
    let rows: Vec<Vec<String>> = merged(&outcome.slices, ROWS)
        .iter()
        .map(|slice| {
            row(
                &format!("{:.1}s", slice.at),
                [
                    rate(slice.answers as f64 / slice.seconds),
                    count(slice.errors),
                    duration(slice.p50 as f64),
                    duration(slice.p99 as f64),
                    duration(slice.max as f64),
                ],
            )
        })
        .collect();
    let head = ["From", "Answers/s", "Errors", "Median", "99%", "Longest"];
    folded("Both in figures", &table("Rate and latency over time", &head, &rows, &[]))
}
