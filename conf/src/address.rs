//! Addresses: where Millstream listens and where it connects to.
//!
//! Names are kept as names; nothing is resolved here. Next: `features/listen`, `features/upstream`, which read them;
//! `millstream-net`'s `address`, that of an open connection.

use std::net::SocketAddr;
use std::path::PathBuf;

/// An address of a `listen` directive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ListenAddress {
    /// TCP over IPv4 or IPv6.
    Tcp(SocketAddr),
    /// A unix socket's path.
    Unix(PathBuf),
}

/// A name to be resolved and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// A host name; never an address literal (those are [`PeerAddress::Tcp`]).
    pub host: String,
    /// The port; 80 where none was written.
    pub port: u16,
}

/// Where an upstream server is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PeerAddress {
    /// An address literal.
    Tcp(SocketAddr),
    /// A name, resolved by the system when the configuration is put to work.
    Name(HostPort),
    /// A unix socket's path.
    Unix(PathBuf),
}
