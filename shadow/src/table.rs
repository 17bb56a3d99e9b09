//! The report as a table for a terminal.
//!
//! Before: `report`.

use crate::report::{Report, RouteReport};
use std::fmt::Write;

const COLUMNS: [&str; 8] =
    ["route", "requests", "API time", "keep for", "hit ratio", "saved", "varies by", "verdict"];

/// Letters of a column beyond which a text is cut.
const WIDEST: usize = 44;

impl Report {
    pub fn table(&self) -> String {
        let mut rows = vec![COLUMNS.map(str::to_owned)];
        rows.extend(self.routes.iter().map(row));
        let width = |column: usize| {
            rows.iter().map(|row| row[column].chars().count().min(WIDEST)).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
        let mut text = String::new();
        for row in &rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let is_last = column + 1 == COLUMNS.len();
                let cell = if is_last { cell.clone() } else { cut(cell) };
                let is_number = (1..=5).contains(&column);
                let width = if is_last { 0 } else { widths[column] };
                _ = if is_number {
                    write!(line, "{cell:>width$}  ")
                } else {
                    write!(line, "{cell:<width$}  ")
                };
            }
            _ = writeln!(text, "{}", line.trim_end());
        }
        let others = self.totals.requests_of_other_routes;
        if others > 0 {
            _ = writeln!(text, "\n{} requests to other paths, which are not cached", grouped(others));
        }
        text
    }
}

fn cut(text: &str) -> String {
    if text.chars().count() <= WIDEST {
        return text.to_owned();
    }
    text.chars().take(WIDEST - 1).chain(['…']).collect()
}

fn row(route: &RouteReport) -> [String; 8] {
    let dash = || "-".to_owned();
    let (keep, ratio, saved) = match (route.keep_seconds, route.needs) {
        (Some(seconds), _) => (
            format!("{seconds} s"),
            format!("{:.0} %", (route.hit_ratio[0] + route.hit_ratio[1]) * 50.0),
            time(route.saved_seconds),
        ),
        (None, Some(_)) => ("not yet".to_owned(), dash(), dash()),
        (None, None) => ("never".to_owned(), dash(), dash()),
    };
    let mut varies = route.varies_by.clone();
    varies.extend(route.ignores.iter().map(|label| format!("not {label}")));
    let varies = if varies.is_empty() { dash() } else { varies.join(", ") };
    let (requests, api) = (grouped(route.requests), time(route.api_seconds));
    [route.route.clone(), requests, api, keep, ratio, saved, varies, route.reason.clone()]
}

/// Seconds, or minutes or hours if they are many.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.0} s"),
        ..7_200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3_600.0),
    }
}

/// With commas between thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
