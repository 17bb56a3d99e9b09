//! All that is counted at one moment: the counts of all threads, the log writer's, and those of the upstream servers in force.
//!
//! The sums are made here, for each who asks; counting costs nothing for being read. Next: `admin`'s `metrics`, which answers with them;
//! `millstream`'s `exporting`, which sends them.

use crate::generation::Shared;
use millstream_net::clock;
use millstream_telemetry::log_writer::LogStatistics;
use millstream_telemetry::metrics::{Snapshot, Upstream, UpstreamPeer};
use millstream_upstream::{PeerAccount, PeerState};
use std::collections::HashMap;

/// The counts.
pub fn snapshot(shared: &Shared, logs: LogStatistics) -> Snapshot {
    let (mut snapshot, now) = (shared.registry.snapshot(), clock::now());
    snapshot.upstreams = shared
        .groups
        .iter()
        .map(|group| Upstream {
            name: group.name().to_owned(),
            peers: by_address(group.in_force().accounts(now)),
        })
        .collect();
    snapshot.add_logs(logs);
    snapshot
}

/// Who reads metrics knows a peer by its address: one that stands in several places is told once, with the sum.
fn by_address(accounts: impl Iterator<Item = PeerAccount>) -> Vec<UpstreamPeer> {
    let mut peers: Vec<UpstreamPeer> = Vec::new();
    let mut positions = HashMap::new();
    for account in accounts {
        let at = *positions.entry(account.name.clone()).or_insert_with(|| {
            peers.push(UpstreamPeer { name: account.name.to_string(), ..UpstreamPeer::default() });
            peers.len() - 1
        });
        let peer = &mut peers[at];
        peer.counts.add(&account.counts);
        peer.up |= account.state == PeerState::Up;
        peer.checks += account.health.checks;
        peer.failed_checks += account.health.fails;
        peer.ejections += account.ejections;
    }
    peers
}
