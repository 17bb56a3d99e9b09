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

/// Interim answers (1xx) taken in one exchange; a server that sends more is broken.
pub const MAX_INTERIM: u32 = 64;

/// Why an exchange ended early.
#[derive(Debug)]
pub enum ExchangeError {
    /// connect(2) failed.
    Connect(io::Error),
    /// The TLS handshake failed.
    Handshake(io::Error),
    /// It failed because the server speaks plain HTTP.
    PlainHttp(io::Error),
    /// The certificate that a request says is ours cannot be read; why.
    NoCertificate(String),
    /// No connection within `proxy_connect_timeout`.
    ConnectTimeout,
    /// This process had no descriptor for a connection within that time.
    NoDescriptor,
    /// This process had no place for a connection.
    NoPlace,
    /// Nothing could be written for `proxy_send_timeout`.
    SendTimeout,
    /// Nothing came for `proxy_read_timeout`.
    ReadTimeout,
    /// No answer had begun when the time was over that the caller gave (`grpc-timeout`).
    CallTimeout,
    /// Writing failed.
    Write(io::Error),
    /// Reading failed, mostly a reset.
    Read(io::Error),
    /// The upstream closed before the message was whole.
    ClosedEarly {
        /// Whether any byte of the answer had come: without one, a pooled connection was merely stale.
        any_bytes: bool,
    },
    /// The head is no answer of the protocol.
    BadHead(ResponseHeadError),
    /// In plain it was asked, and speaks TLS: what came instead of a response; it stands behind "upstream sent ".
    Tls(&'static str),
    /// The framing of the answer cannot be relied on (RFC 9112 §6.3).
    BadFraming(FramingError),
    /// The head is larger than `proxy_buffer_size`.
    HeadTooLarge,
    /// The chunked coding of the body is broken.
    BadBody(ChunkedError),
    /// What came is no record of the protocol.
    BadRecord(RecordError),
    /// The application ended its answer before that was whole.
    EndedEarly,
    /// `fastcgi_catch_stderr` names what the application complained of.
    Caught,
    /// More interim answers than [`MAX_INTERIM`] in a row.
    TooManyInterim,
    /// Over HTTP/2: the server did nothing for the request and says so (REFUSED_STREAM, GOAWAY).
    Refused,
    /// Over HTTP/2: the server gave the request up.
    Reset(ErrorCode),
    /// Over HTTP/2: what came is not as it has to be; it stands behind "upstream sent ".
    BadFrame(&'static str),
    /// 101 though no other protocol was asked for.
    UnexpectedUpgrade,
    /// 101 that does not open the WebSocket that was asked for; what is wrong with it.
    BadHandshake(&'static str),
}

impl ExchangeError {
    /// The class of `proxy_next_upstream` that the error belongs to.
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

    /// Whether it says nothing about the server that was asked: what a request asks for, and how long it waits, is its client's choice.
    pub fn is_not_its_fault(&self) -> bool {
        matches!(
            self,
            Self::NoDescriptor | Self::NoPlace | Self::NoCertificate(_) | Self::CallTimeout | Self::Reset(_)
        )
    }

    /// Whether nobody is to be asked any more: the time is over, or what is missing is missing for every server.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::CallTimeout | Self::NoPlace | Self::NoCertificate(_))
    }

    /// Whether the server has certainly done nothing, so that any request may be made again (RFC 9113 §8.7).
    pub fn is_untouched(&self) -> bool {
        matches!(self, Self::Refused)
    }

    /// The same once more, for another one who waited for it. An operating-system error keeps its number alone.
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

    /// Whether a pooled connection that fails so was merely closed while it idled: not a byte of an answer came.
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

/// An operating-system error as nginx prints it: `(111: Connection refused)`.
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
            Self::NoDescriptor => f.write_str("no descriptor was free (24: Too many open files)"),
            Self::NoPlace => f.write_str("worker_connections are not enough"),
            Self::NoCertificate(why) => write!(f, "cannot load certificate: {why}"),
            Self::ConnectTimeout | Self::SendTimeout | Self::ReadTimeout => {
                f.write_str("upstream timed out (110: Connection timed out)")
            }
            Self::CallTimeout => f.write_str("the call's own time (grpc-timeout) was over"),
            Self::Write(error) => write!(f, "writev() failed {}", SystemError(error)),
            Self::Read(error) => write!(f, "recv() failed {}", SystemError(error)),
            Self::ClosedEarly { .. } => f.write_str("upstream prematurely closed connection"),
            Self::BadHead(error) => write!(f, "upstream sent {}", error.what()),
            Self::BadFraming(error) => write!(f, "upstream sent {}", error.what()),
            Self::BadRecord(error) => write!(f, "upstream sent {}: {}", error.what(), error.number()),
            Self::Caught => f.write_str("upstream sent what fastcgi_catch_stderr names"),
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
