//! Where the peers of a server are: at its addresses, or where its service is offered.
//!
//! Next: `service`, the records of one; `group`, which makes members of places.

use super::Server;
use crate::peers::Peers;
use crate::standing::Parameters;
use millstream_net::address::Address;
use std::sync::Arc;

pub(super) struct Place {
    /// The server as written, or the target of its service.
    pub(super) server: Arc<str>,
    pub(super) address: Address,
    pub(super) parameters: Parameters,
}

impl Server {
    pub fn is_nowhere(&self) -> bool {
        let records = self.service.iter().flat_map(|service| &service.records);
        self.addresses.is_empty() && records.into_iter().all(|record| record.addresses.is_empty())
    }

    /// Among the backups or the others. Addresses that stay keep their order, each once, so that a name
    /// server that rotates its responses moves no one. A kept server without an address is down.
    pub(super) fn places(&self, before: &Peers, backup: bool) -> Vec<Place> {
        if let Some(service) = &self.service {
            return service.places(self, backup);
        }
        if self.backup != backup {
            return Vec::new();
        }
        let place = |address: &Address, parameters| Place {
            server: self.name.clone(),
            address: address.clone(),
            parameters,
        };
        if self.addresses.is_empty() && self.kept {
            return vec![place(&Address::Unix(None), Parameters { down: true, ..self.parameters })];
        }
        let mut addresses: Vec<&Address> = Vec::with_capacity(self.addresses.len());
        let known = before.members.iter().filter(|member| member.server == self.name);
        let stay =
            known.map(|member| &member.peer.address).filter(|address| self.addresses.contains(address));
        for address in stay.chain(&self.addresses) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        addresses.into_iter().map(|address| place(address, self.parameters)).collect()
    }
}
