//! What an answer can be purged by beside its URL: `Surrogate-Key`, `Cache-Tag`, `xkey` and `proxy_cache_tag`.
//!
//! A tag is kept as eight bytes of its MD5, the same in every process, so that a stored one is understood after a
//! restart; two tags that share them cost a refill at worst. It decides nothing. Next: `head`, which carries tags;
//! `purges`, which goes by them.

use crate::footprint::allocated;
use crate::key;
use millstream_wire::Fields;

/// Tags of one answer that are kept; more are cut off, in the order they were written.
pub const MOST: usize = 128;

/// Response fields that name tags, split at spaces and commas.
const FIELDS: [&[u8]; 3] = [b"surrogate-key", b"cache-tag", b"xkey"];

/// A tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub(crate) u64);

impl Tag {
    /// The tag with this name; names differ in every byte, case included.
    pub fn of(name: &[u8]) -> Tag {
        let [a, b, c, d, e, f, g, h, ..] = key::md5(name);
        Tag(u64::from_le_bytes([a, b, c, d, e, f, g, h]))
    }
}

/// The tags of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tags(Option<Box<[Tag]>>);

impl Tags {
    /// No tags.
    pub(crate) const NONE: Tags = Tags(None);

    /// The tags in an answer's fields and in the values of `proxy_cache_tag`.
    pub fn read<'a>(answer: Fields<'_>, configured: impl Iterator<Item = &'a [u8]>) -> Tags {
        let mut tags = Vec::new();
        for name in FIELDS {
            answer.all_named(name).for_each(|value| add(&mut tags, value));
        }
        configured.for_each(|value| add(&mut tags, value));
        Tags::from(tags)
    }

    /// These and others, each once.
    pub(crate) fn and(&self, others: &Tags) -> Tags {
        let mut tags: Vec<Tag> = self.iter().collect();
        others.iter().for_each(|tag| add_one(&mut tags, tag));
        Tags::from(tags)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Tag> + '_ {
        self.0.iter().flat_map(|tags| tags.iter().copied())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |tags| tags.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Bytes they occupy beside the value itself.
    pub(crate) fn cost(&self) -> u64 {
        allocated(self.len() * size_of::<Tag>())
    }
}

impl From<Vec<Tag>> for Tags {
    fn from(tags: Vec<Tag>) -> Tags {
        Tags(Some(tags.into_boxed_slice()).filter(|tags| !tags.is_empty()))
    }
}

fn add(tags: &mut Vec<Tag>, value: &[u8]) {
    let names = value.split(|byte| matches!(byte, b' ' | b'\t' | b',')).filter(|name| !name.is_empty());
    names.map(Tag::of).for_each(|tag| add_one(tags, tag));
}

fn add_one(tags: &mut Vec<Tag>, tag: Tag) {
    if tags.len() < MOST && !tags.contains(&tag) {
        tags.push(tag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::headers;

    #[test]
    fn tags_come_from_three_fields_and_the_configuration_each_once() {
        let answer = headers(&[("Surrogate-Key", "a b"), ("Cache-Tag", "b,c , d"), ("xkey", "e")]);
        let tags = Tags::read(answer.view(), [&b"f a"[..]].into_iter());
        let expected: Vec<Tag> = [b"a", b"b", b"c", b"d", b"e", b"f"].map(|name| Tag::of(name)).into();
        assert_eq!(tags, Tags::from(expected));
    }

    #[test]
    fn more_tags_than_are_kept_are_cut_off() {
        let many: Vec<String> = (0..MOST + 10).map(|number| number.to_string()).collect();
        let answer = headers(&[("Cache-Tag", &many.join(","))]);
        assert_eq!(Tags::read(answer.view(), std::iter::empty()).len(), MOST);
    }
}
