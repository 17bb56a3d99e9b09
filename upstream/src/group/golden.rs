//! Hash methods beside nginx's own choices: the same server for the same key, and the same ones after it.
//!
//! Request `i` has the key `key-i`; its client is `(7i).(i/3).(31i).(i mod 200)` for an even one, each number modulo 256, and
//! `2001:db8:i::(17i mod 65536)` for an odd one. All requests of a list go through one group, one after the other, so that what falls
//! back on turns has nginx's turns. `golden/nginx.txt` is what nginx answered.

use super::Group;
use super::fixture::{now, server, upstream};
use crate::Ask;
use crate::peers::Version;
use crate::tried::Tried;
use millstream_conf::model::{BalanceMethod, PeerAddress, UpstreamServer};
use millstream_net::address::Address;
use std::net::{Ipv4Addr, Ipv6Addr};

const SERVERS: [&str; 5] =
    ["127.0.0.1:11", "127.0.0.2:12", "unix:/nowhere/c.sock", "127.0.0.4:14", "[::1]:15"];

fn version(method: BalanceMethod, weights: [u32; 5]) -> Version {
    let servers = SERVERS.iter().zip(weights).map(|(name, weight)| UpstreamServer {
        name: (*name).to_owned(),
        address: match name.strip_prefix("unix:") {
            Some(path) => PeerAddress::Unix(path.into()),
            None => PeerAddress::Tcp(name.parse().expect("an address")),
        },
        weight,
        max_fails: 0,
        ..server(1)
    });
    let conf = upstream(method, servers.collect());
    let addresses: Vec<Vec<Address>> =
        conf.servers.iter().map(|server| Address::of_peer(&server.address).into_iter().collect()).collect();
    Version::of(Group::open(&conf, &addresses, None).in_force())
}

fn key(method: BalanceMethod, request: usize) -> Vec<u8> {
    if method != BalanceMethod::IpHash {
        return format!("key-{request}").into_bytes();
    }
    let octet = |number: usize| (number % 256) as u8;
    match request % 2 {
        0 => Ipv4Addr::new(octet(request * 7), octet(request / 3), octet(request * 31), octet(request % 200))
            .octets()
            .to_vec(),
        _ => {
            let (middle, last) = (request as u16, (request * 17 % 65_536) as u16);
            Ipv6Addr::new(0x2001, 0xdb8, middle, 0, 0, 0, 0, last).octets().to_vec()
        }
    }
}

fn next(version: &Version, key: &[u8], tried: &mut Tried) -> char {
    let turn =
        version.choose(Ask { key, session: None, tried, now: now() }).expect("none of them is ever out");
    let name = &turn.peer().name;
    let letter = SERVERS.iter().zip("abcde".chars()).find(|(server, _)| ***server == **name);
    let letter = letter.expect("one of the five").1;
    assert!(!turn.failed(now()));
    letter
}

#[test]
fn hash_methods_ask_the_servers_that_nginx_asks_in_its_order() {
    let lines = include_str!("golden/nginx.txt").lines().skip(3);
    let mut lists: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in lines {
        match line.strip_prefix("# ") {
            Some(title) => lists.push((title, Vec::new())),
            None => lists.last_mut().expect("a title comes first").1.push(line),
        }
    }
    assert_eq!(lists.len(), 6);
    for (title, lines) in lists {
        let (method, weights) = title.split_once(' ').expect("two words");
        let method = match method {
            "ip_hash" => BalanceMethod::IpHash,
            "hash" => BalanceMethod::Hash,
            "consistent" => BalanceMethod::ConsistentHash,
            other => panic!("{other}"),
        };
        let weights = if weights == "even" { [1; 5] } else { [1, 3, 2, 1, 5] };
        let (first, orders) = lines.split_at(10);
        let group = version(method, weights);
        for (request, expected) in first.concat().chars().enumerate() {
            let found = next(&group, &key(method, request), &mut group.tried(0));
            assert_eq!(found, expected, "{title}, request {request}");
        }
        let group = version(method, weights);
        for (request, expected) in orders.join(" ").split(' ').enumerate() {
            let (key, mut tried) = (key(method, request), group.tried(0));
            let found: String = (0..expected.len()).map(|_| next(&group, &key, &mut tried)).collect();
            assert_eq!(found, expected, "{title}, all servers of request {request}");
        }
    }
}
