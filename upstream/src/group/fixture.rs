//! Groups for tests, and a clock that only they move.

use super::Group;
use crate::peers::Version;
use millstream_conf::model::{
    Balance, BalanceMethod, KeepaliveSize, PeerAddress, Upstream, UpstreamKeepalive, UpstreamServer,
};
use millstream_net::address::Address;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// A moment to count from; tests only add to it.
#[allow(clippy::disallowed_methods, reason = "a start for a fake clock")]
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

pub(crate) fn now() -> Instant {
    *START
}

pub(crate) fn server(port: u16) -> UpstreamServer {
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
        resolve: false,
        service: None,
        max_conns: 0,
        drain: false,
        route: None,
        slow_start: Duration::ZERO,
    }
}

pub(crate) fn weighted(port: u16, weight: u32) -> UpstreamServer {
    UpstreamServer { weight, ..server(port) }
}

pub(crate) fn upstream(method: BalanceMethod, servers: Vec<UpstreamServer>) -> Upstream {
    Upstream {
        name: "api".into(),
        span: Default::default(),
        implicit: false,
        servers,
        balance: Balance { method, key: None },
        keepalive: UpstreamKeepalive {
            size: KeepaliveSize::Fixed(32),
            requests: 1000,
            time: Duration::from_secs(3600),
            timeout: Duration::from_secs(60),
        },
        resolver: None,
        resolver_timeout: None,
        zone: None,
        state: None,
        sticky: None,
        queue: None,
        outlier_ejection: None,
        checks: Vec::new(),
    }
}

pub(crate) fn group(method: BalanceMethod, servers: Vec<UpstreamServer>) -> Arc<Group> {
    let conf = upstream(method, servers);
    let addresses: Vec<Vec<Address>> =
        conf.servers.iter().map(|server| Address::of_peer(&server.address).into_iter().collect()).collect();
    Group::open(&conf, &addresses, None)
}

pub(crate) fn version(method: BalanceMethod, servers: Vec<UpstreamServer>) -> Version {
    Version::of(group(method, servers).in_force())
}
