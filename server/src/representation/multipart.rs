//! Several ranges in one answer: `multipart/byteranges` (RFC 9110 §14.6), laid out byte by byte as nginx does.
//!
//! It holds no content: between the heads of the parts its owner sends the bytes, in the order of `ranges`.

use crate::client::Client;
use crate::request::Request;
use millstream_wire::range::ContentRange;
use millstream_wire::{FieldId, Headers};
use std::hash::BuildHasher;
use std::ops::Range;

#[derive(Debug)]
pub struct Multipart {
    boundary: [u8; 20],
    media: Vec<u8>,
    pub ranges: Vec<Range<u64>>,
    complete: u64,
}

impl Multipart {
    /// Turns `headers` into those of a multipart response; `complete` is the whole's length.
    pub fn new(headers: &mut Headers, ranges: Vec<Range<u64>>, complete: u64) -> Multipart {
        let media = headers.view().get(FieldId::ContentType).unwrap_or_default().to_vec();
        let layout = Multipart { boundary: random_boundary(), media, ranges, complete };
        headers.remove(FieldId::AcceptRanges);
        headers.remove(FieldId::ContentRange);
        headers.set(b"Content-Type", &[b"multipart/byteranges; boundary=", &layout.boundary[..]].concat());
        layout
    }

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

    /// All of the body; `part` sends the bytes of one range.
    pub async fn send<E>(
        &self,
        request: &mut Request,
        client: &mut Client,
        mut part: impl AsyncFnMut(&mut Request, &mut Client, Range<u64>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut text = Vec::with_capacity(256);
        for range in &self.ranges {
            text.clear();
            self.write_head(range, &mut text);
            client.push(request, &text);
            part(request, client, range.clone()).await?;
        }
        text.clear();
        self.write_end(&mut text);
        client.push(request, &text);
        Ok(())
    }

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

    pub fn write_end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n--");
        out.extend_from_slice(&self.boundary);
        out.extend_from_slice(b"--\r\n");
    }
}

/// Unpredictable, so that no content can imitate a boundary.
fn random_boundary() -> [u8; 20] {
    // The standard library's hasher is keyed by the system's random source.
    let number = std::hash::RandomState::new().hash_one(0u8);
    let mut digits = [b'0'; 20];
    let mut text = itoa::Buffer::new();
    let text = text.format(number).as_bytes();
    digits[20 - text.len()..].copy_from_slice(text);
    digits
}
