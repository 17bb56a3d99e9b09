//! Whether somebody watches: the terminal that standard error may be.
//!
//! Never writes. Next: `load::progress`, which draws a line as wide as this says.

use std::io::IsTerminal as _;

/// A terminal that does not know its width is taken to have this many columns.
const UNKNOWN: u16 = 80;

/// The columns of the terminal that standard error is; `None`: it is none, or one that cannot go back in a line.
pub fn error_columns() -> Option<u16> {
    let stderr = std::io::stderr();
    if !stderr.is_terminal() || std::env::var_os("TERM").is_some_and(|kind| kind == "dumb") {
        return None;
    }
    let columns = rustix::termios::tcgetwinsize(&stderr).map_or(0, |size| size.ws_col);
    Some(if columns == 0 { UNKNOWN } else { columns })
}
