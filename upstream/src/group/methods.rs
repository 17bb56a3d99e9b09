//! Methods as a request meets them: who is asked, in which shares, and what failures and load change.

use super::fixture::{now, server, version, weighted};
use crate::Ask;
use crate::peers::{NoPeer, Turn, Version};
use millstream_conf::model::{BalanceMethod, TimeTo, UpstreamServer};
use millstream_net::address::Address;
use std::time::{Duration, Instant};

fn first(version: &Version, key: &str, now: Instant) -> Result<Turn, NoPeer> {
    version.choose(Ask { key: key.as_bytes(), session: None, tried: &mut version.tried(0), now })
}

fn port(turn: &Turn) -> u16 {
    let Address::Tcp(address) = turn.peer().address else { panic!("all are TCP") };
    address.port()
}

const BY_KEY: [BalanceMethod; 3] =
    [BalanceMethod::Hash, BalanceMethod::ConsistentHash, BalanceMethod::IpHash];

#[test]
fn least_conn_asks_the_server_with_the_fewest_requests_for_its_weight() {
    let version = version(BalanceMethod::LeastConn, vec![weighted(1, 1), weighted(2, 2), weighted(3, 1)]);
    // Two units of weight get twice as many requests that are all still open.
    let open: Vec<Turn> = (0..40).map(|_| first(&version, "", now()).expect("live")).collect();
    let count = |wanted: u16| open.iter().filter(|turn| port(turn) == wanted).count();
    assert_eq!((count(1), count(2), count(3)), (10, 20, 10));
    // Whoever is done with its requests has the next ones.
    let (idle, busy): (Vec<_>, Vec<_>) = open.into_iter().partition(|turn| port(turn) == 3);
    drop(idle);
    let next: Vec<Turn> = (0..10).map(|_| first(&version, "", now()).expect("live")).collect();
    assert!(next.iter().all(|turn| port(turn) == 3));
    drop(busy);
}

#[test]
fn equals_of_least_conn_take_turns_by_weight() {
    let version = version(BalanceMethod::LeastConn, vec![weighted(1, 2), weighted(2, 1)]);
    let ports: Vec<u16> = (0..6)
        .map(|_| {
            let turn = first(&version, "", now()).expect("live");
            let port = port(&turn);
            turn.succeeded(now());
            port
        })
        .collect();
    assert_eq!(ports, [1, 2, 1, 1, 2, 1]);
}

#[test]
fn least_conn_asks_the_less_loaded_backup_when_the_others_are_out() {
    let backup = |port| UpstreamServer { backup: true, ..server(port) };
    let version = version(BalanceMethod::LeastConn, vec![server(1), backup(2), backup(3)]);
    assert!(first(&version, "", now()).expect("live").failed(now()));
    let open: Vec<Turn> = (0..10).map(|_| first(&version, "", now()).expect("a backup")).collect();
    assert_eq!(open.iter().filter(|turn| port(turn) == 2).count(), 5);
    assert_eq!(open.iter().filter(|turn| port(turn) == 3).count(), 5);
}

/// The head comes after the first time, the rest after the second.
fn ask_for(version: &Version, at: Instant, times: impl Fn(u16) -> (u64, u64)) -> u16 {
    let turn = first(version, "", at).expect("live");
    let port = port(&turn);
    let (head, rest) = times(port);
    let head = at + Duration::from_millis(head);
    turn.answered(head);
    turn.succeeded(head + Duration::from_millis(rest));
    port
}

#[test]
fn least_time_asks_the_server_whose_heads_or_answers_came_fastest() {
    // The first is quick with its heads and slow with the rest.
    let times = |port| if port == 1 { (10, 900) } else { (110, 20) };
    for (to, wanted) in [(TimeTo::Header, 1), (TimeTo::LastByte, 2)] {
        for inflight in [false, true] {
            let method = BalanceMethod::LeastTime { to, inflight };
            let version = version(method, vec![server(1), server(2)]);
            let mut ports: Vec<u16> = (0..10).map(|_| ask_for(&version, now(), times)).collect();
            ports.drain(..2);
            assert!(ports.iter().all(|port| *port == wanted), "{method:?}: {ports:?}");
        }
    }
}

#[test]
fn least_time_counts_requests_that_are_before_one_and_weight() {
    let method = BalanceMethod::LeastTime { to: TimeTo::LastByte, inflight: false };
    let version = version(method, vec![weighted(1, 1), weighted(2, 3)]);
    for _ in 0..20 {
        ask_for(&version, now(), |_| (0, 50));
    }
    let open: Vec<Turn> = (0..40).map(|_| first(&version, "", now()).expect("live")).collect();
    assert_eq!(open.iter().filter(|turn| port(turn) == 1).count(), 10);
}

#[test]
fn least_time_takes_turns_among_those_that_are_about_as_fast() {
    let method = BalanceMethod::LeastTime { to: TimeTo::LastByte, inflight: false };
    let version = version(method, (1..=2).map(server).collect());
    let ports: Vec<u16> =
        (0..6).map(|_| ask_for(&version, now(), |port| (0, 40 + 5 * u64::from(port)))).collect();
    // The second one is fastest as long as nothing is known of it.
    assert_eq!(ports, [1, 2, 2, 1, 2, 1]);
}

#[test]
fn least_time_inflight_goes_around_a_server_that_hangs() {
    for inflight in [false, true] {
        let method = BalanceMethod::LeastTime { to: TimeTo::Header, inflight };
        let version = version(method, (1..=2).map(server).collect());
        for _ in 0..4 {
            ask_for(&version, now(), |_| (5, 0));
        }
        // The first one does not answer; the second one has three requests at a time before it.
        let hangs = first(&version, "", now()).expect("live");
        let later = now() + Duration::from_secs(2);
        let open: Vec<Turn> = (0..3).map(|_| first(&version, "", later).expect("live")).collect();
        let beside = open.iter().filter(|turn| port(turn) != port(&hangs)).count();
        assert_eq!(beside, if inflight { 3 } else { 2 });
    }
}

#[test]
fn random_two_with_least_time_prefers_the_faster_of_two() {
    let version = version(BalanceMethod::RandomTwoLeastTime(TimeTo::Header), (1..=3).map(server).collect());
    let times = |port| (if port == 1 { 500 } else { 5 }, 0);
    let ports: Vec<u16> = (0..200).map(|_| ask_for(&version, now(), times)).collect();
    // It is asked until it is known to be slow, and never again beside another.
    assert!(ports.iter().filter(|port| **port == 1).count() <= 5, "{ports:?}");
}

#[test]
fn random_spreads_requests_by_weight() {
    let version = version(BalanceMethod::Random, vec![weighted(1, 1), weighted(2, 2), weighted(3, 5)]);
    let mut counts = [0u32; 4];
    for _ in 0..8000 {
        let turn = first(&version, "", now()).expect("live");
        counts[usize::from(port(&turn))] += 1;
        turn.succeeded(now());
    }
    // More than six standard deviations on either side.
    assert!((800..1200).contains(&counts[1]), "{counts:?}");
    assert!((1740..2260).contains(&counts[2]), "{counts:?}");
}

#[test]
fn random_two_keeps_loads_closer_together_than_chance_does() {
    let spread = |method| {
        let version = version(method, (1..=10).map(server).collect());
        let open: Vec<Turn> = (0..1000).map(|_| first(&version, "", now()).expect("live")).collect();
        let count = |wanted: u16| open.iter().filter(|turn| port(turn) == wanted).count();
        let counts: Vec<usize> = (1..=10).map(count).collect();
        counts.iter().max().expect("ten") - counts.iter().min().expect("ten")
    };
    // Two choices keep all within a few requests of each other; one choice has a deviation of nine around a hundred.
    assert!(spread(BalanceMethod::RandomTwo) <= 8);
    // Once in some thousand times chance is as even.
    assert!((0..4).any(|_| spread(BalanceMethod::Random) > 8));
}

#[test]
fn a_server_that_comes_moves_only_the_keys_that_become_its_own() {
    let ring = |count: u16| version(BalanceMethod::ConsistentHash, (1..=count).map(server).collect());
    let (four, five) = (ring(4), ring(5));
    let mut moved = 0;
    for number in 0..2000 {
        let key = format!("key {number}");
        let before = port(&first(&four, &key, now()).expect("live"));
        let after = port(&first(&five, &key, now()).expect("live"));
        assert!(after == before || after == 5, "{key} went from {before} to {after}");
        moved += u32::from(after != before);
    }
    assert!((250..600).contains(&moved), "about a fifth: {moved}");
}

#[test]
fn a_key_goes_to_another_server_while_its_own_is_out_and_comes_back() {
    for method in BY_KEY {
        let version = version(method, (1..=4).map(server).collect());
        let own = first(&version, "10.0.0.1 abcdefgh", now()).expect("live");
        let home = port(&own);
        assert!(own.failed(now()));
        let away: Vec<u16> = (0..10)
            .map(|_| port(&first(&version, "10.0.0.1 abcdefgh", now()).expect("three are live")))
            .collect();
        assert!(away[0] != home && away.iter().all(|port| *port == away[0]), "{method:?}: {away:?}");
        let later = now() + Duration::from_secs(11);
        let back = first(&version, "10.0.0.1 abcdefgh", later).expect("live");
        assert_eq!(port(&back), home, "{method:?}");
        back.succeeded(now());
    }
}

#[test]
fn keys_of_a_server_that_is_full_or_down_go_elsewhere_and_the_others_stay() {
    for method in BY_KEY {
        let whole = version(method, (1..=4).map(server).collect());
        let mut servers: Vec<UpstreamServer> = (1..=4).map(server).collect();
        servers[1].down = true;
        servers[2].max_conns = 1;
        let part = version(method, servers);
        let mut held: Option<Turn> = None;
        for number in 0..500u16 {
            let key = format!("{number:016}");
            let before = port(&first(&whole, &key, now()).expect("live"));
            let turn = first(&part, &key, now()).expect("two are always live");
            match before {
                2 => assert_ne!(port(&turn), 2, "{method:?}"),
                3 if held.is_some() => assert_ne!(port(&turn), 3, "{method:?}"),
                _ => assert_eq!(port(&turn), before, "{method:?}"),
            }
            if port(&turn) == 3 {
                held = Some(turn);
            }
        }
        assert!(held.is_some(), "{method:?}: of 500 keys some are the third's");
    }
}

#[test]
fn without_a_key_servers_take_turns() {
    for method in [BalanceMethod::Hash, BalanceMethod::ConsistentHash] {
        let version = version(method, (1..=3).map(server).collect());
        let ports: Vec<u16> = (0..6).map(|_| port(&first(&version, "", now()).expect("live"))).collect();
        assert_eq!(ports, [1, 2, 3, 1, 2, 3], "{method:?}");
    }
}

#[test]
fn every_method_asks_each_server_once_and_gives_up_when_all_are_out() {
    use BalanceMethod as Method;
    for method in [
        Method::RoundRobin,
        Method::LeastConn,
        Method::LeastTime { to: TimeTo::Header, inflight: false },
        Method::LeastTime { to: TimeTo::LastByte, inflight: true },
        Method::IpHash,
        Method::Hash,
        Method::ConsistentHash,
        Method::Random,
        Method::RandomTwo,
        Method::RandomTwoLeastTime(TimeTo::LastByte),
    ] {
        let version = version(method, (1..=70).map(server).collect());
        let mut tried = version.tried(0);
        let mut asked = std::collections::HashSet::new();
        while tried.left() > 0 {
            let ask = Ask { key: b"10.0.0.1 abcdefgh", session: None, tried: &mut tried, now: now() };
            let turn = version.choose(ask).expect("one that was not asked");
            assert!(asked.insert(port(&turn)), "{method:?} asks {} twice", port(&turn));
            assert!(turn.failed(now()));
        }
        assert_eq!(asked.len(), 70, "{method:?}");
        assert_eq!(first(&version, "some key", now()).err(), Some(NoPeer), "{method:?}");
        let later = now() + Duration::from_secs(11);
        first(&version, "some key", later).expect("all are tested again").succeeded(now());
    }
}

/// A thousand requests at one per second, one server of four away from the 200th to the 500th.
#[test]
fn a_server_that_is_away_costs_a_failure_in_each_pause_and_has_its_share_again() {
    use BalanceMethod as Method;
    for method in
        [Method::RoundRobin, Method::LeastConn, Method::Random, Method::RandomTwo, Method::ConsistentHash]
    {
        let version = version(method, (1..=4).map(server).collect());
        let (mut failures, mut after) = (0, 0);
        for second in 0..1000u64 {
            let now = now() + Duration::from_secs(second);
            let key = format!("key {second}");
            let turn = first(&version, &key, now).expect("three are always live");
            let is_away = (200..500).contains(&second);
            match port(&turn) {
                2 if is_away => {
                    failures += 1;
                    assert!(turn.failed(now));
                }
                chosen => {
                    after += u32::from(chosen == 2 && second >= 520);
                    turn.succeeded(now);
                }
            }
        }
        assert!((10..=28).contains(&failures), "{method:?}: once in 11 s or more: {failures}");
        assert!((60..190).contains(&after), "{method:?}: about a quarter of 480: {after}");
    }
}

#[test]
fn a_request_that_found_nobody_finds_whoever_is_free_later() {
    for method in
        [BalanceMethod::RoundRobin, BalanceMethod::LeastConn, BalanceMethod::Hash, BalanceMethod::RandomTwo]
    {
        let full = |port| UpstreamServer { max_conns: 1, ..server(port) };
        let version = version(method, vec![full(1), full(2)]);
        let mut held: Vec<Turn> = (0..2).map(|_| first(&version, "a", now()).expect("live")).collect();
        let mut tried = version.tried(0);
        let mut ask = || version.choose(Ask { key: b"a", session: None, tried: &mut tried, now: now() });
        assert_eq!(ask().err(), Some(NoPeer), "{method:?}");
        assert_eq!(ask().err(), Some(NoPeer), "{method:?}");
        held.pop();
        assert!(ask().is_ok(), "{method:?}");
    }
}
