//! The screen: what was seen and what is chosen, as cells. The same for the same, whoever shows it.
//!
//! ```text
//! who is looked at, and whether figures come
//! four pictures, two or four in a row; their words alone where it is low
//! what the cache is worth
//! names of the tables
//! the table
//! what of the chosen row has no room in it
//! keys
//! ```
//! Next: `draw/picture`, `draw/table`; `canvas`, which turns cells into bytes.

mod palette;
mod picture;
mod table;
#[cfg(test)]
mod tests;

pub use palette::Palette;

use super::boards::{BOARDS, Mark};
use super::charts::{CHARTS, Story, story};
use super::grid::{Area, Grid, Style, columns};
use super::keys;
use super::seen::{Link, Seen};
use super::view::View;

/// From this width on four pictures stand in a row.
const WIDE: u16 = 150;
/// Lines that a table gets before pictures get any.
const LEAST_TABLE: u16 = 6;

/// Draws all of it.
pub fn screen(grid: &mut Grid, seen: &Seen, view: &mut View, place: &str, palette: Palette) {
    let mut rest = grid.area();
    if rest.width == 0 || rest.height == 0 {
        return;
    }
    header(grid, rest.take_top(1), seen, place, palette);
    let keys = rest.take_bottom(1);
    let per_row = if rest.width >= WIDE { 4 } else { 2 };
    let rows = CHARTS.len().div_ceil(per_row) as u16;
    // What is above the table and is no picture: the words of pictures, the story, the names of tables.
    let words = rows + 2;
    if rest.height >= words + 2 {
        let spare = rest.height.saturating_sub(words + LEAST_TABLE);
        let bars = (spare / 2 / rows).min(8);
        pictures(grid, rest.take_top(rows * (1 + bars)), seen, (view, per_row), palette);
        tell(grid, rest.take_top(1), &story(seen, view.span()));
    }
    let names = if rest.height > 2 { names(grid, rest.take_top(1), view) } else { Area::default() };
    table::draw(grid, (names, rest), seen, view, palette);
    bottom(grid, keys, view, palette);
}

fn fits(text: &str, width: u16) -> bool {
    columns(text) <= usize::from(width)
}

fn header(grid: &mut Grid, area: Area, seen: &Seen, source: &str, palette: Palette) {
    let rest = grid.text(area, "Millstream ", Style::BOLD);
    match &seen.link {
        Link::Live => {
            let rest = grid.text(rest, "● live", palette.marked(Mark::Good));
            let rest = grid.text(rest, &format!("  {source}"), Style::PLAIN);
            if !seen.process.is_empty() {
                grid.text(rest, &format!("  {}", seen.process), palette.faint());
            }
        }
        Link::Away(why) => _ = grid.text(rest, why, palette.marked(Mark::Bad)),
    }
}

fn pictures(grid: &mut Grid, area: Area, seen: &Seen, (view, per_row): (&View, usize), palette: Palette) {
    let rows = CHARTS.len().div_ceil(per_row) as u16;
    let (width, height) = (area.width / per_row as u16, area.height / rows);
    for (index, chart) in CHARTS.iter().enumerate() {
        let (column, line) = ((index % per_row) as u16, (index / per_row) as u16);
        // A column stays free between two.
        let place = Area {
            x: area.x + column * width,
            y: area.y + line * height,
            width: width.saturating_sub(1),
            height,
        };
        picture::draw(grid, place, chart, (seen, view.span().0), palette);
    }
}

/// Says what the cache is worth, in as many words as there is room for.
fn tell(grid: &mut Grid, area: Area, story: &Story) {
    let now = if fits(&story.now, area.width) { &story.now } else { &story.short };
    let rest = grid.text(area, now, Style::PLAIN);
    if fits(&story.longer, rest.width.saturating_sub(1)) {
        grid.text(rest, &format!(" {}", story.longer), Style::PLAIN);
    }
}

/// The names of the tables; returns what is left of their line.
fn names(grid: &mut Grid, area: Area, view: &View) -> Area {
    let shortest: usize = BOARDS.iter().map(|board| board.name.len() + 3).sum();
    let is_narrow = shortest > usize::from(area.width);
    BOARDS.iter().enumerate().fold(area, |rest, (index, board)| {
        let is_chosen = index == view.board;
        let style = if is_chosen { Style::REVERSED } else { Style::PLAIN };
        // Where they have no room the chosen one keeps its name.
        let name = if is_narrow && !is_chosen { String::new() } else { format!(" {}", board.name) };
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
        // A key that is cut says nothing.
        if !fits(&format!("{label} {effect}"), rest.width) {
            break;
        }
        rest = grid.text(rest, label, Style::BOLD);
        rest = grid.text(rest, &format!(" {effect}  "), palette.faint());
    }
}
