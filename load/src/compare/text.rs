//! A comparison for a terminal: the warnings first, then the table, then in words what it means and how that is known.

use super::{Comparison, Difference, Finding, Ratio};
use crate::report::quantity::{duration, rate};
use std::fmt::Write as _;

/// The whole report; `names` are what the runs are called, such as their files.
pub fn text(comparison: &Comparison, names: (&str, &str)) -> String {
    let clean = |name: &str| name.replace(char::is_control, "\u{fffd}");
    let mut text = format!("a: {}\nb: {}\n", clean(names.0), clean(names.1));
    for warning in &comparison.warnings {
        let _ = writeln!(text, "WARNING: {}", clean(warning));
    }
    let _ = writeln!(text, "\n  {:<15}{:>12}{:>12}{:>8}   {:<16} verdict", "", "a", "b", "b / a", "interval");
    line(&mut text, &comparison.rate, rate);
    for finding in &comparison.percentiles {
        line(&mut text, finding, duration);
    }
    let _ = writeln!(text, "\n{}", sentence(comparison));
    if !comparison.rate_method.is_empty() {
        let _ = writeln!(text, "Rate: {}.", comparison.rate_method);
    }
    let _ = writeln!(text, "Latency: {}.", comparison.percentile_method);
    text.push_str(
        "Both methods know only the noise within a run. Repeat both in turn to see what changes from run \
     to run.\n",
    );
    text
}

fn line(text: &mut String, finding: &Finding, shape: fn(f64) -> String) {
    let (ratio, interval) = match finding.ratio {
        Some(Ratio { value, low, high }) => (format!("{value:.3}"), format!("{low:.3} – {high:.3}")),
        None => ("-".to_owned(), "-".to_owned()),
    };
    let verdict = match &finding.verdict {
        Difference::Differs if finding.ratio.is_none() => {
            "differs: all answers of one took longer".to_owned()
        }
        Difference::Differs => "differs by more than noise".to_owned(),
        Difference::Noise => "within noise".to_owned(),
        Difference::Unknown(why) => format!("inconclusive: {why}"),
    };
    let (a, b) = (shape(finding.a), shape(finding.b));
    let _ = writeln!(text, "  {:<15}{a:>12} {b:>11} {ratio:>7}   {interval:<16} {verdict}", finding.name);
}

/// What it comes to, in words.
fn sentence(comparison: &Comparison) -> String {
    let rate = match (&comparison.rate.verdict, comparison.rate.ratio) {
        (Difference::Differs, Some(ratio)) => format!(
            "b answers {} requests per second than a ({})",
            changed(ratio.value, "more", "fewer"),
            between(ratio)
        ),
        (Difference::Noise, Some(ratio)) => {
            format!("Requests per second differ by no more than noise ({} is possible)", between(ratio))
        }
        (Difference::Unknown(why), _) => format!("Requests per second are not compared: {why}"),
        _ => String::new(),
    };
    let by = |is_longer: bool| {
        let names: Vec<&str> = comparison
            .percentiles
            .iter()
            .filter(|finding| finding.verdict == Difference::Differs && (finding.b > finding.a) == is_longer)
            .filter_map(|finding| finding.name.strip_prefix("Latency "))
            .collect();
        names.join(", ")
    };
    let is_known = |finding: &Finding| !matches!(finding.verdict, Difference::Unknown(_));
    if !comparison.percentiles.iter().any(is_known) {
        return format!("{rate}; nothing can be said about its latency.");
    }
    let (slower, faster) = (by(true), by(false));
    let latency = match (slower.as_str(), faster.as_str()) {
        ("", "") => "no percentile of latency that can be compared differs by more than noise".to_owned(),
        (slower, "") => format!("its latency is longer at {slower}"),
        ("", faster) => format!("its latency is shorter at {faster}"),
        (slower, faster) => format!("its latency is longer at {slower} and shorter at {faster}"),
    };
    format!("{rate}; {latency}.")
}

fn changed(ratio: f64, more: &str, fewer: &str) -> String {
    format!("{:.1} % {}", (ratio - 1.0).abs() * 100.0, if ratio > 1.0 { more } else { fewer })
}

fn between(ratio: Ratio) -> String {
    format!("{:+.1} % to {:+.1} %", (ratio.low - 1.0) * 100.0, (ratio.high - 1.0) * 100.0)
}
