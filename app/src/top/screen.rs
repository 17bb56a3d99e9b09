//! The terminal while it is ours: keys as they are typed, a screen of our own, no cursor; and as it was before, however this ends.
//!
//! It is given back when the value is dropped, and by a panic of any thread, so that its message can be read. Next: `canvas`.

use super::canvas::{Canvas, Letters};
use super::grid::Grid;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::fs::File;
use std::io::{self, IsTerminal as _, Stdout, Write};
use std::os::fd::AsFd as _;
use std::sync::{Mutex, Once, PoisonError};
use std::{panic, process};

/// The other screen, empty, without a cursor, and lines that are cut at the edge.
const BEGIN: &[u8] = b"\x1b[?1049h\x1b[2J\x1b[?25l\x1b[?7l";
/// Undoes all of that.
const END: &[u8] = b"\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";
/// The size of a terminal that does not know its own.
const UNKNOWN: (u16, u16) = (80, 24);
/// The exit status of a process that panicked.
const PANICKED: i32 = 101;

/// The modes of the terminal before it was taken over.
static MODES: Mutex<Option<Termios>> = Mutex::new(None);

/// The terminal, taken over.
pub struct Screen {
    canvas: Canvas<Stdout>,
}

/// Whether there is a terminal that knows more than lines.
pub fn is_there() -> bool {
    let is_plain = std::env::var_os("TERM").is_none_or(|kind| kind.is_empty() || kind == "dumb");
    io::stdout().is_terminal() && !is_plain
}

/// The terminal that keys come from: standard input, or that of the process.
pub fn terminal() -> io::Result<File> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        Ok(stdin.as_fd().try_clone_to_owned()?.into())
    } else {
        File::options().read(true).write(true).open("/dev/tty")
    }
}

impl Screen {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// It cannot be; then it is as it was.
    pub fn take_over() -> io::Result<Screen> {
        give_back_on_panic();
        let terminal = terminal()?;
        let modes = tcgetattr(&terminal)?;
        let mut raw = modes.clone();
        raw.make_raw();
        let mut before = MODES.lock().unwrap_or_else(PoisonError::into_inner);
        tcsetattr(&terminal, OptionalActions::Now, &raw)?;
        *before = Some(modes);
        drop(before);
        let screen = Screen { canvas: Canvas::new(io::stdout(), Letters::of_environment()) };
        io::stdout().write_all(BEGIN).and_then(|()| io::stdout().flush())?;
        Ok(screen)
    }

    /// Shows what is drawn on a grid of the terminal's size.
    pub fn show(&mut self, draw: impl FnOnce(&mut Grid)) -> io::Result<()> {
        // Of standard output: keys may come from another terminal.
        let size = tcgetwinsize(io::stdout()).map_or((0, 0), |size| (size.ws_col, size.ws_row));
        let (width, height) = if size.0 == 0 || size.1 == 0 { UNKNOWN } else { size };
        let mut grid = Grid::blank(width, height);
        draw(&mut grid);
        self.canvas.show(grid)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives the terminal back; it may be called again.
pub fn give_back() {
    let mut out = io::stdout();
    // An error means that there is no terminal any more.
    _ = out.write_all(END).and_then(|()| out.flush());
    let modes = MODES.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((modes, terminal)) = modes.zip(terminal().ok()) {
        _ = tcsetattr(terminal, OptionalActions::Now, &modes);
    }
}

/// A panic of any thread ends the process, with its message on the screen that stays.
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
