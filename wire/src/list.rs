//! Comma-separated lists (RFC 9110 §5.6.1) and the `name=value` pairs that many of them are made of.
//!
//! A comma inside a quoted string does not separate. Empty elements are skipped, as recipients must. What cannot be
//! read is handed out as it stands: judging is the caller's work.

use crate::octets::trim;

/// Trimmed, without empty ones.
#[inline]
pub fn elements(list: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    Elements { rest: list, separator: b',' }
}

/// Separated by semicolons, trimmed, without empty ones.
pub fn parameters(list: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    Elements { rest: list, separator: b';' }
}

#[derive(Clone)]
struct Elements<'a> {
    rest: &'a [u8],
    separator: u8,
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while !self.rest.is_empty() {
            let end = separator(self.rest, self.separator);
            let element = trim(&self.rest[..end]);
            self.rest = self.rest.get(end + 1..).unwrap_or_default();
            if !element.is_empty() {
                return Some(element);
            }
        }
        None
    }
}

/// Offset of the first separator outside of a quoted string, or the length.
fn separator(text: &[u8], separator: u8) -> usize {
    let mut quoted = false;
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'"' => quoted = !quoted,
            b'\\' if quoted => at += 1,
            byte if byte == separator && !quoted => return at,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// An element as name and argument: `max-age=60` → (`max-age`, `Some("60")`). White space around `=` is tolerated.
pub fn pair(element: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'=', element) {
        Some(at) => (trim(&element[..at]), Some(trim(&element[at + 1..]))),
        None => (element, None),
    }
}

/// Without its quotes, escapes left as they are; other text unchanged.
pub fn unquote(text: &[u8]) -> &[u8] {
    match text {
        [b'"', inside @ .., b'"'] => inside,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(list: &str, expected: &[&str]) {
        let found: Vec<_> =
            elements(list.as_bytes()).map(|e| String::from_utf8_lossy(e).into_owned()).collect();
        assert_eq!(found, expected, "{list}");
    }

    #[test]
    fn elements_are_split_at_commas_outside_of_quotes() {
        check("", &[]);
        check(",, ,", &[]);
        check("a", &["a"]);
        check(" a , b,,c\t", &["a", "b", "c"]);
        check("no-cache=\"a, b\", max-age=1", &["no-cache=\"a, b\"", "max-age=1"]);
        check("x=\"a\\\", b\", c", &["x=\"a\\\", b\"", "c"]);
        check("x=\"never closed, b", &["x=\"never closed, b"]);
        check("x=\"\\", &["x=\"\\"]);
    }

    #[test]
    fn pairs_are_split_at_the_first_equals_sign() {
        assert_eq!(pair(b"a=b=c"), (&b"a"[..], Some(&b"b=c"[..])));
        assert_eq!(pair(b"a"), (&b"a"[..], None));
        assert_eq!(unquote(b"\"a\""), b"a");
        assert_eq!(unquote(b"\""), b"\"");
    }
}
