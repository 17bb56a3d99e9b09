//! A comparison for a terminal: what it comes to first, then the table, then how that is known.

use super::{Change, Comparison, Finding, Quantity};
use crate::rank::{self, FALSE_CLAIMS};
use crate::report::quantity::{duration, rate};
use std::fmt::Write as _;

/// The whole report.
pub fn text(comparison: &Comparison) -> String {
    let clean = |name: &str| name.replace(char::is_control, "\u{fffd}");
    let mut text = format!("{}\n", sentence(comparison));
    for warning in &comparison.warnings {
        let _ = writeln!(text, "WARNING: {}", clean(warning));
    }
    let runs = comparison.findings.first().map_or((0, 0), |finding| (finding.a.len(), finding.b.len()));
    let _ = writeln!(text, "\nMedians of {} and {}:", super::runs(runs.0), super::runs(runs.1));
    let _ = writeln!(text, "  {:<15}{:>12}{:>12}{:>8}   {:<16} p", "", "a", "b", "b / a", "interval");
    for finding in &comparison.findings {
        line(&mut text, finding);
    }
    let _ = writeln!(
        text,
        "\np: how often runs of one kind are as far apart by chance (exact rank test of Mann and Whitney). Only {} is judged, at {FALSE_CLAIMS}; \
         of the other lines one in twenty has so small a p by chance.",
        name(comparison.judged)
    );
    text
}

fn line(text: &mut String, finding: &Finding) {
    let (ratio, interval) = match finding.ratio {
        Some(ratio) => (format!("{:.3}", ratio.value), format!("{:.3} – {:.3}", ratio.low, ratio.high)),
        None => ("-".to_owned(), "-".to_owned()),
    };
    let shape = if finding.quantity == Quantity::Rate { rate } else { duration };
    let [a, b] = [&finding.a, &finding.b].map(|runs| shape(rank::median(runs.clone())));
    let name = name(finding.quantity);
    let _ = writeln!(text, "  {name:<15}{a:>12} {b:>11} {ratio:>7}   {interval:<16} {:.3}", finding.p);
}

fn name(quantity: Quantity) -> String {
    match quantity {
        Quantity::Rate => "Requests/s".to_owned(),
        Quantity::Latency(percent) => format!("Latency {percent}%"),
    }
}

/// What it comes to, in words.
fn sentence(comparison: &Comparison) -> String {
    let finding = comparison.findings.iter().find(|finding| finding.quantity == comparison.judged);
    let ratio = finding.and_then(|finding| finding.ratio);
    let between = ratio.map_or_else(String::new, |ratio| {
        format!(" ({:+.1} % to {:+.1} %)", (ratio.low - 1.0) * 100.0, (ratio.high - 1.0) * 100.0)
    });
    let by = ratio.map_or_else(String::new, |ratio| format!("{:.1} % ", (ratio.value - 1.0).abs() * 100.0));
    let is_rate = comparison.judged == Quantity::Rate;
    let latency = name(comparison.judged).replace("Latency ", "latency at ");
    match (comparison.verdict, is_rate) {
        (Change::Better, true) => {
            format!("b is faster: it answers {by}more requests per second than a{between}.")
        }
        (Change::Worse, true) => {
            format!("b is slower: it answers {by}fewer requests per second than a{between}.")
        }
        (Change::Better, false) => format!("b is faster: its {latency} is {by}shorter than a's{between}."),
        (Change::Worse, false) => format!("b is slower: its {latency} is {by}longer than a's{between}."),
        (Change::Same, _) => {
            let what = if is_rate { "requests per second".to_owned() } else { latency };
            format!(
                "No difference beyond chance was found in {what}; b / a may be anything in its interval{between}."
            )
        }
        (Change::Unknown, _) => {
            let why = comparison.why.as_deref().unwrap_or_default();
            format!("Whether they differ is unknown: {why}.")
        }
    }
}
