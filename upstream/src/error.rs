//! What can go wrong in an exchange with an upstream server, in nginx's words.
//!
//! Every error but one is the upstream's or the network's fault, never the client's; which status it becomes and whether
//! another server is asked is decided in `retry`. Next: `exchange`, which makes these.

use crate::retry::Condition;
use millstream_wire::fastcgi::RecordError;
use millstream_wire::h1::chunked::ChunkedError;
use millstream_wire::h1::framing::FramingError;
use millstream_wire::h1::head::ResponseHeadError;
use millstream_wire::h2::error_code::ErrorCode;
use std::fmt;
use std::io;

/// Interim responses (1xx) accepted in one exchange.
pub const MAX_INTERIM: u32 = 64;

/// Why an exchange ended early.
#[derive(Debug)]
pub enum ExchangeError {
    Connect(io::Error),
    Handshake(io::Error),
    /// The handshake failed because the server speaks plain HTTP.
    PlainHttp(io::Error),
    /// Our certificate for the request cannot be read; why.
    NoCertificate(String),
    ConnectTimeout,
    /// This process had no descriptor for a connection within `proxy_connect_timeout`.
    NoDescriptor,
    NoPlace,
    SendTimeout,
    ReadTimeout,
    /// The client's own timeout (`grpc-timeout`) passed before the response began.
    CallTimeout,
    Write(io::Error),
    Read(io::Error),
    ClosedEarly {
        /// Without any byte of the response, a pooled connection was merely stale.
        any_bytes: bool,
    },
    BadHead(ResponseHeadError),
    /// The server speaks TLS on a plain connection; follows "upstream sent ".
    Tls(&'static str),
    /// RFC 9112 §6.3.
    BadFraming(FramingError),
    HeadTooLarge,
    BadBody(ChunkedError),
    BadRecord(RecordError),
    EndedEarly,
    /// `fastcgi_catch_stderr` matches what the application wrote.
    Caught,
    TooManyInterim,
    /// HTTP/2: the server did nothing for the request and says so (REFUSED_STREAM, GOAWAY).
    Refused,
    Reset(ErrorCode),
    /// HTTP/2: follows "upstream sent ".
    BadFrame(&'static str),
    /// 101 without a request for another protocol.
    UnexpectedUpgrade,
    /// 101 that does not open the requested WebSocket; why.
    BadHandshake(&'static str),
}

impl ExchangeError {
    pub fn condition(&self) -> Condition {
        match self {
            Self::ConnectTimeout
            | Self::NoDescriptor
            | Self::SendTimeout
            | Self::ReadTimeout
            | Self::CallTimeout => Condition::Timeout,
            Self::BadHead(_)
            | Self::Tls(_)
            | Self::BadRecord(_)
            | Self::EndedEarly
            | Self::Caught
            | Self::BadFraming(_)
            | Self::HeadTooLarge
            | Self::TooManyInterim
            | Self::BadFrame(_)
            | Self::Reset(_)
            | Self::UnexpectedUpgrade
            | Self::BadHandshake(_) => Condition::InvalidHeader,
            Self::NoPlace => Condition::Status(503),
            Self::NoCertificate(_) => Condition::Status(500),
            Self::Connect(_)
            | Self::Handshake(_)
            | Self::PlainHttp(_)
            | Self::Write(_)
            | Self::Read(_)
            | Self::ClosedEarly { .. }
            | Self::Refused
            | Self::BadBody(_) => Condition::Error,
        }
    }

    /// Whether the client caused it: by what a request asks for, or how long it waits.
    pub fn is_not_its_fault(&self) -> bool {
        matches!(
            self,
            Self::NoDescriptor | Self::NoPlace | Self::NoCertificate(_) | Self::CallTimeout | Self::Reset(_)
        )
    }

    /// Whether no other server may be asked: the time is over, or something is missing for every server.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::CallTimeout | Self::NoPlace | Self::NoCertificate(_))
    }

    /// Whether the server has certainly done nothing, so that any request may be retried (RFC 9113 §8.7).
    pub fn is_untouched(&self) -> bool {
        matches!(self, Self::Refused)
    }

    /// A copy for another waiter. An operating-system error keeps only its number.
    pub(crate) fn again(&self) -> ExchangeError {
        let copied = |error: &io::Error| match error.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(error.kind(), error.to_string()),
        };
        match self {
            Self::Connect(error) => Self::Connect(copied(error)),
            Self::Handshake(error) => Self::Handshake(copied(error)),
            Self::PlainHttp(error) => Self::PlainHttp(copied(error)),
            Self::NoDescriptor => Self::NoDescriptor,
            Self::NoPlace => Self::NoPlace,
            Self::NoCertificate(why) => Self::NoCertificate(why.clone()),
            // There are no others before a connection stands.
            _ => Self::ConnectTimeout,
        }
    }

    /// Whether a pooled connection was merely closed while it idled: not a byte of a response came.
    pub fn is_stale(&self) -> bool {
        match self {
            Self::ClosedEarly { any_bytes } => !any_bytes,
            Self::Refused => true,
            Self::Write(error) | Self::Read(error) => matches!(
                error.kind(),
                io::ErrorKind::BrokenPipe
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::NotConnected
            ),
            _ => false,
        }
    }
}

/// As nginx prints it: `(111: Connection refused)`.
struct SystemError<'a>(&'a io::Error);

impl fmt::Display for SystemError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(code) = self.0.raw_os_error() else { return write!(f, "({})", self.0) };
        let text = self.0.to_string();
        // The standard library appends " (os error N)", which nginx's readers do not expect.
        let text = text.split(" (os error").next().unwrap_or_default();
        write!(f, "({code}: {text})")
    }
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => write!(f, "connect() failed {}", SystemError(error)),
            Self::Handshake(error) | Self::PlainHttp(error) => {
                // What the library prints before errors that it hands on.
                let text = error.to_string();
                write!(
                    f,
                    "SSL handshake failed ({})",
                    text.strip_prefix("unexpected error: ").unwrap_or(&text)
                )
            }
            Self::NoDescriptor => f.write_str("socket() failed (24: Too many open files)"),
            Self::NoPlace => f.write_str("worker_connections are not enough"),
            Self::NoCertificate(why) => write!(f, "cannot load certificate: {why}"),
            Self::ConnectTimeout | Self::SendTimeout | Self::ReadTimeout => {
                f.write_str("upstream timed out (110: Connection timed out)")
            }
            Self::CallTimeout => f.write_str("the deadline of the call (grpc-timeout) expired"),
            Self::Write(error) => write!(f, "writev() failed {}", SystemError(error)),
            Self::Read(error) => write!(f, "recv() failed {}", SystemError(error)),
            Self::ClosedEarly { .. } => f.write_str("upstream prematurely closed connection"),
            Self::BadHead(error) => write!(f, "upstream sent {}", error.what()),
            Self::BadFraming(error) => write!(f, "upstream sent {}", error.what()),
            Self::BadRecord(error) => write!(f, "upstream sent {}: {}", error.what(), error.number()),
            Self::Caught => f.write_str("upstream sent a message in stderr that fastcgi_catch_stderr lists"),
            Self::EndedEarly => f.write_str("upstream prematurely closed FastCGI stdout"),
            Self::HeadTooLarge => f.write_str("upstream sent too big header"),
            Self::BadBody(error) => write!(f, "upstream sent invalid chunked response ({})", error.what()),
            Self::UnexpectedUpgrade => f.write_str("upstream sent unexpected \"101 Switching Protocols\""),
            Self::BadHandshake(what) => write!(f, "upstream sent \"101 Switching Protocols\" {what}"),
            Self::Refused => f.write_str("upstream refused the request"),
            Self::Reset(code) => write!(f, "upstream rejected the request with {}", code.name()),
            Self::BadFrame(what) | Self::Tls(what) => write!(f, "upstream sent {what}"),
            Self::TooManyInterim => f.write_str("upstream sent too many interim responses"),
        }
    }
}

impl std::error::Error for ExchangeError {}
