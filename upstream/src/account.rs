//! What is told of a peer: its state in the words of NGINX Plus's API, and its counts.
//!
//! Plain values, read from what choices go by; nothing here is on the way of a request. Next: `group`, which gives them.

use crate::downtime::Downtime;
use crate::health::{Diagnosis, HealthAccount};
use crate::peer::Member;
use crate::standing::Parameters;
use millstream_telemetry::metrics::{PeerCells, PeerCounts};
use std::sync::Arc;
use std::time::Instant;

/// As `…/http/upstreams` reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerState {
    Up,
    Down,
    Draining,
    /// After `max_fails` failures, for `fail_timeout`.
    Unavail,
    /// `mandatory`: not used before its first check has passed.
    Checking,
    Unhealthy,
    Ejected,
}

impl PeerState {
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

/// A snapshot of a peer.
#[derive(Debug, Clone)]
pub struct PeerAccount {
    /// Constant for as long as the peer exists.
    pub id: u64,
    pub server: Arc<str>,
    /// As in `$upstream_addr`.
    pub name: Arc<str>,
    pub backup: bool,
    pub parameters: Parameters,
    /// `None` if `sticky` uses the hash of its address.
    pub route: Option<Arc<str>>,
    pub state: PeerState,
    /// Counted over reloads.
    pub health: HealthAccount,
    /// Counted over reloads.
    pub ejections: u64,
    /// To the second; `None` before the first.
    pub selected: Option<Instant>,
    pub counts: PeerCounts,
    pub downtime: Downtime,
}

impl PeerAccount {
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
            parameters: *parameters,
            route: route.clone(),
            state,
            health: standing.health().account(),
            ejections: ejection.count,
            selected: standing.selected(),
            counts: counts.sum(PeerCounts::default(), PeerCells::add_to),
            downtime: standing.downtime(now),
        }
    }
}
