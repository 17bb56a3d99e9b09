//! Entity tags and their two comparisons (RFC 9110 §8.8.3).
//!
//! A tag is used as the text it came as, quotes included. What is no tag never matches anything.

/// `"…"` or `W/"…"`.
pub fn is_valid(tag: &[u8]) -> bool {
    match opaque(tag) {
        [b'"', inside @ .., b'"'] => inside.iter().all(|&byte| byte >= 0x21 && byte != b'"' && byte != 0x7f),
        _ => false,
    }
}

pub fn is_weak(tag: &[u8]) -> bool {
    tag.starts_with(b"W/")
}

/// Both strong and equal, byte by byte.
pub fn strong_match(a: &[u8], b: &[u8]) -> bool {
    !is_weak(a) && a == b && is_valid(a)
}

/// Equal apart from `W/`.
pub fn weak_match(a: &[u8], b: &[u8]) -> bool {
    opaque(a) == opaque(b) && is_valid(a)
}

fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_comparisons_are_those_of_the_rfcs_table() {
        for (a, b, strong, weak) in [
            ("W/\"1\"", "W/\"1\"", false, true),
            ("W/\"1\"", "W/\"2\"", false, false),
            ("W/\"1\"", "\"1\"", false, true),
            ("\"1\"", "\"1\"", true, true),
            ("1", "1", false, false),
            ("\"", "\"", false, false),
            ("\"a\"b\"", "\"a\"b\"", false, false),
        ] {
            assert_eq!(strong_match(a.as_bytes(), b.as_bytes()), strong, "{a} {b}");
            assert_eq!(weak_match(a.as_bytes(), b.as_bytes()), weak, "{a} {b}");
        }
    }
}
