//! Byte ranges: what `Range` asks for and what `Content-Range` says (RFC 9110 §14), bounded.
//!
//! Only the `bytes` unit is known. Ranges come out in the order they were asked for, cut to the representation.
//! What is no range is refused as in nginx; whether `Range` counts at all is for
//! [`crate::conditional::range_applies`]. Next: `millstream-server`'s `representation/ranges`, which answers them.

use crate::list;
use crate::octets::decimal;
use std::ops::Range;

#[cfg(test)]
mod tests;

/// Most ranges of one request without `max_ranges`: each costs a part of its own.
const MOST: usize = 200;
/// Assumed cost of a multipart part in addition to its bytes, and what all may cost beyond the whole: nginx's
/// numbers, used without `max_ranges`.
const PART_COST: u64 = 256;
const PARTS_SLACK: u64 = 4096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ranges {
    /// Another unit, too many ranges, or more bytes than the whole has: respond with the whole.
    Ignore,
    /// Nothing of it exists, or it is no range: 416.
    Unsatisfiable,
    /// At least one range within the representation, ends exclusive, none empty.
    Parts(Vec<Range<u64>>),
}

/// Positions inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spec {
    /// `first-last`; `last` may be less than `first`, which selects nothing.
    Between(u64, u64),
    /// `first-`.
    From(u64),
    /// `-count`.
    Last(u64),
}

/// For a representation of `length` bytes, with at most `max_ranges` ranges (`None`: what costs little more
/// than the whole). Many ranges, or ranges that together exceed the whole, are ignored: RFC 9110 §14.2 warns
/// of both.
pub fn parse(value: &[u8], length: u64, max_ranges: Option<u32>) -> Ranges {
    let Some(set) = set(value) else { return Ranges::Ignore };
    let most = max_ranges.map_or(MOST, |most| most as usize);
    let mut parts = Vec::new();
    let mut total = 0u64;
    for text in list::elements(set) {
        let Some(spec) = spec(text) else { return Ranges::Unsatisfiable };
        let range = spec.of(length);
        if range.start < range.end {
            if parts.len() == most {
                return Ranges::Ignore;
            }
            total = total.saturating_add(range.end - range.start);
            parts.push(range);
        } else if length == 0 && !matches!(spec, Spec::From(1..) | Spec::Between(1.., _)) {
            // The beginning of nothing is the whole of it.
            return Ranges::Ignore;
        }
    }
    match parts.len() {
        0 => Ranges::Unsatisfiable,
        1 => Ranges::Parts(parts),
        _ if total > length => Ranges::Ignore,
        count if max_ranges.is_none() && total + count as u64 * PART_COST > length + PARTS_SLACK => {
            Ranges::Ignore
        }
        _ => Ranges::Parts(parts),
    }
}

/// `None` if it is not a valid value in bytes.
pub fn first(value: &[u8]) -> Option<Spec> {
    list::elements(set(value)?).next().and_then(spec)
}

pub fn only(value: &[u8]) -> Option<Spec> {
    let mut all = list::elements(set(value)?);
    let only = all.next().and_then(spec)?;
    all.next().is_none().then_some(only)
}

/// After `bytes=`; `None` for other units.
fn set(value: &[u8]) -> Option<&[u8]> {
    let (unit, set) = value.split_at_checked(6)?;
    (unit.eq_ignore_ascii_case(b"bytes=") && !set.is_empty()).then_some(set)
}

fn spec(text: &[u8]) -> Option<Spec> {
    let dash = memchr::memchr(b'-', text)?;
    let (first, last) = (text[..dash].trim_ascii(), text[dash + 1..].trim_ascii());
    Some(match (first.is_empty(), last.is_empty()) {
        (true, _) => Spec::Last(number(last)?),
        (false, true) => Spec::From(number(first)?),
        (false, false) => Spec::Between(number(first)?, number(last)?),
    })
}

impl Spec {
    /// The selected bytes of a representation of `length` bytes, end exclusive; may be empty.
    pub fn of(self, length: u64) -> Range<u64> {
        match self {
            Spec::Between(first, last) => first.min(length)..last.saturating_add(1).min(length),
            Spec::From(first) => first.min(length)..length,
            Spec::Last(count) => length.saturating_sub(count)..length,
        }
    }
}

/// Saturates: past 64 bits it is past every end.
fn number(text: &[u8]) -> Option<u64> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    digits.then(|| decimal(text).unwrap_or(u64::MAX))
}

/// `Content-Range`; both ends inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentRange {
    pub first: u64,
    /// Not before the first.
    pub last: u64,
    /// Greater than `last`; `None` for `*`.
    pub complete: Option<u64>,
}

impl ContentRange {
    /// `None` if it is invalid (RFC 9110 §14.4), of another unit, or for no bytes.
    pub fn parse(value: &[u8]) -> Option<ContentRange> {
        let (unit, rest) = value.split_at_checked(6)?;
        if !unit.eq_ignore_ascii_case(b"bytes ") {
            return None;
        }
        let slash = memchr::memchr(b'/', rest)?;
        let (range, complete) = (&rest[..slash], rest[slash + 1..].trim_ascii());
        let dash = memchr::memchr(b'-', range)?;
        let (first, last) = (decimal(range[..dash].trim_ascii())?, decimal(range[dash + 1..].trim_ascii())?);
        let complete = if complete == b"*" { None } else { Some(decimal(complete)?) };
        let valid = first <= last && last < u64::MAX && complete.is_none_or(|complete| last < complete);
        valid.then_some(ContentRange { first, last, complete })
    }

    pub fn length(&self) -> u64 {
        self.last - self.first + 1
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        out.extend_from_slice(b"bytes ");
        out.extend_from_slice(digits.format(self.first).as_bytes());
        out.push(b'-');
        out.extend_from_slice(digits.format(self.last).as_bytes());
        out.push(b'/');
        match self.complete {
            Some(complete) => out.extend_from_slice(digits.format(complete).as_bytes()),
            None => out.push(b'*'),
        }
    }
}
