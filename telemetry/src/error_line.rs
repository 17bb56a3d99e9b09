//! The form of one line of the error log, as nginx writes it: time, level, process and thread, message.
//!
//! What a client sent may stand in a message, so control characters are written as `\xXX` and can neither end the
//! line early nor reach a terminal. Next: `error_log`, which decides who gets the line.

use crate::local_time;
use millstream_conf::model::Level;
use millstream_wire::date;
use std::fmt::{self, Write};
use std::io;

/// The longest line in bytes, its newline included; what is over is cut, as in nginx.
pub(crate) const LINE_BYTES: usize = 2048;

/// The word of a level.
pub(crate) fn level_name(level: Level) -> &'static str {
    match level {
        Level::Emerg => "emerg",
        Level::Alert => "alert",
        Level::Crit => "crit",
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Notice => "notice",
        Level::Info => "info",
        Level::Debug => "debug",
    }
}

/// A whole line: `YYYY/MM/DD HH:MM:SS [level] pid#tid: message\n` in local time.
pub(crate) fn line(level: Level, message: fmt::Arguments<'_>) -> Vec<u8> {
    let now = local_time::now();
    let mut bytes = Vec::with_capacity(256);
    bytes.extend_from_slice(&date::format_error_log(now.seconds, now.utc_offset));
    let (process, thread) = (std::process::id(), rustix::thread::gettid());
    let mut line = Line { bytes };
    // A `Line` fails only to say that it is full, and then the rest is cut on purpose.
    let _ = write!(line, " [{}] {process}#{thread}: ", level_name(level));
    let _ = line.write_fmt(message);
    line.bytes.push(b'\n');
    line.bytes
}

/// Takes text, makes control characters visible, stops at the bound.
struct Line {
    bytes: Vec<u8>,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            let mut encoded = [0; 4];
            let is_control = character.is_control() && character != '\t';
            let length = if is_control { 4 } else { character.len_utf8() };
            if self.bytes.len() + length >= LINE_BYTES {
                return Err(fmt::Error);
            }
            if is_control {
                write_control(&mut self.bytes, character);
            } else {
                self.bytes.extend_from_slice(character.encode_utf8(&mut encoded).as_bytes());
            }
        }
        Ok(())
    }
}

/// Control characters all lie below U+00A0, so two digits do.
fn write_control(out: &mut Vec<u8>, character: char) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let code = character as u32 as usize;
    out.extend_from_slice(&[b'\\', b'x', DIGITS[code >> 4 & 15], DIGITS[code & 15]]);
}

/// Prints a system error as nginx does: `(28: No space left on device)`.
#[derive(Debug, Clone, Copy)]
pub struct SystemError<'a>(pub &'a io::Error);

impl fmt::Display for SystemError<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        match self.0.raw_os_error() {
            Some(number) => {
                let suffix = format!(" (os error {number})");
                write!(formatter, "({number}: {})", text.strip_suffix(&suffix).unwrap_or(&text))
            }
            None => write!(formatter, "({text})"),
        }
    }
}
