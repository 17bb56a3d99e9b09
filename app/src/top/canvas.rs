//! The terminal as something that cells are drawn on: cells in, bytes out, in one write a picture.
//!
//! Only what every terminal since ECMA-48 knows is written, colours among the sixteen. A symbol that a terminal would obey is never
//! written, wherever it came from. Where letters are not UTF-8, the nearest of ASCII stand for them. Before: `draw`; next: `screen`.

use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};
use rustix::termios;
use std::io::{self, Write};

/// What a terminal that does not tell its size is taken for.
const UNKNOWN: (u16, u16) = (80, 24);

/// What stands for a symbol where letters are not UTF-8; for any other a question mark.
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
    ("·", "|"),
    ("▏", "|"),
];

/// Letters that a terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Letters {
    /// All.
    Unicode,
    /// Those of ASCII.
    Ascii,
}

impl Letters {
    /// What the environment says.
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
                found.map_or("?", |(_, stands)| stands)
            }
            _ => symbol,
        }
    }
}

/// Cells onto a terminal.
#[derive(Debug)]
pub struct Canvas<W> {
    out: W,
    bytes: Vec<u8>,
    letters: Letters,
    cursor: Position,
}

impl<W: Write> Canvas<W> {
    /// One that writes here.
    pub fn new(out: W, letters: Letters) -> Self {
        Canvas { out, bytes: Vec::new(), letters, cursor: Position::ORIGIN }
    }

    fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }
}

impl<W: Write> Backend for Canvas<W> {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let (mut next, mut style) = (None, None);
        for (x, y, cell) in content {
            if next != Some((x, y)) {
                self.push(&format!("\x1b[{};{}H", y + 1, x + 1));
            }
            let its = (cell.fg, cell.bg, cell.modifier);
            if style != Some(its) {
                self.push(&rendition(its));
                style = Some(its);
            }
            let symbol = self.letters.of(cell.symbol());
            self.bytes.extend_from_slice(symbol.as_bytes());
            // Behind a wide letter the cursor is told where it is.
            next = symbol.is_ascii().then_some((x + 1, y));
        }
        if style.is_some() {
            self.push("\x1b[0m");
        }
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.push("\x1b[?25l");
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.push("\x1b[?25h");
        Ok(())
    }

    /// Where it was put last: the terminal is not asked, as its answer would come among the keys.
    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(self.cursor)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.cursor = position.into();
        self.push(&format!("\x1b[{};{}H", self.cursor.y + 1, self.cursor.x + 1));
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, clear_type: ClearType) -> io::Result<()> {
        self.push(match clear_type {
            ClearType::All => "\x1b[2J",
            ClearType::AfterCursor => "\x1b[J",
            ClearType::BeforeCursor => "\x1b[1J",
            ClearType::CurrentLine => "\x1b[2K",
            ClearType::UntilNewLine => "\x1b[K",
        });
        Ok(())
    }

    fn size(&self) -> io::Result<Size> {
        // Of standard output: a process may have another terminal for its own.
        let size = termios::tcgetwinsize(io::stdout()).map_or((0, 0), |size| (size.ws_col, size.ws_row));
        let (width, height) = if size.0 == 0 || size.1 == 0 { UNKNOWN } else { size };
        Ok(Size { width, height })
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::default() })
    }

    fn flush(&mut self) -> io::Result<()> {
        let written = self.out.write_all(&self.bytes);
        self.bytes.clear();
        written?;
        self.out.flush()
    }
}

/// How a cell is shown, as ECMA-48 §8.3.117 has it (SGR): from nothing, so that no state is left from the one before.
fn rendition((front, back, modifier): (Color, Color, Modifier)) -> String {
    let mut told = "\x1b[0".to_owned();
    for (flag, code) in [(Modifier::BOLD, 1), (Modifier::UNDERLINED, 4), (Modifier::REVERSED, 7)] {
        if modifier.contains(flag) {
            told += &format!(";{code}");
        }
    }
    for (color, base) in [(front, 30), (back, 40)] {
        if let Some(number) = number(color) {
            // The bright eight stand sixty behind the others.
            let code = if number < 8 { base + number } else { base + 60 + number - 8 };
            told += &format!(";{code}");
        }
    }
    told + "m"
}

/// The number of a colour among the sixteen.
fn number(color: Color) -> Option<u8> {
    let all = [
        Color::Black,
        Color::Red,
        Color::Green,
        Color::Yellow,
        Color::Blue,
        Color::Magenta,
        Color::Cyan,
        Color::Gray,
        Color::DarkGray,
        Color::LightRed,
        Color::LightGreen,
        Color::LightYellow,
        Color::LightBlue,
        Color::LightMagenta,
        Color::LightCyan,
        Color::White,
    ];
    (0..).zip(all).find(|(_, known)| *known == color).map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui_core::style::Style;

    fn drawn(cells: &[(u16, u16, Cell)], letters: Letters) -> String {
        let mut bytes = Vec::new();
        let mut canvas = Canvas::new(&mut bytes, letters);
        canvas.draw(cells.iter().map(|(x, y, cell)| (*x, *y, cell))).expect("into memory");
        canvas.flush().expect("into memory");
        String::from_utf8(bytes).expect("text")
    }

    fn cell(symbol: &str, style: Style) -> Cell {
        let mut cell = Cell::default();
        cell.set_symbol(symbol).set_style(style);
        cell
    }

    #[test]
    fn cells_beside_each_other_are_written_without_moves_between() {
        let red = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
        let cells = [(0, 0, cell("a", red)), (1, 0, cell("b", red)), (3, 1, cell("c", Style::new()))];
        assert_eq!(drawn(&cells, Letters::Unicode), "\x1b[1;1H\x1b[0;1;31mab\x1b[2;4H\x1b[0mc\x1b[0m");
        let bright = Style::new().fg(Color::DarkGray).bg(Color::Cyan);
        assert!(drawn(&[(0, 0, cell("x", bright))], Letters::Unicode).contains("\x1b[0;90;46mx"));
    }

    #[test]
    fn no_symbol_drives_the_terminal() {
        for symbol in ["\x1b", "\u{9b}", "\r", "\u{7}", "a\u{1b}"] {
            let told = drawn(&[(0, 0, cell(symbol, Style::new()))], Letters::Unicode);
            assert_eq!(told, "\x1b[1;1H\x1b[0m?\x1b[0m", "{symbol:?}");
        }
    }

    #[test]
    fn without_utf_8_all_is_ascii() {
        for symbol in ["█", "▁", "░", "●", "ü", "日", "…", "▼"] {
            let told = drawn(&[(0, 0, cell(symbol, Style::new()))], Letters::Ascii);
            assert!(told.is_ascii(), "{told}");
        }
        assert_eq!(Letters::Ascii.of("▲"), "^");
    }
}
