//! Ids of traces and of spans: random bytes, and their hexadecimal text.
//!
//! An id is never zero: that is no id (W3C Trace Context §3.2.2.3, §3.2.2.4). Next: `context`, which reads them.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

/// Random bits: the standard library's hasher is keyed by the system's random source, each with its own key.
fn random(salt: u8) -> u64 {
    // Zero is no id, and as likely as any other number.
    RandomState::new().hash_one(salt).max(1)
}

impl TraceId {
    pub fn random() -> TraceId {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&random(1).to_be_bytes());
        bytes[8..].copy_from_slice(&random(2).to_be_bytes());
        TraceId(bytes)
    }

    /// `None` unless these are 32 lower-case hexadecimal digits, not all zero.
    pub fn parse(text: &[u8]) -> Option<TraceId> {
        digits(text).map(TraceId)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        write(&self.0, out);
    }
}

impl SpanId {
    pub fn random() -> SpanId {
        SpanId(random(3).to_be_bytes())
    }

    /// `None` unless these are 16 lower-case hexadecimal digits, not all zero.
    pub fn parse(text: &[u8]) -> Option<SpanId> {
        digits(text).map(SpanId)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        write(&self.0, out);
    }

    pub fn digits(&self) -> [u8; Self::DIGITS] {
        let mut text = [0; Self::DIGITS];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&pair_of(byte));
        }
        text
    }

    pub const DIGITS: usize = 16;
}

fn digits<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = number(pair)?;
    }
    bytes.iter().any(|byte| *byte != 0).then_some(bytes)
}

/// Of two lower-case hexadecimal digits.
pub(crate) fn number(pair: &[u8]) -> Option<u8> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    }
}

fn pair_of(byte: u8) -> [u8; 2] {
    [byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)])
}

fn write(bytes: &[u8], out: &mut Vec<u8>) {
    bytes.iter().for_each(|byte| out.extend_from_slice(&pair_of(*byte)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_are_what_their_text_says() {
        let (one, other) = (TraceId::random(), TraceId::random());
        assert_ne!(one, other);
        let mut text = Vec::new();
        one.write(&mut text);
        assert_eq!(TraceId::parse(&text), Some(one));
        let span = SpanId::random();
        assert_eq!(SpanId::parse(&span.digits()), Some(span));
        assert_eq!(SpanId::parse(b"0000000000000000"), None);
    }
}
