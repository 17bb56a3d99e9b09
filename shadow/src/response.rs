//! What is kept of a response's head, and whether a cache may store it.
//!
//! The rules are those of `millstream-cache`'s policy, without its directives. Before: `digest`; next: `seen`.

use crate::decoding::Coding;
use crate::hash::Key;
use crate::json::Meaning;
use crate::mark::{MarkKind, Marks};
use crate::names;
use crate::shape::shape;
use millstream_wire::{cache_control, date};

/// Names in Vary that are kept; more count as `*`.
const MOST_NAMES: usize = 8;

/// What a cache may do with a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storable {
    Yes,
    /// Not 200, or a part.
    Status,
    /// The API forbids it: private, no-store, no-cache, or already expired.
    Forbidden,
    SetsCookie,
    /// An event stream, or one that is not to be buffered.
    Stream,
    /// `Vary: *`
    VariesByAnything,
}

pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) storable: Storable,
    /// The lifetime in seconds that the response gives.
    pub(crate) explicit: Option<u32>,
    /// `public` or `s-maxage`: for requests with Authorization too (RFC 9111 §3.5).
    pub(crate) is_public: bool,
    pub(crate) vary: Vec<Box<[u8]>>,
    pub(crate) meaning: Meaning,
    pub(crate) content_type: Box<[u8]>,
    pub(crate) coding: Coding,
}

impl Head {
    /// What the response means, with this body.
    pub(crate) fn with(&self, key: &Key, mut body: Meaning) -> Meaning {
        body.ordered = key.pair(body.ordered, self.meaning.ordered);
        body.unordered = key.pair(body.unordered, self.meaning.unordered);
        body
    }

    pub(crate) fn read<'a>(
        key: &Key,
        marks: &mut Marks,
        status: u16,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
        now: u64,
    ) -> Head {
        let all = |name: &'static str| {
            fields
                .clone()
                .filter(move |(of, _)| of.eq_ignore_ascii_case(name.as_bytes()))
                .map(|(_, value)| value)
        };
        let control = cache_control::parse(all("cache-control"));
        let content_type = all("content-type").next().unwrap_or_default();
        let mut vary: Vec<Box<[u8]>> = all("vary")
            .flat_map(|value| value.split(|byte| *byte == b','))
            .filter(|name| !name.trim_ascii().is_empty())
            .map(|name| name.trim_ascii().to_ascii_lowercase().into())
            .take(MOST_NAMES + 1)
            .collect();
        let varies_by_anything = vary.len() > MOST_NAMES || vary.iter().any(|name| **name == *b"*");
        vary.truncate(MOST_NAMES);
        let explicit = lifetime(&control, all("expires").next(), all("date").next(), now);
        let is_stream = content_type.starts_with(b"text/event-stream")
            || content_type.starts_with(b"multipart/x-mixed-replace")
            || all("x-accel-buffering").any(|value| value.eq_ignore_ascii_case(b"no"));
        let is_forbidden = control.no_store
            || control.private.is_present()
            || control.no_cache.is_present()
            || explicit == Some(0);
        let storable = match () {
            () if is_stream => Storable::Stream,
            () if status != 200 => Storable::Status,
            () if is_forbidden => Storable::Forbidden,
            () if all("set-cookie").next().is_some() => Storable::SetsCookie,
            () if varies_by_anything => Storable::VariesByAnything,
            () => Storable::Yes,
        };
        let mut meaning = key.pair(u64::from(status), u64::from(is_forbidden));
        for (name, value) in fields.clone().filter(|(name, _)| !names::is_harmless_in_response(name)) {
            let place = key.bytes(&name.to_ascii_lowercase());
            let suggestion = names::suggestion(name);
            let kind = MarkKind::of(shape(value, now), suggestion);
            if !kind.is_some_and(|kind| marks.add(key, place, value, kind)) {
                meaning = meaning.wrapping_add(key.join(place, value));
            }
        }
        Head {
            status,
            storable,
            explicit,
            is_public: control.public || control.s_maxage.is_some(),
            vary,
            meaning: Meaning { ordered: meaning, unordered: meaning },
            content_type: content_type.into(),
            coding: Coding::of(all("content-encoding")),
        }
    }
}

/// RFC 9111 §4.2.1: `s-maxage`, `max-age`, then `Expires` less `Date`.
fn lifetime(
    control: &cache_control::CacheControl<'_>,
    expires: Option<&[u8]>,
    date: Option<&[u8]>,
    now: u64,
) -> Option<u32> {
    let seconds = control.s_maxage.or(control.max_age).or_else(|| {
        let now = date.and_then(date::parse_http).unwrap_or((now / 1_000) as i64);
        // What is no date is in the past (§5.3).
        expires.map(|expires| {
            date::parse_http(expires).map_or(0, |expires| u64::try_from(expires - now).unwrap_or(0))
        })
    })?;
    Some(u32::try_from(seconds).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(status: u16, fields: &[(&str, &str)]) -> Head {
        let fields = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        Head::read(&Key::from_seed(1), &mut Marks::default(), status, fields, 1_700_000_000_000)
    }

    #[test]
    fn what_the_cache_would_not_store_is_not_stored() {
        for (status, fields, expected) in [
            (200, &[][..], Storable::Yes),
            (404, &[], Storable::Status),
            (206, &[], Storable::Status),
            (200, &[("Cache-Control", "private")], Storable::Forbidden),
            (200, &[("cache-control", "max-age=9, no-store")], Storable::Forbidden),
            (200, &[("Cache-Control", "max-age=0")], Storable::Forbidden),
            (200, &[("Expires", "0")], Storable::Forbidden),
            (200, &[("Set-Cookie", "a=b")], Storable::SetsCookie),
            (200, &[("Content-Type", "text/event-stream")], Storable::Stream),
            (200, &[("Vary", "Accept, *")], Storable::VariesByAnything),
        ] {
            assert_eq!(head(status, fields).storable, expected, "{fields:?}");
        }
        assert_eq!(head(200, &[("Cache-Control", "max-age=60, s-maxage=9")]).explicit, Some(9));
    }

    #[test]
    fn a_status_and_what_forbids_to_store_are_part_of_the_meaning() {
        assert_ne!(head(200, &[]).meaning, head(403, &[]).meaning);
        assert_ne!(head(200, &[]).meaning, head(200, &[("Cache-Control", "private")]).meaning);
        assert_eq!(head(200, &[]).meaning, head(200, &[("Cache-Control", "max-age=60")]).meaning);
    }

    #[test]
    fn an_etag_and_a_date_have_no_meaning_and_an_echoed_origin_has() {
        let of = |name, value| head(200, &[(name, value)]).meaning;
        assert_eq!(of("ETag", "\"a\""), of("ETag", "\"b\""));
        assert_ne!(
            of("Access-Control-Allow-Origin", "https://a"),
            of("Access-Control-Allow-Origin", "https://b")
        );
    }
}
