//! A location as people write it, with its place in the configuration, and bytes of strangers as people may read them: for
//! logs and for what explains.
//!
//! Nothing is decided here. Next: `right`, `millstream-admin`'s `explain`.

use crate::request::Request;
use millstream_conf::model::{LocationId, LocationMatch};

/// `location` with modifier and name, as written.
pub fn written(matches: &LocationMatch) -> String {
    match matches {
        LocationMatch::Server => "the server block".to_owned(),
        LocationMatch::Exact(path) => format!("location = {path}"),
        LocationMatch::Prefix { path, no_regex: true } => format!("location ^~ {path}"),
        LocationMatch::Prefix { path, no_regex: false } => format!("location {path}"),
        LocationMatch::Regex(regex) => format!("location ~ {}", regex.source),
        LocationMatch::Named(name) => format!("location {name}"),
    }
}

pub fn name(matches: &LocationMatch) -> &str {
    match matches {
        LocationMatch::Server => "",
        LocationMatch::Exact(text) | LocationMatch::Named(text) => text,
        LocationMatch::Prefix { path, .. } => path,
        LocationMatch::Regex(regex) => &regex.source,
    }
}

pub fn located(request: &Request, id: LocationId) -> String {
    let location = request.generation.http().location(id);
    let at = request.generation.shared.configuration.sources.locate(location.span);
    format!("{} ({at})", written(&location.matches))
}

/// Escapes invalid UTF-8 and control characters as `\x1b`.
pub fn readable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter.is_control() {
                letter.to_string().bytes().for_each(|byte| escape(byte, &mut text));
            } else {
                text.push(letter);
            }
        }
        chunk.invalid().iter().for_each(|byte| escape(*byte, &mut text));
    }
    text
}

fn escape(byte: u8, text: &mut String) {
    *text += &format!("\\x{byte:02x}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_a_terminal_would_obey_or_cannot_show_are_written_as_numbers() {
        for (bytes, text) in [
            (&b"de, en"[..], "de, en"),
            (b"\x1b[2J\r\n", "\\x1b[2J\\x0d\\x0a"),
            (b"a\xffb", "a\\xffb"),
            ("\u{9b}\u{e4}".as_bytes(), "\\xc2\\x9b\u{e4}"),
        ] {
            assert_eq!(readable(bytes), text);
        }
    }
}
