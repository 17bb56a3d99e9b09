//! A digest of JSON as it passes: objects without the order of their members, arrays with it and without.
//!
//! Nothing is kept but hashes and one scalar of at most [`LONGEST`] bytes. A text that is no JSON, or deeper than
//! [`DEEPEST`], fails, and then the whole body's hash is all there is. Before: `mark`; next: `digest`.

use crate::hash::Key;
use crate::mark::{MarkKind, Marks};
use crate::names;
use crate::shape::shape;

/// Bytes of a scalar that are looked at in one piece; longer strings are hashed in pieces of this length.
const LONGEST: usize = 64;

/// Nested arrays and objects.
const DEEPEST: usize = 48;

/// Of nested objects, the names in the first three are the form of the text.
const DEEPEST_FORM: usize = 4;

/// Both hashes of a value: with and without the order of arrays. Orders that are no marks are part of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Meaning {
    pub(crate) ordered: u64,
    pub(crate) unordered: u64,
}

struct Level {
    is_object: bool,
    sum: Meaning,
    /// Of an array: its elements in their order, each without that of its own arrays.
    order: u64,
    elements: u32,
    place: u64,
    member: u64,
    suggestion: names::Suggestion,
}

#[derive(Clone, Copy, PartialEq)]
enum Expects {
    Value,
    /// A value, or the end of an array that has none.
    FirstValue,
    /// A name, or the end of an object that has none.
    FirstName,
    Name,
    Colon,
    CommaOrEnd,
}

#[derive(Clone, Copy, PartialEq)]
enum Inside {
    Nothing,
    String { is_name: bool, is_escaped: bool },
    Word,
}

pub(crate) struct Json {
    levels: Vec<Level>,
    expects: Expects,
    inside: Inside,
    scalar: [u8; LONGEST],
    length: usize,
    /// The hash of what a long string has behind it.
    long: u64,
    now: u64,
    failed: bool,
    /// Scalars that are no marks.
    pub(crate) ordinary: u32,
    /// The names of members in objects, in any order.
    pub(crate) form: u64,
}

impl Json {
    pub(crate) fn new(now: u64) -> Json {
        let outermost = Level {
            is_object: false,
            sum: Meaning::default(),
            order: 0,
            elements: 0,
            place: 1,
            member: 0,
            suggestion: names::Suggestion::Nothing,
        };
        Json {
            levels: vec![outermost],
            expects: Expects::Value,
            inside: Inside::Nothing,
            scalar: [0; LONGEST],
            length: 0,
            long: 0,
            now,
            failed: false,
            ordinary: 0,
            form: 0,
        }
    }

    pub(crate) fn feed(&mut self, key: &Key, marks: &mut Marks, mut bytes: &[u8]) {
        while !self.failed && !bytes.is_empty() {
            bytes = match self.inside {
                Inside::String { is_name, is_escaped } => self.string(key, marks, bytes, is_name, is_escaped),
                Inside::Word => self.word(key, marks, bytes),
                Inside::Nothing => {
                    self.structure(key, marks, bytes[0]);
                    // The first byte of a word belongs to it.
                    if self.inside == Inside::Word { bytes } else { &bytes[1..] }
                }
            };
        }
    }

    /// `None`: it was no JSON.
    pub(crate) fn finish(&mut self, key: &Key, marks: &mut Marks) -> Option<Meaning> {
        if self.inside == Inside::Word {
            self.scalar_ends(key, marks, false);
        }
        let is_whole = self.levels.len() == 1 && self.inside == Inside::Nothing;
        let has_value = self.expects == Expects::CommaOrEnd;
        (!self.failed && is_whole && has_value).then(|| self.levels[0].sum)
    }

    fn string<'a>(
        &mut self,
        key: &Key,
        marks: &mut Marks,
        bytes: &'a [u8],
        is_name: bool,
        is_escaped: bool,
    ) -> &'a [u8] {
        if is_escaped {
            self.keep(key, &bytes[..1]);
            self.inside = Inside::String { is_name, is_escaped: false };
            return &bytes[1..];
        }
        let Some(at) = memchr::memchr2(b'"', b'\\', bytes) else {
            self.keep(key, bytes);
            return &[];
        };
        self.keep(key, &bytes[..at]);
        if bytes[at] == b'\\' {
            self.keep(key, b"\\");
            self.inside = Inside::String { is_name, is_escaped: true };
        } else {
            self.inside = Inside::Nothing;
            if is_name { self.name_ends(key) } else { self.scalar_ends(key, marks, true) }
        }
        &bytes[at + 1..]
    }

    fn word<'a>(&mut self, key: &Key, marks: &mut Marks, bytes: &'a [u8]) -> &'a [u8] {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        let end = bytes.iter().position(|byte| !is_part(byte)).unwrap_or(bytes.len());
        self.keep(key, &bytes[..end]);
        if end < bytes.len() {
            self.inside = Inside::Nothing;
            self.scalar_ends(key, marks, false);
        }
        &bytes[end..]
    }

    fn structure(&mut self, key: &Key, marks: &mut Marks, byte: u8) {
        let takes_value = matches!(self.expects, Expects::Value | Expects::FirstValue)
            // One value after the other: JSON lines.
            || self.levels.len() == 1 && self.expects == Expects::CommaOrEnd;
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {}
            b'{' | b'[' if takes_value && self.levels.len() < DEEPEST => {
                let parent = &self.levels[self.levels.len() - 1];
                let place = key.pair(parent.place, parent.member);
                let suggestion = parent.suggestion;
                let is_object = byte == b'{';
                let sum = Meaning::default();
                self.levels.push(Level {
                    is_object,
                    sum,
                    order: 0,
                    elements: 0,
                    place,
                    member: 0,
                    suggestion,
                });
                self.expects = if is_object { Expects::FirstName } else { Expects::FirstValue };
            }
            b'}' | b']' if self.levels.len() > 1 && self.may_end(byte == b'}') => {
                let Some(level) = self.levels.pop() else { return };
                let tag = u64::from(byte);
                let is_kept = level.elements < 2 || marks.add_order(level.place, level.order);
                let unordered = if is_kept { level.sum.unordered } else { level.order };
                let (ordered, unordered) = (key.pair(tag, level.sum.ordered), key.pair(tag, unordered));
                self.value_ends(key, Meaning { ordered, unordered });
            }
            b',' if self.levels.len() > 1 && self.expects == Expects::CommaOrEnd => {
                let is_object = self.levels[self.levels.len() - 1].is_object;
                self.expects = if is_object { Expects::Name } else { Expects::Value };
            }
            b':' if self.expects == Expects::Colon => self.expects = Expects::Value,
            b'"' if matches!(self.expects, Expects::Name | Expects::FirstName) => {
                self.begin(Inside::String { is_name: true, is_escaped: false });
            }
            b'"' if takes_value => self.begin(Inside::String { is_name: false, is_escaped: false }),
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' if takes_value => self.begin(Inside::Word),
            _ => self.failed = true,
        }
    }

    fn may_end(&self, is_object: bool) -> bool {
        let fits = self.levels[self.levels.len() - 1].is_object == is_object;
        fits && match self.expects {
            Expects::CommaOrEnd => true,
            Expects::FirstName => is_object,
            Expects::FirstValue => !is_object,
            _ => false,
        }
    }

    fn begin(&mut self, inside: Inside) {
        self.inside = inside;
        self.length = 0;
        self.long = 0;
    }

    fn keep(&mut self, key: &Key, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.length == LONGEST {
                self.long = key.join(self.long, &self.scalar);
                self.length = 0;
            }
            let (now, rest) = bytes.split_at(bytes.len().min(LONGEST - self.length));
            self.scalar[self.length..self.length + now.len()].copy_from_slice(now);
            self.length += now.len();
            bytes = rest;
        }
    }

    fn name_ends(&mut self, key: &Key) {
        let name = &self.scalar[..self.length];
        let member = key.join(self.long, name);
        let suggestion = if self.long == 0 { names::suggestion(name) } else { names::Suggestion::Nothing };
        let is_nested =
            self.levels.len() <= DEEPEST_FORM && self.levels[1..].iter().all(|level| level.is_object);
        if is_nested {
            let place = self.levels[self.levels.len() - 1].place;
            self.form = self.form.wrapping_add(key.pair(place, member));
        }
        let level = self.levels.len() - 1;
        self.levels[level].member = member;
        self.levels[level].suggestion = suggestion;
        self.expects = Expects::Colon;
    }

    fn scalar_ends(&mut self, key: &Key, marks: &mut Marks, is_string: bool) {
        let text = &self.scalar[..self.length];
        let level = &self.levels[self.levels.len() - 1];
        let place = key.pair(level.place, level.member);
        if self.long == 0
            && let Some(kind) = MarkKind::of(shape(text, self.now), level.suggestion)
            && marks.add(key, place, text, kind)
        {
            return self.value_ends(key, Meaning { ordered: 1, unordered: 1 });
        }
        self.ordinary = self.ordinary.saturating_add(1);
        let hash = key.pair(key.join(self.long, text), u64::from(is_string));
        self.value_ends(key, Meaning { ordered: hash, unordered: hash });
    }

    fn value_ends(&mut self, key: &Key, value: Meaning) {
        let level = self.levels.len() - 1;
        let level = &mut self.levels[level];
        let sum = &mut level.sum;
        if level.is_object {
            sum.ordered = sum.ordered.wrapping_add(key.pair(level.member, value.ordered));
            sum.unordered = sum.unordered.wrapping_add(key.pair(level.member, value.unordered));
        } else {
            sum.ordered = key.pair(sum.ordered, value.ordered);
            sum.unordered = sum.unordered.wrapping_add(key.pair(7, value.unordered));
            level.order = key.pair(level.order, value.unordered);
            level.elements = level.elements.saturating_add(1);
        }
        self.expects = Expects::CommaOrEnd;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000_000;

    fn digest(text: &str, size: usize) -> Option<(Meaning, usize)> {
        let key = Key::from_seed(3);
        let (mut json, mut marks) = (Json::new(NOW), Marks::default());
        text.as_bytes().chunks(size).for_each(|piece| json.feed(&key, &mut marks, piece));
        let meaning = json.finish(&key, &mut marks)?;
        Some((meaning, marks.finish().len()))
    }

    #[test]
    fn members_have_no_order_and_the_order_of_an_array_is_known_apart_from_its_elements() {
        let of = |text: &str| digest(text, 3).expect("this is JSON").0;
        assert_eq!(of(r#"{"a":1,"b":[2,3]}"#), of(r#" {"b" : [2, 3], "a":1} "#));
        let (one, other) = (of(r#"[{"a":1,"b":2},{"a":3,"b":4}]"#), of(r#"[{"a":3,"b":4},{"a":1,"b":2}]"#));
        assert!(one.ordered != other.ordered && one.unordered == other.unordered);
        let mixed = of(r#"[{"a":1,"b":4},{"a":3,"b":2}]"#);
        assert_ne!(one.unordered, mixed.unordered);
        assert_ne!(of(r#"{"a":"1"}"#), of(r#"{"a":1}"#));
        assert_ne!(of("[]"), of("{}"));
        let orders = |text: &str| digest(text, 3).map(|(_, marks)| marks);
        assert_eq!(
            orders(r#"{"a":[1,2],"b":[2,1],"c":[1],"d":[]}"#),
            Some(2),
            "each list of several has its own"
        );
        assert_ne!(of("[[1],[2]]").unordered, of("[[1,2],[]]").unordered);
    }

    #[test]
    fn pieces_make_no_difference() {
        let text = format!(r#"{{"long":"{}","e":"a\"b\\","n":[1.5e3,-2,true,null]}}"#, "x".repeat(200));
        assert!([1, 2, 5, 64, 1_000].iter().all(|size| digest(&text, *size) == digest(&text, 7)));
    }

    #[test]
    fn times_request_ids_and_secrets_are_marks_and_not_part_of_the_digest() {
        let one = r#"{"id":7,"at":1700000000,"request_id":"9f86d081884c7d659a2f","csrf":"kR7xQ2mZp9LwT5vB"}"#;
        let other =
            r#"{"id":7,"at":1700000001,"request_id":"1b4f0e9851971998e732","csrf":"Zw8yN3hKc6XsD1qF"}"#;
        assert_eq!(digest(one, 9), digest(other, 9));
        assert_eq!(digest(one, 9).map(|(_, marks)| marks), Some(3));
    }

    #[test]
    fn what_is_no_json_has_no_digest() {
        for text in ["", "{", "[1,]", "{\"a\" 1}", "[1}", "<p>", "{\"a\":1}}", "\"open"] {
            assert_eq!(digest(text, 4), None, "{text}");
        }
    }
}
