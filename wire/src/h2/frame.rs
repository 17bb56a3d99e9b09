//! Frames as values (RFC 9113 §4, §6; RFC 9218 §7.1): the head of nine octets, and each kind with what it carries.
//!
//! Payloads are borrowed and cost no copy. Whether a frame may come now, on this stream, is not judged here. Next: `read`,
//! which makes these; `write`, which writes them.

use super::error_code::ErrorCode;
use super::settings::SettingsPayload;

/// Octets of a frame's head (RFC 9113 §4.1).
pub const HEAD_LENGTH: usize = 9;

/// The numbers of the kinds (RFC 9113 §6, RFC 9218 §7.1).
pub mod kind {
    /// DATA
    pub const DATA: u8 = 0x0;
    /// HEADERS
    pub const HEADERS: u8 = 0x1;
    /// PRIORITY
    pub const PRIORITY: u8 = 0x2;
    /// RST_STREAM
    pub const RST_STREAM: u8 = 0x3;
    /// SETTINGS
    pub const SETTINGS: u8 = 0x4;
    /// PUSH_PROMISE
    pub const PUSH_PROMISE: u8 = 0x5;
    /// PING
    pub const PING: u8 = 0x6;
    /// GOAWAY
    pub const GOAWAY: u8 = 0x7;
    /// WINDOW_UPDATE
    pub const WINDOW_UPDATE: u8 = 0x8;
    /// CONTINUATION
    pub const CONTINUATION: u8 = 0x9;
    /// PRIORITY_UPDATE
    pub const PRIORITY_UPDATE: u8 = 0x10;
}

/// The flags.
pub mod flag {
    /// Of SETTINGS and PING: an answer.
    pub const ACK: u8 = 0x1;
    /// Of DATA and HEADERS: the last of its side.
    pub const END_STREAM: u8 = 0x1;
    /// Of HEADERS, PUSH_PROMISE and CONTINUATION: the header block ends with it.
    pub const END_HEADERS: u8 = 0x4;
    /// Of DATA, HEADERS and PUSH_PROMISE: there is padding.
    pub const PADDED: u8 = 0x8;
    /// Of HEADERS: there are a dependency and a weight.
    pub const PRIORITY: u8 = 0x20;
}

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHead {
    /// Octets of the payload, below 2^24.
    pub length: u32,
    /// One of [`kind`], or an unknown one.
    pub kind: u8,
    /// The flags of its kind, see [`flag`].
    pub flags: u8,
    /// The stream, below 2^31; 0 is the connection.
    pub stream: u32,
}

impl FrameHead {
    /// Takes a head apart. The reserved bit is ignored (RFC 9113 §4.1).
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

    /// The head at the start of `bytes`; `None` when it has not come as a whole.
    #[inline]
    pub fn peek(bytes: &[u8]) -> Option<FrameHead> {
        bytes.first_chunk().map(FrameHead::of)
    }

    /// Whether the flag is set.
    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The bits of a stream's number, beside which there is a reserved one.
pub(super) const STREAM: u32 = 0x7fff_ffff;

/// A whole frame that is sound in itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// DATA (§6.1).
    Data {
        /// The stream.
        stream: u32,
        /// The content, without padding.
        data: &'a [u8],
        /// What counts for flow control: the whole payload.
        flow: u32,
        /// Nothing follows on the stream.
        end: bool,
    },
    /// HEADERS (§6.2).
    Headers {
        /// The stream.
        stream: u32,
        /// The header block or its start.
        fragment: &'a [u8],
        /// The block is whole.
        end_headers: bool,
        /// Nothing but CONTINUATION follows on the stream.
        end: bool,
        /// The priority names the stream itself: a stream error of type PROTOCOL_ERROR (RFC 7540 §5.3.1), though the
        /// block has to be decoded.
        depends_on_itself: bool,
    },
    /// PRIORITY (§6.3), which nobody follows any more.
    Priority {
        /// The stream.
        stream: u32,
    },
    /// RST_STREAM (§6.4).
    Reset {
        /// The stream.
        stream: u32,
        /// Why.
        code: ErrorCode,
    },
    /// SETTINGS (§6.5).
    Settings {
        /// It acknowledges this side's; there are then no settings.
        ack: bool,
        /// The settings in order.
        payload: SettingsPayload<'a>,
    },
    /// PUSH_PROMISE (§6.6).
    PushPromise {
        /// The stream it belongs to.
        stream: u32,
        /// The stream that is promised.
        promised: u32,
        /// The header block or its start.
        fragment: &'a [u8],
        /// The block is whole.
        end_headers: bool,
    },
    /// PING (§6.7).
    Ping {
        /// It answers this side's.
        ack: bool,
        /// What comes back in the answer.
        payload: [u8; 8],
    },
    /// GOAWAY (§6.8).
    GoAway {
        /// The highest stream that the peer did or will do something for.
        last: u32,
        /// Why.
        code: ErrorCode,
        /// Anything, to be logged.
        debug: &'a [u8],
    },
    /// WINDOW_UPDATE (§6.9).
    WindowUpdate {
        /// The stream, 0 for the connection.
        stream: u32,
        /// Octets that may be sent beyond, 1 to 2^31-1.
        increment: u32,
    },
    /// CONTINUATION (§6.10).
    Continuation {
        /// The stream.
        stream: u32,
        /// The next piece of the header block.
        fragment: &'a [u8],
        /// The block is whole.
        end_headers: bool,
    },
    /// PRIORITY_UPDATE (RFC 9218 §7.1).
    PriorityUpdate {
        /// The stream whose priority it is.
        stream: u32,
        /// The value of a Priority field, see `crate::h2::priority`.
        value: &'a [u8],
    },
    /// A kind that nobody here knows, to be ignored (§4.1), though not within a header block (§5.5).
    Unknown {
        /// Its number.
        kind: u8,
    },
}
