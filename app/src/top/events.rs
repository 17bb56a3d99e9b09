//! Server-sent events out of bytes as they come, with their texts made safe for a terminal.
//!
//! Pure and bounded: an event that does not end is an error. No string leaves here with a character that controls a terminal, so that
//! no other file has to check. Before: `source`, which reads; next: `state`, which keeps.

use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Bytes of an event at the most: many times what the last hour and full tables take.
const LONGEST: usize = 16 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The last hour.
    History(Value),
    /// A second that has ended.
    Second(Value),
}

#[derive(Debug, Default)]
pub struct Events {
    text: Vec<u8>,
    /// The length of its part that is known to contain no end of an event.
    searched: usize,
}

impl Events {
    pub fn push(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
    }

    /// The next complete event.
    ///
    /// # Errors
    /// This is not a stream of events.
    pub fn next(&mut self) -> Result<Option<Event>, String> {
        loop {
            let from = self.searched.saturating_sub(1);
            let Some(found) = self.text[from..].windows(2).position(|two| two == b"\n\n") else {
                self.searched = self.text.len();
                return match self.text.len() {
                    ..=LONGEST => Ok(None),
                    _ => Err(format!("an event exceeds {} MiB", LONGEST >> 20)),
                };
            };
            let event: Vec<u8> = self.text.drain(..from + found + 2).collect();
            self.searched = 0;
            if let Some(event) = read(&event)? {
                return Ok(Some(event));
            }
        }
    }
}

/// Parses the lines of an event; `None` if its name is unknown: a later version may send others.
fn read(lines: &[u8]) -> Result<Option<Event>, String> {
    let (mut name, mut data) = (&b""[..], &b""[..]);
    for line in lines.split(|&byte| byte == b'\n') {
        if let Some(its) = line.strip_prefix(b"event: ") {
            name = its;
        } else if let Some(its) = line.strip_prefix(b"data: ") {
            data = its;
        }
    }
    let make = match name {
        b"history" => Event::History,
        b"second" => Event::Second,
        _ => return Ok(None),
    };
    let json = serde_json::from_slice(data).map_err(|error| format!("an event is not valid: {error}"))?;
    Ok(Some(make(printable(json))))
}

/// The same with every string made printable, names of fields included.
fn printable(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(plain(&text)),
        Value::Array(all) => Value::Array(all.into_iter().map(printable).collect()),
        Value::Object(all) => {
            let fields = all.into_iter().map(|(name, value)| (plain(&name), printable(value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        other => other,
    }
}

/// A text in one line, with escapes for all that controls a terminal or turns the direction of what follows.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => plain.push(' '),
            // Writing to a String cannot fail.
            _ if letter.is_control() => _ = write!(plain, "\\x{:02x}", u32::from(letter)),
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                _ = write!(plain, "\\u{{{:x}}}", u32::from(letter));
            }
            _ => plain.push(letter),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_are_read_however_they_are_cut() {
        let bytes = b"event: history\ndata: {\"rows\":[]}\n\nevent: later\ndata: ?\n\nevent: second\ndata: {\"second\":[1]}\n\n";
        for size in 1..bytes.len() {
            let (mut events, mut found) = (Events::default(), Vec::new());
            for piece in bytes.chunks(size) {
                events.push(piece);
                while let Some(event) = events.next().expect("it is a stream of events") {
                    found.push(event);
                }
            }
            let expected = [Event::History(json!({ "rows": [] })), Event::Second(json!({ "second": [1] }))];
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn what_is_no_stream_of_events_is_refused_and_bounded() {
        let mut events = Events::default();
        events.push(b"event: second\ndata: {\n\n");
        assert!(events.next().is_err_and(|why| why.contains("not valid")));
        let mut events = Events::default();
        for _ in 0..=LONGEST / 1024 {
            events.push(&[b'x'; 1024]);
        }
        assert!(events.next().is_err_and(|why| why.contains("exceeds 16 MiB")));
    }

    #[test]
    fn nothing_in_an_event_can_drive_a_terminal() {
        let text = "\u{1b}]0;title\u{7}\u{9b}2J\r\n\u{202e}gpj.exe";
        let event = format!("event: second\ndata: {}\n\n", json!({ text: [text, { "a": text }] }));
        let mut events = Events::default();
        events.push(event.as_bytes());
        let Ok(Some(Event::Second(found))) = events.next() else { panic!("it is an event") };
        let expected = "\\x1b]0;title\\x07\\x9b2J\\x0d \\u{202e}gpj.exe";
        assert_eq!(found, json!({ expected: [expected, { "a": expected }] }));
    }
}
