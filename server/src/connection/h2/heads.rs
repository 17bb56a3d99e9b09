//! Header blocks: gathered from their frames, and made a request (RFC 9113 §4.3, §8.3).
//!
//! A block that has begun is read to its end whatever becomes of it, because the client's table goes on with it.

use super::Fate;
use super::patience::Work;
use crate::connection::accepted::Accepted;
use crate::failure;
use crate::request::{Received, Request};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use millstream_wire::h1::head::HeadLimits;
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::extra::Extra;
use millstream_wire::h2::field_rules::{FieldsError, decode_trailers};
use millstream_wire::h2::hpack::HpackDecoder;
use millstream_wire::h2::priority::Priority;
use millstream_wire::h2::request::decode_request;
use millstream_wire::h2::request_error::RequestError;
use millstream_wire::{Method, Version};

const WEBSOCKET_KEY: &str = "sec-websocket-key";

pub(super) struct Come {
    pub(super) stream: u32,
    pub(super) request: Box<Request>,
    pub(super) has_ended: bool,
    pub(super) priority: Priority,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) stream: u32,
    pub(super) has_ended: bool,
    /// An error of the frame, while its block must still be decoded.
    pub(super) flaw: Option<ErrorCode>,
}

pub(super) struct HeaderBlock {
    pub(super) place: Place,
    pub(super) bytes: Vec<u8>,
}

#[derive(Default)]
pub(super) struct HeaderBlocks {
    decoder: HpackDecoder,
    /// The one whose end has yet to come.
    begun: Option<Box<HeaderBlock>>,
}

impl HeaderBlocks {
    pub(super) fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// Only CONTINUATION may come between a block's frames (RFC 9113 §4.3).
    pub(super) fn check_is_over(&self, continued: Option<u32>) -> Result<(), Fate> {
        match &self.begun {
            Some(block) if continued != Some(block.place.stream) => {
                Err(Fate::Broken(ErrorCode::ProtocolError, "a frame in the middle of a header block"))
            }
            _ => Ok(()),
        }
    }

    /// Keeps the first fragment of several.
    pub(super) fn begin(&mut self, place: Place, fragment: &[u8], most: usize) -> Result<Work, Fate> {
        self.keep(Box::new(HeaderBlock { place, bytes: Vec::new() }), fragment, most)
    }

    /// Keeps one more fragment.
    pub(super) fn go_on(&mut self, stream: u32, fragment: &[u8], most: usize) -> Result<Work, Fate> {
        let block = self.take(stream)?;
        self.keep(block, fragment, most)
    }

    /// The block that the last fragment ends.
    pub(super) fn end(&mut self, stream: u32, fragment: &[u8]) -> Result<Box<HeaderBlock>, Fate> {
        let mut block = self.take(stream)?;
        block.bytes.extend_from_slice(fragment);
        Ok(block)
    }

    fn take(&mut self, stream: u32) -> Result<Box<HeaderBlock>, Fate> {
        const ALONE: Fate =
            Fate::Broken(ErrorCode::ProtocolError, "a CONTINUATION frame without a header block");
        self.begun.take().filter(|block| block.place.stream == stream).ok_or(ALONE)
    }

    /// Bounds the size and the number of tiny pieces (CVE-2024-27316).
    fn keep(&mut self, mut block: Box<HeaderBlock>, fragment: &[u8], most: usize) -> Result<Work, Fate> {
        block.bytes.extend_from_slice(fragment);
        if block.bytes.len() > most {
            return Err(Fate::Broken(ErrorCode::EnhanceYourCalm, "an endless header block"));
        }
        self.begun = Some(block);
        Ok(if fragment.is_empty() { Work::Empty } else { Work::Tiny })
    }

    /// A request of what a block says, sound or not; fails if no later block can be read.
    pub(super) fn decode(
        &mut self,
        block: &[u8],
        accepted: &mut Accepted,
    ) -> Result<(Box<Request>, Result<Extra, RequestError>), Fate> {
        let mut request = accepted.new_request();
        let received = &mut request.received;
        let decoded = decode_request(
            &mut self.decoder,
            block,
            &mut received.bytes,
            &mut received.head,
            &accepted.head_limits(),
            true,
        );
        match decoded {
            Err(RequestError::Compression(what)) => Err(Fate::Broken(ErrorCode::CompressionError, what)),
            decoded => Ok((request, decoded)),
        }
    }

    /// Whether trailers are sound. What is in them is asked for by nobody.
    pub(super) fn decode_trailers(&mut self, block: &[u8], limits: &HeadLimits) -> Result<bool, Fate> {
        match decode_trailers(&mut self.decoder, block, limits) {
            Err(FieldsError::Compression(what)) => Err(Fate::Broken(ErrorCode::CompressionError, what)),
            decoded => Ok(decoded.is_ok()),
        }
    }
}

/// Leaves nothing in `request` of a block that is none. Returns its status, and the error of its stream.
pub(super) fn refusal_of(error: &RequestError, request: &mut Request) -> (u16, Option<ErrorCode>) {
    request.received.bytes.clear();
    request.received.head.clear();
    request.received.head.version = Version::Http2;
    let flaw = matches!(error, RequestError::Malformed(_)).then_some(ErrorCode::ProtocolError);
    let status = match error {
        RequestError::TooMany => failure::TOO_MANY_FIELDS,
        error => failure::of_head(error.status()),
    };
    (status, flaw)
}

/// Turns an extended CONNECT for a WebSocket (RFC 8441) into the request by which HTTP/1.1 asks for one (RFC 6455 §4.1), so that
/// configurations, rights and upstreams have one kind of them. `exchange/tunnel` makes its 101 a 200.
pub(super) fn as_upgrade(request: &mut Request) {
    request.method = Method::Get;
    // The client has no use for one (RFC 8441 §5), and a request has one of them (RFC 6455 §11.3.1).
    let Received { bytes, head, .. } = &mut request.received;
    head.fields.retain(|field| !field.name(bytes).eq_ignore_ascii_case(WEBSOCKET_KEY.as_bytes()));
    // It only has to be another one each time.
    let key = STANDARD.encode(&request.id()[..16]);
    for (name, value) in [("connection", "upgrade"), ("upgrade", "websocket"), (WEBSOCKET_KEY, &key)] {
        request.received.append_field(name.as_bytes(), value.as_bytes());
    }
}
