//! What a filter of bodies is, and the head that it changes.
//!
//! A filter stops once enough has come of what it was given, and goes on when it is asked again, so that what an answer holds does not
//! grow with what comes of it. Before: `backlog`, what it was not given yet; next: `gunzip`, `sub_filter` and `charset`, which are filters; `chain`, which puts them together.

use crate::request::Request;
use millstream_wire::{FieldId, Headers};

/// Bytes of output after which a filter pauses: a little input may yield much.
pub const ENOUGH: usize = 32 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// All input is consumed and its output written.
    All,
    /// More output than [`ENOUGH`]; the input may be consumed all the same.
    Some,
    Broken,
}

pub(super) trait BodyFilter {
    /// Consumes input, which becomes shorter, and appends output up to [`ENOUGH`]. The last piece, which may
    /// be empty, also flushes what was held back.
    fn take(&mut self, request: &Request, piece: &mut &[u8], is_last: bool, out: &mut Vec<u8>) -> Taken;
}

pub struct Draft {
    pub status: u16,
    pub headers: Headers,
    pub length: Option<u64>,
}

impl Draft {
    /// The length changes: removes Content-Length and ranges.
    pub fn resize(&mut self) {
        self.length = None;
        self.headers.remove(FieldId::AcceptRanges);
    }

    /// The text changes: keeps Last-Modified and a weak ETag only if configured.
    pub fn rewrite(&mut self, keeps_time: bool) {
        self.resize();
        if keeps_time {
            self.weaken();
        } else {
            self.headers.remove(FieldId::LastModified);
            self.headers.remove(FieldId::ETag);
        }
    }

    /// Other bytes with the same meaning: the ETag becomes weak (RFC 9110 §8.8.1).
    pub fn weaken(&mut self) {
        let tag = self.headers.view().get(FieldId::ETag).filter(|tag| !tag.starts_with(b"W/"));
        if let Some(weak) = tag.map(|tag| [b"W/", tag].concat()) {
            self.headers.set(b"ETag", &weak);
        }
    }
}
