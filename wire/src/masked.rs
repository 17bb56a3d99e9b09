//! Text in which secrets are not to be read: values of parameters of URLs, and who a URL is asked as (`user:password@`), become `***`.
//!
//! What a secret is says `credential`. Everything but an access log's own format goes through here: error logs, the dashboard, `explain`, traces.
//! A text without a secret is not copied. Where there is doubt how far a value goes, more is hidden and not less.

use crate::credential;
use std::borrow::Cow;

pub const MASK: &str = "***";

/// Longest parameter name that is examined, percent-coded.
const LONGEST_NAME: usize = 192;

/// A text that may contain URLs, a request line, or a part of one.
pub fn text(text: &str) -> Cow<'_, str> {
    masked(text, false)
}

/// The query of a URL, or posted arguments: a name may stand at the beginning.
pub fn query(query: &str) -> Cow<'_, str> {
    masked(query, true)
}

pub fn field<'v>(name: &[u8], value: &'v str) -> Cow<'v, str> {
    match credential::is_secret(name) && !value.is_empty() {
        true => Cow::Borrowed(MASK),
        false => text(value),
    }
}

fn masked(text: &str, begins_with_name: bool) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut copied, mut at) = (0, 0);
    let mut hide = |from: usize, to: usize, copied: &mut usize| {
        out.push_str(&text[*copied..from]);
        out.push_str(MASK);
        *copied = to;
    };
    if begins_with_name && let Some((from, to)) = secret_at(bytes, 0) {
        hide(from, to, &mut copied);
        at = to;
    }
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        let found = match byte {
            b'?' | b'&' | b';' | b'#' => secret_at(bytes, at),
            // A URL in a parameter of another one.
            b'%' if begins_coded(&bytes[at..]) => coded_secret_at(bytes, at + 2),
            b':' if bytes[at..].starts_with(b"//") => user_at(bytes, at + 2),
            _ => None,
        };
        if let Some((from, to)) = found {
            hide(from, to, &mut copied);
            at = to;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// The value of the parameter whose name begins here, if it is a secret. Its delimiters are ASCII, so no
/// character is cut.
fn secret_at(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let is_of_name =
        |byte: &&u8| byte.is_ascii_alphanumeric() || b"%-_.[]$!*+~".contains(byte) || **byte >= 0x80;
    let length = bytes[at..].iter().take(LONGEST_NAME + 1).take_while(is_of_name).count();
    let from = at + length + 1;
    if length == 0 || length > LONGEST_NAME || bytes.get(from - 1) != Some(&b'=') {
        return None;
    }
    if !credential::is_secret(&plain(&bytes[at..at + length])) {
        return None;
    }
    let ends = |byte: &u8| byte.is_ascii_whitespace() || byte.is_ascii_control() || b"&#\"<>".contains(byte);
    let to = bytes[from..].iter().position(ends).map_or(bytes.len(), |length| from + length);
    (to > from).then_some((from, to))
}

/// Whether these two digits encode a delimiter before a parameter.
fn begins_coded(digits: &[u8]) -> bool {
    let is = |code: &&[u8]| digits.get(..2).is_some_and(|digits| digits.eq_ignore_ascii_case(code));
    [&b"3f"[..], b"26", b"3b", b"23"].iter().any(is)
}

/// As [`secret_at`] in a percent-coded URL: the name ends with `%3D`, the value with `%26` or where the
/// enclosing URL does.
fn coded_secret_at(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let is_code = |found: &[u8], code: &[u8]| found.eq_ignore_ascii_case(code);
    let window = &bytes[at..bytes.len().min(at + LONGEST_NAME + 3)];
    let length = window.windows(3).position(|found| is_code(found, b"%3d"))?;
    let name = &window[..length];
    let is_name = !name.iter().any(|byte| b"&#= \"<>".contains(byte) || byte.is_ascii_control());
    if length == 0 || !is_name || !credential::is_secret(&plain(name)) {
        return None;
    }
    let (from, mut to) = (at + length + 3, at + length + 3);
    while let Some(byte) = bytes.get(to) {
        let rest = &bytes[to..];
        let ends = byte.is_ascii_whitespace() || byte.is_ascii_control() || b"&#\"<>".contains(byte);
        if ends || rest.get(..3).is_some_and(|found| is_code(found, b"%26") || is_code(found, b"%23")) {
            break;
        }
        to += 1;
    }
    (to > from).then_some((from, to))
}

fn user_at(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || byte.is_ascii_control() || b"/?#\"<>".contains(byte);
    let end = bytes[at..].iter().position(ends).map_or(bytes.len(), |length| at + length);
    let to = at + bytes[at..end].iter().rposition(|&byte| byte == b'@')?;
    (to > at).then_some((at, to))
}

/// Percent-decoded.
fn plain(name: &[u8]) -> Cow<'_, [u8]> {
    if !name.contains(&b'%') {
        return Cow::Borrowed(name);
    }
    let mut out = Vec::with_capacity(name.len());
    crate::target::decode(name, &mut out);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret_becomes_stars_and_nothing_else_changes() {
        for (told, expected) in [
            ("GET /a?token=s3cret HTTP/1.1", "GET /a?token=*** HTTP/1.1"),
            ("GET /a?x=1&api_key=s3cret&y=2 HTTP/1.1", "GET /a?x=1&api_key=***&y=2 HTTP/1.1"),
            ("/a?api%5Fkey=s3cret", "/a?api%5Fkey=***"),
            ("/a?PHPSESSID=s3cret", "/a?PHPSESSID=***"),
            ("/a?next=%2Fb%3Ftoken%3Ds3cret%26x%3D1&y=2", "/a?next=%2Fb%3Ftoken%3D***%26x%3D1&y=2"),
            (
                "/a?next=%2Fb%3fx%3d1%26api_key%3ds3cret HTTP/1.1",
                "/a?next=%2Fb%3fx%3d1%26api_key%3d*** HTTP/1.1",
            ),
            ("/a?next=%2Fb%3Fx%3D1", "/a?next=%2Fb%3Fx%3D1"),
            ("/a?user%5Bpassword%5D=s3cret#top", "/a?user%5Bpassword%5D=***#top"),
            ("/a?b=/c?token=s3cret&d=e", "/a?b=/c?token=***&d=e"),
            ("/a;jsessionid=s3cret?x=1", "/a;jsessionid=***"),
            ("/a?token=s3cret\" while", "/a?token=***\" while"),
            ("/a?token=é&b=1", "/a?token=***&b=1"),
            ("https://joe:s3cret@host/a", "https://***@host/a"),
            ("\"http://joe@host:80\"", "\"http://***@host:80\""),
            ("http://a@b:s3cret@host", "http://***@host"),
            ("https://host/@a?password=s3cret", "https://host/@a?password=***"),
            ("a://b://c:s3cret@d", "a://b://***@d"),
        ] {
            assert_eq!(text(told), expected);
            assert!(!text(told).contains("s3cret"));
        }
        for told in [
            "",
            "?",
            "/a?token",
            "/a?token=",
            "/a?token=&b=1",
            "/a?user=joe&page=2",
            "token=1",
            "http://host/a@b",
            "http://",
            "a ? b = c",
            "http://@host/",
            "/caf\u{e9}?q=\u{e9}",
            "invalid parameter \"keys_zone=z:1m\"",
        ] {
            assert!(matches!(text(told), Cow::Borrowed(same) if same == told), "{told}");
        }
    }

    #[test]
    fn a_query_begins_with_a_name_and_a_field_has_one() {
        assert_eq!(query("token=s3cret&a=1"), "token=***&a=1");
        assert_eq!(query("a=1&token=s3cret"), "a=1&token=***");
        assert_eq!(query(""), "");
        assert_eq!(field(b"Authorization", "Bearer s3cret"), "***");
        assert_eq!(field(b"Referer", "http://host/?sig=s3cret"), "http://host/?sig=***");
        assert_eq!(field(b"Cookie", ""), "");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_masked_once_and_for_all(told in "\\PC*") {
            let once = text(&told).into_owned();
            proptest::prop_assert_eq!(text(&once).into_owned(), once);
        }
    }
}
