//! A text in one charset on its way into another (`charset_map`).
//!
//! Held back are at most three bytes: a character of UTF-8 that is cut in two. Before: `charset`, which says what is converted.

use super::body::{BodyFilter, ENOUGH, Taken};
use crate::generation::Generation;
use crate::request::Request;
use millstream_conf::model::{Conversion, Table};
use std::io::Write;
use std::rc::Rc;

/// Bytes converted between two looks at the output, which is at most ten times as long.
const AT_A_TIME: usize = 4 * 1024;

pub(super) struct Recode {
    generation: Rc<Generation>,
    at: usize,
    /// The start of an incomplete character.
    held: Vec<u8>,
}

impl Recode {
    pub(super) fn new(generation: Rc<Generation>, at: usize) -> Recode {
        Recode { generation, at, held: Vec::new() }
    }

    fn conversion(&self) -> Option<&Conversion> {
        self.generation.http().conversions.get(self.at)
    }

    pub(super) fn keeps_length(&self) -> bool {
        self.conversion().is_some_and(|conversion| matches!(conversion.table, Table::Bytes(_)))
    }
}

impl BodyFilter for Recode {
    fn take(&mut self, _: &Request, piece: &mut &[u8], is_last: bool, out: &mut Vec<u8>) -> Taken {
        let mut held = std::mem::take(&mut self.held);
        if let Some(conversion) = self.conversion() {
            while !piece.is_empty() && out.len() < ENOUGH {
                let part = piece.split_off(..piece.len().min(AT_A_TIME)).unwrap_or_default();
                convert(&conversion.table, part, &mut held, out);
            }
        }
        self.held = held;
        if !piece.is_empty() {
            return Taken::Some;
        }
        if is_last && !self.held.is_empty() {
            out.push(b'?');
        }
        Taken::All
    }
}

fn convert(table: &Table, piece: &[u8], held: &mut Vec<u8>, out: &mut Vec<u8>) {
    match table {
        Table::Bytes(table) => out.extend(piece.iter().map(|&byte| table[usize::from(byte)])),
        Table::ToUtf8(table) => {
            for &byte in piece {
                let character = table[usize::from(byte)];
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        Table::FromUtf8(table) => {
            held.extend_from_slice(piece);
            let rest = from_utf8(table, held, out);
            held.drain(..held.len() - rest);
        }
    }
}

/// Returns how many bytes at the end are incomplete. A character outside the charset becomes an HTML
/// reference, invalid UTF-8 a question mark, as in nginx.
fn from_utf8(table: &[(char, u8)], text: &[u8], out: &mut Vec<u8>) -> usize {
    let chunks = text.utf8_chunks();
    let (mut read, length) = (0, text.len());
    for chunk in chunks {
        for character in chunk.valid().chars() {
            match table.binary_search_by_key(&character, |(known, _)| *known) {
                Ok(at) => out.push(table[at].1),
                Err(_) if character.is_ascii() => out.push(character as u8),
                Err(_) => _ = write!(out, "&#{};", u32::from(character)),
            }
        }
        read += chunk.valid().len() + chunk.invalid().len();
        let is_cut = read == length && is_beginning(chunk.invalid());
        if is_cut {
            return chunk.invalid().len();
        }
        if !chunk.invalid().is_empty() {
            out.push(b'?');
        }
    }
    0
}

fn is_beginning(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::convert;
    use millstream_conf::model::Table;

    fn converted(table: &Table, pieces: &[&[u8]]) -> (Vec<u8>, usize) {
        let (mut held, mut out) = (Vec::new(), Vec::new());
        for piece in pieces {
            convert(table, piece, &mut held, &mut out);
        }
        (out, held.len())
    }

    #[test]
    fn characters_are_converted_both_ways_wherever_they_are_cut() {
        let [there, back] = Table::of_characters(&[(0xC0, 'ю'), (0xA4, '€')]);
        assert_eq!(converted(&there, &[b"a\xC0\xA4\xFF"]), ("aю€?".as_bytes().to_vec(), 0));
        let text = "aю€😀z".as_bytes();
        for cut in 0..text.len() {
            let pieces = [&text[..cut], &text[cut..]];
            assert_eq!(converted(&back, &pieces), (b"a\xC0\xA4&#128512;z".to_vec(), 0), "{cut}");
        }
        assert_eq!(converted(&back, &[b"a\xC3(\xFFb\xE2\x82"]), (b"a?(?b".to_vec(), 2));
        let [there, back] = Table::of_bytes(&[(b'X', b'Y'), (0xC0, 0xE0)]);
        assert_eq!(converted(&there, &[b"aX\xC0\xC1"]), (b"aY\xE0?".to_vec(), 0));
        assert_eq!(converted(&back, &[b"aY\xE0\xE1"]), (b"aX\xC0?".to_vec(), 0));
    }
}
