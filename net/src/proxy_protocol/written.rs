//! The header as we say it to a server: whom a connection is for.
//!
//! The same protocol as `proxy_protocol` reads. A client that has no address on a network is nobody that the protocol knows (`UNKNOWN`).

use super::SIGNATURE;
use crate::address::Address;
use millstream_conf::model::ProxyHeader;
use std::net::{IpAddr, SocketAddr};

/// `local` is the address that the client connected to.
pub fn header(version: ProxyHeader, client: &Address, local: &Address) -> Vec<u8> {
    let ends = match (client, local) {
        (Address::Tcp(client), Address::Tcp(local)) => Some((canonical(*client), canonical(*local))),
        _ => None,
    };
    // A header has addresses of one family.
    let ends = ends.filter(|(client, local)| client.is_ipv4() == local.is_ipv4());
    match version {
        ProxyHeader::V1 => line(ends),
        ProxyHeader::V2 => block(ends),
    }
}

/// An IPv4 address mapped into IPv6 becomes IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn line(ends: Option<(SocketAddr, SocketAddr)>) -> Vec<u8> {
    let Some((client, local)) = ends else { return b"PROXY UNKNOWN\r\n".to_vec() };
    let family = if client.is_ipv4() { "TCP4" } else { "TCP6" };
    let text =
        format!("PROXY {family} {} {} {} {}\r\n", client.ip(), local.ip(), client.port(), local.port());
    text.into_bytes()
}

fn block(ends: Option<(SocketAddr, SocketAddr)>) -> Vec<u8> {
    let mut out = SIGNATURE.to_vec();
    // Version 2; PROXY. Of nobody's connection the rest is not looked at (family UNSPEC).
    out.push(0x21);
    let Some((client, local)) = ends else {
        out.extend_from_slice(&[0, 0, 0]);
        return out;
    };
    let (family, length) = if client.is_ipv4() { (0x11, 12u16) } else { (0x21, 36) };
    out.push(family);
    out.extend_from_slice(&length.to_be_bytes());
    for ip in [client.ip(), local.ip()] {
        match ip {
            IpAddr::V4(ip) => out.extend_from_slice(&ip.octets()),
            IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
        }
    }
    out.extend_from_slice(&client.port().to_be_bytes());
    out.extend_from_slice(&local.port().to_be_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::super::{Parsed, parse};
    use super::*;

    fn tcp(text: &str) -> Address {
        Address::Tcp(text.parse().expect("an address"))
    }

    #[test]
    fn what_is_said_is_read_as_it_was_meant() {
        for (client, local) in [
            ("192.0.2.1:4000", "198.51.100.2:443"),
            ("[2001:db8::1]:4000", "[2001:db8::2]:443"),
            ("[::ffff:192.0.2.1]:1", "198.51.100.2:443"),
        ] {
            for version in [ProxyHeader::V1, ProxyHeader::V2] {
                let header = header(version, &tcp(client), &tcp(local));
                let Parsed::Whole(length, Some(said)) = parse(&header) else {
                    panic!("{client} {version:?}")
                };
                assert_eq!(length, header.len());
                let meant = |text: &str| canonical(text.parse().expect("an address"));
                assert_eq!((said.source, said.destination), (meant(client), meant(local)));
            }
        }
    }

    #[test]
    fn who_has_no_address_of_the_same_network_is_unknown() {
        let pairs =
            [(Address::Unix(None), tcp("192.0.2.1:1")), (tcp("192.0.2.1:1"), tcp("[2001:db8::2]:443"))];
        for (client, local) in pairs {
            for version in [ProxyHeader::V1, ProxyHeader::V2] {
                let header = header(version, &client, &local);
                assert_eq!(parse(&header), Parsed::Whole(header.len(), None), "{version:?}");
            }
        }
        assert_eq!(header(ProxyHeader::V1, &Address::Unix(None), &Address::Unix(None)), b"PROXY UNKNOWN\r\n");
    }
}
