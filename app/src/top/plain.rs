//! What was seen as plain text: for pipes, files and terminals that know lines alone.
//!
//! Pure. No line is cut, no letter is drawn. Before: `boards`.

use super::boards::{BOARDS, Board};
use super::charts::{CHARTS, story};
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
    let (now, longer) = story(seen, SPANS[SPANS.len() - 1]);
    _ = writeln!(told, "{}", [now, longer.unwrap_or_default()].join(" ").trim_end());
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
