//! What a filter of bodies is, and the head that it changes.
//!
//! Next: `gunzip`, `sub_filter` and `charset`, which are filters; `chain`, which puts them together.

use crate::request::Request;
use millstream_wire::{FieldId, Headers};

/// A filter at work on one body.
pub(super) trait BodyFilter {
    /// Takes a piece, and appends what comes of it by now.
    fn take(&mut self, request: &Request, piece: &[u8], out: &mut Vec<u8>);

    /// Appends what was held back, for the body has ended. False where it cannot be whole.
    fn end(&mut self, request: &Request, out: &mut Vec<u8>) -> bool;
}

/// A head that filters change.
pub struct Draft {
    /// The status, which stays.
    pub status: u16,
    /// The fields.
    pub headers: Headers,
    /// The body's length, where it is known still.
    pub length: Option<u64>,
}

impl Draft {
    /// Bytes are added and taken away: there is no length and there are no ranges.
    pub fn resize(&mut self) {
        self.length = None;
        self.headers.remove(FieldId::AcceptRanges);
    }

    /// The text is another: it keeps its time and, weak, its tag only where the configuration says so.
    pub fn rewrite(&mut self, keeps_time: bool) {
        self.resize();
        if keeps_time {
            self.weaken();
        } else {
            self.headers.remove(FieldId::LastModified);
            self.headers.remove(FieldId::ETag);
        }
    }

    /// The bytes are others, and mean the same (RFC 9110 §8.8.1).
    pub fn weaken(&mut self) {
        let tag = self.headers.view().get(FieldId::ETag).filter(|tag| !tag.starts_with(b"W/"));
        if let Some(weak) = tag.map(|tag| [b"W/", tag].concat()) {
            self.headers.set(b"ETag", &weak);
        }
    }
}
