//! Writes frames (RFC 9113 §4.1, §6) behind what a buffer holds already.
//!
//! Values are written as given: lengths and streams are the caller's to keep within their bounds. No frame is padded.
//! Header blocks come from `hpack::encoder`.

use super::error_code::ErrorCode;
use super::frame::{FrameHead, HEAD_LENGTH, flag, kind};

#[inline]
pub fn frame_head(out: &mut Vec<u8>, head: FrameHead) {
    debug_assert!(head.length < 1 << 24);
    let [_, l0, l1, l2] = head.length.to_be_bytes();
    let [s0, s1, s2, s3] = head.stream.to_be_bytes();
    let octets: [u8; HEAD_LENGTH] = [l0, l1, l2, head.kind, head.flags, s0, s1, s2, s3];
    out.extend_from_slice(&octets);
}

/// `length` is at most the peer's SETTINGS_MAX_FRAME_SIZE.
#[inline]
pub fn data_head(out: &mut Vec<u8>, stream: u32, length: u32, end: bool) {
    let flags = if end { flag::END_STREAM } else { 0 };
    frame_head(out, FrameHead { length, kind: kind::DATA, flags, stream });
}

/// HEADERS, followed by CONTINUATION for what exceeds the peer's `max_frame_size`.
#[inline]
pub fn headers(out: &mut Vec<u8>, stream: u32, block: &[u8], end: bool, max_frame_size: u32) {
    let mut flags = if end { flag::END_STREAM } else { 0 };
    let mut kind = kind::HEADERS;
    let mut rest = block;
    loop {
        let length = rest.len().min(max_frame_size.max(1) as usize);
        let (piece, behind) = rest.split_at(length);
        if behind.is_empty() {
            flags |= flag::END_HEADERS;
        }
        frame_head(out, FrameHead { length: length as u32, kind, flags, stream });
        out.extend_from_slice(piece);
        if behind.is_empty() {
            return;
        }
        (rest, kind, flags) = (behind, kind::CONTINUATION, 0);
    }
}

pub fn settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    let length = 6 * settings.len() as u32;
    frame_head(out, FrameHead { length, kind: kind::SETTINGS, flags: 0, stream: 0 });
    for (identifier, value) in settings {
        out.extend_from_slice(&identifier.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

pub fn settings_ack(out: &mut Vec<u8>) {
    frame_head(out, FrameHead { length: 0, kind: kind::SETTINGS, flags: flag::ACK, stream: 0 });
}

pub fn ping(out: &mut Vec<u8>, ack: bool, payload: [u8; 8]) {
    let flags = if ack { flag::ACK } else { 0 };
    frame_head(out, FrameHead { length: 8, kind: kind::PING, flags, stream: 0 });
    out.extend_from_slice(&payload);
}

/// `last` is the highest stream of the peer that was or will be handled.
pub fn goaway(out: &mut Vec<u8>, last: u32, code: ErrorCode, debug: &[u8]) {
    let length = 8 + debug.len() as u32;
    frame_head(out, FrameHead { length, kind: kind::GOAWAY, flags: 0, stream: 0 });
    out.extend_from_slice(&last.to_be_bytes());
    out.extend_from_slice(&code.code().to_be_bytes());
    out.extend_from_slice(debug);
}

pub fn reset(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    frame_head(out, FrameHead { length: 4, kind: kind::RST_STREAM, flags: 0, stream });
    out.extend_from_slice(&code.code().to_be_bytes());
}

/// `stream` 0 is the connection, `increment` 1 to 2^31-1.
pub fn window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    debug_assert!((1..1 << 31).contains(&increment));
    frame_head(out, FrameHead { length: 4, kind: kind::WINDOW_UPDATE, flags: 0, stream });
    out.extend_from_slice(&increment.to_be_bytes());
}
