//! The terminal as something that a grid is shown on: grids in, bytes out, in one write each.
//!
//! Only the glyphs that differ from those shown are written, with sequences that every terminal since ECMA-48 knows. A control character
//! is never written as a symbol, wherever it comes from. Without UTF-8, the nearest letters of ASCII are written. Before: `draw`;
//! next: `screen`.

use super::grid::{Glyph, Grid, Style};
use std::fmt::Write as _;
use std::io::{self, Write};

/// What replaces a symbol without UTF-8; a question mark replaces any other.
const ASCII: &[(&str, &str)] = &[
    ("█▇▆▅", "#"),
    ("▄▃▂", "="),
    ("▁", "_"),
    ("░", ":"),
    ("●", "*"),
    ("▼↓", "v"),
    ("▲↑", "^"),
    ("←", "<"),
    ("→", ">"),
    ("…", "~"),
    ("–", "-"),
    ("·▏", "|"),
];

/// Letters that a terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Letters {
    Unicode,
    Ascii,
}

impl Letters {
    pub fn of_environment() -> Letters {
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
        // The console's own font has few of the bars.
        let is_console = set("TERM").is_some_and(|kind| kind == "linux");
        let is_unicode = locale.is_some_and(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        if is_unicode && !is_console { Letters::Unicode } else { Letters::Ascii }
    }

    fn of(self, symbol: &str) -> &str {
        match self {
            _ if symbol.contains(char::is_control) => "?",
            Letters::Ascii if !symbol.is_ascii() => {
                let found = ASCII.iter().find(|(these, _)| these.contains(symbol));
                found.map_or("?", |(_, replacement)| replacement)
            }
            _ => symbol,
        }
    }
}

#[derive(Debug)]
pub struct Canvas<W> {
    out: W,
    letters: Letters,
    /// What the terminal shows.
    shown: Grid,
}

impl<W: Write> Canvas<W> {
    pub fn new(out: W, letters: Letters) -> Self {
        Canvas { out, letters, shown: Grid::blank(0, 0) }
    }

    /// Makes the terminal show a grid of its size.
    pub fn show(&mut self, next: Grid) -> io::Result<()> {
        let mut bytes = String::new();
        let area = next.area();
        if area != self.shown.area() {
            bytes.push_str("\x1b[2J");
            self.shown = Grid::blank(area.width, area.height);
        }
        let mut style = None;
        for (y, (line, shown)) in next.lines().zip(self.shown.lines()).enumerate() {
            let mut cursor = None;
            for (x, (glyph, _)) in line.iter().zip(shown).enumerate().filter(|(_, (new, old))| new != old) {
                if glyph.symbol.is_empty() {
                    continue;
                }
                let go = format!("\x1b[{};{}H", y + 1, x + 1);
                if cursor != Some(x) {
                    bytes.push_str(&go);
                }
                if style.replace(glyph.style) != Some(glyph.style) {
                    bytes.push_str(&rendition(glyph.style));
                }
                if is_wide(&line[x..]) {
                    // A terminal that gives it one column alone would keep what it showed in the other.
                    bytes.push_str("  ");
                    bytes.push_str(&go);
                }
                let symbol = self.letters.of(&glyph.symbol);
                bytes.push_str(symbol);
                // Terminals differ in how wide other letters are.
                cursor = symbol.is_ascii().then_some(x + 1);
            }
        }
        if style.is_some() {
            bytes.push_str("\x1b[0m");
        }
        self.shown = next;
        self.out.write_all(bytes.as_bytes())?;
        self.out.flush()
    }
}

fn is_wide(line: &[Glyph]) -> bool {
    line.get(1).is_some_and(|second| second.symbol.is_empty())
}

/// The style of what follows (SGR, ECMA-48 §8.3.117), from nothing, so that nothing is left of the one before.
fn rendition(style: Style) -> String {
    /// A background has the code of the foreground and this.
    const BACKGROUND: u8 = 10;
    let flags = [(style.is_bold, 1), (style.is_underlined, 4), (style.is_reversed, 7)];
    let flags = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, code)| code);
    let foreground = style.foreground.map(|color| color as u8);
    let background = style.background.map(|color| color as u8 + BACKGROUND);
    let mut codes = "\x1b[0".to_owned();
    for code in flags.chain(foreground).chain(background) {
        // Writing to a String cannot fail.
        _ = write!(codes, ";{code}");
    }
    codes + "m"
}

#[cfg(test)]
mod tests {
    use super::super::grid::{Area, Color, columns, graphemes};
    use super::*;

    const SIZE: (u16, u16) = (8, 2);

    /// What is written to replace one grid by another, each drawn by a function.
    fn written(before: impl Fn(&mut Grid), after: impl Fn(&mut Grid), letters: Letters) -> String {
        let mut canvas = Canvas::new(Vec::new(), letters);
        let mut show = |draw: &dyn Fn(&mut Grid)| {
            let mut grid = Grid::blank(SIZE.0, SIZE.1);
            draw(&mut grid);
            canvas.out.clear();
            canvas.show(grid).expect("into memory");
            String::from_utf8(canvas.out.clone()).expect("text")
        };
        show(&before);
        show(&after)
    }

    fn symbol(symbol: &str, letters: Letters) -> String {
        written(|_| {}, |grid| grid.set(0, 0, symbol.to_owned(), Style::PLAIN), letters)
    }

    #[test]
    fn glyphs_next_to_each_other_are_written_without_moves_between() {
        let red = Style { foreground: Some(Color::Red), ..Style::BOLD };
        let draw = |grid: &mut Grid| {
            grid.set(0, 0, "a", red);
            grid.set(1, 0, "b", red);
            grid.set(3, 1, "c", Style::PLAIN);
        };
        let expected = "\x1b[1;1H\x1b[0;1;31mab\x1b[2;4H\x1b[0mc\x1b[0m";
        assert_eq!(written(|_| {}, draw, Letters::Unicode), expected);
        assert_eq!(written(draw, draw, Letters::Unicode), "");
        let without = |grid: &mut Grid| grid.set(0, 0, "a", red);
        assert_eq!(written(draw, without, Letters::Unicode), "\x1b[1;2H\x1b[0m \x1b[2;4H \x1b[0m");
        let bright = Style {
            foreground: Some(Color::DarkGray),
            background: Some(Color::Cyan),
            is_underlined: true,
            is_reversed: true,
            ..Style::PLAIN
        };
        assert_eq!(rendition(bright), "\x1b[0;4;7;90;46m");
    }

    #[test]
    fn another_size_begins_with_an_empty_screen() {
        let mut canvas = Canvas::new(Vec::new(), Letters::Unicode);
        for (width, height) in [(3, 2), (4, 2), (4, 1)] {
            let mut grid = Grid::blank(width, height);
            grid.text(grid.area(), "ab", Style::PLAIN);
            canvas.out.clear();
            canvas.show(grid).expect("into memory");
            assert_eq!(canvas.out, b"\x1b[2J\x1b[1;1H\x1b[0mab\x1b[0m");
        }
    }

    #[test]
    fn no_symbol_drives_the_terminal() {
        for letters in ["\x1b", "\u{9b}", "\r", "\u{7}", "a\u{1b}"] {
            assert_eq!(symbol(letters, Letters::Unicode), "\x1b[1;1H\x1b[0m?\x1b[0m", "{letters:?}");
        }
    }

    #[test]
    fn without_utf_8_all_is_ascii() {
        for letters in ["█", "▁", "░", "●", "ü", "日", "…", "▼"] {
            let written = symbol(letters, Letters::Ascii);
            assert!(written.is_ascii(), "{written}");
        }
        assert_eq!(Letters::Ascii.of("▲"), "^");
    }

    /// A line of a terminal that clears both halves of a wide letter if either is overwritten.
    #[derive(Debug, PartialEq, Eq)]
    struct Line(Vec<String>);

    impl Line {
        fn put(&mut self, x: usize, symbol: &str) {
            if self.0[x].is_empty() {
                self.0[x - 1] = " ".to_owned();
            }
            if self.0.get(x + 1).is_some_and(String::is_empty) {
                self.0[x + 1] = " ".to_owned();
            }
            self.0[x] = symbol.to_owned();
        }

        fn take(&mut self, mut text: &str) {
            let mut x = 0;
            while !text.is_empty() {
                if let Some(sequence) = text.strip_prefix("\x1b[") {
                    let end = sequence.find(|letter: char| letter.is_ascii_alphabetic()).expect("an end");
                    if let Some(place) = sequence[..=end].strip_suffix('H') {
                        let (_, column) = place.split_once(';').expect("a line and a column");
                        x = column.parse::<usize>().expect("a number") - 1;
                    }
                    text = &sequence[end + 1..];
                    continue;
                }
                let end = text.find('\x1b').unwrap_or(text.len());
                for (symbol, columns) in graphemes(&text[..end]) {
                    self.put(x, symbol);
                    (1..columns).for_each(|second| self.put(x + second, " "));
                    (1..columns).for_each(|second| self.0[x + second].clear());
                    x += columns;
                }
                text = &text[end..];
            }
        }
    }

    #[test]
    fn what_differs_turns_any_line_into_any_other() {
        let texts = [
            "",
            "abcdefgh",
            "日本語",
            "a日本b",
            " 日 本",
            "e\u{301}x",
            "❤\u{fe0f}ab",
            "ab❤\u{fe0f}",
            "👩\u{200d}🚀日",
        ];
        for before in texts {
            for after in texts {
                let draw = |text| move |grid: &mut Grid| _ = grid.text(grid.area(), text, Style::PLAIN);
                let mut line = Line(vec![" ".to_owned(); SIZE.0.into()]);
                line.take(&written(|_| {}, draw(before), Letters::Unicode));
                line.take(&written(draw(before), draw(after), Letters::Unicode));
                let mut expected = Grid::blank(SIZE.0, 1);
                let rest = expected.text(expected.area(), after, Style::PLAIN);
                assert_eq!(rest, Area { x: columns(after) as u16, width: SIZE.0 - rest.x, ..rest });
                let expected: Vec<_> =
                    expected.lines().flatten().map(|glyph| glyph.symbol.to_string()).collect();
                assert_eq!(line.0, expected, "{before:?} to {after:?}");
            }
        }
    }
}
