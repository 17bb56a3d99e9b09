//! Header blocks: gathered from their frames, and made a request (RFC 9113 §4.3, §8.3).
//!
//! A block that has begun is read to its end whatever becomes of it, because the client's table goes on with it. Before: `frames`; next:
//! `serving`, which answers.

use super::patience::Work;
use super::{Fate, Http2Connection, websocket};
use crate::failure;
use crate::request::Request;
use millstream_telemetry::metrics::Counter;
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::extra::ConnectProtocol;
use millstream_wire::h2::field_rules::{FieldsError, decode_trailers};
use millstream_wire::h2::priority::Priority;
use millstream_wire::h2::request::decode_request;
use millstream_wire::h2::request_error::RequestError;
use millstream_wire::{FieldId, Version};

pub(super) struct Come {
    pub(super) stream: u32,
    pub(super) request: Box<Request>,
    pub(super) has_ended: bool,
    pub(super) priority: Priority,
}

pub(super) struct HeaderBlock {
    pub(super) stream: u32,
    has_ended: bool,
    flaw: Option<ErrorCode>,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) stream: u32,
    pub(super) has_ended: bool,
    /// An error of the frame, while its block must still be decoded.
    pub(super) flaw: Option<ErrorCode>,
}

impl Http2Connection {
    pub(super) fn begin_block(&mut self, place: Place, fragment: &[u8], is_whole: bool) -> Result<(), Fate> {
        if is_whole {
            return self.take_block(place, fragment);
        }
        let Place { stream, has_ended, flaw } = place;
        self.block = Some(Box::new(HeaderBlock { stream, has_ended, flaw, bytes: fragment.to_vec() }));
        self.check_block(fragment)
    }

    pub(super) fn go_on_block(&mut self, stream: u32, fragment: &[u8], is_whole: bool) -> Result<(), Fate> {
        let Some(mut block) = self.block.take().filter(|block| block.stream == stream) else {
            return Err(Fate::Broken(
                ErrorCode::ProtocolError,
                "a CONTINUATION frame without a header block",
            ));
        };
        block.bytes.extend_from_slice(fragment);
        if is_whole {
            let place = Place { stream, has_ended: block.has_ended, flaw: block.flaw };
            return self.take_block(place, &block.bytes);
        }
        self.block = Some(block);
        self.check_block(fragment)
    }

    /// Bounds the size and the number of tiny pieces (CVE-2024-27316).
    fn check_block(&mut self, fragment: &[u8]) -> Result<(), Fate> {
        let most = self.accepted.head_limits().total;
        if self.block.as_ref().is_some_and(|block| block.bytes.len() > most) {
            return Err(Fate::Broken(ErrorCode::EnhanceYourCalm, "an endless header block"));
        }
        if fragment.is_empty() { self.charge(Work::Empty) } else { self.charge(Work::Tiny) }
    }

    /// Whether no more streams may be opened. Streams the client has ended do not count (RFC 9113 §5.1.2),
    /// even if cleanup remains; there are never more of those than of the others. Those we reset count until
    /// then.
    fn is_full(&self) -> bool {
        let most = self.granted.streams as usize;
        self.streams.len() >= most
            && (self.streams.len() >= 2 * most
                || self.streams.iter().filter(|stream| !stream.is_done_with()).count() >= most)
    }

    fn take_block(&mut self, place: Place, block: &[u8]) -> Result<(), Fate> {
        if place.stream <= self.last {
            return self.take_trailers(place, block);
        }
        self.last = place.stream;
        let early = self.early.take(place.stream);
        let takes_on = self.departure.takes_requests();
        let mut request = self.accepted.new_request();
        let limits = self.accepted.head_limits();
        let decoded = decode_request(
            &mut self.decoder,
            block,
            &mut request.received.bytes,
            &mut request.received.head,
            &limits,
            true,
        );
        match decoded {
            Err(RequestError::Compression(what)) => {
                return Err(Fate::Broken(ErrorCode::CompressionError, what));
            }
            Err(_) => self.charge(Work::Block(block.len()))?,
            Ok(_) => {}
        }
        if !takes_on {
            // The client was told that this one counts for nothing.
            return self.charge(Work::Control);
        }
        if self.is_full() {
            self.accepted.worker.metrics.add(Counter::Http2StreamsRefused, 1);
            self.reset(place.stream, ErrorCode::RefusedStream);
            return self.charge(Work::Refused);
        }
        if let Some(code) = place.flaw {
            self.reset(place.stream, code);
            return self.charge(Work::Refused);
        }
        match decoded {
            Ok(extra) => {
                request.method = request.received.head.method;
                match extra.protocol {
                    None => {}
                    Some(ConnectProtocol::WebSocket) => websocket::as_upgrade(&mut request),
                    Some(ConnectProtocol::Other) => {
                        self.refuse(place, request, 501, "a CONNECT for an unknown protocol", None);
                        return Ok(());
                    }
                }
                request.received.head.length = block.len();
                let asked = || request.field(FieldId::Priority).map(Priority::of);
                let priority = early.or_else(asked).unwrap_or_default();
                let Place { stream, has_ended, .. } = place;
                self.answer(Come { stream, request, has_ended, priority });
                Ok(())
            }
            Err(error) => {
                request.received.bytes.clear();
                request.received.head.clear();
                request.received.head.version = Version::Http2;
                let flaw = matches!(error, RequestError::Malformed(_)).then_some(ErrorCode::ProtocolError);
                let status = match error {
                    RequestError::TooMany => failure::TOO_MANY_FIELDS,
                    error => failure::of_head(error.status()),
                };
                self.refuse(place, request, status, error.what(), flaw);
                Ok(())
            }
        }
    }

    fn take_trailers(&mut self, place: Place, block: &[u8]) -> Result<(), Fate> {
        // What is in it is asked for by nobody, yet has to be sound.
        let decoded = decode_trailers(&mut self.decoder, block, &self.accepted.head_limits());
        match decoded {
            Err(FieldsError::Compression(what)) => {
                return Err(Fate::Broken(ErrorCode::CompressionError, what));
            }
            Err(_) => self.charge(Work::Block(block.len()))?,
            Ok(_) => {}
        }
        let Some(stream) = self.stream(place.stream) else { return self.charge(Work::Control) };
        // What ends nothing is no trailer section (RFC 9113 §8.1).
        let outcome = stream.receive_end(place.has_ended && decoded.is_ok());
        outcome.or_else(|refused| self.refuse_body(place.stream, refused))
    }
}
