//! The results as Markdown for people and JSON for a baseline: medians over the rounds, their spread, and the ratios.

use std::fmt::Write as _;

use serde_json::json;

use crate::Options;
use crate::product::Product;
use crate::rounds::{Outcome, Series};

struct Row {
    product: Product,
    rate: f64,
    /// Half the range of the rounds, in percent of the median.
    spread: f64,
    cpu: f64,
    median: f64,
    p99: f64,
    errors: u64,
    origin: f64,
}

fn row(series: &Series) -> Row {
    let over = |value: &dyn Fn(usize) -> f64| middle((0..series.turns.len()).map(value).collect());
    let turn = |index: usize| &series.turns[index];
    let rates: Vec<f64> = series.turns.iter().map(|turn| turn.run.requests_per_second).collect();
    let (least, most) =
        rates.iter().fold((f64::MAX, 0.0_f64), |(least, most), &rate| (least.min(rate), most.max(rate)));
    let rate = middle(rates);
    Row {
        product: series.product,
        rate,
        spread: if rate > 0.0 { (most - least) / 2.0 / rate * 100.0 } else { 0.0 },
        cpu: over(&|index| turn(index).cpu),
        median: over(&|index| turn(index).run.median),
        p99: over(&|index| turn(index).run.p99),
        errors: series.turns.iter().map(|turn| turn.run.errors).sum(),
        origin: over(&|index| turn(index).origin as f64),
    }
}

pub(crate) fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count if count % 2 == 1 => values[count / 2],
        count => f64::midpoint(values[count / 2 - 1], values[count / 2]),
    }
}

/// A table per case, with the command that repeats it.
pub(crate) fn markdown(options: &Options, outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    let mut products: Vec<Product> =
        outcomes.iter().flat_map(|outcome| &outcome.series).map(|series| series.product).collect();
    products.dedup();
    for product in [Product::Nginx, Product::Haproxy, Product::Varnish] {
        let version = || match (product, &options.nginx) {
            (Product::Nginx, Some(named)) => product.version_of(named),
            _ => product.version(),
        };
        if let Some(version) = products.contains(&product).then(version).flatten() {
            let _ = writeln!(text, "- {version}");
        }
    }
    text.push_str(&bars(outcomes));
    for outcome in outcomes {
        let rows: Vec<Row> = outcome.series.iter().map(row).collect();
        let ours = rows.iter().find(|row| row.product == Product::Millstream);
        let _ = writeln!(
            text,
            "\n### {}: {}\n\n`cargo xtask bench --only {} --duration {} --rounds {}`: wrk -t2 -c{}, median of {} interleaved rounds\n",
            outcome.case.name,
            outcome.case.about,
            outcome.case.name,
            options.duration,
            options.rounds,
            outcome.case.connections.unwrap_or(options.connections),
            options.rounds,
        );
        let counts = outcome.case.counts_origin;
        let _ = writeln!(
            text,
            "| server | requests/s | ± | CPU µs/request | p50 ms | p99 ms | errors |{} ours: requests/s | ours: CPU |",
            if counts { " requests at the API |" } else { "" }
        );
        let _ = writeln!(
            text,
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |{} ---: | ---: |",
            if counts { " ---: |" } else { "" }
        );
        for row in &rows {
            let _ = writeln!(text, "{}", line(row, ours, counts));
        }
    }
    text
}

/// The CPU limit of each case relative to nginx, and what it took: one line a case.
fn bars(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        let rows: Vec<Row> = outcome.series.iter().map(row).collect();
        let of = |product| rows.iter().find(|row| row.product == product && row.cpu > 0.0 && row.rate > 0.0);
        let (Some(bar), Some(ours), Some(nginx)) =
            (outcome.case.bar, of(Product::Millstream), of(Product::Nginx))
        else {
            continue;
        };
        if text.is_empty() {
            text.push_str("\n| case | CPU beside nginx | at the most | | requests/s beside nginx |\n");
            text.push_str("| --- | ---: | ---: | --- | ---: |\n");
        }
        let (cpu, rate) = (ours.cpu / nginx.cpu, ours.rate / nginx.rate);
        let verdict = if cpu <= bar { "ok" } else { "too much" };
        let _ = writeln!(text, "| {} | {cpu:.2} | {bar:.2} | {verdict} | {rate:.2}x |", outcome.case.about);
    }
    text
}

fn line(row: &Row, ours: Option<&Row>, counts_origin: bool) -> String {
    let origin = if counts_origin { format!(" {:.0} |", row.origin) } else { String::new() };
    let (rate, cpu) = match ours {
        Some(ours) if row.product != Product::Millstream && row.rate > 0.0 && row.cpu > 0.0 => {
            (format!("{:.2}x", ours.rate / row.rate), format!("{:.2}x", ours.cpu / row.cpu))
        }
        _ => ("".into(), "".into()),
    };
    format!(
        "| {} | {:.0} | {:.0} % | {:.2} | {:.2} | {:.2} | {} |{origin} {rate} | {cpu} |",
        row.product.name(),
        row.rate,
        row.spread,
        row.cpu,
        row.median,
        row.p99,
        row.errors,
    )
}

pub(crate) fn json(options: &Options, outcomes: &[Outcome]) -> String {
    let cases: Vec<_> = outcomes
        .iter()
        .map(|outcome| {
            let servers: Vec<_> = outcome
                .series
                .iter()
                .map(row)
                .map(|row| {
                    json!({
                        "server": row.product.name(), "requests_per_second": row.rate, "spread_percent": row.spread,
                        "cpu_microseconds_per_request": row.cpu, "p50_milliseconds": row.median,
                        "p99_milliseconds": row.p99, "errors": row.errors, "requests_at_origin": row.origin,
                    })
                })
                .collect();
            json!({ "case": outcome.case.name, "about": outcome.case.about, "servers": servers })
        })
        .collect();
    let all = json!({
        "duration_seconds": options.duration, "rounds": options.rounds, "connections": options.connections, "cases": cases,
    });
    format!("{all:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(middle(vec![4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(middle(vec![9.0, 1.0, 5.0]), 5.0);
        assert_eq!(middle(Vec::new()), 0.0);
    }
}
