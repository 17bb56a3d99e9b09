//! How everybody looks at header fields: a borrowed view over the bytes and the list of where fields lie in them.
//!
//! Requests, answers, trailers and stored heads all offer this one view. It never owns, copies or changes a byte;
//! [`crate::headers`] is the owned counterpart.

use crate::field_id::FieldId;
use crate::list;
use crate::span::Span;

/// One field line: which field, and where its name and value stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Field {
    /// The field, when it is one of the table.
    pub id: FieldId,
    /// The name as it came.
    pub name: Span,
    /// The value without the white space around it.
    pub value: Span,
}

/// The fields of one head in the order they came.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fields<'a> {
    /// What the spans of `fields` point into.
    pub bytes: &'a [u8],
    /// The field lines, in order.
    pub fields: &'a [Field],
}

impl<'a> Fields<'a> {
    /// The value of the first line of this field. Ask with a field of the table, never with `Other`.
    #[inline]
    pub fn get(self, id: FieldId) -> Option<&'a [u8]> {
        debug_assert!(id != FieldId::Other);
        self.fields.iter().find(|field| field.id == id).map(|field| field.value.of(self.bytes))
    }

    /// Whether there is a line of this field.
    #[inline]
    pub fn has(self, id: FieldId) -> bool {
        self.fields.iter().any(|field| field.id == id)
    }

    /// The values of all lines of this field, in order.
    #[inline]
    pub fn all(self, id: FieldId) -> impl Iterator<Item = &'a [u8]> + Clone {
        debug_assert!(id != FieldId::Other);
        self.fields.iter().filter(move |field| field.id == id).map(move |field| field.value.of(self.bytes))
    }

    /// The value of the first line with this name, in any case.
    pub fn named(self, name: &[u8]) -> Option<&'a [u8]> {
        let id = FieldId::of(name);
        self.fields.iter().find(|field| self.is(field, id, name)).map(|field| field.value.of(self.bytes))
    }

    /// The values of all lines with this name, in any case, in order.
    pub fn all_named<'n>(self, name: &'n [u8]) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        let id = FieldId::of(name);
        self.fields
            .iter()
            .filter(move |field| self.is(field, id, name))
            .map(move |field| field.value.of(self.bytes))
    }

    /// Every line as (field, name as it came, value), in order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = (FieldId, &'a [u8], &'a [u8])> + Clone {
        self.fields.iter().map(move |field| (field.id, field.name.of(self.bytes), field.value.of(self.bytes)))
    }

    /// Number of field lines.
    #[inline]
    pub fn len(self) -> usize {
        self.fields.len()
    }

    /// Whether there is no field line.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.fields.is_empty()
    }

    /// Whether `Connection` lists this option (RFC 9110 §7.6.1), in any case and on any of its lines.
    #[inline]
    pub fn connection_lists(self, token: impl AsRef<[u8]>) -> bool {
        self.lists(FieldId::Connection, token)
    }

    /// Whether `Connection` says more than one of the two options that everybody sends: it may name fields.
    #[inline]
    pub fn connection_lists_more(self) -> bool {
        self.all(FieldId::Connection)
            .any(|value| !value.eq_ignore_ascii_case(b"keep-alive") && !value.eq_ignore_ascii_case(b"close"))
    }

    /// Whether any line of this list field has exactly this element, in any case.
    #[inline]
    pub fn lists(self, id: FieldId, element: impl AsRef<[u8]>) -> bool {
        let element = element.as_ref();
        self.all(id).any(|value| {
            value.eq_ignore_ascii_case(element)
                || list::elements(value).any(|found| found.eq_ignore_ascii_case(element))
        })
    }

    #[inline]
    fn is(self, field: &Field, id: FieldId, name: &[u8]) -> bool {
        field.id == id && (id != FieldId::Other || field.name.of(self.bytes).eq_ignore_ascii_case(name))
    }
}
