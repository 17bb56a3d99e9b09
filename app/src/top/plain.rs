//! What was seen as plain text: for pipes, files and terminals that know lines alone.
//!
//! Pure. No line is cut, no letter is drawn. Before: `boards`.

use super::boards::{BOARDS, Board};
use super::charts::{CHARTS, Story, story};
use super::seen::Seen;
use super::view::{SPANS, lines};
use std::fmt::Write as _;

/// Rows of a table at the most.
const ROWS: usize = 50;

/// A snapshot.
pub fn snapshot(seen: &Seen, place: &str) -> String {
    let mut told = format!("Millstream {} ({place})\n\n", seen.process);
    for chart in CHARTS {
        let (own, other) = chart.told(seen);
        let other = other.map_or_else(String::new, |(name, value)| format!(" ({name} {value})"));
        // Writing to a String cannot fail, here and below.
        _ = writeln!(told, "{}: {own}{other}", chart.name);
    }
    let Story { now, longer, .. } = story(seen, SPANS[SPANS.len() - 1]);
    _ = writeln!(told, "{}", format!("{now} {longer}").trim_end());
    for board in BOARDS {
        told += &table(board, seen);
    }
    told
}

fn table(board: &Board, seen: &Seen) -> String {
    let mut told = format!("\n{}\n", board.name);
    let (rows, _) = lines(board, seen, "", (board.sorted, !board.columns[board.sorted].is_text));
    if rows.is_empty() {
        return told + "  " + board.nothing + "\n";
    }
    let shown = &rows[..rows.len().min(ROWS)];
    let width = |(index, name): (usize, &str)| {
        let cells = shown.iter().map(|line| line.cells[index].text.chars().count());
        cells.max().unwrap_or(0).max(name.chars().count())
    };
    let names = || board.columns.iter().map(|column| column.name);
    let widths: Vec<usize> = names().enumerate().map(width).collect();
    let line = |texts: &mut dyn Iterator<Item = &str>| {
        let mut line = String::new();
        for ((text, column), width) in texts.zip(board.columns).zip(&widths) {
            _ = match column.is_text {
                true => write!(line, "  {text:width$}"),
                false => write!(line, "  {text:>width$}"),
            };
        }
        line.trim_end().to_owned() + "\n"
    };
    told += &line(&mut names());
    for row in shown {
        told += &line(&mut row.cells.iter().map(|cell| cell.text.trim_start_matches("● ")));
    }
    if rows.len() > ROWS {
        _ = writeln!(told, "  and {} more", rows.len() - ROWS);
    }
    told
}

#[cfg(test)]
mod tests {
    use super::super::sample::shop;
    use super::*;

    #[test]
    fn a_snapshot_says_all_that_the_screen_does_in_whole_lines() {
        let told = snapshot(&shop(), "/run/nginx.sock");
        let beginning = "\
Millstream 0.1.0, process 4711, configuration 2 (/run/nginx.sock)

Requests/s: 255 (failed 0)
To the API/s: 10 (without the cache 255)
Median: 0.70 ms (99 % 81 ms)
From the cache: 96 %
In 30 s 207 reached the API; without the cache 5,475 would have. The last hour spared it 69,265.

Misses
  location         API time  count   each  why                                  what helps                                                written in
  location /items     2.4 s     30  80 ms  nothing was stored that fits         the first request must miss; store responses for longer   /etc/nginx.conf:12:9
";
        assert!(told.starts_with(beginning), "{told}");
        let up = "  10.0.0.1:8000  up                     10     12.9k ";
        assert!(told.lines().any(|line| line.starts_with(up)), "{told}");
        assert!(snapshot(&Seen::default(), "").contains("no upstream is configured"));
    }
}
