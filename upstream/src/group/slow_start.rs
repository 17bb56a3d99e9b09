//! `slow_start`: a server that comes back begins with a small share, which grows to its weight.

use super::Group;
use super::fixture::{group, now, server, upstream};
use crate::Ask;
use crate::peers::Version;
use millstream_conf::model::{
    BalanceMethod, BeforeFirst, HealthCheck, HealthQuestion, HealthTerms, TimeTo, Upstream, UpstreamServer,
};
use millstream_net::address::Address;
use std::sync::Arc;
use std::time::{Duration, Instant};

const GROWS: Duration = Duration::from_secs(100);

fn slow(port: u16) -> UpstreamServer {
    UpstreamServer { slow_start: GROWS, ..server(port) }
}

/// How many of `count` simultaneous requests the first server gets.
fn of_first(version: &Version, count: usize, at: Instant) -> usize {
    let ask = || version.choose(Ask { key: b"", session: None, tried: &mut version.tried(0), now: at });
    let open: Vec<_> = (0..count).map(|_| ask().expect("live")).collect();
    open.iter().filter(|turn| &*turn.peer().name == "127.0.0.1:1").count()
}

#[test]
fn a_server_that_was_unavailable_gets_its_share_back_bit_by_bit() {
    let least_time = BalanceMethod::LeastTime { to: TimeTo::Header, inflight: false };
    for method in [BalanceMethod::RoundRobin, BalanceMethod::LeastConn, least_time] {
        let version = Version::of(group(method, vec![slow(1), slow(2)]).in_force());
        assert_eq!(of_first(&version, 100, now()), 50, "{method:?}: at the start no server comes back");
        let ask = |at| version.choose(Ask { key: b"", session: None, tried: &mut version.tried(0), now: at });
        loop {
            let turn = ask(now()).expect("live");
            if &*turn.peer().name == "127.0.0.1:1" {
                assert!(turn.failed(now()));
                break;
            }
        }
        assert_eq!(of_first(&version, 100, now()), 0);
        let back = now() + Duration::from_secs(11);
        loop {
            let turn = ask(back).expect("live");
            if &*turn.peer().name == "127.0.0.1:1" {
                turn.succeeded(back);
                break;
            }
        }
        let shares = [0, 25, 50, 100, 1000]
            .map(|seconds| of_first(&version, 1000, back + Duration::from_secs(seconds)));
        let near = [(0, 10), (190, 210), (323, 343), (490, 510), (490, 510)];
        for (share, (least, most)) in shares.into_iter().zip(near) {
            assert!((least..=most).contains(&share), "{method:?}: {shares:?}");
        }
    }
}

#[test]
fn a_server_that_was_unhealthy_gets_its_share_back_bit_by_bit() {
    let terms = HealthTerms { fails: 1, passes: 1, before: BeforeFirst::Used };
    let check = HealthCheck {
        span: Default::default(),
        interval: Duration::from_secs(5),
        jitter: Duration::ZERO,
        terms,
        question: HealthQuestion::Get { uri: "/".into(), matches: None },
        port: None,
        keepalive_time: Duration::ZERO,
    };
    let conf = Upstream {
        checks: vec![Arc::new(check)],
        ..upstream(BalanceMethod::LeastConn, vec![slow(1), slow(2)])
    };
    let of_server = |server: &UpstreamServer| Address::of_peer(&server.address).into_iter().collect();
    let addresses: Vec<Vec<Address>> = conf.servers.iter().map(of_server).collect();
    let version = Version::of(Group::open(&conf, &addresses, None).in_force());
    let peer = version.iter().next().expect("two").clone();
    version.checked(&peer, (0, &terms), false, now());
    assert_eq!(of_first(&version, 100, now()), 0);
    version.checked(&peer, (0, &terms), true, now());
    assert!(of_first(&version, 1000, now()) <= 10);
    let half = now() + GROWS / 2;
    assert!((323..=343).contains(&of_first(&version, 1000, half)));
}
