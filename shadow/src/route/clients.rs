//! Who asks for a route: by address, or by what names a client where a proxy in front gives the same address to all.
//!
//! Before: `dimension`, `visits`; next: `route`.

use super::Route;
use crate::dimension::{Dimensions, Role, Sort};
use crate::hash::Key;

/// Addresses from which on an address is a client; with fewer, a proxy may be in front.
const FEWEST_ADDRESSES: u32 = 5;

impl Route {
    /// Who asked, at the least and at the most.
    pub(crate) fn who(&self, key: &Key, values: &[u32]) -> (u32, u32) {
        let address = values.first().copied().unwrap_or(0);
        let (mut stable, mut all) = (u64::from(address), u64::from(address));
        let clients = self.clients();
        for (number, dimension) in self.dimensions.list.iter().enumerate().skip(1) {
            let value = values.get(number).copied().unwrap_or(0);
            let may_be = value != 0
                && matches!(
                    dimension.sort,
                    Sort::Field | Sort::Cookie | Sort::Certificate | Sort::OtherCredentials
                );
            if may_be && dimension.role(clients) == Role::Identity {
                all = key.pair(all, u64::from(value));
                let names_client = dimension.names_client || dimension.is_address;
                if names_client && !dimension.is_unique() {
                    stable = key.pair(stable, u64::from(value));
                }
            }
        }
        // The lowest bit says which of both it is, so that they are not taken for two clients.
        let client = if self.has_addresses() { address | 1 } else { stable as u32 & !1 };
        (client, all as u32)
    }

    /// Whether an address is a client: a proxy in front would give the same to all.
    fn has_addresses(&self) -> bool {
        self.addresses.count() >= FEWEST_ADDRESSES
    }

    pub(crate) fn count_client(&mut self, key: &Key, address: u32, client: u32) {
        self.addresses.add(key.pair(3, u64::from(address)));
        if !self.has_addresses() {
            self.clients.add(key.pair(3, u64::from(client)));
        }
    }

    /// How many different clients there were, at the least.
    pub(crate) fn clients(&self) -> u32 {
        if self.has_addresses() { self.addresses.count() } else { self.clients.count() }
    }

    pub(crate) fn share(&mut self, key: &Key, client: u32) {
        self.sharing.add(key.pair(3, u64::from(client)));
    }

    /// Of the clients, those that share: what others get says nothing about these.
    pub(crate) fn sharing_clients(&self) -> u32 {
        self.sharing.count().min(self.clients())
    }

    /// Counts a request of a client, and notes in its values whether it is one of its first ones.
    pub(crate) fn visit(&mut self, key: &Key, values: &mut [u32], client: u32) {
        Dimensions::note_visit(values, self.visits.is_early(key.pair(3, u64::from(client))));
    }
}
