//! HTTP/1: how its requests' bodies are framed, and what its heads say of the answer and of the connection.
//!
//! Bytes are text as they come, so nothing is done when they are read.

use crate::error::ExchangeError;
use millstream_wire::h1::encode;
use millstream_wire::h1::framing::{self, Framing};
use millstream_wire::h1::head::ResponseHead;
use millstream_wire::{FieldId, Fields, Method, Version};

#[derive(Debug, Clone, Copy)]
pub struct Http1 {
    /// Otherwise its length was announced, or there is none.
    pub chunked: bool,
}

impl Http1 {
    pub(super) fn frame(self, length: usize, last: bool, before: &mut Vec<u8>) -> &'static [u8] {
        if !self.chunked {
            return b"";
        }
        if length > 0 {
            encode::chunk_head(before, length);
        }
        match (length > 0, last) {
            (true, true) => b"\r\n0\r\n\r\n",
            (true, false) => b"\r\n",
            (false, true) => b"0\r\n\r\n",
            (false, false) => b"",
        }
    }
}

/// Also whether the head allows the connection to be reused.
pub(super) fn accept(
    method: Method,
    head: &ResponseHead,
    fields: Fields<'_>,
) -> Result<(Framing, bool), ExchangeError> {
    let framing =
        framing::response(method, head.version, head.status, fields).map_err(ExchangeError::BadFraming)?;
    let keep = head.version == Version::Http11
        && head.status != 101
        && framing != Framing::Close
        && !fields.connection_lists("close")
        && !(head.status == 204 && announces_body(fields));
    Ok((framing, keep))
}

/// Of a 204, against RFC 9110 §8.6: the body may follow.
fn announces_body(fields: Fields<'_>) -> bool {
    fields.has(FieldId::TransferEncoding)
        || fields.get(FieldId::ContentLength).is_some_and(|length| length != b"0")
}
