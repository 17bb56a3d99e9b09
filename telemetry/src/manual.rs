//! The page of the manual that lists every metric, from the table that counts them.
//!
//! It never says more than the table does, so `docs/metrics.md` cannot be out of date. `xtask` writes the file.

use crate::metrics::{Cause, CauseFamily, Counter, Described, Gauge, MetricLine, Timing, families};
use std::fmt::Write;

/// `docs/metrics.md`.
pub fn metrics_markdown() -> String {
    let mut page = String::from(
        "# Metrics\n\nGenerated from `telemetry/src/metrics/table.rs`; change it there.\n\n\
         Counters start with the process and survive a reload. `GET …/metrics` of the API returns all metrics, in Prometheus's text \
         format or as OpenMetrics. They are always available on the control socket:\n\n    \
         curl --unix-socket /etc/millstream/logs/nginx.sock http://localhost/metrics\n\n\
         A location with the API provides them too, for example for Prometheus on another machine:\n\n    \
         location /api/ {\n        api;\n        api_allow 127.0.0.1 10.0.0.5;\n    }\n\n\
         There it is `GET /api/metrics`. With `metrics_interval` in `otel_exporter`, all metrics are also sent to an OpenTelemetry collector \
         ([tracing.md](tracing.md#metrics)). The state of each cache zone is in `GET …/caches`; see [purging.md](purging.md).\n",
    );
    section(&mut page, "Counters", Counter::ALL.iter().map(|counter| counter.line()));
    section(&mut page, "Gauges", Gauge::ALL.iter().map(|gauge| gauge.line()));
    section(&mut page, "Histograms, in seconds", Timing::ALL.iter().map(|timing| timing.line()));
    // Writing to a String cannot fail.
    for (title, doc, families) in families() {
        let _ = write!(
            page,
            "\n## {title}\n\n{doc}\n\n| metric | kind | what it counts |\n| --- | --- | --- |\n"
        );
        for Described { name, kind, doc } in families {
            let _ = writeln!(page, "| `{name}` | {kind} | {doc} |");
        }
    }
    let _ =
        write!(page, "\n## Misses\n\nOne set for each location with a cache, with the label `location`.\n");
    for family in [CauseFamily::Miss, CauseFamily::NotStored] {
        let MetricLine { name, doc, .. } = family.line();
        let _ = write!(page, "\n`{name}`: {doc}\n\n| cause | meaning |\n| --- | --- |\n");
        for (word, doc) in Cause::described(family) {
            let _ = writeln!(page, "| `{word}` | {doc} |");
        }
    }
    page
}

fn section<'a>(page: &mut String, title: &str, lines: impl Iterator<Item = &'a MetricLine>) {
    let _ = write!(page, "\n## {title}\n\n| metric | labels | what it counts |\n| --- | --- | --- |\n");
    for MetricLine { name, labels, doc } in lines {
        let labels = if labels.is_empty() { String::new() } else { format!("`{labels}`") };
        let _ = writeln!(page, "| `{name}` | {labels} | {doc} |");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_row_for_every_line_of_the_tables() {
        let page = metrics_markdown();
        let rows = page
            .lines()
            .filter(|line| ["| `millstream_", "| `process_"].iter().any(|start| line.starts_with(start)))
            .count();
        let of_many: usize = families().iter().map(|(.., families)| families.len()).sum();
        assert_eq!(rows, Counter::COUNT + Gauge::COUNT + Timing::COUNT + of_many);
    }
}
