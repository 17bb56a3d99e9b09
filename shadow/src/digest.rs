//! The digest of a body in bounded memory, whatever its length and the pieces in which it arrives.
//!
//! JSON and text are read up to [`LONGEST_READ`], decoded if they are coded; other bodies, longer ones and those that cannot be
//! decoded are compared as a whole. Before: `json`, `text`, `decoding`; next: `response`.

use crate::decoding::{Coding, Decoder, Decoders};
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
    /// Of a coded body that is read.
    decoder: Option<Decoder>,
    marks: Marks,
    /// Bytes as they came, and as they are read.
    length: u64,
    read: u64,
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
    /// `None`: too many bodies are being decoded.
    pub(crate) fn new(
        key: Key,
        content_type: &[u8],
        coding: Coding,
        decoders: &Decoders,
        now: u64,
    ) -> Option<BodyDigest> {
        let has = |word: &[u8]| {
            content_type.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
                && coding != Coding::Unknown
        };
        let reader = match () {
            () if has(b"json") => Reader::Json(Box::new(Json::new(now))),
            () if has(b"text/") || has(b"xml") || has(b"javascript") => {
                Reader::Text(Box::new(Text::new(now)))
            }
            () => Reader::Nothing,
        };
        let decoder = match reader {
            Reader::Nothing => None,
            _ if coding == Coding::Plain => None,
            _ => Decoder::new(coding, decoders.right()?),
        };
        let (whole, marks) = (Blocks::new(), Marks::default());
        Some(BodyDigest { key, whole, reader, decoder, marks, length: 0, read: 0 })
    }

    pub(crate) fn feed(&mut self, piece: &[u8]) {
        self.whole.feed(&self.key, piece);
        self.length += piece.len() as u64;
        let Some(mut decoder) = self.decoder.take() else {
            self.read(piece);
            return;
        };
        if decoder.feed(piece, |plain| self.read(plain)) {
            self.decoder = Some(decoder);
        } else {
            self.reader = Reader::Nothing;
        }
    }

    /// False: there is nothing more to read.
    fn read(&mut self, plain: &[u8]) -> bool {
        self.read += plain.len() as u64;
        if self.read > LONGEST_READ {
            self.reader = Reader::Nothing;
        }
        match &mut self.reader {
            Reader::Json(json) => json.feed(&self.key, &mut self.marks, plain),
            Reader::Text(text) => text.feed(&self.key, &mut self.marks, plain),
            Reader::Nothing => return false,
        }
        true
    }

    pub(crate) fn finish(mut self) -> Digested {
        let key = &self.key;
        if self.decoder.as_ref().is_some_and(|decoder| !decoder.is_over()) {
            self.reader = Reader::Nothing;
        }
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
    use std::io::Write;

    fn digest(content_type: &str, body: &[u8]) -> Digested {
        coded(content_type, Coding::Plain, body)
    }

    fn coded(content_type: &str, coding: Coding, body: &[u8]) -> Digested {
        let (key, decoders) = (Key::from_seed(5), Decoders::default());
        let digest = BodyDigest::new(key, content_type.as_bytes(), coding, &decoders, 1_700_000_000_000);
        let mut digest = digest.expect("nothing else is decoded");
        body.chunks(1_000).for_each(|piece| digest.feed(piece));
        digest.finish()
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish()).expect("memory takes it")
    }

    #[test]
    fn what_is_inside_of_a_coded_body_is_read() {
        let text = r#"{"id":7,"at":1700000000,"csrf":"kR7xQ2mZp9LwT5vB"}"#;
        let (plain, inside) = (
            digest("application/json", text.as_bytes()),
            coded("application/json", Coding::Gzip, &gzip(text)),
        );
        assert_eq!((inside.meaning, inside.marks.len(), inside.is_opaque), (plain.meaning, 2, false));
        let later = gzip(&text.replace("1700000000", "1700000001"));
        assert_eq!(coded("application/json", Coding::Gzip, &later).meaning, plain.meaning);
        let cut = &later[..later.len() - 3];
        assert!(coded("application/json", Coding::Gzip, cut).is_opaque);
        assert!(coded("application/json", Coding::Unknown, &later).is_opaque);
        let bomb = gzip(&format!("[\"{}\"]", "x".repeat(LONGEST_READ as usize)));
        assert!(coded("application/json", Coding::Gzip, &bomb).is_opaque);
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
