//! SCGI as bytes: the head that a request begins with, a netstring of names and values. What the application answers is text.
//!
//! The body follows the head as it is. It does no I/O.

/// A zero byte ends both, so neither may contain one.
pub fn pair(pairs: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for text in [name, value] {
        pairs.extend(text.iter().copied().filter(|byte| *byte != 0));
        pairs.push(0);
    }
}

/// The body's length comes first among the parameters, as the protocol requires.
pub fn head(out: &mut Vec<u8>, body_length: u64, pairs: &[u8]) {
    let mut first = Vec::new();
    let mut digits = itoa::Buffer::new();
    pair(&mut first, b"CONTENT_LENGTH", digits.format(body_length).as_bytes());
    out.extend_from_slice(digits.format(first.len() + pairs.len()).as_bytes());
    out.push(b':');
    out.extend_from_slice(&first);
    out.extend_from_slice(pairs);
    out.push(b',');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_a_netstring_that_begins_with_the_bodys_length() {
        let mut pairs = Vec::new();
        pair(&mut pairs, b"SCGI", b"1");
        pair(&mut pairs, b"EMPTY", b"");
        pair(&mut pairs, b"B\0AD", b"a\0b");
        let mut out = b"before".to_vec();
        head(&mut out, 27, &pairs);
        let expected = b"before39:CONTENT_LENGTH\x0027\0SCGI\x001\0EMPTY\0\0BAD\0ab\0,";
        assert_eq!(out, expected);
    }
}
