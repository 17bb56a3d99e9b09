//! The one spelling of all that name the same URL (RFC 3986 §6.2.2): what is stored under one of them is purged by any other.
//!
//! Keys are found by their bytes, as in nginx; only purges compare texts in this spelling. Pure. Before: `target`; next: `millstream-cache`'s
//! `purges`.

use crate::octets::{is_target_byte, is_unreserved};
use crate::target::{encode_byte, hex};
use std::borrow::Cow;

/// Percent-encodings in upper case, unreserved characters plain, and bytes that no URL contains encoded.
pub fn canonical(text: &[u8]) -> Cow<'_, [u8]> {
    if text.iter().all(|byte| is_target_byte(*byte) && *byte != b'%') {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let escaped = match rest {
            [b'%', high, low, ..] => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        rest = if escaped.is_some() { &after[2..] } else { after };
        match escaped {
            Some(byte) if is_unreserved(byte) => out.push(byte),
            Some(byte) => encode_byte(byte, &mut out),
            None if is_target_byte(*first) => out.push(*first),
            None => encode_byte(*first, &mut out),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn equivalent_spellings_are_one_and_others_stay_apart() {
        for (text, expected) in [
            ("http://a/caf%c3%a9/%7eu", "http://a/caf%C3%A9/~u"),
            ("/caf%C3%a9", "/caf%C3%A9"),
            ("/caf\u{e9}", "/caf%C3%A9"),
            ("/%61%2d%5F", "/a-_"),
            ("/a b", "/a%20b"),
            ("/\"a\"", "/%22a%22"),
            ("/a%2fb", "/a%2Fb"),
            ("/a/b", "/a/b"),
            ("/100%", "/100%"),
            ("/a%2", "/a%2"),
            ("/a%zz%4", "/a%zz%4"),
            ("/a%2541", "/a%2541"),
        ] {
            assert_eq!(String::from_utf8_lossy(&canonical(text.as_bytes())), expected, "{text}");
            assert_eq!(canonical(expected.as_bytes()), expected.as_bytes(), "{text}");
        }
    }
}
