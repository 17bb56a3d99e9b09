//! The state as plain text: for pipes, files and terminals that know lines alone.
//!
//! Pure. No line is cut, no bar is drawn. Before: `tables`.

use super::charts::{CHARTS, Savings, savings};
use super::grid::columns;
use super::state::State;
use super::tables::{TABLES, Table};
use super::view::{SPANS, order, rows};
use std::fmt::Write as _;
use std::iter;

/// Rows of a table at the most.
const ROWS: usize = 50;

pub fn snapshot(state: &State, place: &str) -> String {
    let mut text = format!("Millstream {} ({place})\n\n", state.process);
    for chart in CHARTS {
        let (own, other) = chart.latest(state);
        let other = other.map_or_else(String::new, |(name, value)| format!(" ({name} {value})"));
        // Writing to a String cannot fail, here and below.
        _ = writeln!(text, "{}: {own}{other}", chart.name);
    }
    let Savings { now, longer, .. } = savings(state, SPANS[SPANS.len() - 1]);
    _ = writeln!(text, "{}", format!("{now} {longer}").trim_end());
    for table in TABLES {
        _ = write!(text, "\n{}\n{}", table.name, lines(table, state));
    }
    text
}

fn lines(table: &Table, state: &State) -> String {
    let (rows, all) = rows(table, state, "", order(table, table.sorted));
    if rows.is_empty() {
        return format!("  {}\n", table.nothing);
    }
    let names = table.columns.iter().map(|column| column.name).collect();
    let texts = rows.iter().take(ROWS);
    let texts = texts.map(|row| row.iter().map(|cell| &*cell.text).collect());
    let lines: Vec<Vec<&str>> = iter::once(names).chain(texts).collect();
    let width = |index: usize| lines.iter().map(|line| columns(line[index])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().map(|cell| cell.trim_start_matches("● ")).zip(table.columns).zip(&widths);
        let cells: String =
            cells.map(|((cell, column), &width)| "  ".to_owned() + &column.aligned(cell, width)).collect();
        _ = writeln!(text, "{}", cells.trim_end());
    }
    if all > ROWS {
        _ = writeln!(text, "  and {} more", all - ROWS);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::sample::shop;
    use super::*;

    #[test]
    fn a_snapshot_has_all_that_the_screen_does_in_whole_lines() {
        let told = snapshot(&shop(), "/run/nginx.sock");
        let beginning = "\
Millstream 0.1.0, process 4711, configuration 2 (/run/nginx.sock)

Requests/s: 255 (failed 0)
To the API/s: 10 (without the cache 255)
Median: 0.70 ms (99 % 81 ms)
From the cache: 96 %
In 30 s, 207 requests reached the API; without the cache: 5,475. In the last hour, the cache saved 69,265 requests.

Misses
  location         API time  count   each  cause                                advice                                                    defined in
  location /items     2.4 s     30  80 ms  nothing was stored that fits         the first request must miss; store responses for longer   /etc/nginx.conf:12:9
";
        assert!(told.starts_with(beginning), "{told}");
        let up = "  10.0.0.1:8000  up                     10     12.9k ";
        assert!(told.lines().any(|line| line.starts_with(up)), "{told}");
        assert!(snapshot(&State::default(), "").contains("no upstream is configured"));
    }
}
