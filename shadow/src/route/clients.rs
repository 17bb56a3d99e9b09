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

    /// Why it could not be seen whether responses differ by address; `None` if it could.
    pub(crate) fn address_is_unseen(&self) -> Option<String> {
        // A proxy in front passes on the addresses of clients in a field.
        let is_passed_on =
            self.dimensions.list.iter().any(|of| of.is_address && of.distinct() >= FEWEST_ADDRESSES);
        let place = match self.has_addresses() {
            _ if is_passed_on || self.tally.sampled == 0 => return None,
            false => format!("requests came from fewer than {FEWEST_ADDRESSES} addresses"),
            true => format!("all clients were in {}", self.dimensions.network.label()?),
        };
        Some(format!("{place}, so it is not known whether responses differ by address"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::request;

    /// What is noted after requests of so many clients, whose addresses a field has if `name` is one.
    fn note(clients: u8, name: &str) -> Option<String> {
        let (key, mut route) = (Key::from_seed(1), Route::new(0, 0));
        route.tally.sampled = 60;
        for number in 0..60 {
            let address = format!("203.0.113.{number}");
            let fields = std::iter::once((name.as_bytes(), address.as_bytes()));
            let values = route.dimensions.read(&key, &request(None, number % clients), fields);
            route.count_client(&key, values[0], 0);
        }
        route.address_is_unseen()
    }

    #[test]
    fn it_is_noted_if_all_clients_were_in_one_network_or_behind_a_proxy_that_hides_them() {
        let of_network = note(20, "accept").expect("they are in one");
        assert!(of_network.starts_with("all clients were in 10.0.0.0/24,"), "{of_network}");
        let of_one = note(1, "accept").expect("there is one");
        assert!(of_one.starts_with("requests came from fewer than 5 addresses,"), "{of_one}");
        assert_eq!(note(1, "x-forwarded-for"), None);
    }
}
