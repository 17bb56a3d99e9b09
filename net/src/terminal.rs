//! Whether somebody watches, and what may be shown: the terminal that standard error may be.
//!
//! Never writes. Next: `load::progress`, which draws a line as wide as this says.

use std::borrow::Cow;
use std::fmt::Write as _;
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

/// A text as it may be written to a terminal. Somebody else's words may be in it, and a terminal obeys control characters:
/// all but the end of a line (C0, DEL, and C1, which UTF-8 carries too) are written out, as `\x9b`.
pub fn visible(text: &str) -> Cow<'_, str> {
    let is_obeyed = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_obeyed(letter) {
            // Writing to a String cannot fail.
            _ = write!(shown, "\\x{:02x}", u32::from(letter));
        } else {
            shown.push(letter);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left_but_the_end_of_a_line_and_tabs() {
        let text = "a\u{1b}[31m\u{9b}31m\u{9d}0;x\u{9c}\u{7f}\r\tb\nö – µ";
        let shown = visible(text);
        assert_eq!(shown, "a\\x1b[31m\\x9b31m\\x9d0;x\\x9c\\x7f\\x0d\tb\nö – µ");
        assert!(!shown.chars().any(|letter| letter.is_control() && !matches!(letter, '\n' | '\t')));
        assert!(matches!(visible("plain\n"), Cow::Borrowed(_)));
    }
}
