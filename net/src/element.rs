//! Elements of DER, of which certificates and lists of what is revoked are made (X.690 §8.1).
//!
//! Read more leniently than `der` reads its own types, as OpenSSL does: a length may have more octets than it needs, and a tag need not be known. The
//! bytes come from strangers: what is cut off, or has no end, is nothing. Next: `certificate`.

use der::{Decode, Encode, ErrorKind, Length, Reader, SliceReader};

pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;

/// An element whose tag is one octet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Element<'a> {
    pub(crate) tag: u8,
    pub(crate) content: &'a [u8],
    /// With its tag and its length.
    pub(crate) whole: &'a [u8],
}

impl<'a> Decode<'a> for Element<'a> {
    type Error = der::Error;

    fn decode<R: Reader<'a>>(reader: &mut R) -> der::Result<Self> {
        let mut before = reader.clone();
        let tag = reader.read_byte()?;
        if tag & 0x1f == 0x1f {
            return Err(reader.error(ErrorKind::TagNumberInvalid));
        }
        let length = match reader.read_byte()? {
            short @ 0..0x80 => u32::from(short),
            long @ 0x81..=0x84 => (0x80..long)
                .try_fold(0, |length, _| reader.read_byte().map(|octet| length << 8 | u32::from(octet)))?,
            0x80 | 0x85.. => return Err(reader.error(ErrorKind::IndefiniteLength)),
        };
        let content = reader.read_slice(length.into())?;
        let whole = before.read_slice((reader.position() - before.position())?)?;
        Ok(Element { tag, content, whole })
    }
}

impl<'a> Element<'a> {
    /// The first one of the bytes, whatever follows it.
    pub(crate) fn first(bytes: &'a [u8]) -> Option<Self> {
        SliceReader::new(bytes).ok()?.decode().ok()
    }

    /// The one that the bytes are.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        Element::from_der(bytes).ok()
    }

    /// Those that the bytes are, one after another.
    pub(crate) fn all(bytes: &'a [u8]) -> Option<Vec<Self>> {
        let mut reader = SliceReader::new(bytes).ok()?;
        let mut elements = Vec::new();
        while !reader.is_finished() {
            elements.push(reader.decode().ok()?);
        }
        Some(elements)
    }

    /// What is in it, if it has that tag.
    pub(crate) fn tagged(self, tag: u8) -> Option<&'a [u8]> {
        (self.tag == tag).then_some(self.content)
    }

    /// What it names, if it is an object identifier.
    pub(crate) fn identifier(self) -> Option<&'a [u8]> {
        self.tagged(OBJECT_IDENTIFIER).filter(|octets| octets.last().is_some_and(|last| last & 0x80 == 0))
    }

    /// What it says, if it is a BOOLEAN. Any octet but zero is true, as in BER.
    pub(crate) fn truth(self) -> Option<bool> {
        match self.tagged(BOOLEAN)? {
            [octet] => Some(*octet != 0),
            _ => None,
        }
    }

    /// What is in it, if it is a BIT STRING of whole octets.
    pub(crate) fn octets(self) -> Option<&'a [u8]> {
        self.tagged(BIT_STRING)?.strip_prefix(&[0])
    }

    /// Its own elements, if it has that tag.
    pub(crate) fn parts(self, tag: u8) -> Option<Vec<Self>> {
        Element::all(self.tagged(tag)?)
    }
}

/// An element with that in it.
pub(crate) fn write(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = Length::try_from(content.len()).and_then(|length| length.to_der());
    [&[tag], &length.unwrap_or_default()[..], content].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_taken_apart_whole_or_not_at_all() {
        let bytes = [write(SEQUENCE, b"one"), write(SEQUENCE, b""), vec![0x81, 1, 0xff]].concat();
        let found = Element::all(&bytes).expect("three elements");
        let parts: Vec<_> = found.iter().map(|one| (one.tag, one.content, one.whole)).collect();
        let expected = [
            (SEQUENCE, &b"one"[..], &bytes[..5]),
            (SEQUENCE, b"", &bytes[5..7]),
            (0x81, &[0xff], &bytes[7..]),
        ];
        assert_eq!(parts, expected);
        assert_eq!(Element::all(b""), Some(Vec::new()));
        assert_eq!(Element::first(&bytes), Some(found[0]));
        for broken in [&bytes[..8], b"\x30\x00\x30", b"\x1f\x81\x00", b"\x30\x01"] {
            assert_eq!(Element::all(broken), None);
        }
    }

    #[test]
    fn what_is_written_is_read_again_and_a_length_may_have_more_octets_than_it_needs() {
        for length in [0, 1, 127, 128, 255, 256, 70_000] {
            let inside = vec![7; length];
            let whole = write(SEQUENCE, &inside);
            assert_eq!(Element::read(&whole).and_then(|one| one.tagged(SEQUENCE)), Some(&inside[..]));
            assert_eq!(Element::read(&whole[..whole.len() - 1]), None);
            assert_eq!(Element::read(&[&whole[..], &[0]].concat()), None);
        }
        assert_eq!(Element::read(b"\x1c\x83\0\0\x01a").map(|one| one.content), Some(&b"a"[..]));
        for broken in [&b""[..], b"\x30", b"\x30\x80", b"\x30\x85\x01\x01\x01\x01\x01", b"\x30\x00\x00"] {
            assert_eq!(Element::read(broken), None);
        }
    }
}
