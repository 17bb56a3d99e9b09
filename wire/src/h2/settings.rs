//! Settings (RFC 9113 §6.5, RFC 8441 §3, RFC 9218 §2.1): reading a frame's payload, judging values, keeping the peer's.
//!
//! Unknown identifiers are ignored, as §6.5.2 asks. What a changed window means for open streams is for the connection.

use super::error_code::ErrorCode::{self, FlowControlError, ProtocolError};
use super::window::LARGEST;

pub const HEADER_TABLE_SIZE: u16 = 0x1;
pub const ENABLE_PUSH: u16 = 0x2;
pub const MAX_CONCURRENT_STREAMS: u16 = 0x3;
pub const INITIAL_WINDOW_SIZE: u16 = 0x4;
pub const MAX_FRAME_SIZE: u16 = 0x5;
pub const MAX_HEADER_LIST_SIZE: u16 = 0x6;
/// RFC 8441 §3.
pub const ENABLE_CONNECT_PROTOCOL: u16 = 0x8;
/// RFC 9218 §2.1.
pub const NO_RFC7540_PRIORITIES: u16 = 0x9;

/// Initial window of a stream and of a connection, in octets (RFC 9113 §6.9.2).
pub const DEFAULT_WINDOW: u32 = 65_535;

/// Octets of a payload, unless SETTINGS_MAX_FRAME_SIZE allows more (RFC 9113 §4.2).
pub const DEFAULT_MAX_FRAME_SIZE: u32 = 16_384;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

/// (identifier, value) in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingsPayload<'a> {
    rest: &'a [u8],
}

impl<'a> SettingsPayload<'a> {
    #[inline]
    pub fn new(payload: &'a [u8]) -> SettingsPayload<'a> {
        SettingsPayload { rest: payload }
    }
}

impl Iterator for SettingsPayload<'_> {
    type Item = (u16, u32);

    #[inline]
    fn next(&mut self) -> Option<(u16, u32)> {
        let (&[i0, i1, v0, v1, v2, v3], rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some((u16::from_be_bytes([i0, i1]), u32::from_be_bytes([v0, v1, v2, v3])))
    }
}

/// A connection error with this code; the text follows "client sent ".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadSetting(pub ErrorCode, pub &'static str);

/// The latest value of each setting, or its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerSettings {
    /// Octets of the header table that the peer keeps for what it receives.
    pub header_table_size: u32,
    pub enable_push: bool,
    /// Streams that this side may have open at once.
    pub max_concurrent_streams: u32,
    /// Of each stream, in octets, at most 2^31-1.
    pub initial_window_size: u32,
    /// Octets of payload of a frame to the peer, 2^14 to 2^24-1.
    pub max_frame_size: u32,
    /// Octets of a field list, counted with 32 per line.
    pub max_header_list_size: u32,
    /// Whether CONNECT may have a `:protocol` (RFC 8441).
    pub enable_connect_protocol: bool,
    /// RFC 9218 §2.1.
    pub no_rfc7540_priorities: bool,
}

impl Default for PeerSettings {
    /// RFC 9113 §6.5.2: "unlimited" is the largest number there is.
    fn default() -> PeerSettings {
        PeerSettings {
            header_table_size: 4096,
            enable_push: true,
            max_concurrent_streams: u32::MAX,
            initial_window_size: DEFAULT_WINDOW,
            max_frame_size: DEFAULT_MAX_FRAME_SIZE,
            max_header_list_size: u32::MAX,
            enable_connect_protocol: false,
            no_rfc7540_priorities: false,
        }
    }
}

impl PeerSettings {
    /// Returns by how many octets the windows of all streams shift (RFC 9113 §6.9.2). After an error, earlier
    /// values are in force.
    pub fn apply(&mut self, payload: SettingsPayload<'_>, from: Side) -> Result<i64, BadSetting> {
        let before = i64::from(self.initial_window_size);
        for (identifier, value) in payload {
            self.set(identifier, value, from)?;
        }
        Ok(i64::from(self.initial_window_size) - before)
    }

    fn set(&mut self, identifier: u16, value: u32, from: Side) -> Result<(), BadSetting> {
        let flag = |what| match value {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(BadSetting(ProtocolError, what)),
        };
        match identifier {
            HEADER_TABLE_SIZE => self.header_table_size = value,
            // §6.5.2: a server has nothing to say here but that it takes none.
            ENABLE_PUSH if from == Side::Server && value != 0 => {
                return Err(BadSetting(ProtocolError, "SETTINGS_ENABLE_PUSH as a server"));
            }
            ENABLE_PUSH => self.enable_push = flag("an invalid SETTINGS_ENABLE_PUSH")?,
            MAX_CONCURRENT_STREAMS => self.max_concurrent_streams = value,
            INITIAL_WINDOW_SIZE if value > LARGEST => {
                return Err(BadSetting(FlowControlError, "an invalid SETTINGS_INITIAL_WINDOW_SIZE"));
            }
            INITIAL_WINDOW_SIZE => self.initial_window_size = value,
            MAX_FRAME_SIZE if !(DEFAULT_MAX_FRAME_SIZE..1 << 24).contains(&value) => {
                return Err(BadSetting(ProtocolError, "an invalid SETTINGS_MAX_FRAME_SIZE"));
            }
            MAX_FRAME_SIZE => self.max_frame_size = value,
            MAX_HEADER_LIST_SIZE => self.max_header_list_size = value,
            ENABLE_CONNECT_PROTOCOL => {
                self.enable_connect_protocol = flag("an invalid SETTINGS_ENABLE_CONNECT_PROTOCOL")?;
            }
            NO_RFC7540_PRIORITIES => {
                self.no_rfc7540_priorities = flag("an invalid SETTINGS_NO_RFC7540_PRIORITIES")?;
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(settings: &[(u16, u32)], from: Side) -> Result<(PeerSettings, i64), BadSetting> {
        let mut payload = Vec::new();
        for (identifier, value) in settings {
            payload.extend_from_slice(&identifier.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        }
        let mut peer = PeerSettings::default();
        let shift = peer.apply(SettingsPayload::new(&payload), from)?;
        Ok((peer, shift))
    }

    #[test]
    fn values_that_a_setting_may_not_have_are_connection_errors() {
        for (setting, from, code) in [
            ((ENABLE_PUSH, 2), Side::Client, ProtocolError),
            ((ENABLE_PUSH, 1), Side::Server, ProtocolError),
            ((INITIAL_WINDOW_SIZE, 1 << 31), Side::Client, FlowControlError),
            ((MAX_FRAME_SIZE, 16_383), Side::Client, ProtocolError),
            ((MAX_FRAME_SIZE, 1 << 24), Side::Client, ProtocolError),
            ((ENABLE_CONNECT_PROTOCOL, 2), Side::Server, ProtocolError),
            ((NO_RFC7540_PRIORITIES, 2), Side::Client, ProtocolError),
        ] {
            assert_eq!(applied(&[setting], from).map_err(|error| error.0), Err(code), "{setting:?}");
        }
    }

    #[test]
    fn settings_are_taken_in_order_and_unknown_ones_ignored() {
        let settings = [
            (INITIAL_WINDOW_SIZE, 0),
            (0xfeed, 7),
            (INITIAL_WINDOW_SIZE, LARGEST),
            (MAX_FRAME_SIZE, (1 << 24) - 1),
            (ENABLE_PUSH, 0),
            (HEADER_TABLE_SIZE, u32::MAX),
            (ENABLE_CONNECT_PROTOCOL, 1),
        ];
        let expected = PeerSettings {
            initial_window_size: LARGEST,
            max_frame_size: (1 << 24) - 1,
            enable_push: false,
            header_table_size: u32::MAX,
            enable_connect_protocol: true,
            ..PeerSettings::default()
        };
        assert_eq!(applied(&settings, Side::Server), Ok((expected, i64::from(LARGEST) - 65_535)));
    }
}
