//! What a request knows of where it came from: its connection, and whom a trusted proxy speaks for.
//!
//! Made once for each connection, by `connection`; all its requests share it.

use crate::judged::ClientCertificate;
use millstream_net::proxy_protocol::Proxied;
use millstream_net::stream::TlsInfo;
use millstream_net::{Address, clock};
use std::cell::Cell;
use std::time::Instant;

/// What holds for a connection as a whole.
#[derive(Debug)]
pub struct ConnectionFacts {
    /// `$connection`.
    pub serial: u64,
    /// The client's address.
    pub remote: Address,
    /// Its text without port, as logs and `X-Forwarded-For` want it.
    pub remote_text: Box<str>,
    /// The address that accepted it.
    pub local: Address,
    /// Index of the listener that accepted it, in the configuration in force.
    pub listener: Cell<usize>,
    /// Whether it came to a TLS port without TLS: each of its requests is refused (497).
    pub is_plain_on_tls: bool,
    /// Whom a proxy speaks for (`listen … proxy_protocol`).
    pub proxied: Option<Box<Proxied>>,
    /// TLS facts, where it is encrypted; boxed, for most connections idle without any.
    pub tls: Option<Box<TlsInfo>>,
    /// The certificate that the client showed.
    pub certificate: Option<Box<ClientCertificate>>,
    /// When it was accepted.
    pub opened: Instant,
    /// Requests so far, the present one included.
    pub requests: Cell<u64>,
    /// Copies of them (`mirror`) that are not finished.
    pub copies: Cell<usize>,
}

impl ConnectionFacts {
    /// A connection without TLS and without a proxy before it, with its first request.
    pub fn plain(remote: Address, local: Address, listener: usize) -> Self {
        ConnectionFacts {
            serial: 0,
            remote_text: remote.host_text(),
            remote,
            local,
            listener: Cell::new(listener),
            is_plain_on_tls: false,
            proxied: None,
            tls: None,
            certificate: None,
            opened: clock::now(),
            requests: Cell::new(1),
            copies: Cell::new(0),
        }
    }
}

/// Whom a request came from, as a trusted proxy says.
#[derive(Debug, Clone)]
pub struct ClientAddress {
    /// The address; port 0 where it was not said.
    pub address: Address,
    /// Its text without port.
    pub text: Box<str>,
}
