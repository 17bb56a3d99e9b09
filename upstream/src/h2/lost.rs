//! Why a call has no whole answer.
//!
//! Next: `call`, which tells it; `error`, what becomes of it.

use crate::error::ExchangeError;
use millstream_wire::h2::error_code::ErrorCode;
use std::io;

/// What ended a call before its response was complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// The server did nothing for it: it may be retried (RFC 9113 §8.7).
    Refused,
    Reset(ErrorCode),
    Closed,
    Failed(io::ErrorKind),
    /// Follows "upstream sent ".
    Broken(&'static str),
    /// Follows "upstream sent ", as in [`Lost::Broken`].
    Tls(&'static str),
    TooLarge,
}

impl Lost {
    /// `any_bytes`: some of the response has come.
    pub(super) fn error(self, any_bytes: bool) -> ExchangeError {
        match self {
            Lost::Refused => ExchangeError::Refused,
            Lost::Reset(code) => ExchangeError::Reset(code),
            Lost::Closed => ExchangeError::ClosedEarly { any_bytes },
            Lost::Failed(kind) => ExchangeError::Read(kind.into()),
            Lost::Broken(what) => ExchangeError::BadFrame(what),
            Lost::Tls(what) => ExchangeError::Tls(what),
            Lost::TooLarge => ExchangeError::HeadTooLarge,
        }
    }
}
