//! Whether an address lies in a network of the configuration. An IPv4 address that came over IPv6 is what it is.
//!
//! Next: `sender` and `forwarded`, which ask.

use millstream_conf::model::Network;
use millstream_net::Address;
use std::net::IpAddr;

pub fn contains(network: &Network, remote: &Address) -> bool {
    match (network, remote) {
        (Network::All, _) | (Network::Unix, Address::Unix(_)) => true,
        (Network::Ip(address, bits), Address::Tcp(socket)) => {
            let (of, ip) = (address.to_canonical(), socket.ip().to_canonical());
            same_network(of, ip, mapped_bits(*address, *bits))
        }
        (Network::Unix | Network::Ip(..), _) => false,
    }
}

/// Loopback or a Unix socket.
pub fn is_local(remote: &Address) -> bool {
    match remote {
        Address::Tcp(socket) => socket.ip().to_canonical().is_loopback(),
        Address::Unix(_) => true,
    }
}

/// The prefix length once `::ffff:a.b.c.d` counts as `a.b.c.d`.
fn mapped_bits(address: IpAddr, bits: u8) -> u8 {
    if address.is_ipv6() && address.to_canonical().is_ipv4() { bits.saturating_sub(96) } else { bits }
}

fn same_network(of: IpAddr, ip: IpAddr, bits: u8) -> bool {
    match (of, ip) {
        (IpAddr::V4(of), IpAddr::V4(ip)) => {
            let differing = of.to_bits() ^ ip.to_bits();
            differing.leading_zeros() >= u32::from(bits.min(32))
        }
        (IpAddr::V6(of), IpAddr::V6(ip)) => {
            let differing = of.to_bits() ^ ip.to_bits();
            differing.leading_zeros() >= u32::from(bits.min(128))
        }
        _ => false,
    }
}
