//! What a request knows of where it came from: its connection, and whom a trusted proxy speaks for.
//!
//! Made once for each connection, by `connection`; all its requests share it.

use crate::judged::ClientCertificate;
use millstream_net::proxy_protocol::Proxied;
use millstream_net::stream::TlsInfo;
use millstream_net::{Address, clock};
use std::cell::Cell;
use std::time::Instant;

#[derive(Debug)]
pub struct ConnectionFacts {
    /// `$connection`.
    pub serial: u64,
    pub remote: Address,
    /// Without the port, as in logs and `X-Forwarded-For`.
    pub remote_text: Box<str>,
    pub local: Address,
    /// Index in the configuration in force.
    pub listener: Cell<usize>,
    /// Plain HTTP on a TLS port: each request is refused (497).
    pub is_plain_on_tls: bool,
    /// `listen … proxy_protocol`.
    pub proxied: Option<Box<Proxied>>,
    /// Boxed, as most connections idle without any.
    pub tls: Option<Box<TlsInfo>>,
    pub certificate: Option<Box<ClientCertificate>>,
    pub opened: Instant,
    /// The present one included.
    pub requests: Cell<u64>,
    /// Unfinished copies (`mirror`).
    pub copies: Cell<usize>,
}

impl ConnectionFacts {
    /// The first request of a connection without TLS and proxy.
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

#[derive(Debug, Clone)]
pub struct ClientAddress {
    /// Port 0 if unknown.
    pub address: Address,
    /// Without the port.
    pub text: Box<str>,
}
