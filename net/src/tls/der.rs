//! The outermost element of DER, put on and taken off (X.690 §8.1): the libraries disagree about whether it belongs to a name or a key.

/// What is in the one element that the bytes are.
pub(super) fn content(bytes: &[u8]) -> Option<&[u8]> {
    match first(bytes)? {
        (content, []) => Some(content),
        _ => None,
    }
}

/// What is in the first element, and what follows it.
fn first(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.get(1..)?.split_first()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        0x80 | 0x85.. => return None,
    };
    rest.split_at_checked(length)
}

/// The elements that the bytes are one after another, each as a whole.
pub(super) fn split(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut elements = Vec::new();
    while !bytes.is_empty() {
        let (_, rest) = first(bytes)?;
        elements.push(&bytes[..bytes.len() - rest.len()]);
        bytes = rest;
    }
    Some(elements)
}

/// The same, each as its tag, which is of one octet here, and what is in it.
pub(super) fn elements(bytes: &[u8]) -> Option<Vec<(u8, &[u8])>> {
    let short = |tag: &u8| tag & 0x1f != 0x1f;
    split(bytes)?
        .into_iter()
        .map(|whole| Some((whole.first().copied().filter(short)?, content(whole)?)))
        .collect()
}

/// A SEQUENCE of it.
pub(super) fn sequence(content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x30];
    let length = content.len().to_be_bytes();
    match content.len() {
        short @ 0..0x80 => bytes.push(short as u8),
        _ => {
            let digits = &length[length.iter().position(|digit| *digit != 0).unwrap_or(0)..];
            bytes.push(0x80 | digits.len() as u8);
            bytes.extend_from_slice(digits);
        }
    }
    bytes.extend_from_slice(content);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_taken_apart_whole_or_not_at_all() {
        let bytes = [sequence(b"one"), sequence(b""), vec![0x81, 1, 0xff]].concat();
        assert_eq!(elements(&bytes), Some(vec![(0x30, &b"one"[..]), (0x30, b""), (0x81, &[0xff])]));
        assert_eq!(split(&bytes), Some(vec![&bytes[..5], &bytes[5..7], &bytes[7..]]));
        assert_eq!(elements(b""), Some(Vec::new()));
        for broken in [&bytes[..8], b"\x30\x00\x30", b"\x1f\x81\x00", b"\x30\x01"] {
            assert_eq!(elements(broken), None);
        }
    }

    #[test]
    fn what_a_sequence_is_made_of_is_taken_out_of_it_again() {
        for length in [0, 1, 127, 128, 255, 256, 70_000] {
            let inside = vec![7; length];
            let whole = sequence(&inside);
            assert_eq!(content(&whole), Some(&inside[..]));
            assert_eq!(content(&whole[..whole.len() - 1]), None);
        }
        for broken in [&b""[..], b"\x30", b"\x30\x80", b"\x30\x85\x01\x01\x01\x01\x01", b"\x30\x00\x00"] {
            assert_eq!(content(broken), None);
        }
    }
}
