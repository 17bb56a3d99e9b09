//! The address of one end of a connection, written as nginx writes it.
//!
//! It never resolves a name. Next: `stream`, both of whose ends have one; `connect`, which takes one.

use millstream_conf::model::{ListenAddress, PeerAddress};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

/// One end of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    Tcp(SocketAddr),
    /// A client on a unix socket has no path.
    Unix(Option<PathBuf>),
}

impl fmt::Display for Address {
    /// `127.0.0.1:80`, `[::1]:80`, `unix:/path`, and `unix:` for a client on a unix socket.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(Some(path)) => write!(f, "unix:{}", path.display()),
            Address::Unix(None) => f.write_str("unix:"),
        }
    }
}

impl From<&ListenAddress> for Address {
    fn from(address: &ListenAddress) -> Self {
        match address {
            ListenAddress::Tcp(address) => Address::Tcp(*address),
            ListenAddress::Unix(path) => Address::Unix(Some(path.clone())),
        }
    }
}

impl Address {
    /// `None` for a name that must be resolved.
    pub fn of_peer(peer: &PeerAddress) -> Option<Address> {
        match peer {
            PeerAddress::Tcp(address) => Some(Address::Tcp(*address)),
            PeerAddress::Unix(path) => Some(Address::Unix(Some(path.clone()))),
            PeerAddress::Name(_) => None,
        }
    }

    /// An address without ports stays as it is.
    #[must_use]
    pub fn at_port(&self, port: u16) -> Address {
        match self {
            Address::Tcp(address) => Address::Tcp(SocketAddr::new(address.ip(), port)),
            Address::Unix(path) => Address::Unix(path.clone()),
        }
    }

    /// Without a port, as in logs and `X-Forwarded-For`: `127.0.0.1`, `::1`, `unix:`.
    pub fn host_text(&self) -> Box<str> {
        match self {
            Address::Tcp(socket) => socket.ip().to_canonical().to_string().into(),
            Address::Unix(_) => "unix:".into(),
        }
    }

    /// The address a client is counted by: for IPv6 that of a subscriber's network. Clients on unix sockets
    /// are one.
    pub fn subscriber(&self) -> IpAddr {
        match self {
            Address::Tcp(socket) => match socket.ip().to_canonical() {
                IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & (u128::MAX << 64))),
                ip => ip,
            },
            Address::Unix(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_nginx_writes_them() {
        let check = |address: Address, expected| assert_eq!(address.to_string(), expected);
        check(Address::Tcp("127.0.0.1:80".parse().expect("an address")), "127.0.0.1:80");
        check(Address::Tcp("[::1]:8080".parse().expect("an address")), "[::1]:8080");
        check(Address::Unix(Some(PathBuf::from("/run/api.sock"))), "unix:/run/api.sock");
        check(Address::Unix(None), "unix:");
    }

    #[test]
    fn without_its_port_an_address_is_what_its_client_would_call_itself() {
        let check = |address: Address, expected| assert_eq!(&*address.host_text(), expected);
        check(Address::Tcp("127.0.0.1:80".parse().expect("an address")), "127.0.0.1");
        check(Address::Tcp("[::1]:80".parse().expect("an address")), "::1");
        check(Address::Tcp("[::ffff:10.0.0.1]:80".parse().expect("an address")), "10.0.0.1");
        check(Address::Unix(None), "unix:");
    }

    #[test]
    fn a_subscriber_has_one_address_of_ipv4_and_a_network_of_ipv6() {
        let check = |address: &str, expected: &str| {
            let address = Address::Tcp(address.parse().expect("an address"));
            assert_eq!(address.subscriber().to_string(), expected, "{address}");
        };
        check("192.0.2.7:80", "192.0.2.7");
        check("[::ffff:192.0.2.7]:80", "192.0.2.7");
        check("[2001:db8:1:2:3:4:5:6]:80", "2001:db8:1:2::");
        assert_eq!(Address::Unix(None).subscriber().to_string(), "::");
    }
}
