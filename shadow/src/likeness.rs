//! Whether two responses mean the same, of which one may have been served in place of the other.
//!
//! It learns nothing of a route: what differs between responses to one request is noise, by what [`Noise`] was made of. Before:
//! `digest`; next: `millstream-server`'s `cached/verify`, which asks.

use crate::decoding::{Coding, Decoders};
use crate::digest::{BodyDigest, LONGEST_READ};
use crate::hash::Key;
use crate::json::Meaning;
use crate::mark::{Mark, MarkKind};
use millstream_wire::FieldId;
use millstream_wire::credential::is_credential;

/// Fields that are compared, besides those whose names refer to a person. Others count requests, name servers, or
/// belong to caches.
const FIELDS: [&str; 8] = [
    "content-type",
    "content-language",
    "content-disposition",
    "content-location",
    "location",
    "refresh",
    "www-authenticate",
    "access-control-allow-origin",
];

/// Reads a response as it passes.
pub struct ContentReader {
    key: Key,
    status: u16,
    fields: Vec<(u64, u64)>,
    body: Option<BodyDigest>,
    left: u64,
}

/// What a response means: hashes alone.
#[derive(Clone)]
pub struct Content {
    status: u16,
    /// Of name and value, by the names' hashes.
    fields: Vec<(u64, u64)>,
    meaning: Meaning,
    marks: Box<[Mark]>,
}

/// How one response is like another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likeness {
    Same,
    /// But for times and request ids.
    Noise,
    /// They differ, in meaning or in what only more responses can show to be noise.
    Different,
}

/// Places that differ between responses to one request.
#[derive(Debug, Clone, Default)]
pub struct Noise {
    places: Vec<(u64, Option<MarkKind>)>,
    is_orderless: bool,
}

/// What is different, in the order in which it is named.
#[derive(Default)]
struct Differences {
    status: bool,
    body: bool,
    /// Arrays have the same elements in another order.
    order: bool,
    /// Fields and marks.
    places: Vec<(u64, Option<MarkKind>)>,
}

impl ContentReader {
    /// `key` must be the same for all responses that are compared; `now` is in milliseconds since 1970. The body that is
    /// fed must not be encoded.
    pub fn begin<'a>(
        key: &Key,
        status: u16,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        now: u64,
    ) -> ContentReader {
        let (mut content_type, mut hashes) = (&b""[..], Vec::<(u64, u64)>::new());
        for (name, value) in fields {
            if name.eq_ignore_ascii_case(b"content-type") {
                content_type = value;
            }
            let is_meant = FIELDS.iter().any(|field| name.eq_ignore_ascii_case(field.as_bytes()))
                || is_credential(FieldId::of(name), name) && !name.eq_ignore_ascii_case(b"set-cookie");
            if !is_meant {
                continue;
            }
            let (name, value) = (key.bytes(&name.to_ascii_lowercase()), key.bytes(value));
            match hashes.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => *values = values.wrapping_add(value),
                None => hashes.push((name, value)),
            }
        }
        hashes.sort_unstable();
        let body = BodyDigest::new(key.clone(), content_type, Coding::Plain, &Decoders::default(), now);
        ContentReader { key: key.clone(), status, fields: hashes, body, left: LONGEST_READ }
    }

    /// False once enough has been read: what follows is not compared.
    pub fn feed(&mut self, piece: &[u8]) -> bool {
        let taken = piece.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if let Some(body) = &mut self.body {
            body.feed(&piece[..taken]);
        }
        self.left -= taken as u64;
        self.left > 0
    }

    pub fn finish(self) -> Content {
        let digested = self.body.map(BodyDigest::finish).unwrap_or_default();
        let is_cut = u64::from(self.left == 0);
        let Meaning { ordered, unordered } = digested.meaning;
        let meaning =
            Meaning { ordered: self.key.pair(ordered, is_cut), unordered: self.key.pair(unordered, is_cut) };
        // The order of arrays is compared as a whole.
        let marks = digested.marks.iter().filter(|mark| mark.kind != MarkKind::Order).copied().collect();
        Content { status: self.status, fields: self.fields, meaning, marks }
    }
}

impl Content {
    pub fn status(&self) -> u16 {
        self.status
    }

    pub fn compare(&self, other: &Content) -> Likeness {
        let differences = self.differences(other);
        match () {
            () if differences.are_none() => Likeness::Same,
            () if differences.without(&Noise::default()).are_none() => Likeness::Noise,
            () => Likeness::Different,
        }
    }

    /// By what they differ, but for noise, in words.
    pub fn differs_by(&self, other: &Content, noise: &Noise) -> &'static str {
        let differences = self.differences(other).without(noise);
        match () {
            () if differences.status => "status",
            () if differences.body => "body",
            () if differences.order => "order of a list in its body",
            () if differences.places.iter().any(|(_, kind)| kind.is_some()) => "a value in its body",
            () => "header",
        }
    }

    fn differences(&self, other: &Content) -> Differences {
        let mut places: Vec<(u64, Option<MarkKind>)> = Vec::new();
        let fields = |of: &Content, than: &Content, places: &mut Vec<_>| {
            let missing = of.fields.iter().filter(|field| !than.fields.contains(field));
            for (name, _) in missing {
                if !places.contains(&(*name, None)) {
                    places.push((*name, None));
                }
            }
        };
        fields(self, other, &mut places);
        fields(other, self, &mut places);
        let twin =
            |mark: &Mark| other.marks.iter().find(|twin| twin.place == mark.place && twin.kind == mark.kind);
        // A place that only one of them has is in the meaning of the other.
        let mut is_known = self.marks.len() == other.marks.len();
        for mark in &self.marks {
            match twin(mark) {
                Some(twin) if twin.value == mark.value => {}
                Some(_) => places.push((u64::from(mark.place), Some(mark.kind))),
                None => is_known = false,
            }
        }
        let is_alike = self.meaning.unordered == other.meaning.unordered && is_known;
        Differences {
            status: self.status != other.status,
            body: !is_alike,
            order: is_alike && self.meaning.ordered != other.meaning.ordered,
            places,
        }
    }
}

impl Noise {
    /// Of two responses to one request; `None` if they differ in what is no single place.
    pub fn between(one: &Content, other: &Content) -> Option<Noise> {
        let differences = one.differences(other);
        (!differences.status && !differences.body)
            .then_some(Noise { places: differences.places, is_orderless: differences.order })
    }

    #[must_use]
    pub fn and(mut self, other: Noise) -> Noise {
        self.places.extend(other.places);
        self.is_orderless |= other.is_orderless;
        self
    }

    /// Whether nothing else differs.
    pub fn explains(&self, one: &Content, other: &Content) -> bool {
        one.differences(other).without(self).are_none()
    }
}

impl Differences {
    fn are_none(&self) -> bool {
        !self.status && !self.body && !self.order && self.places.is_empty()
    }

    /// Times and request ids are noise in any case.
    fn without(mut self, noise: &Noise) -> Differences {
        self.order &= !noise.is_orderless;
        self.places.retain(|place| {
            !matches!(place.1, Some(MarkKind::Time | MarkKind::RequestId)) && !noise.places.contains(place)
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(status: u16, fields: &[(&str, &str)], body: &str) -> Content {
        let fields = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let mut reader = ContentReader::begin(&Key::from_seed(6), status, fields, 1_700_000_000_000);
        body.as_bytes().chunks(7).for_each(|piece| _ = reader.feed(piece));
        reader.finish()
    }

    fn json(body: &str) -> Content {
        content(200, &[("Content-Type", "application/json")], body)
    }

    #[test]
    fn times_and_request_ids_are_noise_and_everything_else_is_a_difference() {
        use Likeness::{Different, Noise, Same};
        for (one, other, expected) in [
            (r#"{"a":1,"b":2}"#, r#"{"b":2, "a":1}"#, Same),
            (r#"{"at":1700000000}"#, r#"{"at":1700000001}"#, Noise),
            (r#"{"request_id":"9f86d081884c7d659a2f"}"#, r#"{"request_id":"1b4f0e9851971998e732"}"#, Noise),
            (r#"{"csrf":"kR7xQ2mZp9LwT5vB"}"#, r#"{"csrf":"Zw8yN3hKc6XsD1qF"}"#, Different),
            (r#"{"name":"Ann"}"#, r#"{"name":"Bob"}"#, Different),
            (r#"{"views":7}"#, r#"{"views":8}"#, Different),
            ("[1,2]", "[2,1]", Different),
            (r#"{"a":1}"#, r#"{"a":1,"b":2}"#, Different),
        ] {
            assert_eq!(json(one).compare(&json(other)), expected, "{one} {other}");
        }
        assert_eq!(
            json("{}").compare(&content(404, &[("Content-Type", "application/json")], "{}")),
            Different
        );
    }

    #[test]
    fn what_differs_between_responses_to_one_request_is_noise_in_others() {
        let noise = |one: &str, other: &str| super::Noise::between(&json(one), &json(other));
        let counted = noise(r#"{"views":7,"name":"Bob"}"#, r#"{"views":8,"name":"Bob"}"#).expect("one place");
        let (ann, bob) = (json(r#"{"views":1,"name":"Ann"}"#), json(r#"{"views":9,"name":"Bob"}"#));
        assert!(!counted.explains(&ann, &bob), "whose it is is no noise");
        assert!(counted.explains(&json(r#"{"views":2,"name":"Bob"}"#), &bob));
        assert!(noise("[1,2]", "[2,1]").expect("the order").explains(&json("[3,1]"), &json("[1,3]")));
        assert!(noise(r#"{"name":"Ann"}"#, r#"{"name":"Bob"}"#).is_none(), "no single place");
    }

    #[test]
    fn fields_that_count_or_name_servers_are_not_compared_and_those_about_a_person_are() {
        let with = |name: &str, value: &str| content(200, &[(name, value)], "a");
        let compare = |name: &str| with(name, "1").compare(&with(name, "2"));
        for name in ["X-RateLimit-Remaining", "ETag", "Date", "X-Served-By", "Set-Cookie", "Age"] {
            assert_eq!(compare(name), Likeness::Same, "{name}");
        }
        for name in ["Location", "X-User", "Content-Language"] {
            assert_eq!(compare(name), Likeness::Different, "{name}");
        }
    }

    #[test]
    fn no_more_of_a_body_is_read_than_is_compared() {
        let mut reader = ContentReader::begin(&Key::from_seed(6), 200, std::iter::empty(), 0);
        let piece = vec![b'x'; 1 << 19];
        assert!(reader.feed(&piece) && !reader.feed(&piece) && !reader.feed(&piece));
    }
}
