//! Whether somebody watches, what may be shown, and how wide: the terminal that standard output or standard error may be.
//!
//! Never writes. Next: `load::progress`, which draws a line as wide as this says; reports of all commands, which are folded here.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::os::fd::AsFd;

/// Columns of a terminal that does not know its width.
const UNKNOWN: u16 = 80;

const FEWEST: u16 = 40;

/// `None` unless standard error is a terminal that can go back in a line.
pub fn error_columns() -> Option<u16> {
    let stderr = std::io::stderr();
    if !stderr.is_terminal() || std::env::var_os("TERM").is_some_and(|kind| kind == "dumb") {
        return None;
    }
    let columns = rustix::termios::tcgetwinsize(&stderr).map_or(0, |size| size.ws_col);
    Some(if columns == 0 { UNKNOWN } else { columns })
}

/// Those of the terminal, else `COLUMNS`, else 80.
pub fn columns(out: &impl AsFd) -> usize {
    let of_terminal = rustix::termios::tcgetwinsize(out).map_or(0, |size| size.ws_col);
    let columns = match of_terminal {
        0 => std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or(UNKNOWN),
        columns => columns,
    };
    usize::from(columns.max(FEWEST))
}

/// Breaks lines at blanks; the continuation of an indented line is indented by two more columns. A long word
/// stays whole, and so does a line after four blanks: it is to be copied.
pub fn folded(text: &str, columns: usize) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches(' ').len();
        if indent >= 4 || line.trim_end().chars().count() <= columns {
            out += line;
            continue;
        }
        let hanging = if indent > 0 { indent + 2 } else { 0 };
        let lines = words(line, columns.saturating_sub(hanging));
        let (first, others) = lines.split_first().map_or(("", &[][..]), |(first, others)| (first, others));
        _ = write!(out, "{:indent$}{first}", "");
        others.iter().for_each(|line| _ = write!(out, "\n{:hanging$}{line}", ""));
        if line.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

/// Folded on a terminal; a pipe gets each line whole.
pub fn fitting<'t>(text: &'t str, out: &(impl AsFd + IsTerminal)) -> Cow<'t, str> {
    match out.is_terminal() {
        true => Cow::Owned(folded(text, columns(out))),
        false => Cow::Borrowed(text),
    }
}

pub fn words(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_ascii_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.extend([" ", word])
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Escapes control characters as `\x9b`, except line ends (C0, DEL, and C1, which UTF-8 carries too): text
/// from elsewhere must not control the terminal.
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
    fn lines_end_at_the_last_column_and_words_stay_whole() {
        let long = "x".repeat(50);
        for (text, columns, expected) in [
            ("one two three", 13, "one two three"),
            ("one two three\n", 12, "one two\nthree\n"),
            ("  name: one two three\n", 15, "  name: one\n    two three\n"),
            ("    command with many words\n", 10, "    command with many words\n"),
            ("a\n\nb\n", 1, "a\n\nb\n"),
            (&long, 40, &long),
            ("", 40, ""),
        ] {
            assert_eq!(folded(text, columns), expected, "{text:?} in {columns}");
        }
        let text = folded(&"word ".repeat(60), 80);
        assert!(text.lines().all(|line| line.starts_with("word") && line.len() <= 80), "{text}");
        assert_eq!(text.matches("word").count(), 60);
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_left_but_the_end_of_a_line_and_tabs() {
        let text = "a\u{1b}[31m\u{9b}31m\u{9d}0;x\u{9c}\u{7f}\r\tb\nö – µ";
        let shown = visible(text);
        assert_eq!(shown, "a\\x1b[31m\\x9b31m\\x9d0;x\\x9c\\x7f\\x0d\tb\nö – µ");
        assert!(!shown.chars().any(|letter| letter.is_control() && !matches!(letter, '\n' | '\t')));
        assert!(matches!(visible("plain\n"), Cow::Borrowed(_)));
    }
}
