//! Field lines packed one behind the other into one run of bytes, for heads that are kept by the million.
//!
//! ```text
//! | field of the table | length of the name | length of the value | name | value | next line …
//! |        1 byte      |     1–5 bytes      |      1–5 bytes      |
//! ```
//! A name that is written as the table writes it is left out (length 0), so that a usual line takes fewer bytes than on
//! the wire. It is read by walking, which a table of offsets would make faster and twice as large. The bytes never
//! leave the process. Next: `fields`, the view over either form.

use crate::field::Field;
use crate::field_id::FieldId;
use crate::span::Span;

/// Bytes that [`append`] adds.
pub fn length(id: FieldId, name: &[u8], value: &[u8]) -> usize {
    let name = written(id, name).len();
    1 + length_of(name) + length_of(value.len()) + name + value.len()
}

pub fn append(id: FieldId, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let name = written(id, name);
    out.push(id.number());
    put_length(name.len(), out);
    put_length(value.len(), out);
    out.extend_from_slice(name);
    out.extend_from_slice(value);
}

fn written(id: FieldId, name: &[u8]) -> &[u8] {
    if id != FieldId::Other && name == id.name().as_bytes() { &[] } else { name }
}

fn length_of(length: usize) -> usize {
    (usize::BITS - length.leading_zeros()).div_ceil(7).max(1) as usize
}

/// Seven bits at a time, low ones first; the high bit says that more follow.
fn put_length(mut length: usize, out: &mut Vec<u8>) {
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

/// Ends where the bytes are not what [`append`] writes.
#[derive(Debug, Clone)]
pub(crate) struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Walk<'a> {
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Walk<'a> {
        Walk { bytes, at: 0 }
    }

    #[inline]
    fn length(&mut self) -> Option<usize> {
        let mut length = 0;
        for shift in [0, 7, 14, 21, 28] {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            length |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(length);
            }
        }
        None
    }
}

impl Iterator for Walk<'_> {
    type Item = Field;

    #[inline]
    fn next(&mut self) -> Option<Field> {
        let id = FieldId::from_number(*self.bytes.get(self.at)?);
        self.at += 1;
        let (name, value) = (self.length()?, self.length()?);
        let start = self.at;
        self.at = start.checked_add(name)?.checked_add(value)?;
        Some(Field::new(id, Span::new(start, start + name), Span::new(start + name, self.at)))
    }
}
