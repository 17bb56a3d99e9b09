//! The digest of a body in bounded memory, whatever its length and the pieces in which it arrives.
//!
//! JSON and text are read up to [`LONGEST_READ`]; other bodies, encoded ones and longer ones are compared as a whole.
//! Before: `json`, `text`; next: `response`.

use crate::hash::{Blocks, Key};
use crate::json::{Json, Meaning};
use crate::mark::{Mark, Marks};
use crate::text::Text;

/// Bytes of a body in which places are looked for.
pub const LONGEST_READ: u64 = 1 << 20;

pub(crate) struct BodyDigest {
    key: Key,
    whole: Blocks,
    reader: Reader,
    marks: Marks,
    length: u64,
}

enum Reader {
    Json(Box<Json>),
    Text(Box<Text>),
    Nothing,
}

/// What is kept of a body.
#[derive(Default)]
pub(crate) struct Digested {
    pub(crate) meaning: Meaning,
    pub(crate) marks: Box<[Mark]>,
    /// Compared byte by byte, because it was too long, encoded, or neither JSON nor text.
    pub(crate) is_opaque: bool,
    /// Whether nothing but marks is in it.
    pub(crate) is_hollow: bool,
    /// The names of a JSON object's members; zero if it is none.
    pub(crate) form: u32,
}

impl BodyDigest {
    pub(crate) fn new(key: Key, content_type: &[u8], is_encoded: bool, now: u64) -> BodyDigest {
        let has = |word: &[u8]| {
            content_type.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word)) && !is_encoded
        };
        let reader = match () {
            () if has(b"json") => Reader::Json(Box::new(Json::new(now))),
            () if has(b"text/") || has(b"xml") || has(b"javascript") => {
                Reader::Text(Box::new(Text::new(now)))
            }
            () => Reader::Nothing,
        };
        BodyDigest { key, whole: Blocks::new(), reader, marks: Marks::default(), length: 0 }
    }

    pub(crate) fn feed(&mut self, piece: &[u8]) {
        self.whole.feed(&self.key, piece);
        self.length += piece.len() as u64;
        if self.length > LONGEST_READ {
            self.reader = Reader::Nothing;
        }
        match &mut self.reader {
            Reader::Json(json) => json.feed(&self.key, &mut self.marks, piece),
            Reader::Text(text) => text.feed(&self.key, &mut self.marks, piece),
            Reader::Nothing => {}
        }
    }

    pub(crate) fn finish(mut self) -> Digested {
        let key = &self.key;
        let read = match &mut self.reader {
            Reader::Json(json) => {
                json.finish(key, &mut self.marks).map(|meaning| (meaning, json.ordinary, json.form as u32))
            }
            Reader::Text(text) => {
                let hash = text.finish(key, &mut self.marks);
                Some((Meaning { ordered: hash, unordered: hash }, text.ordinary, 0))
            }
            Reader::Nothing => None,
        };
        let Some((meaning, ordinary, form)) = read else {
            let hash = key.pair(self.whole.finish(key), self.length);
            return Digested {
                meaning: Meaning { ordered: hash, unordered: hash },
                is_opaque: self.length > 0,
                ..Digested::default()
            };
        };
        let marks = self.marks.finish();
        let is_hollow = ordinary == 0 && !marks.is_empty();
        Digested { meaning, marks, is_opaque: false, is_hollow, form }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(content_type: &str, body: &[u8]) -> Digested {
        let mut digest = BodyDigest::new(Key::from_seed(5), content_type.as_bytes(), false, 0);
        body.chunks(1_000).for_each(|piece| digest.feed(piece));
        digest.finish()
    }

    #[test]
    fn a_body_that_is_too_long_or_no_json_is_compared_as_a_whole() {
        let long = format!("[\"{}\"]", "x".repeat(LONGEST_READ as usize));
        assert!(digest("application/json", long.as_bytes()).is_opaque);
        assert!(digest("application/json", b"{broken").is_opaque);
        assert!(digest("image/png", b"\x89PNG").is_opaque);
        assert!(!digest("application/json; charset=utf-8", b"{}").is_opaque);
        assert_ne!(digest("image/png", b"a").meaning, digest("image/png", b"b").meaning);
    }
}
