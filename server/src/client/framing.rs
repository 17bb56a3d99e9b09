//! The head of an answer before it is written, and how the end of its body is shown.
//!
//! Next: `sending`, which sends both.

use crate::filter::trailers;
use crate::request::Request;
use millstream_wire::{Fields, Version};

/// The head of an answer, before the filters.
pub struct AnswerHead<'a> {
    /// The status.
    pub status: u16,
    /// End-to-end fields; framing, Date, Server and Connection fields in them are left out.
    pub fields: Fields<'a>,
    /// The body's length, where known.
    pub length: Option<u64>,
    /// Age in seconds in place of the one in the fields, for an answer out of the cache (RFC 9111 §5.1).
    pub age: Option<u64>,
}

/// How the body's end is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerFraming {
    /// No body on the wire (HEAD, 204, 304).
    Empty,
    /// That many bytes are still to come.
    Length(u64),
    /// Chunks.
    Chunked,
    /// The connection's end.
    Close,
    /// The stream's end.
    Stream,
}

/// How the end of a body is shown; `compress` is whether its length is not known before it is made.
pub(super) fn framed(request: &mut Request, head: &AnswerHead<'_>, compress: bool) -> AnswerFraming {
    if !request.wants_body() || matches!(head.status, 100..=199 | 204 | 304) {
        return AnswerFraming::Empty;
    }
    if request.is_on_stream() {
        return head.length.filter(|_| !compress).map_or(AnswerFraming::Stream, AnswerFraming::Length);
    }
    // What is put into another answer has that one's framing.
    let chunks = request.head.version != Version::Http10
        && request.location().settings.send.chunked
        && !request.is_included();
    let status = request.error_status.unwrap_or(head.status);
    match head.length {
        Some(length) if !(compress || chunks && trailers::are_expected(request, status)) => {
            AnswerFraming::Length(length)
        }
        _ if chunks => AnswerFraming::Chunked,
        _ => {
            request.keep_alive = false;
            AnswerFraming::Close
        }
    }
}
