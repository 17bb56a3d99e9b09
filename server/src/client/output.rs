//! What is framed of an answer: its head, the bytes that wait for the client, and how the rest of its body is to be framed.

use super::Ending;
use crate::filter::trailers;
use crate::request::Request;
use millstream_net::buffers;
use millstream_wire::h1::encode;
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

pub(super) struct AnswerOutput {
    pub(super) bytes: Vec<u8>,
    pub(super) written: usize,
    pub(super) framing: AnswerFraming,
    pub(super) last_block: Option<Vec<u8>>,
    pub(super) ended: bool,
    pub(super) cut: bool,
}

impl AnswerOutput {
    pub(super) fn new(bytes: Vec<u8>, framing: AnswerFraming) -> AnswerOutput {
        AnswerOutput { bytes, written: 0, framing, last_block: None, ended: false, cut: false }
    }

    /// Of an answer that is all there.
    #[inline]
    pub(super) fn whole(bytes: Vec<u8>) -> AnswerOutput {
        AnswerOutput { ended: true, ..AnswerOutput::new(bytes, AnswerFraming::Empty) }
    }

    pub(super) fn unwritten(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// How it ended, and the trailers still to be sent on a stream.
    pub(super) fn settle(self, abandoned: bool) -> (Ending, Option<Vec<u8>>) {
        buffers::give(self.bytes);
        let is_whole = self.ended && !self.cut && !abandoned;
        let ending = match (is_whole, self.framing) {
            (true, AnswerFraming::Close) => Ending::Closing,
            (true, _) => Ending::Whole,
            (false, AnswerFraming::Close) => Ending::CutUnseen,
            (false, _) => Ending::Cut,
        };
        (ending, self.last_block)
    }

    pub(super) fn room_for(&self, length: usize) -> bool {
        match self.framing {
            AnswerFraming::Length(left) => left >= length as u64,
            AnswerFraming::Chunked | AnswerFraming::Close | AnswerFraming::Stream => true,
            AnswerFraming::Empty => false,
        }
    }

    pub(super) fn frame(&mut self, piece: &[u8]) {
        let room = match self.framing {
            AnswerFraming::Empty => return,
            AnswerFraming::Length(left) => piece.len().min(usize::try_from(left).unwrap_or(usize::MAX)),
            AnswerFraming::Chunked | AnswerFraming::Close | AnswerFraming::Stream => piece.len(),
        };
        if room == 0 {
            return;
        }
        self.open_piece(room);
        self.bytes.extend_from_slice(&piece[..room]);
        self.close_piece();
    }

    pub(super) fn open_piece(&mut self, length: usize) {
        match &mut self.framing {
            AnswerFraming::Chunked => encode::chunk_head(&mut self.bytes, length),
            AnswerFraming::Length(left) => *left -= length as u64,
            AnswerFraming::Empty | AnswerFraming::Close | AnswerFraming::Stream => {}
        }
    }

    pub(super) fn close_piece(&mut self) {
        if self.framing == AnswerFraming::Chunked {
            self.bytes.extend_from_slice(b"\r\n");
        }
    }

    pub(super) fn end(&mut self, request: &mut Request, of_upstream: Option<Fields<'_>>) {
        match self.framing {
            AnswerFraming::Length(left) if left > 0 => self.cut = true,
            // Whatever frames the body there, fields may follow (RFC 9113 §8.1).
            AnswerFraming::Length(_) | AnswerFraming::Stream
                if request.is_on_stream()
                    && (of_upstream.is_some() || trailers::are_expected(request, request.sent.status)) =>
            {
                self.last_block = trailers::block(request, of_upstream);
            }
            AnswerFraming::Chunked => {
                self.bytes.extend_from_slice(b"0\r\n");
                if of_upstream.is_some() || trailers::are_expected(request, request.sent.status) {
                    trailers::write(&mut self.bytes, request, of_upstream);
                }
                self.bytes.extend_from_slice(b"\r\n");
            }
            _ => {}
        }
        self.ended = true;
    }
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
