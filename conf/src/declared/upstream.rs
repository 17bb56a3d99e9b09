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
    /// Its name; `host:port` as written for an implicit one.
    pub name: String,
    /// Where it was written.
    pub span: Span,
    /// Whether a `proxy_pass` made it.
    pub implicit: bool,
    /// Its servers, in file order; empty only where it has a `state`.
    pub servers: Vec<UpstreamServer>,
    /// Who of them is asked.
    pub balance: Balance,
    /// Idle connections.
    pub keepalive: UpstreamKeepalive,
    /// `resolver` for the names that are to be looked up again and again: its own, or that of the `http` block.
    pub resolver: Option<ResolverId>,
    /// `resolver_timeout`, where the group or the `http` block has one. Default 30 s.
    pub resolver_timeout: Option<Duration>,
    /// `zone` name and size in bytes (state is shared between threads with or without one).
    pub zone: Option<(String, u64)>,
    /// `state`: the file that its servers are kept in while the API changes them.
    pub state: Option<PathBuf>,
    /// `sticky`.
    pub sticky: Option<Sticky>,
    /// `queue`.
    pub queue: Option<Queue>,
    /// `outlier_ejection`.
    pub outlier_ejection: Option<OutlierEjection>,
    /// `health_check`s of the locations that pass requests to it, known once those are read.
    pub checks: Vec<Arc<HealthCheck>>,
}

/// A `server` of an upstream.
#[derive(Debug, Clone)]
pub struct UpstreamServer {
    /// As written, `$upstream_addr` for unix sockets.
    pub name: String,
    /// Where it was written.
    pub span: Span,
    /// Its address; a name may resolve to several, which share these parameters.
    pub address: PeerAddress,
    /// Default 1.
    pub weight: u32,
    /// Failures within `fail_timeout` that take it out; 0 = never. Default 1.
    pub max_fails: u32,
    /// Default 10 s.
    pub fail_timeout: Duration,
    /// Used only when no other server is left.
    pub backup: bool,
    /// Never used.
    pub down: bool,
    /// Used only by requests of sessions that are its own (`sticky`).
    pub drain: bool,
    /// What `sticky` calls it; its address' hash where nothing is written.
    pub route: Option<String>,
    /// How long its share takes to grow to its weight after it was out. Default: at once.
    pub slow_start: Duration,
    /// Its name is looked up again when what it resolved to no longer holds.
    pub resolve: bool,
    /// `service`: which service its name is asked for (SRV, RFC 2782).
    pub service: Option<String>,
    /// Connections at a time over all workers; 0 = no bound.
    pub max_conns: u32,
}

impl Upstream {
    /// Everything in it that is evaluated for requests.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        self.balance.key.iter().chain(self.sticky.iter().flat_map(Sticky::templates))
    }
}

/// `queue`: requests wait for a server with room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    /// How many may wait at a time, over all workers; at least 1.
    pub most: u32,
    /// How long each waits at the most. Default 60 s.
    pub timeout: Duration,
}

/// How a server is chosen among those of an upstream.
#[derive(Debug, Clone, Default)]
pub struct Balance {
    /// By what.
    pub method: BalanceMethod,
    /// What the method goes by of a request: the key of `hash`, the client's address in binary for `ip_hash`.
    pub key: Option<Template>,
}

/// The methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BalanceMethod {
    /// By weight, one after the other.
    #[default]
    RoundRobin,
    /// `least_conn`.
    LeastConn,
    /// `least_time`.
    LeastTime {
        /// How long what takes.
        to: TimeTo,
        /// Whether requests that are not answered yet count.
        inflight: bool,
    },
    /// `ip_hash`.
    IpHash,
    /// `hash KEY`.
    Hash,
    /// `hash KEY consistent`.
    ConsistentHash,
    /// `random`.
    Random,
    /// `random two`.
    RandomTwo,
    /// `random two least_time=`.
    RandomTwoLeastTime(TimeTo),
}

/// What of an answer a server is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeTo {
    /// Its head.
    Header,
    /// All of it.
    LastByte,
}

impl BalanceMethod {
    /// Whether servers may have a `slow_start`.
    pub fn has_slow_start(self) -> bool {
        self.has_backups()
    }

    /// Whether servers may be `backup`.
    pub fn has_backups(self) -> bool {
        matches!(self, BalanceMethod::RoundRobin | BalanceMethod::LeastConn | BalanceMethod::LeastTime { .. })
    }
}

/// `keepalive*` of an upstream: how idle connections are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpstreamKeepalive {
    /// Idle connections kept by each worker. Default 32, as nginx since 1.29.7; `Fixed(0)` keeps none.
    pub size: KeepaliveSize,
    /// Requests on one connection. Default 1,000.
    pub requests: u64,
    /// Lifetime of a connection. Default 1 h.
    pub time: Duration,
    /// Idle time. Default 60 s.
    pub timeout: Duration,
}

/// How many idle connections a worker keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepaliveSize {
    /// That many.
    Fixed(usize),
    /// `keepalive auto;`: as many as were busy at once within the last minute, at most 1,024.
    Auto,
}
