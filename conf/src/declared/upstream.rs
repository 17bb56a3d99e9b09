//! Groups of upstream servers.
//!
//! What was written, not what is: no resolved name, and of health only what is to be checked. Next: `millstream-upstream`'s `group`, one at work.

use super::health::HealthCheck;
use super::outlier::OutlierEjection;
use super::resolver::ResolverId;
use super::sticky::Sticky;
use crate::address::PeerAddress;
use crate::source::Span;
use crate::template::Template;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Index into `Http::upstreams`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UpstreamId(pub u32);

/// An `upstream` block, or the implicit one of a `proxy_pass host:port`.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// `host:port` as written for an implicit one.
    pub name: String,
    pub span: Span,
    /// Whether a `proxy_pass` made it.
    pub implicit: bool,
    /// In file order; empty only with a `state`.
    pub servers: Vec<UpstreamServer>,
    pub balance: Balance,
    pub keepalive: UpstreamKeepalive,
    /// Its own, or that of the `http` block; for names that are resolved repeatedly.
    pub resolver: Option<ResolverId>,
    /// Of the group or the `http` block. Default 30 s.
    pub resolver_timeout: Option<Duration>,
    /// Name and size in bytes; state is shared between threads with or without one.
    pub zone: Option<(String, u64)>,
    /// `state`: the file that keeps its servers while the API changes them.
    pub state: Option<PathBuf>,
    pub sticky: Option<Sticky>,
    pub queue: Option<Queue>,
    pub outlier_ejection: Option<OutlierEjection>,
    /// `health_check`s of the locations that pass requests to it; set after those are read.
    pub checks: Vec<Arc<HealthCheck>>,
}

#[derive(Debug, Clone)]
pub struct UpstreamServer {
    /// As written, for unix sockets as in `$upstream_addr`.
    pub name: String,
    pub span: Span,
    /// A name may resolve to several, which share these parameters.
    pub address: PeerAddress,
    /// Default 1.
    pub weight: u32,
    /// Failures within `fail_timeout` that take it out; 0 = never. Default 1.
    pub max_fails: u32,
    /// Default 10 s.
    pub fail_timeout: Duration,
    /// Used only if no other server is left.
    pub backup: bool,
    /// Never used.
    pub down: bool,
    /// Used only by requests of its own sessions (`sticky`).
    pub drain: bool,
    /// The name for `sticky`; default a hash of the address.
    pub route: Option<String>,
    /// Time for its share to grow to its weight after an outage. Default none.
    pub slow_start: Duration,
    /// Its name is resolved again when the result expires.
    pub resolve: bool,
    /// The service to ask its name for (SRV, RFC 2782).
    pub service: Option<String>,
    /// Connections at a time over all workers; 0 = unlimited.
    pub max_conns: u32,
}

impl Upstream {
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        self.balance.key.iter().chain(self.sticky.iter().flat_map(Sticky::templates))
    }
}

/// Requests wait for a server with room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    /// Waiting at a time, over all workers; at least 1.
    pub most: u32,
    /// Longest wait. Default 60 s.
    pub timeout: Duration,
}

#[derive(Debug, Clone, Default)]
pub struct Balance {
    pub method: BalanceMethod,
    /// The key of `hash`; for `ip_hash` the client's address in binary.
    pub key: Option<Template>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BalanceMethod {
    /// By weight, in turn.
    #[default]
    RoundRobin,
    LeastConn,
    LeastTime {
        to: TimeTo,
        /// Whether requests in progress count.
        inflight: bool,
    },
    IpHash,
    Hash,
    ConsistentHash,
    Random,
    RandomTwo,
    RandomTwoLeastTime(TimeTo),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeTo {
    Header,
    LastByte,
}

impl BalanceMethod {
    /// The help where a method is not [`BalanceMethod::is_adaptable`].
    pub const ADAPTABLE: &str = "remove it, or use least_conn, least_time or round robin";

    /// Whether its servers may be `backup` or have a `slow_start`: it has no shares that are computed once.
    pub fn is_adaptable(self) -> bool {
        match self {
            BalanceMethod::RoundRobin | BalanceMethod::LeastConn | BalanceMethod::LeastTime { .. } => true,
            BalanceMethod::IpHash
            | BalanceMethod::Hash
            | BalanceMethod::ConsistentHash
            | BalanceMethod::Random
            | BalanceMethod::RandomTwo
            | BalanceMethod::RandomTwoLeastTime(_) => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpstreamKeepalive {
    /// Idle connections per worker. Default 32, as nginx since 1.29.7; `Fixed(0)` keeps none.
    pub size: KeepaliveSize,
    /// Requests per connection. Default 1,000.
    pub requests: u64,
    /// Lifetime of a connection. Default 1 h.
    pub time: Duration,
    /// Idle time. Default 60 s.
    pub timeout: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepaliveSize {
    Fixed(usize),
    /// `keepalive auto;`: as many as were busy at once within the last minute, at most 1,024.
    Auto,
}
