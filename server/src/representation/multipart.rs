//! Several ranges in one answer: `multipart/byteranges` (RFC 9110 §14.6), laid out byte by byte as nginx does.
//!
//! It holds no content: between the heads of the parts the caller sends the bytes, in the order of `ranges`.

use millstream_wire::range::ContentRange;
use millstream_wire::{FieldId, Headers};
use std::hash::BuildHasher;
use std::ops::Range;

/// The layout of an answer in several parts.
#[derive(Debug)]
pub struct Multipart {
    boundary: [u8; 20],
    media: Vec<u8>,
    /// The ranges in the order they are sent.
    pub ranges: Vec<Range<u64>>,
    complete: u64,
}

impl Multipart {
    /// Lays out these ranges of an answer of `complete` bytes and makes its head that of the parts.
    pub fn new(headers: &mut Headers, ranges: Vec<Range<u64>>, complete: u64) -> Multipart {
        let media = headers.view().get(FieldId::ContentType).unwrap_or_default().to_vec();
        let layout = Multipart { boundary: random_boundary(), media, ranges, complete };
        headers.remove(FieldId::AcceptRanges);
        headers.remove(FieldId::ContentRange);
        headers.set(b"Content-Type", &[b"multipart/byteranges; boundary=", &layout.boundary[..]].concat());
        layout
    }

    /// Length of the whole multipart body.
    pub fn length(&self) -> u64 {
        let mut text = Vec::with_capacity(256);
        let parts = self.ranges.iter().map(|range| {
            text.clear();
            self.write_head(range, &mut text);
            text.len() as u64 + range.end - range.start
        });
        let parts: u64 = parts.sum();
        text.clear();
        self.write_end(&mut text);
        parts + text.len() as u64
    }

    /// What stands before the bytes of a range.
    pub fn write_head(&self, range: &Range<u64>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n--");
        out.extend_from_slice(&self.boundary);
        if !self.media.is_empty() {
            out.extend_from_slice(b"\r\nContent-Type: ");
            out.extend_from_slice(&self.media);
        }
        out.extend_from_slice(b"\r\nContent-Range: ");
        let last = range.end.saturating_sub(1);
        ContentRange { first: range.start, last, complete: Some(self.complete) }.write(out);
        out.extend_from_slice(b"\r\n\r\n");
    }

    /// What stands behind the last range.
    pub fn write_end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n--");
        out.extend_from_slice(&self.boundary);
        out.extend_from_slice(b"--\r\n");
    }
}

/// Twenty digits that nobody can guess, so that no content can be made to look like a boundary.
fn random_boundary() -> [u8; 20] {
    // The standard library's hasher is keyed by the system's random source.
    let number = std::hash::RandomState::new().hash_one(0u8);
    let mut digits = [b'0'; 20];
    let mut text = itoa::Buffer::new();
    let text = text.format(number).as_bytes();
    digits[20 - text.len()..].copy_from_slice(text);
    digits
}
