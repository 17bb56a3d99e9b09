//! Groups as a request sees them: backups, tries, turns that are given back, and what a new version keeps.

use super::fixture::{group as of_method, now as start, server};
use crate::peers::{NoPeer, Version};
use crate::{Ask, Group};
use millstream_conf::model::{BalanceMethod, UpstreamServer};
use millstream_net::address::Address;
use std::sync::Arc;
use std::time::Duration;

fn group(servers: Vec<UpstreamServer>) -> Arc<Group> {
    of_method(BalanceMethod::RoundRobin, servers)
}

fn version(servers: Vec<UpstreamServer>) -> Version {
    Version::of(group(servers).in_force())
}

#[test]
fn a_request_asks_each_server_once_and_then_the_backups() {
    let now = start();
    let group = version(vec![server(1), UpstreamServer { backup: true, ..server(9) }, server(2)]);
    let mut tried = group.tried(0);
    let mut asked = Vec::new();
    while tried.left() > 0 {
        let turn =
            group.choose(Ask { key: b"", session: None, tried: &mut tried, now }).expect("a live peer");
        asked.push(turn.peer().name.to_string());
    }
    assert_eq!(asked, ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:9"]);
    assert_eq!(group.choose(Ask { key: b"", session: None, tried: &mut tried, now }).err(), Some(NoPeer));
}

#[test]
fn tries_are_bounded_by_the_directive_and_by_the_servers_that_are_up() {
    let group = version(vec![server(1), server(2), UpstreamServer { down: true, ..server(3) }]);
    assert_eq!(group.tried(0).left(), 2);
    assert_eq!(group.tried(1).left(), 1);
    assert_eq!(group.tried(5).left(), 2);
}

#[test]
fn a_single_server_is_asked_whatever_it_did() {
    let now = start();
    let group = version(vec![server(1)]);
    for _ in 0..10 {
        let turn = group
            .choose(Ask { key: b"", session: None, tried: &mut group.tried(0), now })
            .expect("always its turn");
        assert!(!turn.failed(now));
    }
}

#[test]
fn a_full_single_server_is_no_live_upstream_until_a_turn_is_dropped() {
    let now = start();
    let group = version(vec![UpstreamServer { max_conns: 1, ..server(1) }]);
    let turn =
        group.choose(Ask { key: b"", session: None, tried: &mut group.tried(0), now }).expect("room for one");
    assert_eq!(group.active(turn.peer()), 1);
    assert_eq!(
        group.choose(Ask { key: b"", session: None, tried: &mut group.tried(0), now }).err(),
        Some(NoPeer)
    );
    drop(turn);
    assert!(group.choose(Ask { key: b"", session: None, tried: &mut group.tried(0), now }).is_ok());
}

#[test]
fn all_servers_out_gives_no_live_upstream_and_comes_back() {
    let now = start();
    let group = version(vec![server(1), server(2)]);
    for _ in 0..2 {
        assert!(
            group
                .choose(Ask { key: b"", session: None, tried: &mut group.tried(0), now })
                .expect("live")
                .failed(now)
        );
    }
    assert_eq!(
        group.choose(Ask { key: b"", session: None, tried: &mut group.tried(0), now }).err(),
        Some(NoPeer)
    );
    let later = now + Duration::from_secs(11);
    group
        .choose(Ask { key: b"", session: None, tried: &mut group.tried(0), now: later })
        .expect("tested again")
        .succeeded(now);
}

#[test]
fn more_than_64_servers_are_each_asked_once() {
    let now = start();
    let group = version((1..=150).map(server).collect());
    let mut tried = group.tried(0);
    let mut seen = std::collections::HashSet::new();
    while tried.left() > 0 {
        let turn = group.choose(Ask { key: b"", session: None, tried: &mut tried, now }).expect("live");
        assert!(seen.insert(turn.peer().id), "asked twice");
    }
    assert_eq!(seen.len(), 150);
}

fn tcp(port: u16) -> Address {
    Address::Tcp(([127, 0, 0, 1], port).into())
}

fn peers(group: &Group) -> Vec<(String, u64)> {
    group.in_force().iter().map(|peer| (peer.name.to_string(), peer.id)).collect()
}

#[test]
fn a_new_version_keeps_numbers_and_order_of_the_peers_that_stay() {
    let group = group(vec![server(1), server(2)]);
    group.publish(|servers| servers[0].addresses = vec![tcp(11), tcp(12), tcp(13)]);
    let before = peers(&group);
    assert_eq!(before.len(), 4);
    // The name server turns its answers round, one address is gone and one is new.
    group.publish(|servers| servers[0].addresses = vec![tcp(14), tcp(13), tcp(11)]);
    let after = peers(&group);
    let names: Vec<&str> = after.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["127.0.0.1:11", "127.0.0.1:13", "127.0.0.1:14", "127.0.0.1:2"]);
    for (name, id) in &after {
        match before.iter().find(|(known, _)| known == name) {
            Some((_, known)) => assert_eq!(known, id, "{name} is the same peer"),
            None => assert!(before.iter().all(|(_, known)| known != id), "{name} is nobody else"),
        }
    }
}

#[test]
fn a_peer_that_stays_keeps_its_failures_and_its_load() {
    let now = start();
    let group = of_method(BalanceMethod::LeastConn, vec![server(1), server(2)]);
    let old = Version::of(group.in_force());
    let choose = |version: &Version| {
        version.choose(Ask { key: b"", session: None, tried: &mut version.tried(0), now })
    };
    let open = choose(&old).expect("live");
    assert!(choose(&old).expect("live").failed(now));
    group.publish(|servers| {
        servers.push(crate::Server { name: "new".into(), addresses: vec![tcp(3)], ..servers[0].clone() })
    });
    let new = Version::of(group.in_force());
    let staying = new.iter().find(|peer| peer.id == open.peer().id).expect("it stays");
    assert_eq!(new.active(staying), 1);
    let next = choose(&new).expect("the new one idles");
    assert_eq!(&*next.peer().name, "127.0.0.1:3");
    // A turn of the old version is given back to the peer, which is the new version's too.
    let staying = staying.clone();
    open.succeeded(now);
    assert_eq!(new.active(&staying), 0);
}

#[test]
fn a_request_goes_on_with_the_version_that_it_began_with() {
    let now = start();
    let group = group(vec![server(1), server(2)]);
    let old = Version::of(group.in_force());
    let mut tried = old.tried(0);
    let first = old.choose(Ask { key: b"", session: None, tried: &mut tried, now }).expect("live");
    group.publish(|servers| servers.truncate(1));
    assert!(!first.failed(now) || tried.left() == 1);
    let second = old
        .choose(Ask { key: b"", session: None, tried: &mut tried, now })
        .expect("it was there at the beginning");
    assert_eq!(&*second.peer().name, "127.0.0.1:2");
    assert_eq!(peers(&group).len(), 1);
}

#[test]
fn a_server_without_an_address_is_down_in_its_place_until_it_has_one() {
    let now = start();
    let group = group(vec![server(1), server(2)]);
    group.publish(|servers| servers[1].addresses.clear());
    let version = Version::of(group.in_force());
    assert_eq!((version.iter().count(), version.tried(0).left()), (2, 1));
    for _ in 0..4 {
        let turn = version
            .choose(Ask { key: b"", session: None, tried: &mut version.tried(0), now })
            .expect("one is live");
        assert_eq!(&*turn.peer().name, "127.0.0.1:1");
    }
    group.publish(|servers| servers[1].addresses = vec![tcp(9)]);
    assert_eq!(Version::of(group.in_force()).tried(0).left(), 2);
    group.publish(|servers| servers.iter_mut().for_each(|server| server.addresses.clear()));
    let nobody = Version::of(group.in_force());
    assert_eq!(
        nobody.choose(Ask { key: b"", session: None, tried: &mut nobody.tried(0), now }).err(),
        Some(NoPeer)
    );
}
