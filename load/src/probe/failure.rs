//! Why a single request had no answer, in words that say what to do.

use crate::plan::Target;
use crate::target::NO_ADDRESS;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeError {
    /// Nobody listens at the address.
    Refused(SocketAddr),
    /// No way to the address, in the system's words.
    Unreachable(SocketAddr, String),
    /// No connection in time.
    ConnectTimeout(SocketAddr, Duration),
    /// TLS was asked for, and the server does not speak it.
    PlainServer(SocketAddr),
    /// Plain HTTP was sent, and the server speaks TLS.
    TlsServer(SocketAddr),
    /// TLS could not be agreed on, in rustls's words.
    Tls(SocketAddr, String),
    /// The server's certificate is not trusted, and why.
    Untrusted(SocketAddr, String),
    /// The server closed the connection without an answer.
    Closed(SocketAddr),
    /// No answer began in time.
    Silent(SocketAddr, Duration),
    /// An answer began and did not end in time; so many bytes of its body came.
    Unfinished(SocketAddr, Duration, u64),
    /// The body is longer than the bound, which is an end for one that has none.
    Endless(SocketAddr, usize),
    /// The body is announced to be longer than the bound: so many bytes.
    Large(SocketAddr, u64),
    /// The connection ended within the body; so many bytes came.
    ShortBody(SocketAddr, u64),
    /// What came is not HTTP/1, and why.
    NotHttp(SocketAddr, String),
    /// HTTP/2 was asked for, and the server does not speak it, and how that is known.
    NoHttp2(SocketAddr, String),
    /// What came is not as HTTP/2 has it, or no answer, and why.
    BrokenHttp2(SocketAddr, String),
    /// The user wanted to stop.
    Stopped,
}

impl fmt::Display for ProbeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        use ProbeError as E;
        match self {
            E::Refused(at) => write!(out, "{at} refuses connections: nothing listens there"),
            E::Unreachable(at, why) => write!(out, "{at} cannot be reached: {why}"),
            E::ConnectTimeout(at, limit) => write!(out, "{at} did not take the connection within {limit:?}"),
            E::PlainServer(at) => write!(out, "{at} does not speak TLS: write http:// instead of https://"),
            E::TlsServer(at) => write!(out, "{at} speaks TLS: write https:// instead of http://"),
            E::Tls(at, why) => write!(out, "no TLS could be agreed on with {at}: {why}"),
            E::Untrusted(at, why) => write!(
                out,
                "the certificate of {at} is not trusted: {why}; name its issuer's in SSL_CERT_FILE, or say --insecure (-k)"
            ),
            E::Closed(at) => write!(out, "{at} closed the connection without an answer"),
            E::Silent(at, limit) => write!(out, "{at} gave no answer within {limit:?}"),
            E::Unfinished(at, limit, bytes) => {
                write!(
                    out,
                    "{at} did not end its answer within {limit:?}, {bytes} bytes of the body had come"
                )
            }
            E::Endless(at, most) => {
                write!(out, "the body from {at} has no end: {most} bytes came and more follow")
            }
            E::Large(at, bytes) => write!(out, "the body from {at} is {bytes} bytes long"),
            E::ShortBody(at, bytes) => {
                write!(out, "{at} closed the connection within the body, after {bytes} bytes of it")
            }
            E::NotHttp(at, why) => write!(out, "{at} does not answer in HTTP/1: {why}"),
            E::NoHttp2(at, why) => write!(out, "{at} does not speak HTTP/2: {why}; leave --http2 out"),
            E::BrokenHttp2(at, why) => write!(out, "{at} does not answer in HTTP/2: {why}"),
            E::Stopped => out.write_str("stopped"),
        }
    }
}

impl std::error::Error for ProbeError {}

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
