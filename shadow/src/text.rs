//! A digest of HTML and other text as it passes, by words: those that look like a time, an id or a secret are marks.
//!
//! Before: `mark`; next: `digest`.

use crate::hash::{Blocks, Key};
use crate::mark::{MarkKind, Marks};
use crate::names::{self, Suggestion};
use crate::shape::{Shape, shape};

/// Longer words are ordinary.
const LONGEST: usize = 80;

/// Shorter words are neither times nor tokens.
const SHORTEST: usize = 9;

/// Words before a value that may name it.
const BEFORE: usize = 3;

#[derive(Clone, Copy)]
struct Word {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Word {
    const EMPTY: Word = Word { bytes: [0; LONGEST], length: 0 };

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

pub(crate) struct Text {
    blocks: Blocks,
    word: Word,
    is_long: bool,
    before: [Word; BEFORE],
    marks: u64,
    now: u64,
    /// Words that are no marks.
    pub(crate) ordinary: u32,
}

impl Text {
    pub(crate) fn new(now: u64) -> Text {
        Text {
            blocks: Blocks::new(),
            word: Word::EMPTY,
            is_long: false,
            before: [Word::EMPTY; BEFORE],
            marks: 0,
            now,
            ordinary: 0,
        }
    }

    pub(crate) fn feed(&mut self, key: &Key, marks: &mut Marks, mut bytes: &[u8]) {
        let is_part = |byte: &u8| {
            byte.is_ascii_alphanumeric()
                || matches!(byte, b'_' | b'-' | b'+' | b'.' | b':' | b'/')
                || *byte >= 128
        };
        while !bytes.is_empty() {
            let end = bytes.iter().position(|byte| !is_part(byte)).unwrap_or(bytes.len());
            self.extend(key, &bytes[..end]);
            bytes = &bytes[end..];
            if bytes.is_empty() {
                return;
            }
            self.word_ends(key, marks);
            let end = bytes.iter().position(is_part).unwrap_or(bytes.len());
            self.blocks.feed(key, &bytes[..end]);
            bytes = &bytes[end..];
        }
    }

    pub(crate) fn finish(&mut self, key: &Key, marks: &mut Marks) -> u64 {
        self.word_ends(key, marks);
        self.blocks.finish(key)
    }

    fn extend(&mut self, key: &Key, part: &[u8]) {
        if self.is_long || self.word.length + part.len() > LONGEST {
            if !self.is_long {
                let word = self.word;
                self.blocks.feed(key, word.bytes());
            }
            self.is_long = true;
            self.blocks.feed(key, part);
        } else {
            self.word.bytes[self.word.length..self.word.length + part.len()].copy_from_slice(part);
            self.word.length += part.len();
        }
    }

    fn word_ends(&mut self, key: &Key, marks: &mut Marks) {
        if self.word.length == 0 && !self.is_long {
            return;
        }
        let is_mark = !self.is_long && self.word.length >= SHORTEST && self.is_mark(key, marks);
        if is_mark {
            self.blocks.feed(key, b"\0");
        } else {
            self.ordinary = self.ordinary.saturating_add(1);
            if !self.is_long {
                let word = self.word;
                self.blocks.feed(key, word.bytes());
            }
        }
        self.before.rotate_left(1);
        self.before[BEFORE - 1] = if self.is_long { Word::EMPTY } else { self.word };
        self.word.length = 0;
        self.is_long = false;
    }

    fn is_mark(&mut self, key: &Key, marks: &mut Marks) -> bool {
        let shape = shape(self.word.bytes(), self.now);
        if !matches!(shape, Shape::Clock | Shape::Token | Shape::Integer) {
            return false;
        }
        let mut suggestions = self.before.iter().map(|word| names::suggestion(word.bytes()));
        // A secret's name decides, then the nearest one.
        let mut nearest = Suggestion::Nothing;
        let secret = suggestions.any(|suggestion| {
            if suggestion != Suggestion::Nothing {
                nearest = suggestion;
            }
            suggestion == Suggestion::Secret
        });
        let suggestion = if secret { Suggestion::Secret } else { nearest };
        let Some(kind) = MarkKind::of(shape, suggestion) else { return false };
        let place = key.pair(self.marks, kind as u64 + 100);
        let is_kept = marks.add(key, place, self.word.bytes(), kind);
        self.marks += u64::from(is_kept);
        is_kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str, size: usize) -> (u64, Vec<MarkKind>) {
        let key = Key::from_seed(4);
        let (mut reader, mut marks) = (Text::new(1_700_000_000_000), Marks::default());
        text.as_bytes().chunks(size).for_each(|piece| reader.feed(&key, &mut marks, piece));
        let hash = reader.finish(&key, &mut marks);
        (hash, marks.finish().iter().map(|mark| mark.kind).collect())
    }

    #[test]
    fn a_secret_in_a_form_is_a_mark() {
        let page = |secret: &str| {
            format!("<form><input name=\"csrf_token\" value=\"{secret}\"></form> <p>Hello</p>")
        };
        let (one, other) = (digest(&page("kR7xQ2mZp9LwT5vB"), 5), digest(&page("Zw8yN3hKc6XsD1qF"), 11));
        assert_eq!(one, other);
        assert_eq!(one.1, [MarkKind::Random]);
    }

    #[test]
    fn words_are_part_of_the_digest() {
        assert_ne!(digest("<p>Hello Ann</p>", 4).0, digest("<p>Hello Bob</p>", 4).0);
        assert_eq!(digest("<p>Hello Ann</p>", 4), digest("<p>Hello Ann</p>", 1));
    }
}
