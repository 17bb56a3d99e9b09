//! Why a call has no whole answer.
//!
//! Next: `call`, which tells it; `error`, what becomes of it.

use crate::error::ExchangeError;
use millstream_wire::h2::error_code::ErrorCode;
use std::io;

/// What ended a call before its answer was whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// The server did nothing for it: it may be made again, whatever it is (RFC 9113 §8.7).
    Refused,
    /// The server gave it up.
    Reset(ErrorCode),
    /// The server's connection closed.
    Closed,
    /// Reading or writing failed.
    Failed(io::ErrorKind),
    /// The server broke the rules; what it sent stands behind "upstream sent ".
    Broken(&'static str),
    /// It speaks TLS; what it sent, as in [`Lost::Broken`].
    Tls(&'static str),
    /// Its head is larger than any may be.
    TooLarge,
}

impl Lost {
    /// The error; `any_bytes`: some of the answer has come.
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
