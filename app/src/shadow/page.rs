//! The report of `shadow` for people: in a terminal and as a page, as the reports of `ladder` and `capacity` are.
//!
//! Nothing is judged here. Before: `millstream-shadow`'s `report`; next: `millstream-load`'s `report::steps`, which draws it.

use millstream_load::report::steps::Page;
use millstream_load::report::table::{FigureTable, row};
use millstream_shadow::Report;
use millstream_shadow::report::RouteReport;
use millstream_shadow::words::{grouped, time};

const HEAD: [&str; 7] = ["requests", "API time", "keep for", "hit ratio", "saved", "varies by", "verdict"];
/// The columns that are words.
const WORDS: &[usize] = &[6, 7];

/// `urls`: the API.
pub fn page(report: &Report, urls: &[String], commands: Vec<String>) -> Page {
    let others = report.totals.requests_of_other_routes;
    let others = (others > 0).then(|| {
        format!(
            "{} requests outside these routes, such as the first to each path, which are not cached.",
            grouped(others)
        )
    });
    Page {
        title: format!("What can be cached of {}", urls.join(", ")),
        subtitle: format!(
            "{} requests in {}",
            grouped(report.totals.requests),
            time(report.duration_seconds)
        ),
        answer: vec![report.summary()],
        commands,
        tables: vec![figures(report)],
        notes: others.into_iter().collect(),
        ..Page::default()
    }
}

/// The most valuable routes first.
pub fn figures(report: &Report) -> FigureTable {
    FigureTable::of("route", &HEAD, WORDS, report.routes.iter().map(figure))
}

fn figure(route: &RouteReport) -> Vec<String> {
    let none = || "-".to_owned();
    let (keep, ratio, saved) = match (route.keep_seconds, &route.needs) {
        (Some(seconds), _) => (
            format!("{seconds} s"),
            format!("{:.0} %", f64::midpoint(route.hit_ratio[0], route.hit_ratio[1]) * 100.0),
            time(route.saved_seconds),
        ),
        (None, Some(_)) => ("not yet".to_owned(), none(), none()),
        (None, None) => ("never".to_owned(), none(), none()),
    };
    let ignored = route.ignores.iter().map(|label| format!("not {label}"));
    let varies: Vec<String> = route.varies_by.iter().cloned().chain(ignored).collect();
    let varies = if varies.is_empty() { none() } else { varies.join(", ") };
    let (requests, api) = (grouped(route.requests), time(route.api_seconds));
    row(&route.route, [requests, api, keep, ratio, saved, varies, route.reason.clone()])
}

#[cfg(test)]
mod tests;
