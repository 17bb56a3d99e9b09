//! Server-sent events out of bytes as they come, and their texts made fit for a terminal.
//!
//! Pure and bounded: an event that does not end is an error. No string leaves here with a character that a terminal obeys, so that
//! nothing behind has to think of it. Before: `source`, which reads; next: `seen`, which keeps.

use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Bytes of an event at the most: many times what the last hour and full tables take.
const LONGEST: usize = 16 * 1024 * 1024;

/// What one event says.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// All that was until now.
    History(Value),
    /// A second that has ended.
    Second(Value),
}

/// Events while they come.
#[derive(Debug, Default)]
pub struct Events {
    text: Vec<u8>,
    /// How much of it is known to hold no end of an event.
    searched: usize,
}

impl Events {
    /// Takes bytes as they were read.
    pub fn push(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
    }

    /// The next event that is whole.
    ///
    /// # Errors
    /// What came is no such stream.
    pub fn next(&mut self) -> Result<Option<Event>, String> {
        loop {
            let from = self.searched.saturating_sub(1);
            let Some(found) = self.text[from..].windows(2).position(|two| two == b"\n\n") else {
                self.searched = self.text.len();
                return if self.text.len() > LONGEST {
                    Err("what it sends does not end".to_owned())
                } else {
                    Ok(None)
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

/// An event out of its lines; `None` for one of a name that is not known here, which a later version may send.
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
    let told =
        serde_json::from_slice(data).map_err(|error| format!("what it sends cannot be read: {error}"))?;
    Ok(Some(make(shown(told))))
}

/// The same with every string, names of fields included, as it may be shown.
fn shown(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(plain(&text)),
        Value::Array(all) => Value::Array(all.into_iter().map(shown).collect()),
        Value::Object(all) => {
            let fields = all.into_iter().map(|(name, value)| (plain(&name), shown(value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        other => other,
    }
}

/// A text in one line, in which everything that a terminal obeys, or that turns the direction of what follows, is written out.
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
        assert!(events.next().is_err_and(|why| why.contains("cannot be read")));
        let mut events = Events::default();
        for _ in 0..=LONGEST / 1024 {
            events.push(&[b'x'; 1024]);
        }
        assert!(events.next().is_err_and(|why| why.contains("does not end")));
    }

    #[test]
    fn nothing_in_an_event_can_drive_a_terminal() {
        let text = "\u{1b}]0;title\u{7}\u{9b}2J\r\n\u{202e}gpj.exe";
        let event = format!("event: second\ndata: {}\n\n", json!({ text: [text, { "a": text }] }));
        let mut events = Events::default();
        events.push(event.as_bytes());
        let Ok(Some(Event::Second(told))) = events.next() else { panic!("it is an event") };
        let expected = "\\x1b]0;title\\x07\\x9b2J\\x0d \\u{202e}gpj.exe";
        assert_eq!(told, json!({ expected: [expected, { "a": expected }] }));
    }
}
