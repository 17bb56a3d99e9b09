//! The terminal while it is ours: letters as they are typed, a screen of our own, no cursor; and as it was, however this ends.
//!
//! It is given back when the value is dropped, and by a panic of any thread, whose words are then to be read. Next: `canvas`.

use super::canvas::{Canvas, Letters};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use ratatui_core::terminal::Terminal;
use std::io::{self, IsTerminal as _, Stdout, Write};
use std::sync::Once;
use std::{panic, process};

/// The other screen, empty, without a cursor, and lines that are cut at the edge.
const BEGIN: &[u8] = b"\x1b[?1049h\x1b[2J\x1b[?25l\x1b[?7l";
/// All of that back.
const END: &[u8] = b"\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";
/// What a process that panicked ends with.
const PANICKED: i32 = 101;

/// The terminal, taken over.
pub struct Screen {
    /// Where to draw.
    pub terminal: Terminal<Canvas<Stdout>>,
}

/// Whether there is a terminal that knows more than lines.
pub fn is_there() -> bool {
    let is_plain = std::env::var_os("TERM").is_none_or(|kind| kind.is_empty() || kind == "dumb");
    io::stdout().is_terminal() && !is_plain
}

impl Screen {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// It cannot be; then it is as it was.
    pub fn take_over() -> io::Result<Screen> {
        give_back_on_panic();
        enable_raw_mode()?;
        let begun = io::stdout().write_all(BEGIN).and_then(|()| io::stdout().flush());
        let canvas = Canvas::new(io::stdout(), Letters::of_environment());
        match begun.and_then(|()| Terminal::new(canvas)) {
            Ok(terminal) => Ok(Screen { terminal }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives the terminal back. Once more does no harm.
pub fn give_back() {
    let mut out = io::stdout();
    // A terminal that is gone wants nothing back.
    _ = out.write_all(END).and_then(|()| out.flush());
    _ = disable_raw_mode();
}

/// A panic of any thread ends the process, and its words come onto the screen that stays.
fn give_back_on_panic() {
    static SET: Once = Once::new();
    SET.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |what| {
            give_back();
            before(what);
            process::exit(PANICKED);
        }));
    });
}
