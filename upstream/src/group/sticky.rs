//! Sessions beside nginx's own choices, and what becomes of them when their server cannot be asked.
//!
//! Request `i` has the key `key-i`, and the session of the server `abcdex[(i² + i/7) mod 6]` unless `i mod 3` is 1; those from 120 to
//! 149 are all a's. All requests of a list go through one group, one after the other. `golden/sticky.txt` is what nginx answered.

use super::fixture::{now, server, version, weighted};
use crate::Ask;
use crate::peers::{NoPeer, Turn, Version};
use millstream_conf::model::{BalanceMethod, UpstreamServer};
use std::time::Duration;

fn ask(version: &Version, key: &str, session: &str) -> Result<Turn, NoPeer> {
    let session = Some(session.as_bytes()).filter(|session| !session.is_empty());
    version.choose(Ask { key: key.as_bytes(), session, tried: &mut version.tried(0), now: now() })
}

fn routed(server: UpstreamServer, route: &str) -> UpstreamServer {
    UpstreamServer { route: Some(route.into()), ..server }
}

/// a, b with weight 3, c with 2, d draining, e down.
fn five(method: BalanceMethod) -> Version {
    let d = UpstreamServer { drain: true, ..server(4) };
    let e = UpstreamServer { down: true, ..server(5) };
    let servers = [server(1), weighted(2, 3), weighted(3, 2), d, e];
    let servers = servers.into_iter().zip(["a", "b", "c", "d", "e"]);
    version(method, servers.map(|(server, route)| routed(server, route)).collect())
}

#[test]
fn sessions_go_to_the_servers_that_nginx_asks_and_the_others_around_them() {
    let mut lines = include_str!("golden/sticky.txt").lines().skip(2);
    for method in [BalanceMethod::RoundRobin, BalanceMethod::LeastConn, BalanceMethod::Hash] {
        let title = lines.next().expect("a title");
        let expected = lines.next().expect("the responses");
        let group = five(method);
        for (request, expected) in expected.char_indices() {
            let session = match request {
                120..150 => "a",
                _ if request % 3 == 1 => "",
                _ => {
                    let place = (request * request + request / 7) % 6;
                    &"abcdex"[place..=place]
                }
            };
            let turn = ask(&group, &format!("key-{request}"), session).expect("three are live");
            assert_eq!(turn.session_name(), expected.to_string(), "{title}, request {request}");
            turn.succeeded(now());
        }
    }
}

#[test]
fn a_server_without_a_route_is_called_by_the_hash_of_its_address() {
    let group = version(BalanceMethod::RoundRobin, vec![server(8081), server(8082)]);
    // printf 127.0.0.1:8082 | md5sum
    let name = "91d8c8e93642cca5c0f2be69d199ee22";
    let names: Vec<String> =
        (0..2).map(|_| ask(&group, "", "").expect("live").session_name().to_owned()).collect();
    assert!(names.iter().all(|name| name.len() == 32) && names[0] != names[1], "{names:?}");
    assert_eq!(names[1], name);
}

#[test]
fn a_session_goes_elsewhere_while_its_server_is_out_or_full_and_comes_back() {
    for method in [BalanceMethod::RoundRobin, BalanceMethod::LeastConn, BalanceMethod::Random] {
        let full = UpstreamServer { max_conns: 1, ..server(2) };
        let group = version(method, vec![routed(server(1), "a"), routed(full, "b"), routed(server(3), "c")]);
        let name = |session: &str| ask(&group, "", session).expect("live").session_name().to_owned();
        let held = ask(&group, "", "b").expect("live");
        assert_ne!(name("b"), "b");
        drop(held);
        assert_eq!(name("b"), "b");
        assert!(ask(&group, "", "a").expect("live").failed(now()));
        assert_ne!(name("a"), "a");
        let later = now() + Duration::from_secs(11);
        let again = Ask { key: b"", session: Some(b"a"), tried: &mut group.tried(0), now: later };
        let back = group.choose(again).expect("live");
        assert_eq!(back.session_name(), "a");
        back.succeeded(later);
        assert_eq!(name("a"), "a");
    }
}

#[test]
fn a_server_that_is_to_drain_is_for_its_own_sessions_even_where_it_is_alone() {
    let draining = UpstreamServer { drain: true, ..routed(server(1), "a") };
    for servers in [vec![draining.clone()], vec![draining.clone(), draining]] {
        let group = version(BalanceMethod::RoundRobin, servers);
        assert_eq!(ask(&group, "", "a").expect("its own").session_name(), "a");
        assert_eq!(ask(&group, "", "").err(), Some(NoPeer));
        assert_eq!(ask(&group, "", "b").err(), Some(NoPeer));
    }
}

#[test]
fn a_backup_has_sessions_too_once_the_others_are_out() {
    let backup = |port, route| UpstreamServer { backup: true, ..routed(server(port), route) };
    for method in [BalanceMethod::RoundRobin, BalanceMethod::LeastConn] {
        let group = version(method, vec![server(1), backup(2, "a"), backup(3, "b")]);
        assert_ne!(ask(&group, "", "b").expect("live").session_name(), "b");
        assert!(ask(&group, "", "").expect("live").failed(now()));
        for _ in 0..4 {
            assert_eq!(ask(&group, "", "b").expect("a backup").session_name(), "b");
        }
    }
}
