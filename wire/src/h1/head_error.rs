//! What can be wrong with a head, and what is answered to it.
//!
//! Plain values: nothing is read and nothing logged here. Next: `head`, which gives these.

use crate::h1::field_line::FieldError;
use crate::host::BadHost;

/// Why a request head is refused. The connection is closed after the response: where the next message would
/// start is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadError {
    /// Not `method SP target SP version` (RFC 9112 §3).
    BadRequestLine,
    BadMethod,
    /// The target has a disallowed byte, or a form that its method does not have (RFC 9112 §3.2).
    BadTarget,
    /// A major version other than 1.
    BadVersion,
    /// HTTP/0.9: no version, or major version 0.
    OldVersion,
    TargetTooLong,
    FieldsTooLarge,
    TooManyFields,
    /// A field line outside of the grammar (RFC 9112 §5, RFC 9110 §5.5).
    BadField,
    /// The Host field or the target's authority is no `host[:port]`.
    BadHost,
    /// HTTP/1.1 without Host (RFC 9112 §3.2).
    MissingHost,
    ManyHosts,
}

impl HeadError {
    pub fn status(self) -> u16 {
        match self {
            HeadError::BadVersion => 505,
            HeadError::TargetTooLong => 414,
            HeadError::FieldsTooLarge => 431,
            HeadError::TooManyFields
            | HeadError::BadRequestLine
            | HeadError::BadMethod
            | HeadError::BadTarget
            | HeadError::OldVersion
            | HeadError::BadField
            | HeadError::BadHost
            | HeadError::MissingHost
            | HeadError::ManyHosts => 400,
        }
    }

    /// Follows "client sent " in the error log.
    pub fn what(self) -> &'static str {
        match self {
            HeadError::BadRequestLine => "invalid request line",
            HeadError::BadMethod => "invalid method",
            HeadError::BadTarget => "invalid request target",
            HeadError::BadVersion => "unsupported version",
            HeadError::OldVersion => "HTTP/0.9 request",
            HeadError::TargetTooLong => "too long request line",
            HeadError::FieldsTooLarge => "too large header section",
            HeadError::TooManyFields => "too many header lines",
            HeadError::BadField => "invalid header line",
            HeadError::BadHost => "invalid host",
            HeadError::MissingHost => "HTTP/1.1 request without \"Host\" header",
            HeadError::ManyHosts => "more than one \"Host\" header",
        }
    }
}

impl From<FieldError> for HeadError {
    fn from(error: FieldError) -> HeadError {
        match error {
            FieldError::Bad => HeadError::BadField,
            FieldError::TooLarge => HeadError::FieldsTooLarge,
            FieldError::TooMany => HeadError::TooManyFields,
        }
    }
}

impl From<BadHost> for HeadError {
    fn from(BadHost: BadHost) -> HeadError {
        HeadError::BadHost
    }
}

/// Why an upstream's head cannot be used; always becomes 502.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseHeadError {
    /// Not `HTTP/1.x SP three digits [SP reason]` (RFC 9112 §4).
    BadStatusLine,
    /// The Status field of a CGI response is not three digits from 200 on, or is repeated.
    BadStatus,
    BadField,
    /// A line, the number of fields or the whole head is past the limit.
    TooLarge,
}

impl ResponseHeadError {
    /// Follows "upstream sent " in the error log.
    pub fn what(self) -> &'static str {
        match self {
            ResponseHeadError::BadStatusLine => "no valid HTTP/1.0 header",
            ResponseHeadError::BadStatus => "invalid status",
            ResponseHeadError::BadField => "invalid header",
            ResponseHeadError::TooLarge => "too big header",
        }
    }
}

impl From<FieldError> for ResponseHeadError {
    fn from(error: FieldError) -> ResponseHeadError {
        match error {
            FieldError::Bad => ResponseHeadError::BadField,
            FieldError::TooLarge | FieldError::TooMany => ResponseHeadError::TooLarge,
        }
    }
}
