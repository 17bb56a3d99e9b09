//! How everybody looks at header fields: a borrowed view over the bytes and where the fields lie in them.
//!
//! Requests, answers, trailers and stored heads all offer this one view, whether a table says where the lines are or
//! they are packed ([`crate::packed`]). It never owns, copies or changes a byte; [`crate::headers`] is the owned
//! counterpart.

use crate::cgi_name;
use crate::field::Field;
use crate::field_id::FieldId;
use crate::list;
use crate::octets;
use crate::packed::Walk;
use std::slice;

/// The fields of one head in the order they came.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    /// What the spans of lines point into.
    bytes: &'a [u8],
    lines: Lines<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Lines<'a> {
    Table(&'a [Field]),
    /// Lines stand one after the other, see [`crate::packed`].
    Packed,
}

#[derive(Debug, Clone)]
enum Each<'a> {
    Table(slice::Iter<'a, Field>),
    Packed(Walk<'a>),
}

impl Iterator for Each<'_> {
    type Item = Field;

    #[inline]
    fn next(&mut self) -> Option<Field> {
        match self {
            Each::Table(fields) => fields.next().copied(),
            Each::Packed(walk) => walk.next(),
        }
    }
}

impl Default for Fields<'_> {
    fn default() -> Self {
        Fields::new(&[], &[])
    }
}

impl<'a> Fields<'a> {
    /// Lines that are in `bytes` where `fields` says.
    #[inline]
    pub fn new(bytes: &'a [u8], fields: &'a [Field]) -> Fields<'a> {
        Fields { bytes, lines: Lines::Table(fields) }
    }

    /// Lines that [`crate::packed::append`] wrote.
    #[inline]
    pub fn packed(bytes: &'a [u8]) -> Fields<'a> {
        Fields { bytes, lines: Lines::Packed }
    }

    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// To choose among them for another view over the same bytes.
    #[inline]
    pub fn lines(self) -> impl Iterator<Item = Field> + Clone + use<'a> {
        match self.lines {
            Lines::Table(fields) => Each::Table(fields.iter()),
            Lines::Packed => Each::Packed(Walk::new(self.bytes)),
        }
    }

    /// The first line's value. Pass a field of the table, never `Other`.
    #[inline]
    pub fn get(self, id: FieldId) -> Option<&'a [u8]> {
        debug_assert!(id != FieldId::Other);
        match self.lines {
            Lines::Table(fields) => fields.iter().find(|field| field.id == id).map(|field| field.value),
            Lines::Packed => self.lines().find(|field| field.id == id).map(|field| field.value),
        }
        .map(|value| value.of(self.bytes))
    }

    #[inline]
    pub fn has(self, id: FieldId) -> bool {
        match self.lines {
            Lines::Table(fields) => fields.iter().any(|field| field.id == id),
            Lines::Packed => self.lines().any(|field| field.id == id),
        }
    }

    /// In order.
    #[inline]
    pub fn all(self, id: FieldId) -> impl Iterator<Item = &'a [u8]> + Clone {
        debug_assert!(id != FieldId::Other);
        self.lines().filter(move |field| field.id == id).map(move |field| field.value.of(self.bytes))
    }

    /// The first line's value; in any case.
    pub fn named(self, name: &[u8]) -> Option<&'a [u8]> {
        let id = FieldId::of(name);
        self.lines().find(|field| self.is(field, id, name)).map(|field| field.value.of(self.bytes))
    }

    /// In any case, in order.
    pub fn all_named<'n>(self, name: &'n [u8]) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        let id = FieldId::of(name);
        self.lines()
            .filter(move |field| self.is(field, id, name))
            .map(move |field| field.value.of(self.bytes))
    }

    /// The values of all lines that an application takes for this field, in every spelling of its name
    /// ([`cgi_name`]), in order.
    pub fn all_spelled<'n>(
        self,
        id: FieldId,
        name: &'n [u8],
    ) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        let is_one = move |(of, own): (FieldId, &[u8])| {
            cgi_name::field_of(of, own) == id && (id != FieldId::Other || cgi_name::is_same(own, name))
        };
        self.iter().filter(move |(of, own, _)| is_one((*of, own))).map(|(_, _, value)| value)
    }

    /// Every line as (field, name as it came, value), in order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = (FieldId, &'a [u8], &'a [u8])> + Clone {
        self.lines().map(move |field| (field.id, field.name(self.bytes), field.value.of(self.bytes)))
    }

    /// As [`Fields::iter`], by name and value alone.
    pub fn pairs(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone {
        self.iter().map(|(_, name, value)| (name, value))
    }

    #[inline]
    pub fn len(self) -> usize {
        match self.lines {
            Lines::Table(fields) => fields.len(),
            Lines::Packed => self.lines().count(),
        }
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        match self.lines {
            Lines::Table(fields) => fields.is_empty(),
            Lines::Packed => self.bytes.is_empty(),
        }
    }

    /// Whether `Connection` lists this option (RFC 9110 §7.6.1), in any case and on any of its lines.
    #[inline]
    pub fn connection_lists(self, token: impl AsRef<[u8]>) -> bool {
        self.lists(FieldId::Connection, token)
    }

    /// Whether any line of this list field has exactly this element, in any case.
    #[inline]
    pub fn lists(self, id: FieldId, element: impl AsRef<[u8]>) -> bool {
        let element = element.as_ref();
        // Most lists are of one element.
        self.all(id).any(|value| match memchr::memchr(b',', value) {
            None => octets::trim(value).eq_ignore_ascii_case(element),
            Some(_) => list::elements(value).any(|found| found.eq_ignore_ascii_case(element)),
        })
    }

    #[inline]
    fn is(self, field: &Field, id: FieldId, name: &[u8]) -> bool {
        field.id == id && (id != FieldId::Other || field.name(self.bytes).eq_ignore_ascii_case(name))
    }
}
