//! Frames as values (RFC 9113 §4, §6; RFC 9218 §7.1): the head of nine octets, and each kind with what it carries.
//!
//! Payloads are borrowed and cost no copy. Whether a frame may come now, on this stream, is not judged here. Next: `read`,
//! which makes these; `write`, which writes them.

use super::error_code::ErrorCode;
use super::settings::SettingsPayload;

/// RFC 9113 §4.1.
pub const HEAD_LENGTH: usize = 9;

/// Kinds of frames (RFC 9113 §6, RFC 9218 §7.1).
pub mod kind {
    pub const DATA: u8 = 0x0;
    pub const HEADERS: u8 = 0x1;
    pub const PRIORITY: u8 = 0x2;
    pub const RST_STREAM: u8 = 0x3;
    pub const SETTINGS: u8 = 0x4;
    pub const PUSH_PROMISE: u8 = 0x5;
    pub const PING: u8 = 0x6;
    pub const GOAWAY: u8 = 0x7;
    pub const WINDOW_UPDATE: u8 = 0x8;
    pub const CONTINUATION: u8 = 0x9;
    pub const PRIORITY_UPDATE: u8 = 0x10;
}

pub mod flag {
    /// Of SETTINGS and PING.
    pub const ACK: u8 = 0x1;
    /// Of DATA and HEADERS: the last of its side.
    pub const END_STREAM: u8 = 0x1;
    /// Of HEADERS, PUSH_PROMISE and CONTINUATION: the header block ends with it.
    pub const END_HEADERS: u8 = 0x4;
    /// Of DATA, HEADERS and PUSH_PROMISE.
    pub const PADDED: u8 = 0x8;
    /// Of HEADERS: there are a dependency and a weight.
    pub const PRIORITY: u8 = 0x20;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHead {
    /// Octets of the payload, below 2^24.
    pub length: u32,
    /// One of [`kind`], or an unknown one.
    pub kind: u8,
    pub flags: u8,
    /// Below 2^31; 0 is the connection.
    pub stream: u32,
}

impl FrameHead {
    /// The reserved bit is ignored (RFC 9113 §4.1).
    #[inline]
    pub fn of(octets: &[u8; HEAD_LENGTH]) -> FrameHead {
        let [a, b, c, kind, flags, s0, s1, s2, s3] = *octets;
        FrameHead {
            length: u32::from_be_bytes([0, a, b, c]),
            kind,
            flags,
            stream: u32::from_be_bytes([s0, s1, s2, s3]) & STREAM,
        }
    }

    /// `None` if `bytes` is too short.
    #[inline]
    pub fn peek(bytes: &[u8]) -> Option<FrameHead> {
        bytes.first_chunk().map(FrameHead::of)
    }

    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The bits of a stream's number, without the reserved one.
pub(super) const STREAM: u32 = 0x7fff_ffff;

/// A whole frame that is valid in itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    Data {
        stream: u32,
        /// Without padding.
        data: &'a [u8],
        /// What counts for flow control: the whole payload.
        flow: u32,
        /// Nothing follows on the stream.
        end: bool,
    },
    Headers {
        stream: u32,
        fragment: &'a [u8],
        end_headers: bool,
        /// Nothing but CONTINUATION follows on the stream.
        end: bool,
        /// The priority names the stream itself: a stream error of type PROTOCOL_ERROR (RFC 7540 §5.3.1),
        /// though the block has to be decoded.
        depends_on_itself: bool,
    },
    /// PRIORITY (§6.3), which is deprecated.
    Priority {
        stream: u32,
    },
    Reset {
        stream: u32,
        code: ErrorCode,
    },
    Settings {
        /// Then there are no settings.
        ack: bool,
        payload: SettingsPayload<'a>,
    },
    PushPromise {
        stream: u32,
        promised: u32,
        fragment: &'a [u8],
        end_headers: bool,
    },
    Ping {
        ack: bool,
        payload: [u8; 8],
    },
    GoAway {
        /// The highest stream that the peer has handled or will handle.
        last: u32,
        code: ErrorCode,
        debug: &'a [u8],
    },
    WindowUpdate {
        /// 0 for the connection.
        stream: u32,
        /// 1 to 2^31-1.
        increment: u32,
    },
    Continuation {
        stream: u32,
        fragment: &'a [u8],
        end_headers: bool,
    },
    PriorityUpdate {
        stream: u32,
        /// The value of a Priority field, see `crate::h2::priority`.
        value: &'a [u8],
    },
    /// An unknown kind, to be ignored (§4.1), except within a header block (§5.5).
    Unknown {
        kind: u8,
    },
}
