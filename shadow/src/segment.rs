//! A segment of a path: a word, or an id of a shape.
//!
//! Before: `shape`; next: `paths`, the tree of segments.

use crate::shape;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fold {
    Number,
    Uuid,
    Hash,
    Word,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Segment {
    Word(Box<[u8]>),
    Any(Fold),
}

/// Segments that are ids by their shape.
pub(crate) fn fold(segment: &[u8]) -> Option<Fold> {
    let digits = segment.iter().filter(|byte| byte.is_ascii_digit()).count();
    match () {
        () if digits == 0 => None,
        () if digits == segment.len() => Some(Fold::Number),
        () if shape::is_uuid(segment) => Some(Fold::Uuid),
        () if is_hash(segment) => Some(Fold::Hash),
        () => None,
    }
}

/// Hexadecimal with digits and letters, or letters and digits as random ids have them: a digit comes after a letter twice, which no
/// word with a number does. An expression in the configuration says the same.
fn is_hash(segment: &[u8]) -> bool {
    let is_hexadecimal =
        segment.len() >= 8 && segment.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_mixed = || {
        let numbers =
            segment.windows(2).filter(|pair| pair[0].is_ascii_alphabetic() && pair[1].is_ascii_digit());
        segment.len() >= 12 && segment.iter().all(u8::is_ascii_alphanumeric) && numbers.count() >= 2
    };
    is_hexadecimal || is_mixed()
}

impl Segment {
    pub(crate) fn label(&self) -> String {
        match self {
            Segment::Word(word) => String::from_utf8_lossy(word).into_owned(),
            Segment::Any(Fold::Number) => "{id}".to_owned(),
            Segment::Any(Fold::Uuid) => "{uuid}".to_owned(),
            Segment::Any(Fold::Hash) => "{hash}".to_owned(),
            Segment::Any(Fold::Word) => "{word}".to_owned(),
        }
    }
}
