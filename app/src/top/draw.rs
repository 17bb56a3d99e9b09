//! The screen: the state and what the user has chosen, drawn on a grid. Pure.
//!
//! ```text
//! the server, and whether figures come
//! four charts, two or four in a row; without their bars if there are few lines
//! what the cache saves
//! names of the tables
//! the table
//! what has no room in the chosen row
//! keys
//! ```
//! Next: `draw/chart`, `draw/table`; `canvas`, which writes the grid.

mod palette;
mod chart;
mod table;
#[cfg(test)]
mod tests;

pub use palette::Palette;

use super::charts::{CHARTS, Savings, savings};
use super::grid::{Area, Grid, Style, columns};
use super::keys;
use super::state::{Link, State};
use super::tables::{Mark, TABLES, Table};
use super::view::View;

/// From this width on four charts stand in a row.
const WIDE: u16 = 150;
/// Lines that a table gets before charts get any.
const LEAST_TABLE: u16 = 6;

/// Draws all of it.
pub fn screen(grid: &mut Grid, state: &State, view: &mut View, place: &str, palette: Palette) {
    let mut rest = grid.area();
    if rest.width == 0 || rest.height == 0 {
        return;
    }
    header(grid, rest.take_top(1), state, place, palette);
    let keys = rest.take_bottom(1);
    let per_row = if rest.width >= WIDE { 4 } else { 2 };
    let rows = CHARTS.len().div_ceil(per_row) as u16;
    // What is above the table and is not a bar: the words of charts, the savings, the names of tables.
    let words = rows + 2;
    if rest.height >= words + 2 {
        let spare = rest.height.saturating_sub(words + LEAST_TABLE);
        let bars = (spare / 2 / rows).min(8);
        charts(grid, rest.take_top(rows * (1 + bars)), state, (view, per_row), palette);
        saved(grid, rest.take_top(1), &savings(state, view.span()));
    }
    let names = if rest.height > 2 { names(grid, rest.take_top(1), state, view) } else { Area::default() };
    table::draw(grid, (names, rest), state, view, palette);
    bottom(grid, keys, view, palette);
}

fn fits(text: &str, width: u16) -> bool {
    columns(text) <= usize::from(width)
}

fn header(grid: &mut Grid, area: Area, state: &State, source: &str, palette: Palette) {
    let rest = grid.text(area, "Millstream ", Style::BOLD);
    match &state.link {
        Link::Live => {
            let rest = grid.text(rest, "● live", palette.marked(Mark::Good));
            let rest = grid.text(rest, &format!("  {source}"), Style::PLAIN);
            if !state.process.is_empty() {
                grid.text(rest, &format!("  {}", state.process), palette.faint());
            }
        }
        Link::Away(why) => _ = grid.text(rest, why, palette.marked(Mark::Bad)),
    }
}

fn charts(grid: &mut Grid, area: Area, state: &State, (view, per_row): (&View, usize), palette: Palette) {
    let rows = CHARTS.len().div_ceil(per_row) as u16;
    let (width, height) = (area.width / per_row as u16, area.height / rows);
    for (index, chart) in CHARTS.iter().enumerate() {
        let (column, line) = ((index % per_row) as u16, (index / per_row) as u16);
        // One column stays free between two charts.
        let place = Area {
            x: area.x + column * width,
            y: area.y + line * height,
            width: width.saturating_sub(1),
            height,
        };
        chart::draw(grid, place, chart, (state, view.span().0), palette);
    }
}

/// What the cache saves, in as many words as there is room for.
fn saved(grid: &mut Grid, area: Area, savings: &Savings) {
    let now = if fits(&savings.now, area.width) { &savings.now } else { &savings.short };
    let rest = grid.text(area, now, Style::PLAIN);
    if fits(&savings.longer, rest.width.saturating_sub(1)) {
        grid.text(rest, &format!(" {}", savings.longer), Style::PLAIN);
    }
}

/// The names of the tables; returns what is left of their line.
fn names(grid: &mut Grid, area: Area, state: &State, view: &View) -> Area {
    let is_named = |(index, table): &(usize, &Table)| {
        !table.is_special || *index == view.table || !(table.rows)(state).is_empty()
    };
    let named = || TABLES.iter().enumerate().filter(is_named);
    let shortest: usize = named().map(|(_, table)| table.name.len() + 3).sum();
    let is_narrow = shortest > usize::from(area.width);
    named().fold(area, |rest, (index, table)| {
        let is_chosen = index == view.table;
        let style = if is_chosen { Style::REVERSED } else { Style::PLAIN };
        // Without room for all names, the chosen one keeps its own.
        let name = if is_narrow && !is_chosen { String::new() } else { format!(" {}", table.name) };
        let rest = grid.text(rest, &format!("{}{name}", index + 1), style);
        grid.text(rest, " ", Style::PLAIN)
    })
}

fn bottom(grid: &mut Grid, area: Area, view: &View, palette: Palette) {
    let mut rest = area;
    if view.is_typing {
        rest = grid.text(rest, &format!("Filter: {}▏ ", view.filter()), Style::BOLD);
    }
    for (label, effect) in keys::shown(view.is_typing, view.span().1) {
        // A key that is cut off would not help.
        if !fits(&format!("{label} {effect}"), rest.width) {
            break;
        }
        rest = grid.text(rest, label, Style::BOLD);
        rest = grid.text(rest, &format!(" {effect}  "), palette.faint());
    }
}
