//! A table: as many columns as fit, the rows around the chosen one, and what of that has no room.

use super::super::boards::{Board, Column};
use super::super::grid::{Area, Grid, Style, columns, graphemes};
use super::super::seen::Seen;
use super::super::view::{Listed, View};
use super::Palette;

/// Between two columns.
const GAP: &str = "  ";
/// What a sentence needs at the least.
const LEAST_WIDE: usize = 16;
/// Lines of what has no room at the most.
const DETAIL: u16 = 4;

/// Draws the chosen board; `note` is room beside the names of the boards.
pub fn draw(grid: &mut Grid, (note, mut area): (Area, Area), seen: &Seen, view: &mut View, palette: Palette) {
    let board = view.board();
    let (lines, all) = view.lines(seen);
    if area.height == 0 || area.width == 0 {
        return;
    }
    let width = usize::from(area.width);
    let widths = widths(board, &lines, width);
    let detail = lines.get(view.row()).map_or_else(String::new, |line| detail(board, line, &widths));
    let detail = wrapped(&detail, width);
    let room = if area.height >= 6 { (area.height / 3).min(DETAIL).min(detail.len() as u16) } else { 0 };
    let mut below = area.take_bottom(room);
    heads(grid, area.take_top(1), view, &widths, palette);
    grid.text(note, &unseen(view, &widths), Style::BOLD);
    if lines.is_empty() {
        let told = if all > 0 { "nothing fits the filter" } else { board.nothing };
        grid.text(area.take_top(1), told, palette.faint());
    }
    let first = first_row(view.row(), usize::from(area.height));
    for (index, line) in lines.iter().enumerate().skip(first).take(usize::from(area.height)) {
        let place = area.take_top(1);
        let shown = board.columns.iter().zip(&line.cells);
        row(
            grid,
            place,
            shown.map(|(column, cell)| (column, &*cell.text, palette.marked(cell.mark))),
            &widths,
        );
        if index == view.row() {
            grid.reverse(place);
        }
    }
    for line in detail.iter().take(usize::from(room)) {
        grid.text(below.take_top(1), line, Style::PLAIN);
    }
}

/// Draws texts in their columns, those that have room.
fn row<'a>(
    grid: &mut Grid,
    place: Area,
    texts: impl Iterator<Item = (&'a Column, &'a str, Style)>,
    widths: &[usize],
) {
    let mut rest = place;
    for (index, ((column, text, style), &width)) in texts.zip(widths).enumerate() {
        if width > 0 {
            let gap = if index > 0 { GAP } else { "" };
            rest = grid.text(rest, gap, Style::PLAIN);
            rest = grid.text(rest, &aligned(text, column, width), style);
        }
    }
}

/// The row at the top, so that the chosen one is in sight.
fn first_row(chosen: usize, room: usize) -> usize {
    (chosen + 1).saturating_sub(room.max(1))
}

/// How wide each column is; 0 where it has no room.
fn widths(board: &Board, lines: &[Listed], room: usize) -> Vec<usize> {
    let natural = |(index, column): (usize, &Column)| {
        let cells = lines.iter().map(|line| columns(&line.cells[index].text));
        // Beside the name of the column stands the mark of the order.
        cells.max().unwrap_or(0).max(columns(column.name) + 1)
    };
    let natural: Vec<usize> = board.columns.iter().enumerate().map(natural).collect();
    let least = |index: usize| match &board.columns[index] {
        _ if index == 0 => natural[0].min(room / 3).max(LEAST_WIDE.min(room)),
        column if column.is_wide => natural[index].min(LEAST_WIDE),
        _ => natural[index],
    };
    let mut widths = vec![0; natural.len()];
    let mut used = 0;
    for index in 0..natural.len() {
        let gap = if index > 0 { GAP.len() } else { 0 };
        if used + gap + least(index) > room {
            break;
        }
        widths[index] = least(index).min(natural[index].max(1));
        used += gap + widths[index];
    }
    // Who was cut gets what is left, from the left.
    for (width, natural) in widths.iter_mut().zip(&natural).filter(|(width, _)| **width > 0) {
        let more = natural.saturating_sub(*width).min(room.saturating_sub(used));
        *width += more;
        used += more;
    }
    widths
}

fn heads(grid: &mut Grid, place: Area, view: &View, widths: &[usize], palette: Palette) {
    let (sorted, down) = view.sorted();
    let columns = view.board().columns;
    let head = |(index, column): (usize, &Column)| match (index == sorted, down) {
        (false, _) => (column.name.to_owned(), palette.faint()),
        (true, true) => (format!("{}▼", column.name), Style::BOLD),
        (true, false) => (format!("{}▲", column.name), Style::BOLD),
    };
    let heads: Vec<(String, Style)> = columns.iter().enumerate().map(head).collect();
    let texts = columns.iter().zip(&heads).map(|(column, (text, style))| (column, &**text, *style));
    row(grid, place, texts, widths);
}

/// What the heads do not say: the order by a column out of sight, and the filter.
fn unseen(view: &View, widths: &[usize]) -> String {
    let (sorted, _) = view.sorted();
    let mut told = String::new();
    if widths[sorted] == 0 {
        told += &format!(" by {}", view.board().columns[sorted].name);
    }
    if !view.is_typing && !view.filter().is_empty() {
        told += &format!(" filter: {}", view.filter());
    }
    told
}

/// A text in its column: cut, or filled up on the side where the column's texts do not begin.
fn aligned(text: &str, column: &Column, width: usize) -> String {
    let length = columns(text);
    if length > width {
        let mut used = 0;
        let kept = graphemes(text).take_while(|(_, columns)| {
            used += columns;
            used < width
        });
        return kept.map(|(symbol, _)| symbol).chain(["…"]).collect();
    }
    let blanks = " ".repeat(width - length);
    if column.is_text { format!("{text}{blanks}") } else { format!("{blanks}{text}") }
}

/// What of a row has no room in its line: columns that are not there, and sentences that are cut.
fn detail(board: &Board, line: &Listed, widths: &[usize]) -> String {
    let mut told = Vec::new();
    for ((column, cell), &width) in board.columns.iter().zip(&line.cells).zip(widths) {
        if columns(&cell.text) > width && !cell.text.is_empty() && cell.text != "–" {
            told.push(format!("{}: {}", column.name, cell.text));
        }
    }
    told.join(" · ")
}

/// A text in lines, cut between words where there are any.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    let mut length = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let long = columns(word);
        if length > 0 && length + 1 + long > width {
            lines.push(std::mem::take(&mut line));
            length = 0;
        }
        if length > 0 {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += long;
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}
