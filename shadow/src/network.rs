//! The network that all requests of a route came from, if it is one.
//!
//! Next: `dimension`, which has one for each route.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Bits by which networks are named, and of which the last ones tell countries apart at best.
const OF_IPV4: [u32; 2] = [24, 16];
const OF_IPV6: [u32; 3] = [64, 48, 32];

/// Bits before an IPv4 address that is written as an IPv6 address.
const MAPPED: u32 = 96;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Network {
    /// The first address, and how many bits all others have in common with it.
    first: Option<(u128, u32)>,
}

impl Network {
    pub(crate) fn add(&mut self, address: [u8; 16]) {
        let address = match Ipv6Addr::from(address) {
            Ipv6Addr::LOCALHOST => Ipv4Addr::LOCALHOST.to_ipv6_mapped(),
            address => address,
        };
        let (first, bits) = self.first.get_or_insert((address.to_bits(), 128));
        *bits = (*bits).min((*first ^ address.to_bits()).leading_zeros());
    }

    /// Such as `192.0.2.0/24`; `None`: addresses have less than a /16 or, of IPv6, a /32 in common.
    pub(crate) fn label(&self) -> Option<String> {
        let (first, bits) = self.first?;
        let address = Ipv6Addr::from_bits(first);
        let (offset, lengths) = match address.to_ipv4_mapped() {
            Some(_) => (MAPPED, &OF_IPV4[..]),
            None => (0, &OF_IPV6[..]),
        };
        let length = *lengths.iter().find(|length| offset + **length <= bits)?;
        let network = Ipv6Addr::from_bits(first & (u128::MAX << (128 - offset - length)));
        let network = network.to_ipv4_mapped().map_or(network.to_string(), |network| network.to_string());
        Some(format!("{network}/{length}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn addresses_have_a_network_in_common_or_none() {
        for (addresses, expected) in [
            (&["127.21.1.9", "127.21.1.200"][..], Some("127.21.1.0/24")),
            (&["127.21.1.9", "127.21.200.9"], Some("127.21.0.0/16")),
            (&["127.21.1.9", "127.22.1.9"], None),
            (&["127.0.0.1", "::1"], Some("127.0.0.0/24")),
            (&["2001:db8:0:1::1", "2001:db8:0:1::2"], Some("2001:db8:0:1::/64")),
            (&["2001:db8:1::1", "2001:db8:2::1"], Some("2001:db8::/32")),
            (&["2001:db8::1", "2001:db9::1"], None),
            (&["192.0.2.1", "2001:db8::1"], None),
            (&["2001:db8::1", "192.0.2.1"], None),
            (&[], None),
        ] {
            let mut network = Network::default();
            for address in addresses {
                network.add(match address.parse().expect("an address") {
                    IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                    IpAddr::V6(address) => address.octets(),
                });
            }
            assert_eq!(network.label().as_deref(), expected, "{addresses:?}");
        }
    }
}
