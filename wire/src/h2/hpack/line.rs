//! One field line as HPACK gives it: what it is called, its text in the looks of HTTP/1, and whether it is sound.
//!
//! Name and value are judged once, when they are decoded; a line that is taken from a table again comes with its
//! [`LineName`] and its [`Flaw`]. Next: `decoder`, which makes these.

use crate::field_id::FieldId;
use crate::octets;

/// RFC 9113 §8.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pseudo {
    Authority,
    Method,
    Path,
    /// RFC 8441 §4.
    Protocol,
    Scheme,
    Status,
    /// Any other name that starts with a colon.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineName {
    /// For [`FieldId::Other`], the line has the name.
    Field(FieldId),
    Pseudo(Pseudo),
}

/// What makes a line malformed wherever it stands (RFC 9113 §8.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// The name is no token in lower case.
    Name,
    /// The value has a control byte, or white space at an end.
    Value,
}

impl Flaw {
    /// Follows "client sent " or "upstream sent " in the error log.
    pub fn what(self) -> &'static str {
        match self {
            Flaw::Name => "invalid header name",
            Flaw::Value => "invalid header value",
        }
    }
}

/// Octets of a line's text that are neither name nor value: `: ` and CR LF.
const AROUND: usize = 4;

/// The size of a line in a table and in a list (RFC 7541 §4.1, RFC 9113 §6.5.2): name, value and 32. `length`
/// is that of its text.
#[inline]
pub(super) fn size_of(length: usize) -> usize {
    length + (32 - AROUND)
}

#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    pub called: LineName,
    pub flaw: Option<Flaw>,
    text: &'a [u8],
    name_length: u32,
}

impl<'a> Line<'a> {
    /// `text` is `name: value` followed by CR LF.
    #[inline]
    pub(super) const fn new(
        called: LineName,
        flaw: Option<Flaw>,
        text: &'a [u8],
        name_length: u32,
    ) -> Line<'a> {
        Line { called, flaw, text, name_length }
    }

    /// `None` for a pseudo-header field.
    #[inline]
    pub fn field(&self) -> Option<FieldId> {
        match self.called {
            LineName::Field(id) => Some(id),
            LineName::Pseudo(_) => None,
        }
    }

    /// As HTTP/1 writes it: `name: value` and CR LF. Arbitrary for a line with a [`Flaw`].
    #[inline]
    pub fn text(&self) -> &'a [u8] {
        self.text
    }

    #[inline]
    pub fn name(&self) -> &'a [u8] {
        self.text.get(..self.name_length as usize).unwrap_or_default()
    }

    #[inline]
    pub fn value(&self) -> &'a [u8] {
        let range = self.value_start()..self.text.len().saturating_sub(2);
        self.text.get(range).unwrap_or_default()
    }

    /// Offset in the text.
    #[inline]
    pub fn value_start(&self) -> usize {
        self.name_length as usize + 2
    }

    #[inline]
    pub fn name_length(&self) -> u32 {
        self.name_length
    }

    /// In a table and in a list: name, value and 32.
    #[inline]
    pub fn size(&self) -> usize {
        size_of(self.text.len())
    }
}

impl LineName {
    pub(super) fn of(name: &[u8]) -> (LineName, Option<Flaw>) {
        if let [b':', rest @ ..] = name {
            return (LineName::Pseudo(Pseudo::of(rest)), None);
        }
        let flaw = if octets::is_lower_token(name) { None } else { Some(Flaw::Name) };
        (LineName::Field(FieldId::of(name)), flaw)
    }
}

impl Pseudo {
    fn of(name: &[u8]) -> Pseudo {
        match name {
            b"authority" => Pseudo::Authority,
            b"method" => Pseudo::Method,
            b"path" => Pseudo::Path,
            b"protocol" => Pseudo::Protocol,
            b"scheme" => Pseudo::Scheme,
            b"status" => Pseudo::Status,
            _ => Pseudo::Unknown,
        }
    }
}

/// A byte that no value may have (RFC 9110 §5.5), or white space at an end (RFC 9113 §8.2.1).
pub(super) fn flaw_of_value(value: &[u8]) -> Option<Flaw> {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let is_sound = !is_space(value.first()) && !is_space(value.last()) && octets::is_value(value);
    if is_sound { None } else { Some(Flaw::Value) }
}
