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

use super::boards::BOARDS;
use super::charts::{CHARTS, Story, story};
use super::keys;
use super::seen::{Link, Seen};
use super::view::View;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;
use ratatui_core::text::Span;

/// From this width on four pictures stand in a row.
const WIDE: u16 = 150;
/// Lines that a table gets before pictures get any.
const LEAST_TABLE: u16 = 6;

/// Draws all of it.
pub fn screen(into: &mut Buffer, seen: &Seen, view: &mut View, place: &str, palette: Palette) {
    let mut rest = into.area;
    if rest.width == 0 || rest.height == 0 {
        return;
    }
    header(into, row(&mut rest), seen, place, palette);
    let keys = last_row(&mut rest);
    let per_row = if rest.width >= WIDE { 4 } else { 2 };
    let rows = CHARTS.len().div_ceil(per_row) as u16;
    // What is above the table and is no picture: the words of pictures, the story, the names of tables.
    let words = rows + 2;
    if rest.height >= words + 2 {
        let spare = rest.height.saturating_sub(words + LEAST_TABLE);
        let bars = (spare / 2 / rows).min(8);
        pictures(into, take(&mut rest, rows * (1 + bars)), seen, (view, per_row), palette);
        tell(into, row(&mut rest), &story(seen, view.span()), palette);
    }
    let names = if rest.height > 2 { names(into, row(&mut rest), view, palette) } else { Rect::ZERO };
    table::draw(into, (names, rest), seen, view, palette);
    if let Some(keys) = keys {
        bottom(into, keys, view, palette);
    }
}

/// The first line of what is left; empty where nothing is.
fn row(rest: &mut Rect) -> Rect {
    take(rest, 1)
}

fn take(rest: &mut Rect, height: u16) -> Rect {
    let height = height.min(rest.height);
    let taken = Rect { height, ..*rest };
    *rest = Rect { y: rest.y + height, height: rest.height - height, ..*rest };
    taken
}

fn last_row(rest: &mut Rect) -> Option<Rect> {
    let height = rest.height.checked_sub(1)?;
    let last = Rect { y: rest.y + height, height: 1, ..*rest };
    rest.height = height;
    Some(last)
}

/// Writes a text into the first line of a place, as much of it as fits; gives what is left of the line.
fn text(into: &mut Buffer, place: Rect, text: &str, style: Style) -> Rect {
    if place.width == 0 || place.height == 0 {
        return place;
    }
    let (x, _) = into.set_stringn(place.x, place.y, text, usize::from(place.width), style);
    let used = x - place.x;
    Rect { x, width: place.width - used, ..place }
}

/// The places that a text takes.
fn columns(text: &str) -> usize {
    Span::raw(text).width()
}

fn header(into: &mut Buffer, place: Rect, seen: &Seen, source: &str, palette: Palette) {
    let rest = text(into, place, "Millstream ", palette.strong());
    match &seen.link {
        Link::Live => {
            let rest = text(into, rest, "● live", palette.good());
            let rest = text(into, rest, &format!("  {source}"), palette.plain());
            if !seen.process.is_empty() {
                text(into, rest, &format!("  {}", seen.process), palette.faint());
            }
        }
        Link::Away(why) => {
            text(into, rest, why, palette.bad());
        }
    }
}

fn pictures(into: &mut Buffer, area: Rect, seen: &Seen, (view, per_row): (&View, usize), palette: Palette) {
    let rows = CHARTS.len().div_ceil(per_row) as u16;
    let (width, height) = (area.width / per_row as u16, area.height / rows);
    for (index, chart) in CHARTS.iter().enumerate() {
        let (column, line) = ((index % per_row) as u16, (index / per_row) as u16);
        // A column stays free between two.
        let place = Rect {
            x: area.x + column * width,
            y: area.y + line * height,
            width: width.saturating_sub(1),
            height,
        };
        picture::draw(into, place, chart, (seen, view.span().0), palette);
    }
}

/// Says what the cache is worth, in as many words as there is room for.
fn tell(into: &mut Buffer, place: Rect, story: &Story, palette: Palette) {
    let fits = |text: &str, room: u16| text.chars().count() <= usize::from(room);
    let now = if fits(&story.now, place.width) { &story.now } else { &story.short };
    let rest = text(into, place, now, palette.plain());
    if fits(&story.longer, rest.width.saturating_sub(1)) {
        let rest = text(into, rest, " ", palette.plain());
        text(into, rest, &story.longer, palette.plain());
    }
}

/// The names of the tables; gives what is left of their line.
fn names(into: &mut Buffer, place: Rect, view: &View, palette: Palette) -> Rect {
    let shortest: usize = BOARDS.iter().map(|board| board.name.len() + 3).sum();
    let is_narrow = shortest > usize::from(place.width);
    let mut rest = place;
    for (index, board) in BOARDS.iter().enumerate() {
        let is_chosen = index == view.board;
        // Where they have no room the chosen one keeps its name.
        let name = if is_narrow && !is_chosen { "" } else { board.name };
        let style = if is_chosen { palette.chosen() } else { palette.plain() };
        let gap = if name.is_empty() { "" } else { " " };
        rest = text(into, rest, &format!("{}{gap}{name}", index + 1), style);
        rest = text(into, rest, " ", palette.plain());
    }
    rest
}

fn bottom(into: &mut Buffer, place: Rect, view: &View, palette: Palette) {
    let mut rest = place;
    if view.is_typing {
        rest = text(into, rest, &format!("Filter: {}", view.filter()), palette.strong());
        rest = text(into, rest, "▏ ", palette.strong());
    }
    for (key, what) in keys::shown(view.is_typing, view.span().1) {
        // A key that is cut says nothing.
        if key.chars().count() + what.len() + 1 > usize::from(rest.width) {
            break;
        }
        rest = text(into, rest, key, palette.strong());
        rest = text(into, rest, &format!(" {what}  "), palette.faint());
    }
}
