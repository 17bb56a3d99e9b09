//! A comparison for a terminal: what it comes to first, then the table, then how that is known.

use super::{Change, Comparison, Finding};
use crate::metric::Metric;
use crate::rank::{self, FALSE_CLAIMS};
use crate::report::quantity::{Quantity, Share, plural};
use crate::report::table::{FigureTable, printable, row};

/// The whole report, for a terminal of so many columns.
pub fn text(comparison: &Comparison, columns: usize) -> String {
    let mut text = sentence(comparison) + "\n";
    text.extend(comparison.warnings.iter().map(|warning| format!("WARNING: {}\n", printable(warning))));
    let runs = comparison.findings.first().map_or([0; 2], |finding| [finding.a.len(), finding.b.len()]);
    let [a, b] = runs.map(|runs| plural(runs as u64, "run"));
    let (caption, head) = (format!("Medians of {a} and {b}"), ["a", "b", "b / a", "interval", "p"]);
    let table = FigureTable::of(caption, &head, &[], comparison.findings.iter().map(cells));
    text + &format!(
        "\n{}\np: how often runs of one kind are as far apart by chance (exact rank test of Mann and Whitney). Only {} is judged, at \
         {FALSE_CLAIMS}; of the other lines one in twenty has so small a p by chance.\n",
        table.text(0, columns),
        name(comparison.judged)
    )
}

fn cells(finding: &Finding) -> Vec<String> {
    let (ratio, interval) = match finding.compared.ratio {
        Some(ratio) => (format!("{:.3}", ratio.value), format!("{:.3} – {:.3}", ratio.low, ratio.high)),
        None => ("-".to_owned(), "-".to_owned()),
    };
    // A latency of 0 is that of a run without an answer.
    let is_any = |runs: &[f64]| finding.quantity == Metric::Rate || runs.iter().all(|value| *value > 0.0);
    let [a, b] = [&finding.a, &finding.b].map(|runs| match is_any(runs) {
        true => finding.quantity.told(rank::median(runs.clone())),
        false => Quantity::Unknown,
    });
    row(
        name(finding.quantity),
        [a.to_string(), b.to_string(), ratio, interval, format!("{:.3}", finding.compared.p)],
    )
}

fn name(metric: Metric) -> String {
    match metric {
        Metric::Latency(percent) => format!("Latency {percent}%"),
        _ => "Requests/s".to_owned(),
    }
}

/// What it comes to, in words.
fn sentence(comparison: &Comparison) -> String {
    let finding = comparison.findings.iter().find(|finding| finding.quantity == comparison.judged);
    let (by, between) = match finding.and_then(|finding| finding.compared.ratio) {
        Some(ratio) => (
            format!("{} ", Share((ratio.value - 1.0).abs())),
            format!(" ({:+.1} % to {:+.1} %)", (ratio.low - 1.0) * 100.0, (ratio.high - 1.0) * 100.0),
        ),
        None => (String::new(), String::new()),
    };
    let latency = name(comparison.judged).replace("Latency ", "latency at ");
    let is_rate = comparison.judged == Metric::Rate;
    let (better, worse) = if is_rate { ("more", "fewer") } else { ("shorter", "longer") };
    let is_better = comparison.verdict == Change::Better;
    let (is, than) = if is_better { ("faster", better) } else { ("slower", worse) };
    match comparison.verdict {
        Change::Unknown => {
            format!("Whether they differ is unknown: {}.", comparison.why.as_deref().unwrap_or_default())
        }
        Change::Same => {
            let what = if is_rate { "requests per second".to_owned() } else { latency };
            format!(
                "No difference beyond chance was found in {what}; b / a may be anything in its interval{between}."
            )
        }
        _ if is_rate => format!("b is {is}: it serves {by}{than} requests per second than a{between}."),
        _ => format!("b is {is}: its {latency} is {by}{than} than a's{between}."),
    }
}
