//! Error codes of RST_STREAM and GOAWAY (RFC 9113 §7).
//!
//! Plain values; who sends which one is decided where the error is found.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    NoError,
    ProtocolError,
    InternalError,
    FlowControlError,
    SettingsTimeout,
    /// A frame on a stream that the peer had ended.
    StreamClosed,
    FrameSizeError,
    /// Nothing was done for the stream; it may be tried again.
    RefusedStream,
    Cancel,
    CompressionError,
    ConnectError,
    EnhanceYourCalm,
    InadequateSecurity,
    Http11Required,
    /// A code not in RFC 9113, treated as INTERNAL_ERROR (§7).
    Unknown(u32),
}

const CODES: [(ErrorCode, &str); 14] = [
    (ErrorCode::NoError, "NO_ERROR"),
    (ErrorCode::ProtocolError, "PROTOCOL_ERROR"),
    (ErrorCode::InternalError, "INTERNAL_ERROR"),
    (ErrorCode::FlowControlError, "FLOW_CONTROL_ERROR"),
    (ErrorCode::SettingsTimeout, "SETTINGS_TIMEOUT"),
    (ErrorCode::StreamClosed, "STREAM_CLOSED"),
    (ErrorCode::FrameSizeError, "FRAME_SIZE_ERROR"),
    (ErrorCode::RefusedStream, "REFUSED_STREAM"),
    (ErrorCode::Cancel, "CANCEL"),
    (ErrorCode::CompressionError, "COMPRESSION_ERROR"),
    (ErrorCode::ConnectError, "CONNECT_ERROR"),
    (ErrorCode::EnhanceYourCalm, "ENHANCE_YOUR_CALM"),
    (ErrorCode::InadequateSecurity, "INADEQUATE_SECURITY"),
    (ErrorCode::Http11Required, "HTTP_1_1_REQUIRED"),
];

impl ErrorCode {
    pub fn of(code: u32) -> ErrorCode {
        CODES.get(code as usize).map_or(ErrorCode::Unknown(code), |&(error, _)| error)
    }

    pub fn code(self) -> u32 {
        match self {
            ErrorCode::Unknown(code) => code,
            known => CODES.iter().position(|&(error, _)| error == known).map_or(0, |code| code as u32),
        }
    }

    /// As RFC 9113 writes it, or `UNKNOWN`.
    pub fn name(self) -> &'static str {
        CODES.iter().find(|&&(error, _)| error == self).map_or("UNKNOWN", |&(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_the_one_of_its_error() {
        for code in 0..20 {
            assert_eq!(ErrorCode::of(code).code(), code);
        }
        assert_eq!(ErrorCode::of(0xd), ErrorCode::Http11Required);
        assert_eq!(ErrorCode::of(0xe), ErrorCode::Unknown(0xe));
        assert_eq!(ErrorCode::of(9).name(), "COMPRESSION_ERROR");
    }
}
