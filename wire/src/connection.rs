//! Names of fields that a message lists: those that `Connection` takes away on its way (RFC 9110 §7.6.1), and others.
//!
//! Whoever passes fields on asks about each of them, and who sends a message chooses both the fields and the list; so the
//! names are put in order once, and `Connection` may list so many at the most. Next: [`crate::h1::framing`], which
//! refuses more.

use crate::field_id::FieldId;
use crate::fields::Fields;
use crate::list;
use std::cmp::Ordering;

/// Most options that the `Connection` lines of a message may list. Real ones list three.
pub const MOST_OPTIONS: usize = 100;

/// A set of field names. Nothing is allocated for an empty one.
#[derive(Debug, Clone, Default)]
pub struct NamedFields<'a> {
    /// In the order of [`compare`].
    sorted: Vec<&'a [u8]>,
}

impl<'a> NamedFields<'a> {
    pub fn new(names: impl Iterator<Item = &'a [u8]>) -> NamedFields<'a> {
        let mut sorted: Vec<_> = names.collect();
        sorted.sort_unstable_by(|a, b| compare(a, b));
        NamedFields { sorted }
    }

    /// The fields that `Connection` names, without those that end at this hop anyway: nearly always none.
    pub fn of(fields: Fields<'a>) -> NamedFields<'a> {
        // What nearly everybody sends is told without looking for commas.
        let telling = fields.all(FieldId::Connection).filter(|value| !names_nothing(value));
        NamedFields::new(telling.flat_map(list::elements).filter(|option| !names_nothing(option)))
    }

    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// In any case.
    pub fn has(&self, name: &[u8]) -> bool {
        !self.sorted.is_empty() && self.sorted.binary_search_by(|option| compare(option, name)).is_ok()
    }
}

/// `length` is that of all their values, which mostly settles it.
pub(crate) fn lists_too_many(fields: Fields<'_>, length: usize) -> bool {
    // An option and its comma are two bytes.
    length >= 2 * MOST_OPTIONS
        && fields.all(FieldId::Connection).flat_map(list::elements).nth(MOST_OPTIONS).is_some()
}

/// An option for the connection itself, or a field that is never passed on.
fn names_nothing(option: &[u8]) -> bool {
    option.eq_ignore_ascii_case(b"keep-alive")
        || option.eq_ignore_ascii_case(b"close")
        || FieldId::of(option).is_hop_by_hop()
}

/// By length, then ignoring case: an order for searching.
fn compare(a: &[u8], b: &[u8]) -> Ordering {
    a.len()
        .cmp(&b.len())
        .then_with(|| a.iter().map(u8::to_ascii_lowercase).cmp(b.iter().map(u8::to_ascii_lowercase)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Headers;

    fn named(lines: &[&str]) -> Headers {
        let mut headers = Headers::new();
        lines.iter().for_each(|line| headers.push(b"Connection", line.as_bytes()));
        headers
    }

    #[test]
    fn fields_that_connection_names_are_found_in_any_case_and_on_any_line() {
        let headers = named(&["keep-alive, X-Hop", "a, TE,\tx-LONGER ,b", "close"]);
        let named = NamedFields::of(headers.view());
        for name in ["x-hop", "X-HOP", "A", "b", "X-Longer"] {
            assert!(named.has(name.as_bytes()), "{name}");
        }
        for name in ["x-ho", "x-hopp", "c", "", "close", "te", "keep-alive"] {
            assert!(!named.has(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn options_of_the_connection_itself_name_no_field() {
        for line in ["keep-alive", "Close", "Upgrade", "keep-alive, Upgrade", "Upgrade, HTTP2-Settings", ""] {
            assert!(NamedFields::of(named(&[line]).view()).is_empty(), "{line}");
        }
    }

    #[test]
    fn as_many_options_as_are_allowed_are_allowed_over_all_lines() {
        let options = |count: usize| vec!["x"; count].join(",");
        let too_many = |lines: &[&str]| {
            let headers = named(lines);
            lists_too_many(headers.view(), lines.iter().map(|line| line.len()).sum())
        };
        assert!(!too_many(&[&options(MOST_OPTIONS)]));
        assert!(!too_many(&[&options(MOST_OPTIONS - 1), "y"]));
        assert!(!too_many(&[&",".repeat(1000)]));
        assert!(too_many(&[&options(MOST_OPTIONS + 1)]));
        assert!(too_many(&[&options(MOST_OPTIONS), "y"]));
    }
}
