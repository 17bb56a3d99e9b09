//! Why a single request had no answer, in words that say what to do.

use crate::plan::Target;
use crate::target::NO_ADDRESS;
use std::net::SocketAddr;
use std::time::Duration;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// Nobody listens at the address.
    #[error("{0} refuses connections: nothing listens there")]
    Refused(SocketAddr),
    /// No way to the address, in the system's words.
    #[error("{0} cannot be reached: {1}")]
    Unreachable(SocketAddr, String),
    /// No connection in time.
    #[error("{0} did not take the connection within {1:?}")]
    ConnectTimeout(SocketAddr, Duration),
    /// TLS was asked for, and the server does not speak it.
    #[error("{0} does not speak TLS: write http:// instead of https://")]
    PlainServer(SocketAddr),
    /// Plain HTTP was sent, and the server speaks TLS.
    #[error("{0} speaks TLS: write https:// instead of http://")]
    TlsServer(SocketAddr),
    /// TLS could not be agreed on, in rustls's words.
    #[error("no TLS could be agreed on with {0}: {1}")]
    Tls(SocketAddr, String),
    /// The server's certificate is not trusted, and why.
    #[error(
        "the certificate of {0} is not trusted: {1}; name its issuer's in SSL_CERT_FILE, or say --insecure (-k)"
    )]
    Untrusted(SocketAddr, String),
    /// The server closed the connection without an answer.
    #[error("{0} closed the connection without an answer")]
    Closed(SocketAddr),
    /// No answer began in time.
    #[error("{0} gave no answer within {1:?}")]
    Silent(SocketAddr, Duration),
    /// An answer began and did not end in time; so many bytes of its body came.
    #[error("{0} did not end its answer within {1:?}, {2} bytes of the body had come")]
    Unfinished(SocketAddr, Duration, u64),
    /// The body is longer than the bound, which is an end for one that has none.
    #[error("the body from {0} has no end: {1} bytes came and more follow")]
    Endless(SocketAddr, usize),
    /// The body is announced to be longer than the bound: so many bytes.
    #[error("the body from {0} is {1} bytes long")]
    Large(SocketAddr, u64),
    /// The connection ended within the body; so many bytes came.
    #[error("{0} closed the connection within the body, after {1} bytes of it")]
    ShortBody(SocketAddr, u64),
    /// What came is no answer of this version of HTTP, and why.
    #[error("{0} does not answer in HTTP/{1}: {2}")]
    BadAnswer(SocketAddr, u8, String),
    /// HTTP/2 was asked for, and the server does not speak it, and how that is known.
    #[error("{0} does not speak HTTP/2: {1}; leave --http2 out")]
    NoHttp2(SocketAddr, String),
    /// The user wanted to stop.
    #[error("stopped")]
    Stopped,
}

impl ProbeError {
    /// In words, where the target is reached by a socket in the file system with its name.
    pub fn told_of(&self, target: &Target) -> String {
        let words = self.to_string();
        match &target.way.unix_socket {
            Some(path) => words.replace(&NO_ADDRESS.to_string(), &format!("unix:{}", path.display())),
            None => words,
        }
    }
}
