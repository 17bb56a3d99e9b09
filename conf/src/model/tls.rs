//! TLS of a server block.
//!
//! Files by name, never their content: no key is held here. Next: `millstream-net`'s `tls`, which loads them.

use crate::source::Span;
use std::path::PathBuf;
use std::time::Duration;

/// Protocol versions that are offered. Older ones are dropped at load with a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum TlsVersion {
    Tls12,
    Tls13,
}

/// `ssl_*` of a server.
#[derive(Debug, Clone)]
pub struct Tls {
    /// `ssl_certificate` and `ssl_certificate_key` pairs: PEM files, the leaf first.
    pub certificates: Vec<(PathBuf, PathBuf)>,
    /// Where the first `ssl_certificate` stands, for errors found when it is read.
    pub span: Span,
    /// Offered versions, never empty.
    pub protocols: Vec<TlsVersion>,
    /// `ssl_ciphers` as the names of cipher suites that are offered (IANA names), in order; empty = the library's own.
    pub ciphers: Vec<String>,
    /// `ssl_prefer_server_ciphers`.
    pub prefer_server_ciphers: bool,
    /// Sessions kept, from `ssl_session_cache` (4,000 per megabyte, as nginx counts); 0 = none.
    pub session_cache: usize,
    /// `ssl_session_timeout`.
    pub session_timeout: Duration,
}
