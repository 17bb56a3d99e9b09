//! The head of a stored answer: status, fields, and what was calculated from them once.
//!
//! Fields that belong to one connection are dropped when a head is made, and those that the answer itself names as not
//! to be stored, so nobody can send them on by mistake. Age and Content-Length are dropped too: both are calculated
//! anew for every answer. [`StoredHead`] is a head on its way, [`Head`] how everybody looks at one, be it on its way or
//! kept. Next: `entry`, which keeps them small.

use crate::now::Now;
use crate::policy::control::{Governing, governing};
use crate::policy::{Lifetime, Usable, Wish};
use crate::tags::Tags;
use crate::vary::{self, Vary, VaryFields};
use millstream_conf::model::IgnoreHeaders;
use millstream_wire::connection::NamedFields;
use millstream_wire::{FieldId, Fields, Headers, date};

/// A stored head; never changes once made.
#[derive(Debug, Clone)]
pub struct StoredHead {
    pub status: u16,
    /// Without those of the connection, Age and Content-Length.
    pub headers: Headers,
    /// If known before the body; the body must then end exactly there.
    pub content_length: Option<u64>,
    pub lifetime: Lifetime,
    /// When it arrived, in milliseconds since 1970.
    pub stored_at: i64,
    /// In seconds since 1970.
    pub last_modified: Option<i64>,
    pub tags: Tags,
    /// If the stored body is only a part of the representation; `status` is then 206.
    pub part: Option<Part>,
}

/// A borrowed view of a head.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    pub status: u16,
    pub lifetime: Lifetime,
    /// When it arrived, in milliseconds since 1970.
    pub stored_at: i64,
    /// In seconds since 1970.
    pub last_modified: Option<i64>,
    pub tags: &'a Tags,
    pub part: Option<Part>,
    pub(crate) fields: Fields<'a>,
}

/// A stored part of a representation (RFC 9111 §3.3), both ends inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub first: u64,
    pub last: u64,
    /// `None` if the upstream did not say.
    pub complete: Option<u64>,
}

impl StoredHead {
    /// `content_length` comes from its framing; `None` if only the end will tell.
    pub fn new(
        status: u16,
        answer: Fields<'_>,
        content_length: Option<u64>,
        lifetime: Lifetime,
        now: Now,
    ) -> StoredHead {
        let governing = governing(&IgnoreHeaders::default(), answer);
        let left_out = left_out(answer, &governing);
        let headers = Headers::copied_from(answer, |id, name, _| is_stored(&left_out, id, name));
        StoredHead::from_stored(status, headers, content_length, lifetime, now.unix_milliseconds)
    }

    /// For a response that is not stored: only what ends at this hop is left out.
    pub(crate) fn passing(
        status: u16,
        answer: Fields<'_>,
        content_length: Option<u64>,
        now: Now,
    ) -> StoredHead {
        let left_out = (NamedFields::of(answer), NamedFields::new(std::iter::empty()));
        let headers =
            Headers::copied_from(answer, |id, name, _| id == FieldId::Age || is_stored(&left_out, id, name));
        StoredHead::from_stored(status, headers, content_length, Lifetime::over(now), now.unix_milliseconds)
    }

    /// From fields that are already filtered.
    pub(crate) fn from_stored(
        status: u16,
        headers: Headers,
        content_length: Option<u64>,
        lifetime: Lifetime,
        stored_at: i64,
    ) -> StoredHead {
        let last_modified = headers.view().get(FieldId::LastModified).and_then(date::parse_http);
        StoredHead {
            status,
            headers,
            content_length,
            lifetime,
            stored_at,
            last_modified,
            tags: Tags::default(),
            part: None,
        }
    }

    #[inline]
    pub fn view(&self) -> Head<'_> {
        Head {
            status: self.status,
            lifetime: self.lifetime,
            stored_at: self.stored_at,
            last_modified: self.last_modified,
            tags: &self.tags,
            part: self.part,
            fields: self.headers.view(),
        }
    }

    #[inline]
    pub fn fields(&self) -> Fields<'_> {
        self.headers.view()
    }

    /// With its quotes.
    #[inline]
    pub fn etag(&self) -> Option<&[u8]> {
        self.fields().get(FieldId::ETag)
    }

    /// Whether a response has fields that are passed to the client and not stored (`no-cache="…"`,
    /// `private="…"`).
    pub fn leaves_out(answer: Fields<'_>) -> bool {
        governing(&IgnoreHeaders::default(), answer).excludes_any()
    }
}

impl<'a> Head<'a> {
    #[inline]
    pub fn fields(self) -> Fields<'a> {
        self.fields
    }

    /// With its quotes.
    #[inline]
    pub fn etag(self) -> Option<&'a [u8]> {
        self.fields.get(FieldId::ETag)
    }

    pub fn satisfies(self, wish: &Wish, now: Now) -> Usable {
        wish.accepts(&self.lifetime, self.age(now), now)
    }

    /// Seconds for the Age field (RFC 9111 §4.2.3).
    #[inline]
    pub fn age(self, now: Now) -> u64 {
        let resident = now.unix_milliseconds.saturating_sub(self.stored_at).max(0) as u64 / 1000;
        self.lifetime.initial_age.as_secs().saturating_add(resident)
    }

    /// The fields after a 304 (RFC 9111 §3.2): its fields replace the stored ones, except those that describe
    /// the stored body, including the entity tag: a 304 may have the strong one of which the stored response,
    /// compressed on its way, has the weak form. Ask `policy` again whether and for how long the result may
    /// be stored.
    pub fn updated(self, not_modified: Fields<'_>) -> Headers {
        let governing = governing(&IgnoreHeaders::default(), not_modified);
        let left_out = left_out(not_modified, &governing);
        let replaces = |id: FieldId, name: &[u8]| {
            let describes_body = matches!(
                id,
                FieldId::ContentEncoding | FieldId::ContentType | FieldId::ContentRange | FieldId::ETag
            );
            !describes_body && is_stored(&left_out, id, name)
        };
        let replaced = not_modified.iter().filter(|(id, name, _)| replaces(*id, name));
        let replaced = NamedFields::new(replaced.map(|(_, name, _)| name));
        let mut headers = Headers::copied_from(self.fields, |_, name, _| !replaced.has(name));
        for (id, name, value) in not_modified.iter() {
            if replaces(id, name) {
                headers.push(name, value);
            }
        }
        // Read by `policy` for the initial age; dropped when the head is made from these fields.
        if let Some(age) = not_modified.get(FieldId::Age) {
            headers.set(b"Age", age);
        }
        headers
    }

    pub(crate) fn vary(self) -> Option<VaryFields> {
        match vary::by_rule(self.fields, self.lifetime.vary) {
            Vary::Fields(fields) => Some(fields),
            _ => None,
        }
    }
}

/// The fields that a response itself excludes from storing, or assigns to its connection.
fn left_out<'a>(answer: Fields<'a>, governing: &Governing<'a>) -> (NamedFields<'a>, NamedFields<'a>) {
    (NamedFields::of(answer), NamedFields::new(governing.excluded()))
}

/// Not stored: fields that end at this hop (RFC 9111 §3.1), those that the response excludes, and those that
/// are computed for every response.
fn is_stored((hop, excluded): &(NamedFields<'_>, NamedFields<'_>), id: FieldId, name: &[u8]) -> bool {
    let calculated = matches!(
        id,
        FieldId::Age
            | FieldId::ContentLength
            | FieldId::Trailer
            | FieldId::ProxyAuthenticate
            | FieldId::ProxyAuthorization
    );
    !calculated
        && !id.is_hop_by_hop()
        && !name.eq_ignore_ascii_case(b"proxy-authentication-info")
        && !excluded.has(name)
        && !hop.has(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Revalidation;
    use std::time::{Duration, Instant};

    fn now(unix_milliseconds: i64) -> Now {
        #[allow(clippy::disallowed_methods, reason = "any instant will do")]
        Now { unix_milliseconds, instant: Instant::now() }
    }

    fn head(lines: &[(&str, &str)]) -> StoredHead {
        let mut headers = Headers::new();
        for (name, value) in lines {
            headers.push(name.as_bytes(), value.as_bytes());
        }
        let lifetime = Lifetime {
            fresh_until: 60_000,
            initial_age: Duration::from_secs(5),
            stale_while_revalidate: None,
            stale_if_error: None,
            revalidation: Revalidation::Free,
            vary: Default::default(),
            public: false,
            always_validate: false,
        };
        StoredHead::new(200, headers.view(), None, lifetime, now(1_000))
    }

    fn names(headers: &Headers) -> Vec<String> {
        headers.view().iter().map(|(_, name, _)| String::from_utf8_lossy(name).into_owned()).collect()
    }

    #[test]
    fn fields_of_the_connection_are_not_stored() {
        let head = head(&[
            ("Connection", "close, X-Hop"),
            ("X-Hop", "1"),
            ("Keep-Alive", "timeout=5"),
            ("Transfer-Encoding", "chunked"),
            ("Content-Length", "5"),
            ("Age", "5"),
            ("Content-Type", "text/plain"),
        ]);
        assert_eq!(names(&head.headers), ["Content-Type"]);
    }

    #[test]
    fn fields_that_the_answer_names_are_not_stored() {
        let lines = [
            ("Cache-Control", "no-cache=\"a, B\", max-age=5"),
            ("Cache-Control", "private=\"Set-Cookie\""),
            ("A", "1"),
            ("b", "2"),
            ("Set-Cookie", "c=d"),
            ("E", "3"),
        ];
        assert_eq!(names(&head(&lines).headers), ["Cache-Control", "Cache-Control", "E"]);
        assert!(StoredHead::leaves_out(crate::samples::headers(&lines).view()));
        assert!(!StoredHead::leaves_out(
            crate::samples::headers(&[("Cache-Control", "no-cache, private")]).view()
        ));
    }

    #[test]
    fn age_is_what_it_had_and_the_time_since() {
        let head = head(&[]);
        assert_eq!(head.view().age(now(1_000)), 5);
        assert_eq!(head.view().age(now(3_999)), 7);
        assert_eq!(head.view().age(now(0)), 5, "a clock that went back");
    }

    #[test]
    fn a_304_replaces_fields_but_not_those_that_describe_the_body() {
        let head = head(&[
            ("ETag", "\"a\""),
            ("X-A", "1"),
            ("X-A", "2"),
            ("Content-Type", "text/plain"),
            ("X-B", "3"),
        ]);
        let mut answer = Headers::new();
        for (name, value) in [
            ("X-A", "9"),
            ("Content-Type", "wrong"),
            ("Content-Length", "0"),
            ("Connection", "x-b"),
            ("X-B", "hop"),
            ("X-New", "1"),
        ] {
            answer.push(name.as_bytes(), value.as_bytes());
        }
        let updated = head.view().updated(answer.view());
        let text: Vec<_> = updated
            .view()
            .iter()
            .map(|(_, n, v)| format!("{}={}", String::from_utf8_lossy(n), String::from_utf8_lossy(v)))
            .collect();
        assert_eq!(text, ["ETag=\"a\"", "Content-Type=text/plain", "X-B=3", "X-A=9", "X-New=1"]);
    }
}
