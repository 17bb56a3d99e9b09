//! A URL as lists and pages show it: host and path, without query, without what may be a secret in the path, of a bounded length.
//!
//! Next: `counting`, which keeps the URLs that most misses are for.

use millstream_telemetry::metrics::LONGEST_URL;
use millstream_wire::{credential, masked};

/// Letters and digits from which a segment may be a token.
const LONG: usize = 16;

/// Host and path; segments that look like tokens, or follow one such as `token`, become `***`.
pub fn shown(host: &[u8], path: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(host).into_owned();
    let mut after_secret = false;
    for (at, part) in path.split(|&byte| byte == b'/').enumerate() {
        if at > 0 {
            text.push('/');
        }
        if !part.is_empty() && (after_secret || is_token(part)) {
            text.push_str(masked::MASK);
        } else {
            text.push_str(&masked::text(&String::from_utf8_lossy(part)));
        }
        after_secret = credential::is_secret(part);
        if text.len() > LONGEST_URL {
            let end = (0..=LONGEST_URL).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            text.truncate(end);
            text.push('…');
            break;
        }
    }
    text
}

/// A token or UUID rather than words: long, with more digits than names have.
fn is_token(part: &[u8]) -> bool {
    let digits = part.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = part.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let longest = part.split(|byte| !byte.is_ascii_alphanumeric()).map(<[u8]>::len).max().unwrap_or(0);
    letters > 0 && digits + letters >= LONG && (digits * 5 >= part.len() || digits > 0 && longest >= LONG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_secrets_and_never_longer_than_its_bound() {
        for (path, expected) in [
            ("/", "a.example/"),
            ("/items/42", "a.example/items/42"),
            ("/blog/how-to-cook-an-egg-in-five-minutes", "a.example/blog/how-to-cook-an-egg-in-five-minutes"),
            ("/reset/9f86d081884c7d659a2feaa0c55ad015", "a.example/reset/***"),
            ("/u/123e4567-e89b-12d3-a456-426614174000/x", "a.example/u/***/x"),
            ("/j/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "a.example/j/***"),
            ("/token/abc/view", "a.example/token/***/view"),
            ("/a;token=abc", "a.example/a;token=***"),
            ("/\u{fc}", "a.example/\u{fc}"),
        ] {
            assert_eq!(shown(b"a.example", path.as_bytes()), expected);
        }
        let long = shown(b"a.example", &b"/\xc3\xbcx".repeat(4000));
        assert!(long.len() <= LONGEST_URL + 3 && long.ends_with('…'), "{}", long.len());
    }
}
