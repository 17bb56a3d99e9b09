//! Addresses: where Millstream listens and where it connects to.
//!
//! Names are kept as names; nothing is resolved here. Next: `features/listen`, `features/upstream`, which read them;
//! `millstream-net`'s `address`, that of an open connection.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ListenAddress {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// A host name; never an address literal (those are [`PeerAddress::Tcp`]).
    pub host: String,
    /// The port; 80 where none was written.
    pub port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PeerAddress {
    Tcp(SocketAddr),
    /// A name, resolved by the system when the configuration is put to work.
    Name(HostPort),
    Unix(PathBuf),
}

impl PeerAddress {
    /// `None` unless it is `host[:port]` or `unix:path`; without a port, the scheme's.
    pub fn parse(text: &str, default_port: u16) -> Option<PeerAddress> {
        if let Some(path) = text.strip_prefix("unix:") {
            return (!path.is_empty()).then(|| PeerAddress::Unix(path.into()));
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return (address.port() != 0).then_some(PeerAddress::Tcp(address));
        }
        if let Some(bare) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return Some(PeerAddress::Tcp(SocketAddr::new(bare.parse::<IpAddr>().ok()?, default_port)));
        }
        if let Ok(ip) = text.parse::<IpAddr>() {
            return ip.is_ipv4().then_some(PeerAddress::Tcp(SocketAddr::new(ip, default_port)));
        }
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, port.parse::<u16>().ok().filter(|port| *port != 0)?),
            None => (text, default_port),
        };
        let named =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_') || byte >= 0x80;
        let valid = !host.is_empty() && host.bytes().all(named);
        valid.then(|| PeerAddress::Name(HostPort { host: host.to_owned(), port }))
    }
}

/// A local address, with or without a port; port 0 is any.
pub fn local_address(text: &str) -> Option<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    bare.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, 0))
}
