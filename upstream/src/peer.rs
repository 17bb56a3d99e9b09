//! One upstream server as it is connected to. Plain data; its load and health live in `balance`.
//!
//! It is made at load and never changes. Next: `group`, which owns them; `pool`, which keeps connections to them.

use millstream_net::address::Address;
use std::sync::Arc;
use std::time::Duration;

/// One address of an upstream group.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Its place in the group; idle connections are found by it.
    pub index: u32,
    /// Where it is.
    pub address: Address,
    /// `$upstream_addr`: `ip:port` or `unix:/path`.
    pub name: Arc<str>,
}

/// What balancing knows of a peer from the configuration.
#[derive(Debug, Clone, Copy)]
pub struct Parameters {
    /// Its share; at least 1.
    pub weight: i64,
    /// Failures within `fail_timeout` that take it out; 0 = never.
    pub max_fails: u32,
    /// The time that failures are counted over, and that it stays out.
    pub fail_timeout: Duration,
    /// Never used.
    pub down: bool,
    /// Connections at a time; 0 = no bound.
    pub max_conns: u32,
}
