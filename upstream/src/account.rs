//! What is told of a peer: its state in the words of NGINX Plus's API, and its counts.
//!
//! Plain values, read from what choices go by; nothing here is on the way of a request. Next: `group`, which gives them.

use crate::downtime::Downtime;
use crate::health::{Diagnosis, HealthAccount};
use crate::peer::Member;
use millstream_telemetry::metrics::{PeerCells, PeerCounts};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How a peer stands, as `…/http/upstreams` says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerState {
    /// Used.
    Up,
    /// `down`: never used.
    Down,
    /// `drain`: used by sessions of its own alone.
    Draining,
    /// `max_fails` failures: left alone for `fail_timeout`.
    Unavail,
    /// `mandatory`: not used before its first check has passed.
    Checking,
    /// Out by a check of its health.
    Unhealthy,
    /// Out as an outlier (`outlier_ejection`).
    Ejected,
}

impl PeerState {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            PeerState::Up => "up",
            PeerState::Down => "down",
            PeerState::Draining => "draining",
            PeerState::Unavail => "unavail",
            PeerState::Checking => "checking",
            PeerState::Unhealthy => "unhealthy",
            PeerState::Ejected => "ejected",
        }
    }
}

/// A peer as it is now.
#[derive(Debug, Clone)]
pub struct PeerAccount {
    /// Its number in the group, the same for as long as it is there.
    pub id: u64,
    /// The server as written.
    pub server: Arc<str>,
    /// Its address, as in `$upstream_addr`.
    pub name: Arc<str>,
    /// Whether it is a `backup`.
    pub backup: bool,
    /// As written.
    pub weight: i64,
    /// As written; 0 = no bound.
    pub max_conns: u32,
    /// As written.
    pub max_fails: u32,
    /// As written.
    pub fail_timeout: Duration,
    /// As written.
    pub slow_start: Duration,
    /// As written; nothing where `sticky` goes by the hash of its address.
    pub route: Option<Arc<str>>,
    /// How it stands.
    pub state: PeerState,
    /// Checks of its health, counted over reloads.
    pub health: HealthAccount,
    /// How often it was taken out as an outlier, counted over reloads.
    pub ejections: u64,
    /// Whether it gets no new sessions (`drain`), whatever its state is.
    pub drains: bool,
    /// When it was last chosen for a request, to the second; nothing before the first.
    pub selected: Option<Instant>,
    /// What was counted of it: requests, answers, bytes, failures (`fails`, and `unavail` as `outages`), `active`.
    pub counts: PeerCounts,
    /// For how long it was not used.
    pub downtime: Downtime,
}

impl PeerAccount {
    /// That of a member.
    pub(crate) fn of(member: &Member, backup: bool, now: Instant) -> PeerAccount {
        let Member { peer, server, parameters, route, standing, counts, .. } = member;
        let ejection = standing.health().ejection();
        let state = match standing.health().diagnosis() {
            _ if parameters.down => PeerState::Down,
            Some(Diagnosis::Ill) => PeerState::Unhealthy,
            Some(Diagnosis::Waiting) => PeerState::Checking,
            _ if ejection.until.is_some() => PeerState::Ejected,
            _ if standing.is_left_alone(parameters, now) => PeerState::Unavail,
            _ if parameters.drain => PeerState::Draining,
            _ => PeerState::Up,
        };
        PeerAccount {
            id: peer.id,
            server: server.clone(),
            name: peer.name.clone(),
            backup,
            weight: parameters.weight,
            max_conns: parameters.max_conns,
            max_fails: parameters.max_fails,
            fail_timeout: parameters.fail_timeout,
            slow_start: parameters.slow_start,
            route: route.clone(),
            state,
            health: standing.health().account(),
            ejections: ejection.count,
            drains: parameters.drain,
            selected: standing.selected(),
            counts: counts.sum(PeerCounts::default(), PeerCells::add_to),
            downtime: standing.downtime(now),
        }
    }
}
