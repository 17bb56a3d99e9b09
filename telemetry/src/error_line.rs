//! The forms of one line of the error log: nginx's text (time, level, process and thread, message, parts), or an object of JSON.
//!
//! What a client sent may stand in both. Secrets in it are masked, and control characters are written as `\\xXX` or `\\u00XX`, so that they can neither
//! end the line early nor reach a terminal. Before: `about`, the parts; next: `error_log`, which decides who gets the line.

mod json;
mod text;

use crate::about::About;
use millstream_conf::model::{ErrorForm, Level};
use millstream_wire::masked;
use std::fmt::{self, Write};
use std::io;

/// The longest line in bytes, its newline included; longer ones are cut, as in nginx.
pub(crate) const LINE_BYTES: usize = 2048;

/// Most bytes of a message before anything in it is masked or escaped.
const MESSAGE_BYTES: usize = 4 * LINE_BYTES;

/// A message that is not formatted yet.
#[derive(Debug, Clone)]
pub(crate) struct Telling {
    level: Level,
    /// Without secrets.
    message: String,
    about: About,
}

impl Telling {
    pub(crate) fn new(level: Level, message: fmt::Arguments<'_>, about: About) -> Telling {
        let mut bounded = Bounded(String::new());
        // It fails only to say that it is full, and then the rest is cut on purpose.
        let _ = bounded.write_fmt(message);
        let message = match masked::text(&bounded.0) {
            std::borrow::Cow::Borrowed(_) => bounded.0,
            std::borrow::Cow::Owned(masked) => masked,
        };
        Telling { level, message, about }
    }

    pub(crate) fn line(&self, form: ErrorForm) -> Vec<u8> {
        match form {
            ErrorForm::Text => text::line(self),
            ErrorForm::Json => json::line(self),
        }
    }
}

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

struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MESSAGE_BYTES - self.0.len();
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        self.0.push_str(&text[..text.floor_char_boundary(room)]);
        Err(fmt::Error)
    }
}

/// As nginx does: `(28: No space left on device)`.
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
