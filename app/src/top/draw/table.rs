//! A table: as many columns as fit, the rows around the chosen one, and below them what has no room in that row.

use super::super::grid::{Area, Grid, Style, columns};
use super::super::state::State;
use super::super::tables::{Cell, Column, Table};
use super::super::view::View;
use super::Palette;

/// Between two columns.
const GAP: &str = "  ";
/// The narrowest that a sentence gets.
const LEAST_WIDE: usize = 16;
/// Lines below the rows at the most.
const DETAIL: u16 = 4;

/// Draws the chosen table; `note` is room next to the names of the tables.
pub fn draw(
    grid: &mut Grid,
    (note, mut area): (Area, Area),
    state: &State,
    view: &mut View,
    palette: Palette,
) {
    let table = view.table();
    let (rows, all) = view.rows(state);
    if area.height == 0 || area.width == 0 {
        return;
    }
    let width = usize::from(area.width);
    let widths = widths(table, &rows, width);
    let detail = rows.get(view.chosen()).map_or_else(String::new, |row| detail(table, row, &widths));
    let detail = wrapped(&detail, width);
    let room = if area.height >= 6 { (area.height / 3).min(DETAIL).min(detail.len() as u16) } else { 0 };
    let mut below = area.take_bottom(room);
    heads(grid, area.take_top(1), view, &widths, palette);
    grid.text(note, &hidden(view, &widths), Style::BOLD);
    if rows.is_empty() {
        let nothing = if all > 0 { "no rows match the filter" } else { table.nothing };
        grid.text(area.take_top(1), nothing, palette.faint());
    }
    let height = usize::from(area.height);
    // The chosen row is in sight.
    let first = (view.chosen() + 1).saturating_sub(height.max(1));
    for (index, row) in rows.iter().enumerate().skip(first).take(height) {
        let place = area.take_top(1);
        let texts = row.iter().map(|cell| (&*cell.text, palette.marked(cell.mark)));
        line(grid, place, table, texts, &widths);
        if index == view.chosen() {
            grid.reverse(place);
        }
    }
    for text in detail.iter().take(usize::from(room)) {
        grid.text(below.take_top(1), text, Style::PLAIN);
    }
}

/// Draws a text for each column that has room.
fn line<'a>(
    grid: &mut Grid,
    place: Area,
    table: &Table,
    texts: impl Iterator<Item = (&'a str, Style)>,
    widths: &[usize],
) {
    let mut rest = place;
    for (index, ((column, (text, style)), &width)) in table.columns.iter().zip(texts).zip(widths).enumerate()
    {
        if width > 0 {
            rest = grid.text(rest, if index > 0 { GAP } else { "" }, Style::PLAIN);
            rest = grid.text(rest, &column.aligned(text, width), style);
        }
    }
}

/// The width of each column; 0 if it has no room.
fn widths(table: &Table, rows: &[Vec<Cell>], room: usize) -> Vec<usize> {
    let natural = |(index, column): (usize, &Column)| {
        let cells = rows.iter().map(|row| columns(&row[index].text));
        // The mark of the order is next to the name of the column.
        cells.max().unwrap_or(0).max(columns(column.name) + 1)
    };
    let natural: Vec<usize> = table.columns.iter().enumerate().map(natural).collect();
    let least = |index: usize| match &table.columns[index] {
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
    // What is left goes to the columns that are cut, from the left.
    for (width, natural) in widths.iter_mut().zip(&natural).filter(|(width, _)| **width > 0) {
        let more = natural.saturating_sub(*width).min(room.saturating_sub(used));
        *width += more;
        used += more;
    }
    widths
}

fn heads(grid: &mut Grid, place: Area, view: &View, widths: &[usize], palette: Palette) {
    let (sorted, down) = view.sorted();
    let mut names: Vec<String> = view.table().columns.iter().map(|column| column.name.to_owned()).collect();
    names[sorted].push(if down { '▼' } else { '▲' });
    let style = |index| if index == sorted { Style::BOLD } else { palette.faint() };
    let texts = names.iter().enumerate().map(|(index, name)| (&**name, style(index)));
    line(grid, place, view.table(), texts, widths);
}

/// What the heads do not show: the order by a column out of sight, and the filter.
fn hidden(view: &View, widths: &[usize]) -> String {
    let (sorted, _) = view.sorted();
    let mut text = String::new();
    if widths[sorted] == 0 {
        text += &format!(" by {}", view.table().columns[sorted].name);
    }
    if !view.is_typing && !view.filter().is_empty() {
        text += &format!(" filter: {}", view.filter());
    }
    text
}

/// What has no room in a row: columns that are not there, and sentences that are cut.
fn detail(table: &Table, row: &[Cell], widths: &[usize]) -> String {
    let cells = table.columns.iter().zip(row).zip(widths);
    let cut = cells.filter(|((_, cell), width)| columns(&cell.text) > **width && cell.text != "–");
    let texts: Vec<String> =
        cut.map(|((column, cell), _)| format!("{}: {}", column.name, cell.text)).collect();
    texts.join(" · ")
}

/// Breaks a text into lines, between words.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(word) <= width => line.extend([" ", word]),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
