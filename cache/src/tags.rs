//! What an answer can be purged by beside its URL: `Surrogate-Key`, `Cache-Tag`, `xkey` and `proxy_cache_tag`.
//!
//! A tag is kept as eight bytes of its MD5, the same in every process, so that a stored one is understood after a
//! restart; two tags that share them cost a refill at worst. It decides nothing. Next: `head`, which carries tags;
//! `purges`, which goes by them.

use crate::footprint::allocated;
use crate::key;
use millstream_wire::Fields;
use std::collections::HashSet;

/// Tags of one response. One with more is not stored: a purge by those left out would miss it.
pub const MOST: usize = 1024;

/// Response fields that contain tags, split at spaces and commas.
const FIELDS: [&[u8]; 3] = [b"surrogate-key", b"cache-tag", b"xkey"];

/// A tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub(crate) u64);

impl Tag {
    /// First tag of every slice, followed by that of its response. A name has this value only by chance.
    const PIECE: Tag = Tag(u64::from_le_bytes(*b"\0pieces\0"));

    /// Of all slices of one response, by its key as a whole. No field can contain a NUL.
    pub fn of_pieces(key: &[u8]) -> Tag {
        Tag::of(&[b"\0pieces\0", key].concat())
    }

    /// Names differ in every byte, case included.
    pub fn of(name: &[u8]) -> Tag {
        let [a, b, c, d, e, f, g, h, ..] = key::md5(name);
        Tag(u64::from_le_bytes([a, b, c, d, e, f, g, h]))
    }
}

/// The tags of a response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tags(Option<Box<[Tag]>>);

impl Tags {
    pub(crate) const NONE: Tags = Tags(None);

    /// From a response's fields and the values of `proxy_cache_tag`; `None` if there are more than [`MOST`].
    pub fn read<'a>(answer: Fields<'a>, configured: impl Iterator<Item = &'a [u8]>) -> Option<Tags> {
        let values = FIELDS.iter().flat_map(|name| answer.all_named(name)).chain(configured);
        let names = values.flat_map(|value| value.split(|byte| matches!(byte, b' ' | b'\t' | b',')));
        let first: Vec<Tag> =
            each_once(names.filter(|name| !name.is_empty()).map(Tag::of)).take(MOST + 1).collect();
        (first.len() <= MOST).then(|| Tags::from(first))
    }

    /// Each once; the caller ensures that they are not too many to be kept.
    pub(crate) fn of_all<'a>(sets: impl Iterator<Item = &'a Tags>) -> Tags {
        Tags::from(each_once(sets.flat_map(Tags::iter)).collect::<Vec<_>>())
    }

    /// For a slice of the response with this tag; `None` if there are more than [`MOST`] then.
    pub fn of_piece(self, whole: Tag) -> Option<Tags> {
        let all: Vec<Tag> = each_once([Tag::PIECE, whole].into_iter().chain(self.iter())).collect();
        (all.len() <= MOST).then(|| Tags::from(all))
    }

    pub(crate) fn whole(&self) -> Option<Tag> {
        match self.0.as_deref() {
            Some([Tag::PIECE, whole, ..]) => Some(*whole),
            _ => None,
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Tag> + '_ {
        self.0.iter().flat_map(|tags| tags.iter().copied())
    }

    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |tags| tags.len())
    }

    /// How many of them a purge can name.
    pub fn named(&self) -> usize {
        self.len() - if self.whole().is_some() { 2 } else { 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Bytes in addition to the value itself.
    pub(crate) fn cost(&self) -> u64 {
        allocated(self.len() * size_of::<Tag>())
    }
}

/// Without repeats. Upstreams choose how many there are, so they are not compared one by one.
fn each_once(tags: impl Iterator<Item = Tag>) -> impl Iterator<Item = Tag> {
    let mut seen = HashSet::new();
    tags.filter(move |tag| seen.insert(*tag))
}

impl From<Vec<Tag>> for Tags {
    fn from(tags: Vec<Tag>) -> Tags {
        Tags(Some(tags.into_boxed_slice()).filter(|tags| !tags.is_empty()))
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
        assert_eq!(tags, Some(Tags::from(expected)));
    }

    #[test]
    fn the_tags_of_many_answers_are_each_there_once_in_order() {
        let answers = (0..128u64)
            .map(|answer| Tags::from((0..1024).map(|tag| Tag(answer * 1000 + tag)).collect::<Vec<_>>()));
        let answers: Vec<Tags> = answers.collect();
        let expected: Vec<Tag> = (0..127 * 1000 + 1024).map(Tag).collect();
        assert_eq!(Tags::of_all(answers.iter()), Tags::from(expected));
        assert!(Tags::of_all(std::iter::empty()).is_empty());
    }

    #[test]
    fn a_piece_is_known_by_its_tags_and_nothing_else_is() {
        let whole = Tag::of_pieces(b"key");
        let tags = Tags::read(headers(&[("xkey", "a b")]).view(), std::iter::empty()).expect("few");
        let named = Tags::from(vec![Tag::of(b"c"), Tag::of(b"a")]);
        assert_eq!((tags.whole(), Tags::NONE.whole()), (None, None));
        for piece in [Tags::NONE.of_piece(whole), tags.of_piece(whole)].map(|piece| piece.expect("few")) {
            assert_eq!(piece.whole(), Some(whole));
            assert_eq!(Tags::of_all([&piece, &named].into_iter()).whole(), Some(whole), "refreshed");
        }
        let most = |count| Tags::from((1..=count as u64).map(Tag).collect::<Vec<_>>()).of_piece(whole);
        assert_eq!((most(MOST - 2).map(|tags| tags.len()), most(MOST - 1)), (Some(MOST), None));
    }

    #[test]
    fn more_tags_than_can_be_kept_are_not_cut_off() {
        let read = |count: usize| {
            let many: Vec<String> = (0..count).map(|number| number.to_string()).collect();
            let answer = headers(&[("Cache-Tag", &many.join(",")), ("xkey", "0 1")]);
            Tags::read(answer.view(), std::iter::empty()).map(|tags| tags.len())
        };
        assert_eq!((read(MOST), read(MOST + 1)), (Some(MOST), None));
    }
}
