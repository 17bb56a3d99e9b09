//! What a server's frames mean (RFC 9113 §5, §6).
//!
//! What concerns one call ends that alone; the rest ends the link. Before: `link`; next: `driver`, which reads them.

use super::idle_frames::IdleFrames;
use super::link::Link;
use super::lost::Lost;
use super::ongoing::{Answer, Ongoing};
use millstream_net::clock;
use millstream_net::streams::BadBody;
use millstream_wire::Headers;
use millstream_wire::h1::head::HeadLimits;
use millstream_wire::h2::block::{BadBlock, Block, Blocks};
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::field_rules::{FieldsError, decode_trailers};
use millstream_wire::h2::frame::Frame;
use millstream_wire::h2::hpack::HpackDecoder;
use millstream_wire::h2::read::{self, FrameError};
use millstream_wire::h2::response::decode_response;
use millstream_wire::h2::settings::{BadSetting, DEFAULT_MAX_FRAME_SIZE, SettingsPayload, Side};
use millstream_wire::h2::window::BadWindow;
use millstream_wire::h2::write;
use millstream_wire::other_protocol;

/// Largest head, whatever a location accepts (`proxy_buffer_size`, `grpc_buffer_size`).
const LIMITS: HeadLimits = HeadLimits { line: 256 * 1024, total: 256 * 1024, fields: 1000 };

/// A connection error: its code, and what the server sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Broken(pub(super) ErrorCode, pub(super) &'static str);

/// Recognises another protocol by the first bytes; INADEQUATE_SECURITY means TLS. SETTINGS starts with a
/// length, which a record's type never equals.
fn check_protocol(input: &[u8]) -> Result<(), Broken> {
    match input {
        _ if other_protocol::is_tls(input) => Err(Broken(ErrorCode::InadequateSecurity, "a TLS record")),
        [b'H', b'T', b'T', b'P', b'/', ..] => {
            Err(Broken(ErrorCode::Http11Required, "an HTTP/1 response: it does not support HTTP/2"))
        }
        _ => Ok(()),
    }
}

#[derive(Debug, Default)]
pub(super) struct Reader {
    decoder: HpackDecoder,
    blocks: Blocks,
    /// Whether its SETTINGS have come, which must be first (RFC 9113 §3.4).
    has_begun: bool,
    idle_frames: IdleFrames,
}

impl From<BadBlock> for Broken {
    fn from(BadBlock(code, what): BadBlock) -> Broken {
        Broken(code, what)
    }
}

impl Reader {
    /// Takes all complete frames; returns their octets.
    pub(super) fn take(&mut self, input: &[u8], link: &Link) -> Result<usize, Broken> {
        let mut at = 0;
        if !self.has_begun {
            check_protocol(input)?;
        }
        loop {
            match read::read(&input[at..], DEFAULT_MAX_FRAME_SIZE) {
                Ok(None) => return Ok(at),
                Ok(Some((frame, length))) => {
                    at += length;
                    self.frame(frame, link)?;
                }
                Err(FrameError::Connection(code, what)) => return Err(Broken(code, what)),
                Err(FrameError::Stream { stream, code, what, consumed }) => {
                    at += consumed;
                    if self.blocks.has_begun() {
                        return Err(self.blocks.interrupted().into());
                    }
                    match link.ongoing(stream) {
                        Some(call) => give_up(&call, code, Lost::Broken(what)),
                        None => link.carrier.frame(|out| write::reset(out, stream, code)),
                    }
                }
            }
        }
    }

    fn frame(&mut self, frame: Frame<'_>, link: &Link) -> Result<(), Broken> {
        if !std::mem::replace(&mut self.has_begun, true)
            && !matches!(frame, Frame::Settings { ack: false, .. })
        {
            return Err(Broken(ErrorCode::ProtocolError, "no SETTINGS frame at the start"));
        }
        if self.idle_frames.overflow(&frame, clock::now) {
            return Err(Broken(ErrorCode::EnhanceYourCalm, "10,000 useless frames within 100 seconds"));
        }
        let block = self.blocks.take(&frame, LIMITS.total)?;
        if !matches!(frame, Frame::Settings { .. }) && !self.blocks.has_begun() {
            link.hear();
        }
        match frame {
            Frame::Data { stream, data, flow, end } => take_data(link, stream, data, flow, end),
            Frame::Headers { stream, .. } if link.is_idle_stream(stream) => {
                Err(Broken(ErrorCode::ProtocolError, "a response on a stream that is not open"))
            }
            Frame::Headers { .. } | Frame::Continuation { .. } => match block {
                Some(Block { stream, octets, end }) => self.take_block(link, stream, end, &octets),
                None => Ok(()),
            },
            Frame::WindowUpdate { stream, increment } => widen(link, stream, increment),
            Frame::Settings { ack: true, .. } | Frame::Ping { ack: true, .. } => Ok(()),
            Frame::Settings { payload, .. } => take_settings(link, payload),
            Frame::Ping { payload, .. } => {
                link.carrier.frame(|out| write::ping(out, true, payload));
                Ok(())
            }
            Frame::Reset { stream, code } => take_reset(link, stream, code),
            Frame::GoAway { last, .. } => {
                link.goes_away(last);
                Ok(())
            }
            Frame::PushPromise { .. } => {
                Err(Broken(ErrorCode::ProtocolError, "a PUSH_PROMISE frame although push is disabled"))
            }
            Frame::Priority { .. } | Frame::PriorityUpdate { .. } | Frame::Unknown { .. } => Ok(()),
        }
    }

    /// A complete block: a head or trailers. It updates the table even if no one wants it.
    fn take_block(&mut self, link: &Link, stream: u32, is_last: bool, block: &[u8]) -> Result<(), Broken> {
        // What comes on one that is lost is of nobody.
        let call = link.ongoing(stream).filter(|call| !call.stream.is_lost());
        let outcome = match &call {
            Some(call) if call.is_headed() => self.take_trailers(call, is_last, block),
            Some(call) => self.take_head(call, is_last, block),
            None => {
                let decoded = decode_trailers(&mut self.decoder, block, &LIMITS).map(drop);
                decoded.or_else(
                    |error| if let FieldsError::Compression(_) = error { Err(error) } else { Ok(()) },
                )
            }
        };
        match (outcome, call) {
            (Err(FieldsError::Compression(what)), _) => Err(Broken(ErrorCode::CompressionError, what)),
            (Err(FieldsError::Malformed(what)), Some(call)) => {
                give_up(&call, ErrorCode::ProtocolError, Lost::Broken(what));
                Ok(())
            }
            (Err(FieldsError::TooLarge), Some(call)) => {
                give_up(&call, ErrorCode::Cancel, Lost::TooLarge);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn take_head(&mut self, call: &Ongoing, is_last: bool, block: &[u8]) -> Result<(), FieldsError> {
        let mut headers = Headers::new();
        let status = decode_response(&mut self.decoder, block, &mut headers, &LIMITS)?;
        call.head(Answer { status, headers, is_last }).map_err(FieldsError::Malformed)?;
        if is_last { ended(call) } else { Ok(()) }
    }

    fn take_trailers(&mut self, call: &Ongoing, is_last: bool, block: &[u8]) -> Result<(), FieldsError> {
        let trailers = decode_trailers(&mut self.decoder, block, &LIMITS)?;
        if !is_last {
            // RFC 9113 §8.1.
            return Err(FieldsError::Malformed("trailers that do not end their stream"));
        }
        call.trailers(trailers);
        ended(call)
    }
}

fn ended(call: &Ongoing) -> Result<(), FieldsError> {
    call.stream.receive_end(true).map_err(|bad| FieldsError::Malformed(what(bad)))
}

fn what(bad: BadBody) -> &'static str {
    match bad {
        BadBody::Ended => "a frame after the end of a stream",
        BadBody::Flow => "a frame that violates flow control",
        BadBody::Length => "a body that does not match its Content-Length",
    }
}

fn give_up(call: &Ongoing, code: ErrorCode, lost: Lost) {
    call.stream.reset(code);
    call.lose(lost);
}

fn take_data(link: &Link, stream: u32, data: &[u8], flow: u32, is_last: bool) -> Result<(), Broken> {
    let Some(call) = link.ongoing(stream) else {
        if link.is_idle_stream(stream) {
            return Err(Broken(ErrorCode::ProtocolError, "a DATA frame on a stream that is not open"));
        }
        // It was given up, and the server may not know yet.
        return link.carrier.received(flow, 0).map_err(overfull);
    };
    if !call.is_headed() {
        give_up(&call, ErrorCode::ProtocolError, Lost::Broken("a DATA frame before the response header"));
        return link.carrier.received(flow, 0).map_err(overfull);
    }
    match call.stream.receive(data, flow, is_last).map_err(overfull)? {
        Ok(()) => {}
        // Whoever reads it is told.
        Err(BadBody::Length) => call.stream.reset(ErrorCode::ProtocolError),
        Err(bad @ BadBody::Flow) => give_up(&call, ErrorCode::FlowControlError, Lost::Broken(what(bad))),
        Err(bad @ BadBody::Ended) => give_up(&call, ErrorCode::StreamClosed, Lost::Broken(what(bad))),
    }
    Ok(())
}

fn widen(link: &Link, stream: u32, increment: u32) -> Result<(), Broken> {
    if stream == 0 {
        return link.carrier.widen(increment).map_err(overfull);
    }
    match link.ongoing(stream) {
        Some(call) => {
            if call.stream.widen(increment) == Err(BadWindow) {
                give_up(&call, ErrorCode::FlowControlError, Lost::Broken("a window that is too large"));
            }
            Ok(())
        }
        None if link.is_idle_stream(stream) => {
            Err(Broken(ErrorCode::ProtocolError, "a WINDOW_UPDATE frame on a stream that is not open"))
        }
        None => Ok(()),
    }
}

fn take_settings(link: &Link, payload: SettingsPayload<'_>) -> Result<(), Broken> {
    let mut peer = link.carrier.peer();
    let shift = peer.apply(payload, Side::Server).map_err(|BadSetting(code, what)| Broken(code, what))?;
    link.carrier.set_peer(peer);
    for call in link.all() {
        call.stream.shift(shift).map_err(overfull)?;
    }
    link.carrier.frame(write::settings_ack);
    link.known();
    Ok(())
}

fn take_reset(link: &Link, stream: u32, code: ErrorCode) -> Result<(), Broken> {
    if link.is_idle_stream(stream) {
        return Err(Broken(ErrorCode::ProtocolError, "a RST_STREAM frame on a stream that is not open"));
    }
    if let Some(call) = link.ongoing(stream) {
        // RFC 9113 §8.1: an answer that is whole stands; only the request's rest is not wanted.
        let is_refused = code == ErrorCode::RefusedStream;
        call.lose(if is_refused { Lost::Refused } else { Lost::Reset(code) });
        if is_refused {
            // It takes fewer than it says, or counts them otherwise: what it has goes on, and others go elsewhere.
            link.leave();
        }
    }
    Ok(())
}

fn overfull(BadWindow: BadWindow) -> Broken {
    Broken(ErrorCode::FlowControlError, "a frame that violates flow control")
}
