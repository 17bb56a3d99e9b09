//! How a run went over time: rate, errors and latency as pictures, and the same in figures.

use crate::outcome::{Outcome, Slice};
use crate::report::axis::{Scale, ends, time_ticks};
use crate::report::page::{folded, paragraphs, section};
use crate::report::plot::{Curve, Plot};
use crate::report::quantity::{Count, Number, Time, Unknown, seconds};
use crate::report::table::{FigureTable, row};

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

/// What is drawn of each slice; none where it has no such figure.
type Figure = fn(&Slice) -> Option<f64>;

pub(super) fn over_time(outcome: &Outcome) -> String {
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
