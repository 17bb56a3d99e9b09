//! `geo`: a value by the client's address.
//!
//! Networks and ranges are laid out flat: where a value begins, sorted, so that a look-up is one binary search. Next:
//! `features/geo`, which reads them; `millstream-server`'s `variables/made/geo`, which looks up.

use std::net::IpAddr;

use crate::network::Network;
use crate::template::Template;

#[derive(Debug)]
pub struct Geo {
    /// `None` = the client's address.
    pub address: Option<Template>,
    pub source: Template,
    /// Proxies whose X-Forwarded-For is trusted.
    pub proxies: Box<[Network]>,
    /// Whether the last address that is not a trusted proxy's counts, instead of just the last.
    pub recursive: bool,
    pub v4: GeoTable<u32>,
    /// IPv6, and everything that is not IPv4.
    pub v6: GeoTable<u128>,
    /// Each once.
    pub values: Box<[Box<str>]>,
}

/// The start address of each range of one value.
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
    /// Without a valid address (a Unix socket, other text), the value of 255.255.255.255, as in nginx.
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
