//! A table: as many columns as fit, the rows around the chosen one, and what of that has no room.

use super::super::boards::{Board, Column};
use super::super::seen::Seen;
use super::super::view::{Listed, View};
use super::{Palette, columns, take, text};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

/// Between two columns.
const GAP: usize = 2;
/// What a sentence needs at the least.
const LEAST_WIDE: usize = 16;
/// Lines of what has no room at the most.
const DETAIL: u16 = 4;

/// Draws the chosen board; `note` is room beside the names of the boards.
pub fn draw(
    into: &mut Buffer,
    (note, mut area): (Rect, Rect),
    seen: &Seen,
    view: &mut View,
    palette: Palette,
) {
    let board = view.board();
    let (lines, all) = view.lines(seen);
    if area.height == 0 || area.width == 0 {
        return;
    }
    let widths = widths(board, &lines, usize::from(area.width));
    let detail = lines.get(view.row()).map_or_else(String::new, |line| detail(board, line, &widths));
    let wanted = wrapped(&detail, usize::from(area.width)).len() as u16;
    let room = if area.height >= 6 { (area.height / 3).min(DETAIL).min(wanted) } else { 0 };
    let below = Rect { y: area.bottom() - room, height: room, ..area };
    area.height -= room;
    heads(into, take(&mut area, 1), view, &widths, palette);
    text(into, note, &unseen(view, &widths), palette.strong());
    if lines.is_empty() {
        let told = if all > 0 { "nothing fits the filter" } else { board.nothing };
        text(into, take(&mut area, 1), told, palette.faint());
    }
    let first = first_row(view.row(), usize::from(area.height));
    for (index, line) in lines.iter().enumerate().skip(first).take(usize::from(area.height)) {
        let place = take(&mut area, 1);
        draw_row(into, place, (board, line), &widths, palette);
        if index == view.row() {
            into.set_style(place, palette.chosen());
        }
    }
    let mut rest = below;
    for line in wrapped(&detail, usize::from(below.width)).iter().take(usize::from(room)) {
        text(into, take(&mut rest, 1), line, palette.plain());
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
        let gap = if index > 0 { GAP } else { 0 };
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

fn heads(into: &mut Buffer, place: Rect, view: &View, widths: &[usize], palette: Palette) {
    let (sorted, down) = view.sorted();
    let mut rest = place;
    for (index, (column, &width)) in view.board().columns.iter().zip(widths).enumerate() {
        if width == 0 {
            continue;
        }
        let mark = match (index == sorted, down) {
            (false, _) => "",
            (true, true) => "▼",
            (true, false) => "▲",
        };
        let name = aligned(&format!("{}{mark}", column.name), column, width);
        let style = if index == sorted { palette.strong() } else { palette.faint() };
        rest = gap(into, rest, index);
        rest = text(into, rest, &name, style);
    }
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

fn draw_row(
    into: &mut Buffer,
    place: Rect,
    (board, line): (&Board, &Listed),
    widths: &[usize],
    palette: Palette,
) {
    let mut rest = place;
    for (index, (column, &width)) in board.columns.iter().zip(widths).enumerate() {
        if width == 0 {
            continue;
        }
        let cell = &line.cells[index];
        rest = gap(into, rest, index);
        rest = text(into, rest, &aligned(&cell.text, column, width), palette.marked(cell.mark));
    }
}

fn gap(into: &mut Buffer, rest: Rect, index: usize) -> Rect {
    if index == 0 { rest } else { text(into, rest, "  ", ratatui_core::style::Style::new()) }
}

/// A text in its column: cut, or filled up on the side where the column's texts do not begin.
fn aligned(text: &str, column: &Column, width: usize) -> String {
    let length = columns(text);
    if length > width {
        let mut used = 0;
        let kept = text.chars().take_while(|letter| {
            used += columns(letter.encode_utf8(&mut [0; 4]));
            used < width
        });
        return kept.chain(['…']).collect();
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
