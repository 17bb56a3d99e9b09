//! Byte ranges out of `Range` (RFC 9110 §14), bounded.
//!
//! Only the `bytes` unit is known. Ranges come out in the order they were asked for; the caller decides what to do
//! with many. Whether `Range` counts at all is for [`crate::conditional::range_applies`].

use std::ops::Range;

use crate::list;
use crate::octets::decimal;

/// What a `Range` field asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ranges {
    /// No valid byte ranges, or not worth serving: answer with the whole.
    Ignore,
    /// Valid, but nothing of it exists: 416.
    Unsatisfiable,
    /// At least one range within the representation, ends exclusive.
    Parts(Vec<Range<u64>>),
}

/// Reads a `Range` value for a representation of `length` bytes. More than `max_ranges` ranges, or ranges that
/// together are longer than the whole, are ignored: RFC 9110 §14.2 warns of both.
pub fn parse(value: &[u8], length: u64, max_ranges: usize) -> Ranges {
    let Some((unit, set)) = value.split_at_checked(6) else { return Ranges::Ignore };
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return Ranges::Ignore;
    }
    let mut parts = Vec::new();
    let (mut count, mut total) = (0, 0u64);
    for spec in list::elements(set) {
        count += 1;
        if count > max_ranges {
            return Ranges::Ignore;
        }
        match one(spec, length) {
            None => return Ranges::Ignore,
            Some(range) if range.is_empty() => {}
            Some(range) => {
                total = total.saturating_add(range.end - range.start);
                parts.push(range);
            }
        }
    }
    if count == 0 || (total > length && parts.len() > 1) {
        return Ranges::Ignore;
    }
    if parts.is_empty() { Ranges::Unsatisfiable } else { Ranges::Parts(parts) }
}

/// `first-last`, `first-` or `-suffix`; an empty range when it lies behind the end, `None` when it is invalid.
fn one(spec: &[u8], length: u64) -> Option<Range<u64>> {
    let dash = memchr::memchr(b'-', spec)?;
    let (first, last) = (&spec[..dash], &spec[dash + 1..]);
    if first.is_empty() {
        return Some(length.saturating_sub(number(last)?)..length);
    }
    let first = number(first)?;
    let last = if last.is_empty() { u64::MAX } else { number(last)? };
    if first > last {
        return None;
    }
    Some(first.min(length)..last.saturating_add(1).min(length))
}

/// A number however large: past 64 bits it is past every end.
fn number(text: &[u8]) -> Option<u64> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    digits.then(|| decimal(text).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str, expected: &Ranges) {
        assert_eq!(&parse(value.as_bytes(), 100, 3), expected, "{value}");
    }

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "one range is what is meant")]
    fn ranges_are_cut_to_the_representation() {
        check("bytes=0-0", &Ranges::Parts(vec![0..1]));
        check("Bytes=10-", &Ranges::Parts(vec![10..100]));
        check("bytes=-10", &Ranges::Parts(vec![90..100]));
        check("bytes=-1000", &Ranges::Parts(vec![0..100]));
        check("bytes=90-99999999999999999999999", &Ranges::Parts(vec![90..100]));
        check("bytes=0-1, 200-, 5-6", &Ranges::Parts(vec![0..2, 5..7]));
        check("bytes=100-", &Ranges::Unsatisfiable);
        check("bytes=-0", &Ranges::Unsatisfiable);
        assert_eq!(parse(b"bytes=0-", 0, 3), Ranges::Unsatisfiable);
    }

    #[test]
    fn what_is_no_range_or_too_many_is_ignored() {
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=a-b",
            "bytes=5-4",
            "bytes=1",
            "items=0-1",
            "bytes=--1",
            "bytes=0-0,1-1,2-2,3-3",
            "bytes=0-,0-",
            "bytes=+1-2",
            "bytes=1 -2",
        ] {
            check(value, &Ranges::Ignore);
        }
    }
}
