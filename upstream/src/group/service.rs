//! Servers that are a service: name servers report where it is offered (SRV), each record with a weight of its own.
//!
//! What is written of the server applies to all of its records, and edits of it outlive them. Records of another priority than the
//! lowest are backups. Before: `app`'s `names`, which asks; next: `group`, which puts the records in force.

use super::Server;
use super::places::Place;
use crate::standing::Parameters;
use millstream_net::address::Address;
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    pub name: Arc<str>,
    /// By priority; empty as long as nothing is known.
    pub records: Vec<ServiceRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceRecord {
    /// The API and `hash … consistent` use it as the server's name, as in nginx.
    pub target: Arc<str>,
    /// Those that have addresses and another than the lowest are backups.
    pub priority: u16,
    /// Used without `weight`.
    pub weight: i64,
    pub addresses: Vec<Address>,
}

impl Service {
    /// With the records of the same server of an earlier configuration.
    pub(super) fn open(name: &str, server: &str, before: &[Server]) -> Service {
        let known = before.iter().find(|known| known.is_of(server, Some(name)));
        let known = known.and_then(|known| known.service.clone());
        known.unwrap_or_else(|| Service { name: name.into(), records: Vec::new() })
    }

    /// Among the backups or the others. A server that is itself a backup uses only the lowest priority, as in
    /// nginx.
    pub(super) fn places(&self, server: &Server, backup: bool) -> Vec<Place> {
        let records = self.records.iter().filter(|record| !record.addresses.is_empty());
        let lowest = records.clone().map(|record| record.priority).min();
        let is_there = |record: &&ServiceRecord| match (server.backup, Some(record.priority) == lowest) {
            (true, is_lowest) => backup && is_lowest,
            (false, is_lowest) => backup != is_lowest,
        };
        let place = |record: &ServiceRecord, address: &Address| {
            let written = server.parameters.weight;
            let weight = if written == 1 { record.weight } else { written };
            let parameters = Parameters { weight, ..server.parameters };
            Place { server: record.target.clone(), address: address.clone(), parameters }
        };
        let records = records.filter(is_there);
        records
            .flat_map(|record| record.addresses.iter().map(move |address| place(record, address)))
            .collect()
    }
}

impl Server {
    pub fn is_of(&self, name: &str, service: Option<&str>) -> bool {
        *self.name == *name && self.service.as_ref().map(|own| &*own.name) == service
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::Group;
    use crate::group::fixture::{group, now, server, upstream};
    use crate::peers::Version;
    use crate::{Ask, Edit, ServerChange};
    use millstream_conf::model::{BalanceMethod, HostPort, PeerAddress, UpstreamServer};

    fn service(weight: u32, backup: bool) -> UpstreamServer {
        UpstreamServer {
            name: "api.example".to_owned(),
            address: PeerAddress::Name(HostPort { host: "api.example".to_owned(), port: 80 }),
            resolve: true,
            service: Some("http".to_owned()),
            weight,
            backup,
            ..server(1)
        }
    }

    fn record(weight: i64, priority: u16, ports: &[u16]) -> ServiceRecord {
        let tcp = |port: &u16| Address::Tcp(([127, 0, 0, 1], *port).into());
        let target = format!("host{}.example", ports[0]);
        ServiceRecord { target: target.into(), priority, weight, addresses: ports.iter().map(tcp).collect() }
    }

    fn moved(group: &Group, records: &[ServiceRecord]) {
        group.move_service("api.example", "http", records);
    }

    /// Each peer with its weight, in parentheses if it is a backup.
    fn peers(group: &Group) -> String {
        let accounts = group.in_force();
        let text = accounts.accounts(now()).map(|account| {
            let text =
                format!("{}*{}", account.name.trim_start_matches("127.0.0.1:"), account.parameters.weight);
            if account.backup { format!("({text})") } else { text }
        });
        text.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn records_are_peers_with_weights_of_their_own_and_later_priorities_are_backups() {
        let group = group(BalanceMethod::RoundRobin, vec![server(1), service(1, false), server(2)]);
        assert_eq!(peers(&group), "1*1 2*1", "a service that is offered nowhere has no peer");
        let records = [record(5, 1, &[7, 8]), record(3, 1, &[9]), record(4, 2, &[10])];
        moved(&group, &records);
        assert_eq!(peers(&group), "1*1 7*5 8*5 9*3 2*1 (10*4)");
        let version = group.in_force().number;
        moved(&group, &records);
        group.move_service("api.example", "other", &[]);
        group.move_server("api.example", Vec::new());
        assert_eq!(group.in_force().number, version, "nothing has changed");
        moved(&group, &[record(2, 1, &[9]), record(2, 1, &[9])]);
        assert_eq!(peers(&group), "1*1 9*2 9*2 2*1", "two equal records are two peers");
        let nowhere = ServiceRecord { addresses: Vec::new(), ..record(2, 0, &[9]) };
        moved(&group, &[nowhere, record(2, 1, &[9]), record(2, 3, &[10])]);
        assert_eq!(peers(&group), "1*1 9*2 2*1 (10*2)", "a record without addresses has no priority");
        moved(&group, &[]);
        assert_eq!(peers(&group), "1*1 2*1");
    }

    #[test]
    fn a_weight_or_backup_that_is_written_applies_to_all_records() {
        let records = [record(5, 1, &[7]), record(3, 2, &[8])];
        for (written, method, expected) in [
            (service(9, false), BalanceMethod::RoundRobin, "1*1 7*9 (8*9)"),
            (service(1, true), BalanceMethod::LeastConn, "1*1 (7*5)"),
            (service(1, false), BalanceMethod::IpHash, "1*1 7*5 (8*3)"),
        ] {
            let group = group(method, vec![server(1), written]);
            moved(&group, &records);
            assert_eq!(peers(&group), expected);
        }
    }

    #[test]
    fn a_reload_keeps_the_records_and_a_peer_that_stays_keeps_its_number_and_failures() {
        let before = group(BalanceMethod::RoundRobin, vec![service(1, false)]);
        moved(&before, &[record(5, 1, &[7]), record(5, 1, &[8])]);
        let version = Version::of(before.in_force());
        let ask = Ask { key: b"", session: None, tried: &mut version.tried(0), now: now() };
        assert!(version.choose(ask).expect("live").failed(now()));
        let number = version.iter().next().map(|peer| peer.id);
        moved(&before, &[record(6, 1, &[7]), record(5, 1, &[9])]);
        assert_eq!(before.in_force().iter().next().map(|peer| peer.id), number);
        let states: Vec<_> = before.in_force().accounts(now()).map(|account| account.state.name()).collect();
        assert_eq!(states, ["unavail", "up"]);
        let conf = upstream(BalanceMethod::RoundRobin, vec![service(3, false), server(1)]);
        let addresses = [Vec::new(), vec![Address::Tcp(([127, 0, 0, 1], 1).into())]];
        let after = Group::open(&conf, &addresses, Some(&before));
        assert_eq!(peers(&after), "7*3 9*3 1*1");
    }

    #[test]
    fn an_edit_is_of_the_whole_service_and_outlives_its_records() {
        let group = group(BalanceMethod::RoundRobin, vec![service(1, false), server(1)]);
        moved(&group, &[record(5, 1, &[7]), record(3, 2, &[8])]);
        let ids: Vec<u64> = group.in_force().iter().map(|peer| peer.id).collect();
        let change = ServerChange { weight: Some(9), ..ServerChange::default() };
        let changed = group.edit(&Edit::Change(ids[2], change)).expect("the backup");
        assert_eq!(changed, [ids[0], ids[2]]);
        moved(&group, &[record(5, 1, &[7]), record(3, 2, &[9])]);
        assert_eq!(peers(&group), "7*9 1*1 (9*9)");
        assert!(group.edit(&Edit::Remove(ids[0])).expect("it is there").is_empty());
        moved(&group, &[record(5, 1, &[7])]);
        assert_eq!(peers(&group), "1*1");
    }

    #[test]
    fn the_state_file_keeps_what_is_to_be_resolved() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("api.conf");
        let name = UpstreamServer { service: None, max_fails: 0, ..service(1, false) };
        let mut conf = upstream(BalanceMethod::RoundRobin, vec![name, service(2, true), server(1)]);
        conf.state = Some(path.clone());
        let address = Address::Tcp(([127, 0, 0, 1], 1).into());
        let group = Group::open(&conf, &[Vec::new(), Vec::new(), vec![address]], None);
        let number = group.in_force().iter().next().map(|peer| peer.id).expect("a peer");
        assert!(group.edit(&Edit::Remove(number)).expect("it is there").is_empty());
        let written = std::fs::read_to_string(path).expect("it is there");
        let expected = [
            "server api.example max_fails=0 resolve;\n",
            "server api.example weight=2 resolve service=http backup;\n",
        ];
        assert_eq!(written, expected.concat());
    }

    #[test]
    fn keys_of_a_consistent_hash_belong_to_targets() {
        let group = group(BalanceMethod::ConsistentHash, vec![service(1, false)]);
        let records = [record(1, 1, &[7]), record(1, 1, &[8]), record(1, 1, &[9])];
        let owners = || -> Vec<String> {
            let version = Version::of(group.in_force());
            let owner = |key: u32| {
                let key = format!("key-{key}");
                let ask =
                    Ask { key: key.as_bytes(), session: None, tried: &mut version.tried(0), now: now() };
                version.choose(ask).expect("live").peer().name.to_string()
            };
            (0..90).map(owner).collect()
        };
        moved(&group, &records);
        let before = owners();
        moved(&group, &records[..2]);
        let staying = before.iter().zip(owners()).filter(|(before, _)| !before.ends_with(":9"));
        assert!(staying.into_iter().all(|(before, after)| *before == after), "{before:?}");
        assert!([":7", ":8", ":9"].iter().all(|port| before.iter().any(|owner| owner.ends_with(port))));
    }
}
