//! Which bytes may stand where: tokens, field values, request targets.
//!
//! The tables are computed at compile time from the grammar, so that the rule is readable here and the check is one
//! load per byte, or one comparison per eight. Nothing here knows of lines or messages.

/// RFC 9110 §5.6.2.
pub(crate) const TOKEN: u8 = 1;
/// Allowed in a registered name (RFC 3986 §3.2.2) without further checks: not `.` and `%`.
pub(crate) const HOST: u8 = 2;
pub(crate) const NOT_TARGET: u8 = 4;
/// Outside of RFC 3986, yet sent by clients and accepted by nginx: visible ASCII and bytes above 127.
/// Percent-encoded before it goes upstream.
pub(crate) const TARGET_RAW: u8 = 8;
/// Starts a fragment, which no target should have; it is dropped as in nginx.
pub(crate) const FRAGMENT: u8 = 16;
pub(crate) const QUERY: u8 = 32;
/// A token byte that is no capital letter.
pub(crate) const LOWER_TOKEN: u8 = 64;

pub(crate) static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0u8; 256];
    let mut index = 0;
    while index < 256 {
        let byte = index as u8;
        let mut class = 0;
        if byte.is_ascii_alphanumeric() || contains(b"!#$%&'*+-.^_`|~", byte) {
            class |= TOKEN;
            if !byte.is_ascii_uppercase() {
                class |= LOWER_TOKEN;
            }
        }
        if byte.is_ascii_alphanumeric() || contains(b"-_~!$&'()*+,;=", byte) {
            class |= HOST;
        }
        if byte == b'?' {
            class |= QUERY;
        } else if byte == b'#' {
            class |= FRAGMENT;
        } else if !byte.is_ascii_alphanumeric() && !contains(b"-._~:/[]@!$&'()*+,;=%", byte) {
            class |= if byte.is_ascii_graphic() || byte >= 0x80 { TARGET_RAW } else { NOT_TARGET };
        }
        table[index] = class;
        index += 1;
    }
    table
}

#[inline]
pub(crate) fn classes_of(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |classes, &byte| classes | CLASS[byte as usize])
}

/// Whether the byte may stand unescaped in a request target (RFC 3986 §2).
#[inline]
pub(crate) fn is_target_byte(byte: u8) -> bool {
    CLASS[byte as usize] & (NOT_TARGET | TARGET_RAW | FRAGMENT) == 0
}

/// Whether the byte means the same encoded or not (RFC 3986 §2.3).
#[inline]
pub(crate) fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

const fn contains(set: &[u8], byte: u8) -> bool {
    let mut index = 0;
    while index < set.len() {
        if set[index] == byte {
            return true;
        }
        index += 1;
    }
    false
}

#[inline]
pub fn is_token_byte(byte: u8) -> bool {
    CLASS[byte as usize] & TOKEN != 0
}

pub fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&byte| is_token_byte(byte))
}

/// Field names of HTTP/2 are such tokens (RFC 9113 §8.2.1).
#[inline]
pub fn is_lower_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().fold(LOWER_TOKEN, |all, &byte| all & CLASS[byte as usize]) != 0
}

/// RFC 9110 §5.5: no control byte but HTAB.
#[inline]
pub fn is_value_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= 0x20 && byte != 0x7f)
}

pub fn is_value(text: &[u8]) -> bool {
    let mut at = next_control(text, 0);
    while text.get(at) == Some(&b'\t') {
        at = next_control(text, at + 1);
    }
    at == text.len()
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Sets the high bit of every byte below `limit` (at most 0x80). Only the lowest hit is exact: a borrow can
/// reach the bytes after a hit.
#[inline]
fn below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(ONES * limit as u64) & !word & HIGH
}

/// Offset of the first byte at or after `from` for which `hits` sets the high bit and `is_hit` holds, or the
/// length.
#[inline]
fn scan(bytes: &[u8], from: usize, hits: impl Fn(u64) -> u64, is_hit: impl Fn(u8) -> bool) -> usize {
    let mut at = from;
    while let Some(word) = bytes.get(at..at + 8) {
        let found = hits(u64::from_le_bytes(word.try_into().expect("the slice has eight bytes")));
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while at < bytes.len() && !is_hit(bytes[at]) {
        at += 1;
    }
    at
}

/// Offset of the first byte at or after `from` below 0x20 or DEL, or the length. HTAB is included: the caller
/// steps over it if allowed.
#[inline]
pub(crate) fn next_control(bytes: &[u8], from: usize) -> usize {
    scan(
        bytes,
        from,
        |word| below(word, 0x20) | below(word ^ (ONES * 0x7f), 1),
        |byte| byte < 0x20 || byte == 0x7f,
    )
}

/// Offset of the first space or lower byte at or after `from`, or the length.
#[inline]
pub(crate) fn next_space(bytes: &[u8], from: usize) -> usize {
    scan(bytes, from, |word| below(word, 0x21), |byte| byte < 0x21)
}

/// Offset of the first colon at or after `from`, or the length.
#[inline]
pub(crate) fn next_colon(bytes: &[u8], from: usize) -> usize {
    scan(bytes, from, |word| below(word ^ (ONES * b':' as u64), 1), |byte| byte == b':')
}

/// Without spaces and tabs at both ends (OWS, RFC 9110 §5.6.3).
#[inline]
pub fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// Digits only, at least one, within `u64`. Leading zeros are allowed.
pub fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 { None } else { number.checked_mul(10)?.checked_add(u64::from(digit)) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_byte_is_found_at_every_offset_and_behind_high_bytes() {
        for length in 0..40usize {
            for at in 0..length {
                for filler in [b'a', b' ', 0x80, 0xff, 0x7e] {
                    for control in [0u8, 1, 9, 10, 13, 0x1f, 0x7f] {
                        let mut bytes = vec![filler; length];
                        bytes[at] = control;
                        assert_eq!(next_control(&bytes, 0), at);
                        assert_eq!(next_control(&bytes, at + 1), length);
                    }
                }
            }
        }
    }

    #[test]
    fn decimals_are_plain_digits_within_64_bits() {
        assert_eq!(decimal(b"010"), Some(10));
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        for bad in ["", "18446744073709551616", "+5", "-0", "5 5", "0x5", "5.0"] {
            assert_eq!(decimal(bad.as_bytes()), None, "{bad}");
        }
    }
}
