//! Groups as a request sees them: backups, tries, and turns that are given back.

use super::{Group, NoPeer};
use millstream_conf::model::{KeepaliveSize, PeerAddress, Upstream, UpstreamKeepalive, UpstreamServer};
use millstream_net::address::Address;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn server(port: u16) -> UpstreamServer {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    UpstreamServer {
        name: address.to_string(),
        span: Default::default(),
        address: PeerAddress::Tcp(address),
        weight: 1,
        max_fails: 1,
        fail_timeout: Duration::from_secs(10),
        backup: false,
        down: false,
        max_conns: 0,
    }
}

fn group(servers: Vec<UpstreamServer>) -> Arc<Group> {
    let addresses: Vec<Vec<Address>> = servers
        .iter()
        .map(|server| match &server.address {
            PeerAddress::Tcp(address) => vec![Address::Tcp(*address)],
            _ => Vec::new(),
        })
        .collect();
    let keepalive = UpstreamKeepalive {
        size: KeepaliveSize::Fixed(32),
        requests: 1000,
        time: Duration::from_secs(3600),
        timeout: Duration::from_secs(60),
    };
    let conf = Upstream {
        name: "api".into(),
        span: Default::default(),
        implicit: false,
        servers,
        keepalive,
        zone: None,
    };
    Group::open(&conf, &addresses)
}

#[allow(clippy::disallowed_methods, reason = "a start for a fake clock")]
fn start() -> Instant {
    Instant::now()
}

#[test]
fn a_request_asks_each_server_once_and_then_the_backups() {
    let now = start();
    let group = group(vec![server(1), UpstreamServer { backup: true, ..server(9) }, server(2)]);
    let mut tried = group.tried(0);
    let mut asked = Vec::new();
    while tried.left() > 0 {
        let turn = group.choose(&mut tried, now).expect("a live peer");
        asked.push(turn.peer().name.to_string());
    }
    assert_eq!(asked, ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:9"]);
    assert_eq!(group.choose(&mut tried, now).err(), Some(NoPeer));
}

#[test]
fn tries_are_bounded_by_the_directive_and_by_the_servers_that_are_up() {
    let group = group(vec![server(1), server(2), UpstreamServer { down: true, ..server(3) }]);
    assert_eq!(group.tried(0).left(), 2);
    assert_eq!(group.tried(1).left(), 1);
    assert_eq!(group.tried(5).left(), 2);
}

#[test]
fn a_single_server_is_asked_whatever_it_did() {
    let now = start();
    let group = group(vec![server(1)]);
    for _ in 0..10 {
        let turn = group.choose(&mut group.tried(0), now).expect("always its turn");
        assert!(!turn.failed(now));
    }
}

#[test]
fn a_full_single_server_is_no_live_upstream_until_a_turn_is_dropped() {
    let now = start();
    let group = group(vec![UpstreamServer { max_conns: 1, ..server(1) }]);
    let turn = group.choose(&mut group.tried(0), now).expect("room for one");
    assert_eq!(group.active(turn.peer()), 1);
    assert_eq!(group.choose(&mut group.tried(0), now).err(), Some(NoPeer));
    drop(turn);
    assert!(group.choose(&mut group.tried(0), now).is_ok());
}

#[test]
fn all_servers_out_gives_no_live_upstream_and_comes_back() {
    let now = start();
    let group = group(vec![server(1), server(2)]);
    for _ in 0..2 {
        assert!(group.choose(&mut group.tried(0), now).expect("live").failed(now));
    }
    assert_eq!(group.choose(&mut group.tried(0), now).err(), Some(NoPeer));
    let later = now + Duration::from_secs(11);
    group.choose(&mut group.tried(0), later).expect("tested again").succeeded();
}

#[test]
fn more_than_64_servers_are_each_asked_once() {
    let now = start();
    let group = group((1..=150).map(server).collect());
    let mut tried = group.tried(0);
    let mut seen = std::collections::HashSet::new();
    while tried.left() > 0 {
        let turn = group.choose(&mut tried, now).expect("live");
        assert!(seen.insert(turn.peer().index), "asked twice");
    }
    assert_eq!(seen.len(), 150);
}
