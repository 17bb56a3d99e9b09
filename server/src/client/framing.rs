//! The head of an answer before it is written, and how the end of its body is shown.
//!
//! Next: `sending`, which sends both.

use crate::filter::trailers;
use crate::request::Request;
use millstream_wire::{Fields, Version};

pub struct AnswerHead<'a> {
    pub status: u16,
    /// End-to-end fields; framing, Date, Server and Connection fields are left out.
    pub fields: Fields<'a>,
    pub length: Option<u64>,
    /// Seconds; replaces the field for a cached response (RFC 9111 §5.1).
    pub age: Option<u64>,
}

/// How the body's end is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerFraming {
    Empty,
    Length(u64),
    Chunked,
    Close,
    Stream,
}

/// `compress`: its length is unknown before it is coded.
pub(super) fn framed(request: &mut Request, head: &AnswerHead<'_>, compress: bool) -> AnswerFraming {
    if request.outgoing(head.status) < 200 {
        // Its client goes on waiting for another one, and would take the next answer for that.
        request.keep_alive = false;
    }
    if !request.gets_body(head.status) {
        return AnswerFraming::Empty;
    }
    if request.is_on_stream() {
        return head.length.filter(|_| !compress).map_or(AnswerFraming::Stream, AnswerFraming::Length);
    }
    // What is put into another answer has that one's framing.
    let chunks = request.received.head.version != Version::Http10
        && request.location().settings.send.chunked
        && !request.is_included();
    match head.length {
        Some(length) if !(compress || chunks && trailers::are_expected(request, head.status)) => {
            AnswerFraming::Length(length)
        }
        _ if chunks => AnswerFraming::Chunked,
        _ => {
            request.keep_alive = false;
            AnswerFraming::Close
        }
    }
}
