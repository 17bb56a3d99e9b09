//! A digest of HTML and other text as it passes, by words: those that look like a time, an id or a secret are marks.
//!
//! Before: `mark`; next: `digest`.

use crate::hash::{Blocks, Key};
use crate::mark::{MarkKind, Marks};
use crate::names::{self, Suggestion};
use crate::shape::{Shape, is_now, local_time, shape, zone};

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

/// The time of day after a date, of which the next word is the zone: until then it is not digested.
#[derive(Clone, Copy)]
struct Held {
    word: Word,
    /// Seconds since 1970 by the clocks of the zone.
    local: i64,
    /// Whether a space has followed.
    has_space: bool,
}

pub(crate) struct Text {
    blocks: Blocks,
    held: Option<Held>,
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
            held: None,
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
            self.gap(key, &bytes[..end]);
            bytes = &bytes[end..];
        }
    }

    /// What is between two words.
    fn gap(&mut self, key: &Key, gap: &[u8]) {
        match &mut self.held {
            Some(held) if gap == b" " && !held.has_space => held.has_space = true,
            _ => {
                self.release(key, false);
                self.blocks.feed(key, gap);
            }
        }
    }

    /// Digests the time that was held, as a mark or as it is.
    fn release(&mut self, key: &Key, is_mark: bool) {
        let Some(held) = self.held.take() else { return };
        self.blocks.feed(key, if is_mark { b"\0" } else { held.word.bytes() });
        self.ordinary = self.ordinary.saturating_add(u32::from(!is_mark));
        if held.has_space {
            self.blocks.feed(key, b" ");
        }
    }

    /// A word has ended after a time that is held: it may be the zone.
    fn settle(&mut self, key: &Key, marks: &mut Marks) {
        let Some(held) = self.held else { return };
        let zone = if self.is_long { None } else { zone(self.word.bytes()) };
        let is_time = zone.is_some_and(|offset| is_now(held.local - offset, self.now));
        let is_mark = is_time && self.add_mark(key, marks, held.word.bytes(), MarkKind::Time);
        self.release(key, is_mark);
    }

    /// Whether the word that has ended is a time of day after a date.
    fn hold(&mut self) -> bool {
        let [day, month, year] = &self.before;
        let local = match self.is_long {
            true => None,
            false => local_time([day.bytes(), month.bytes(), year.bytes()], self.word.bytes()),
        };
        self.held = local.map(|local| Held { word: self.word, local, has_space: false });
        self.held.is_some()
    }

    pub(crate) fn finish(&mut self, key: &Key, marks: &mut Marks) -> u64 {
        self.word_ends(key, marks);
        self.release(key, false);
        self.blocks.finish(key)
    }

    fn extend(&mut self, key: &Key, part: &[u8]) {
        if self.is_long || self.word.length + part.len() > LONGEST {
            if !self.is_long {
                self.release(key, false);
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
        self.settle(key, marks);
        let is_mark = !self.is_long && self.word.length >= SHORTEST && self.is_mark(key, marks);
        if is_mark {
            self.blocks.feed(key, b"\0");
        } else if !self.hold() {
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
        let word = self.word;
        self.add_mark(key, marks, word.bytes(), kind)
    }

    fn add_mark(&mut self, key: &Key, marks: &mut Marks, value: &[u8], kind: MarkKind) -> bool {
        let place = key.pair(self.marks, kind as u64 + 100);
        let is_kept = marks.add(key, place, value, kind);
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
    fn the_date_of_a_feed_is_a_time_if_it_is_that_of_the_response() {
        let feed = |date: &str| format!("<rss><pubdate>{date}</pubdate><title>News</title></rss>");
        let of = |date: &str| {
            let text = feed(date);
            assert!([1, 3, 29].iter().all(|size| digest(&text, *size) == digest(&text, 500)), "{date}");
            digest(&text, 500)
        };
        let (one, other) = (of("Tue, 14 Nov 2023 22:13:20 +0000"), of("Tue, 14 Nov 2023 22:13:23 +0000"));
        assert!(one == other && one.1 == [MarkKind::Time]);
        assert_eq!(of("14 Nov 2023 23:13:21 +0100").1, [MarkKind::Time]);
        for date in ["Tue, 14 Nov 2023 21:00:00 +0000", "14 Nov 2023 22:13:20", "14 Nov 2023 22:13:20, +0000"]
        {
            assert!(of(date).1.is_empty(), "{date}");
            assert_ne!(of(date).0, of(&date.replace(":00", ":01").replace(":20", ":21")).0);
        }
        assert_ne!(of("Tue, 14 Nov 2023 22:13:20  x").0, of("Tue, 14 Nov 2023 22:13:20 x").0);
    }

    #[test]
    fn words_are_part_of_the_digest() {
        assert_ne!(digest("<p>Hello Ann</p>", 4).0, digest("<p>Hello Bob</p>", 4).0);
        assert_eq!(digest("<p>Hello Ann</p>", 4), digest("<p>Hello Ann</p>", 1));
    }
}
