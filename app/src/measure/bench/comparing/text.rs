//! A comparison for a terminal: what it comes to first, then the table, then how that is known.

use millstream_load::compare::{Change, Comparison, Finding};
use millstream_load::metric::Metric;
use millstream_load::rank::{self, FALSE_CLAIMS};
use millstream_load::report::quantity::{Share, plural};
use millstream_load::report::table::{FigureTable, row};

/// The whole report.
pub(super) fn text(comparison: &Comparison) -> String {
    let mut text = sentence(comparison) + "\n";
    text.extend(comparison.warnings.iter().map(|warning| {
        // A file's name must not look like a line of ours.
        format!("WARNING: {}\n", warning.replace('\n', "\\x0a"))
    }));
    let runs = comparison.findings.first().map_or([0; 2], |finding| [finding.a.len(), finding.b.len()]);
    let [a, b] = runs.map(|runs| plural(runs as u64, "run"));
    let (caption, head) = (format!("Medians of {a} and {b}"), ["a", "b", "b / a", "interval", "p"]);
    let table = FigureTable::of(caption, &head, &[], comparison.findings.iter().map(cells));
    text + &format!(
        "\n{}\np: how often runs of one kind are as far apart by chance (exact rank test of Mann and Whitney). Only {} is judged, at \
         {FALSE_CLAIMS}; of the other lines one in twenty has so small a p by chance.\n",
        table.text(0),
        name(comparison.judged)
    )
}

fn cells(finding: &Finding) -> Vec<String> {
    let (ratio, interval) = match finding.compared.ratio {
        Some(ratio) => (format!("{:.3}", ratio.value), format!("{:.3} – {:.3}", ratio.low, ratio.high)),
        None => ("-".to_owned(), "-".to_owned()),
    };
    let [a, b] = [&finding.a, &finding.b].map(|runs| finding.quantity.told(rank::median(runs.clone())));
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
        _ if is_rate => format!("b is {is}: it answers {by}{than} requests per second than a{between}."),
        _ => format!("b is {is}: its {latency} is {by}{than} than a's{between}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_says_whether_they_differ_and_by_how_much() {
        let side = |rate: f64| [0.98, 0.99, 1.0, 1.01].map(|part| part * rate);
        let finding = |quantity, a: f64, b: f64| {
            let (a, b) = (side(a).to_vec(), side(b).to_vec());
            Finding { quantity, compared: rank::compare(&a, &b), a, b }
        };
        let told = |verdict, judged, finding| {
            let why = (verdict == Change::Unknown).then(|| "1 run against 1 run".to_owned());
            let warnings = vec!["SHORT in b0: 1s".to_owned()];
            let told = text(&Comparison { warnings, verdict, why, judged, findings: vec![finding] });
            assert_eq!(told.lines().nth(1), Some("WARNING: SHORT in b0: 1s"));
            told.lines().next().unwrap_or_default().to_owned()
        };
        let (rate, p99) = (Metric::Rate, Metric::Latency(99.0));
        let faster = told(Change::Better, rate, finding(rate, 100.0, 120.0));
        assert!(
            faster.starts_with("b is faster: it answers 20 % more requests per second than a (+"),
            "{faster}"
        );
        let slower = told(Change::Worse, p99, finding(p99, 100.0, 120.0));
        assert!(slower.starts_with("b is slower: its latency at 99% is 20 % longer than a's (+"), "{slower}");
        let same = told(Change::Same, rate, finding(rate, 100.0, 100.0));
        assert!(same.starts_with("No difference beyond chance was found in requests per second;"), "{same}");
        let unknown = told(Change::Unknown, rate, finding(rate, 100.0, 100.0));
        assert_eq!(unknown, "Whether they differ is unknown: 1 run against 1 run.");
    }
}
