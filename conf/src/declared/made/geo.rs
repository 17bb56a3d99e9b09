//! `geo`: a value by the client's address.
//!
//! Networks and ranges are laid out flat: where a value begins, sorted, so that a look-up is one binary search. Next:
//! `features/geo`, which reads them; `millstream-server`'s `variables/made/geo`, which looks up.

use std::net::IpAddr;

use crate::network::Network;
use crate::template::Template;

/// A variable that has its value by an address.
#[derive(Debug)]
pub struct Geo {
    /// The address, where it is not the client's.
    pub address: Option<Template>,
    /// What decides about the value in any case.
    pub source: Template,
    /// Whose X-Forwarded-For is believed.
    pub proxies: Box<[Network]>,
    /// Whether the last address there that is none of theirs counts, and not just the last one.
    pub recursive: bool,
    /// Values of IPv4 addresses.
    pub v4: GeoTable<u32>,
    /// Values of all other addresses.
    pub v6: GeoTable<u128>,
    /// The values, each once.
    pub values: Box<[Box<str>]>,
}

/// Where each value begins.
#[derive(Debug, PartialEq, Eq)]
pub struct GeoTable<T> {
    /// Sorted; the first is 0.
    pub starts: Box<[T]>,
    /// Indices into `Geo::values`.
    pub values: Box<[u32]>,
}

impl<T: Ord> GeoTable<T> {
    fn find(&self, address: &T) -> Option<u32> {
        let behind = self.starts.partition_point(|start| start <= address);
        self.values.get(behind.checked_sub(1)?).copied()
    }
}

impl Geo {
    /// The value for an address; what is none (a Unix socket, a text that says none) has that of 255.255.255.255, as in nginx.
    pub fn find(&self, address: Option<IpAddr>) -> &str {
        let found = match address.map(|address| address.to_canonical()) {
            None => self.v4.find(&u32::MAX),
            Some(IpAddr::V4(v4)) => self.v4.find(&v4.to_bits()),
            Some(IpAddr::V6(v6)) => self.v6.find(&v6.to_bits()),
        };
        found.and_then(|found| self.values.get(found as usize)).map_or("", |value| value)
    }

    pub(super) fn source(&self) -> Option<&Template> {
        Some(&self.source)
    }

    pub(super) fn values(&self) -> &[Template] {
        &[]
    }
}
