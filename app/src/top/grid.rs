//! A screen as a grid of glyphs, and the areas of it that things are drawn in.
//!
//! Pure. Nothing is drawn outside the area that it gets. A wide letter is followed by an empty glyph for its second column. Next:
//! `draw`, which fills a grid; `canvas`, which writes it to the terminal.

use std::borrow::Cow;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// The colors in use, each with its code as a foreground (ECMA-48 §8.3.117): all are among the sixteen that terminals have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    Red = 31,
    Green = 32,
    Yellow = 33,
    Cyan = 36,
    DarkGray = 90,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    pub foreground: Option<Color>,
    pub background: Option<Color>,
    pub is_bold: bool,
    pub is_underlined: bool,
    pub is_reversed: bool,
}

impl Style {
    pub const PLAIN: Style = Style {
        foreground: None,
        background: None,
        is_bold: false,
        is_underlined: false,
        is_reversed: false,
    };
    pub const BOLD: Style = Style { is_bold: true, ..Style::PLAIN };
    pub const UNDERLINED: Style = Style { is_underlined: true, ..Style::PLAIN };
    pub const REVERSED: Style = Style { is_reversed: true, ..Style::PLAIN };
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Area {
    pub x: u16,
    pub y: u16,
    pub width: u16,
    pub height: u16,
}

impl Area {
    /// Cuts off the first lines, as far as there are any.
    pub fn take_top(&mut self, height: u16) -> Area {
        let top = Area { height: height.min(self.height), ..*self };
        self.y += top.height;
        self.height -= top.height;
        top
    }

    /// Cuts off the last lines, as far as there are any.
    pub fn take_bottom(&mut self, height: u16) -> Area {
        let height = height.min(self.height);
        self.height -= height;
        Area { y: self.y + self.height, height, ..*self }
    }
}

/// What a place of the grid shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glyph {
    /// A grapheme; empty in the second column of a wide one.
    pub symbol: Cow<'static, str>,
    pub style: Style,
}

#[derive(Debug)]
pub struct Grid {
    width: u16,
    height: u16,
    /// Line by line.
    glyphs: Vec<Glyph>,
}

impl Grid {
    pub fn blank(width: u16, height: u16) -> Grid {
        let blank = Glyph { symbol: Cow::Borrowed(" "), style: Style::PLAIN };
        Grid { width, height, glyphs: vec![blank; usize::from(width) * usize::from(height)] }
    }

    pub fn area(&self) -> Area {
        Area { x: 0, y: 0, width: self.width, height: self.height }
    }

    pub fn lines(&self) -> impl Iterator<Item = &[Glyph]> {
        self.glyphs.chunks(usize::from(self.width.max(1)))
    }

    fn at(&mut self, x: u16, y: u16) -> Option<&mut Glyph> {
        let index = usize::from(y) * usize::from(self.width) + usize::from(x);
        if x < self.width { self.glyphs.get_mut(index) } else { None }
    }

    pub fn set(&mut self, x: u16, y: u16, symbol: impl Into<Cow<'static, str>>, style: Style) {
        if let Some(glyph) = self.at(x, y) {
            *glyph = Glyph { symbol: symbol.into(), style };
        }
    }

    /// Writes a text into the first line of an area, as much of it as fits, and returns what is left of the line.
    pub fn text(&mut self, area: Area, text: &str, style: Style) -> Area {
        let mut rest = area;
        if area.height == 0 {
            return rest;
        }
        for (symbol, columns) in graphemes(text) {
            if columns > usize::from(rest.width) {
                break;
            }
            self.set(rest.x, rest.y, symbol.to_owned(), style);
            // It fits, so that it is less than a u16.
            let columns = columns as u16;
            (1..columns).for_each(|second| self.set(rest.x + second, rest.y, "", style));
            rest = Area { x: rest.x + columns, width: rest.width - columns, ..rest };
        }
        rest
    }

    /// Reverses the colors of an area.
    pub fn reverse(&mut self, area: Area) {
        for (x, y) in
            (area.y..area.y + area.height).flat_map(|y| (0..area.width).map(move |x| (area.x + x, y)))
        {
            if let Some(glyph) = self.at(x, y) {
                glyph.style.is_reversed = true;
            }
        }
    }
}

/// The graphemes of a text with the number of columns of each, without those that have none.
pub fn graphemes(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let visible = text.graphemes(true).filter(|symbol| !symbol.contains(char::is_control));
    visible.map(|symbol| (symbol, symbol.width())).filter(|(_, columns)| *columns > 0)
}

/// The number of columns that a text takes.
pub fn columns(text: &str) -> usize {
    graphemes(text).map(|(_, columns)| columns).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_takes_the_columns_of_its_graphemes() {
        for (text, expected) in [
            ("", 0),
            ("abc", 3),
            ("日本", 4),
            ("e\u{301}", 1),
            ("\u{301}", 0),
            ("\u{200b}", 0),
            ("a\tb\r\n", 2),
            ("👩\u{200d}🚀", 2),
            ("❤\u{fe0f}", 2),
            ("\u{ff76}\u{ff9e}", 2),
        ] {
            assert_eq!(columns(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_text_stays_in_its_area() {
        let mut grid = Grid::blank(6, 2);
        let area = Area { x: 1, y: 1, width: 3, height: 1 };
        let rest = grid.text(area, "日本語", Style::BOLD);
        assert_eq!(rest, Area { x: 3, y: 1, width: 1, height: 1 }, "a wide letter is not cut in half");
        assert_eq!(grid.text(rest, "xyz", Style::PLAIN).width, 0);
        grid.text(Area { height: 0, ..area }, "no", Style::PLAIN);
        grid.text(Area { x: 5, y: 0, width: 9, height: 1 }, "abc", Style::PLAIN);
        grid.reverse(Area { x: 4, y: 0, width: 9, height: 9 });
        let lines: Vec<String> =
            grid.lines().map(|line| line.iter().map(|glyph| &*glyph.symbol).collect()).collect();
        assert_eq!(lines, ["     a", " 日x  "]);
        let reversed = grid.lines().flatten().filter(|glyph| glyph.style.is_reversed).count();
        assert_eq!(reversed, 4);
    }

    #[test]
    fn an_area_gives_no_more_lines_than_it_has() {
        let area = |y, height| Area { x: 0, y, width: 9, height };
        let mut rest = area(2, 4);
        assert_eq!((rest.take_top(1), rest.take_bottom(1), rest), (area(2, 1), area(5, 1), area(3, 2)));
        assert_eq!((rest.take_bottom(9), rest.take_top(1)), (area(3, 2), area(3, 0)));
    }
}
