//! A line as an object of JSON, for programs: `{"time":…,"level":…,"pid":…,"tid":…,"connection":…,"message":…,"client":…,…}`.
//!
//! Keys are there where something is known. A value that finds no room is cut and the object closed all the same, so that every line can be read.

use super::{LINE_BYTES, Telling, level_name};
use crate::local_time;
use millstream_wire::{date, masked};
use std::fmt::Write;

const END: &str = "}\n";
/// Most bytes of a message followed by parts, and of each of these, as written.
const MESSAGE_BYTES: usize = LINE_BYTES / 2;
const PART_BYTES: usize = LINE_BYTES / 4;
/// The least room in which a value is started.
const LEAST_ROOM: usize = 8;

pub(super) fn line(told: &Telling) -> Vec<u8> {
    let now = local_time::now();
    let time = date::format_iso8601(now.seconds, now.utc_offset);
    // RFC 3339: the fraction stands between the seconds and the offset.
    let (time, offset) = time.split_at("2000-01-01T00:00:00".len());
    let (time, offset) = (String::from_utf8_lossy(time), String::from_utf8_lossy(offset));
    let mut line = String::with_capacity(512);
    // A `String` takes every write.
    let _ = write!(
        line,
        "{{\"time\":\"{time}.{:03}{offset}\",\"level\":\"{}\",\"pid\":{},\"tid\":{}",
        now.milliseconds,
        level_name(told.level),
        std::process::id(),
        rustix::thread::gettid()
    );
    if let Some(connection) = told.about.connection {
        let _ = write!(line, ",\"connection\":{connection}");
    }
    let has_parts = told.about.parts().next().is_some();
    append(&mut line, "message", &told.message, if has_parts { MESSAGE_BYTES } else { LINE_BYTES });
    for part in told.about.parts() {
        append(&mut line, part.name, &masked::text(part.value), PART_BYTES);
    }
    line.push_str(END);
    line.into_bytes()
}

fn append(line: &mut String, name: &str, value: &str, most: usize) {
    let around = ",\"\":\"\"".len() + name.len();
    let room = LINE_BYTES.saturating_sub(line.len() + around + END.len());
    if room < LEAST_ROOM {
        return;
    }
    let _ = write!(line, ",\"{name}\":\"");
    let end = line.len() + room.min(most);
    for character in value.chars() {
        let before = line.len();
        escape(line, character);
        if line.len() > end {
            line.truncate(before);
            break;
        }
    }
    line.push('"');
}

/// RFC 8259 §7. Characters beyond ASCII that control a terminal are escaped too.
fn escape(line: &mut String, character: char) {
    match character {
        '"' => line.push_str("\\\""),
        '\\' => line.push_str("\\\\"),
        '\n' => line.push_str("\\n"),
        '\r' => line.push_str("\\r"),
        '\t' => line.push_str("\\t"),
        character if character.is_control() => _ = write!(line, "\\u{:04x}", u32::from(character)),
        character => line.push(character),
    }
}
