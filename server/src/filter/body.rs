//! What a filter of bodies is, and the head that it changes.
//!
//! A filter stops once enough has come of what it was given, and goes on when it is asked again, so that what an answer holds does not
//! grow with what comes of it. Before: `backlog`, what it was not given yet; next: `gunzip`, `sub_filter` and `charset`, which are filters; `chain`, which puts them together.

use crate::request::Request;
use millstream_wire::{FieldId, Headers};

/// Bytes after which a filter makes no more of what it was given until they are gone: much may come of little.
pub const ENOUGH: usize = 32 * 1024;

/// How far a filter has come with a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// All of it is taken, and what comes of it by now is out.
    All,
    /// There is more to come out than [`ENOUGH`]; the piece may be used up all the same.
    Some,
    /// The body has ended, and cannot be whole.
    Broken,
}

/// A filter at work on one body.
pub(super) trait BodyFilter {
    /// Takes of a piece, which becomes shorter, and appends what comes of it, until that is [`ENOUGH`] or nothing is left. With
    /// the last piece, which may be empty, what was held back goes out too.
    fn take(&mut self, request: &Request, piece: &mut &[u8], is_last: bool, out: &mut Vec<u8>) -> Taken;
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
