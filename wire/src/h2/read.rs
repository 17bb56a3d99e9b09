//! Reads frames: the rules that a frame must keep by itself (RFC 9113 §4 to §6, RFC 9218 §7.1).
//!
//! Nothing is copied or allocated. A frame is refused as early as its head tells that it is wrong, so that nobody waits for
//! a payload that is not wanted. Which frames may follow each other is for the connection.

use super::error_code::ErrorCode::{self, FrameSizeError, ProtocolError};
use super::frame::{Frame, FrameHead, HEAD_LENGTH, STREAM, flag, kind};
use super::settings::SettingsPayload;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// The connection ends (RFC 9113 §5.4.1): GOAWAY with this code. The text follows "client sent ".
    Connection(ErrorCode, &'static str),
    /// One stream ends (§5.4.2): RST_STREAM, and reading goes on.
    Stream {
        stream: u32,
        code: ErrorCode,
        /// Follows "client sent ".
        what: &'static str,
        /// Octets of the whole frame, to be skipped.
        consumed: usize,
    },
}

/// Returns the frame at the start of `bytes` and its octets, or `None` if it is incomplete. `max_frame_size`
/// is what this side advertised. A connection error is returned as soon as the head shows it, a stream error
/// with the whole frame.
#[inline]
pub fn read(bytes: &[u8], max_frame_size: u32) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some((octets, rest)) = bytes.split_first_chunk::<HEAD_LENGTH>() else {
        return Ok(None);
    };
    let head = FrameHead::of(octets);
    check_head(&head, max_frame_size)?;
    let Some(payload) = rest.get(..head.length as usize) else {
        return Ok(None);
    };
    let frame = match head.kind {
        kind::DATA => data(&head, payload)?,
        kind::HEADERS => headers(&head, payload)?,
        kind::WINDOW_UPDATE => window_update(&head, payload)?,
        _ => rare(&head, payload)?,
    };
    Ok(Some((frame, HEAD_LENGTH + payload.len())))
}

/// Checks the "connection error" rules of §4.2 and §6 about lengths and streams. Errors: always
/// [`FrameError::Connection`].
#[inline]
pub fn check_head(head: &FrameHead, max_frame_size: u32) -> Result<(), FrameError> {
    if head.length > max_frame_size {
        return Err(size("a frame larger than SETTINGS_MAX_FRAME_SIZE"));
    }
    let on_connection = head.stream == 0;
    match (head.kind, on_connection) {
        (kind::DATA | kind::HEADERS, false) => Ok(()),
        (kind::WINDOW_UPDATE, _) => length_is(head, 4, "a WINDOW_UPDATE frame of wrong length"),
        (kind::DATA, true) => Err(protocol("a DATA frame without stream")),
        (kind::HEADERS, true) => Err(protocol("a HEADERS frame without stream")),
        (kind::PRIORITY, true) => Err(protocol("a PRIORITY frame without stream")),
        (kind::RST_STREAM, true) => Err(protocol("an RST_STREAM frame without stream")),
        (kind::RST_STREAM, false) => length_is(head, 4, "an RST_STREAM frame of wrong length"),
        (kind::SETTINGS, false) => Err(protocol("a SETTINGS frame on a stream")),
        (kind::SETTINGS, true) if head.has(flag::ACK) => {
            length_is(head, 0, "a SETTINGS acknowledgement with payload")
        }
        (kind::SETTINGS, true) if !head.length.is_multiple_of(6) => {
            Err(size("a SETTINGS frame of wrong length"))
        }
        (kind::PUSH_PROMISE, true) => Err(protocol("a PUSH_PROMISE frame without stream")),
        (kind::PING, false) => Err(protocol("a PING frame on a stream")),
        (kind::PING, true) => length_is(head, 8, "a PING frame of wrong length"),
        (kind::GOAWAY, false) => Err(protocol("a GOAWAY frame on a stream")),
        (kind::GOAWAY, true) if head.length < 8 => Err(size("a GOAWAY frame of wrong length")),
        (kind::CONTINUATION, true) => Err(protocol("a CONTINUATION frame without stream")),
        (kind::PRIORITY_UPDATE, false) => Err(protocol("a PRIORITY_UPDATE frame on a stream")),
        (kind::PRIORITY_UPDATE, true) if head.length < 4 => {
            Err(size("a PRIORITY_UPDATE frame of wrong length"))
        }
        _ => Ok(()),
    }
}

#[inline]
fn length_is(head: &FrameHead, length: u32, what: &'static str) -> Result<(), FrameError> {
    if head.length == length { Ok(()) } else { Err(size(what)) }
}

fn size(what: &'static str) -> FrameError {
    FrameError::Connection(FrameSizeError, what)
}

fn protocol(what: &'static str) -> FrameError {
    FrameError::Connection(ProtocolError, what)
}

fn on_stream(head: &FrameHead, code: ErrorCode, what: &'static str) -> FrameError {
    FrameError::Stream { stream: head.stream, code, what, consumed: HEAD_LENGTH + head.length as usize }
}

#[inline]
fn data<'a>(head: &FrameHead, payload: &'a [u8]) -> Result<Frame<'a>, FrameError> {
    let data = if head.has(flag::PADDED) { unpadded(payload, 0)? } else { payload };
    Ok(Frame::Data { stream: head.stream, data, flow: head.length, end: head.has(flag::END_STREAM) })
}

#[inline]
fn headers<'a>(head: &FrameHead, payload: &'a [u8]) -> Result<Frame<'a>, FrameError> {
    let has_priority = head.has(flag::PRIORITY);
    let before = if has_priority { 5 } else { 0 };
    let rest = if head.has(flag::PADDED) { unpadded(payload, before)? } else { payload };
    let (priority, fragment) =
        rest.split_at_checked(before).ok_or(size("a HEADERS frame too short for its priority"))?;
    let depends_on_itself = has_priority && number(priority) & STREAM == head.stream;
    Ok(Frame::Headers {
        stream: head.stream,
        fragment,
        end_headers: head.has(flag::END_HEADERS),
        end: head.has(flag::END_STREAM),
        depends_on_itself,
    })
}

#[inline]
fn window_update<'a>(head: &FrameHead, payload: &[u8]) -> Result<Frame<'a>, FrameError> {
    const ZERO: &str = "a WINDOW_UPDATE frame with increment 0";
    match (number(payload) & STREAM, head.stream) {
        (0, 0) => Err(protocol(ZERO)),
        (0, _) => Err(on_stream(head, ProtocolError, ZERO)),
        (increment, stream) => Ok(Frame::WindowUpdate { stream, increment }),
    }
}

/// Kinds that come once in a connection or never; their lengths were checked with their heads.
fn rare<'a>(head: &FrameHead, payload: &'a [u8]) -> Result<Frame<'a>, FrameError> {
    let stream = head.stream;
    Ok(match head.kind {
        kind::PRIORITY if head.length != 5 => {
            return Err(on_stream(head, FrameSizeError, "a PRIORITY frame of wrong length"));
        }
        kind::PRIORITY if number(payload) & STREAM == stream => {
            return Err(on_stream(head, ProtocolError, "a stream that depends on itself"));
        }
        kind::PRIORITY => Frame::Priority { stream },
        kind::RST_STREAM => Frame::Reset { stream, code: ErrorCode::of(number(payload)) },
        kind::SETTINGS => {
            Frame::Settings { ack: head.has(flag::ACK), payload: SettingsPayload::new(payload) }
        }
        kind::PUSH_PROMISE => {
            let rest = if head.has(flag::PADDED) { unpadded(payload, 4)? } else { payload };
            let (promised, fragment) =
                rest.split_at_checked(4).ok_or(size("a PUSH_PROMISE frame of wrong length"))?;
            let promised = number(promised) & STREAM;
            Frame::PushPromise { stream, promised, fragment, end_headers: head.has(flag::END_HEADERS) }
        }
        kind::PING => Frame::Ping {
            ack: head.has(flag::ACK),
            payload: payload.first_chunk().copied().unwrap_or_default(),
        },
        kind::GOAWAY => Frame::GoAway {
            last: number(payload) & STREAM,
            code: ErrorCode::of(number(payload.get(4..).unwrap_or_default())),
            debug: payload.get(8..).unwrap_or_default(),
        },
        kind::CONTINUATION => {
            Frame::Continuation { stream, fragment: payload, end_headers: head.has(flag::END_HEADERS) }
        }
        kind::PRIORITY_UPDATE => match number(payload) & STREAM {
            0 => return Err(protocol("a PRIORITY_UPDATE frame for stream 0")),
            stream => Frame::PriorityUpdate { stream, value: payload.get(4..).unwrap_or_default() },
        },
        kind => Frame::Unknown { kind },
    })
}

/// `before` octets must be left beside what is framed.
#[inline]
fn unpadded(payload: &[u8], before: usize) -> Result<&[u8], FrameError> {
    let (&padding, rest) = payload.split_first().ok_or(size("a padded frame without padding length"))?;
    if rest.len() < before {
        return Err(size("a padded frame that is too short"));
    }
    rest.len()
        .checked_sub(usize::from(padding))
        .filter(|&length| length >= before)
        .and_then(|length| rest.get(..length))
        .ok_or(protocol("a frame with more padding than payload"))
}

/// 0 if there are fewer than four octets, which the length checks rule out.
#[inline]
fn number(octets: &[u8]) -> u32 {
    octets.first_chunk().map_or(0, |octets| u32::from_be_bytes(*octets))
}

#[cfg(test)]
mod tests;
