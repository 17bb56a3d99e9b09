//! The head of an answer before it is written, and how the end of its body is shown.
//!
//! Next: `sending`, which sends both.

use crate::filter::trailers;
use crate::request::{Request, SubrequestPart};
use millstream_wire::{Fields, Method, Version};

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

impl Request {
    /// The status that goes out of an answer with a status of its own: that of an `error_page` in its place.
    pub fn outgoing(&self, own: u16) -> u16 {
        self.error_status.unwrap_or(own)
    }

    /// Whether a body follows the head of an answer with a status of its own, by the status that goes out (RFC 9110 §6.4.1).
    pub fn gets_body(&self, own: u16) -> bool {
        self.wants_body() && !matches!(self.outgoing(own), 100..=199 | 204 | 304)
    }

    /// Whether the method, or who asks by a subrequest, wants more of an answer than its head.
    pub fn wants_body(&self) -> bool {
        self.method != Method::Head && self.wanted != Some(SubrequestPart::Head)
    }
}

/// How the end of a body is shown; `compress` is whether its length is not known before it is made.
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
    let chunks = request.head.version != Version::Http10
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
