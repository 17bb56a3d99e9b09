//! A line as nginx writes it: `YYYY/MM/DD HH:MM:SS [level] pid#tid: *connection message, client: …, server: …` in local time.

use super::{LINE_BYTES, Telling, level_name};
use crate::local_time;
use millstream_wire::{date, masked};
use std::fmt::{self, Write};

pub(super) fn line(told: &Telling) -> Vec<u8> {
    let now = local_time::now();
    let mut bytes = Vec::with_capacity(256);
    bytes.extend_from_slice(&date::format_error_log(now.seconds, now.utc_offset));
    let mut line = Line { bytes };
    // A `Line` fails only to say that it is full, and then the rest is cut on purpose.
    let _ = write(&mut line, told);
    line.bytes.push(b'\n');
    line.bytes
}

fn write(line: &mut Line, told: &Telling) -> fmt::Result {
    let (process, thread) = (std::process::id(), rustix::thread::gettid());
    write!(line, " [{}] {process}#{thread}: ", level_name(told.level))?;
    if let Some(connection) = told.about.connection {
        write!(line, "*{connection} ")?;
    }
    line.write_str(&told.message)?;
    for part in told.about.parts() {
        let quote = if part.is_quoted { "\"" } else { "" };
        write!(line, ", {}: {quote}{}{quote}", part.name, masked::text(part.value))?;
    }
    Ok(())
}

/// Escapes control characters and truncates at the bound.
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
