//! Why a request is refused, and what is answered to it.
//!
//! Plain values. Next: `request_line` and `request`, which give these.

use super::field_rules::FieldsError;

/// Why a request is refused. The text follows "client sent ".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestError {
    /// The block cannot be decoded: a connection error of type COMPRESSION_ERROR.
    Compression(&'static str),
    /// Malformed (RFC 9113 §8.1.1): the response is 400, or the stream is reset with PROTOCOL_ERROR.
    Malformed(&'static str),
    TooLarge,
    TooMany,
    TargetTooLong,
}

impl RequestError {
    pub fn status(self) -> u16 {
        match self {
            RequestError::Compression(_) | RequestError::Malformed(_) | RequestError::TooMany => 400,
            RequestError::TooLarge => 431,
            RequestError::TargetTooLong => 414,
        }
    }

    /// Follows "client sent " in the error log.
    pub fn what(self) -> &'static str {
        match self {
            RequestError::Compression(what) | RequestError::Malformed(what) => what,
            RequestError::TooLarge => "too large header section",
            RequestError::TooMany => "too many header lines",
            RequestError::TargetTooLong => "too long request line",
        }
    }
}

impl From<FieldsError> for RequestError {
    fn from(error: FieldsError) -> RequestError {
        match error {
            FieldsError::Compression(what) => RequestError::Compression(what),
            FieldsError::Malformed(what) => RequestError::Malformed(what),
            FieldsError::TooLarge => RequestError::TooLarge,
        }
    }
}
