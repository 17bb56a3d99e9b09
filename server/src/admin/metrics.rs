//! All that is counted, as Prometheus reads it: the counts of all threads, the log writer's, and those of the upstream servers.
//!
//! The sums are made here, for each who asks; counting costs nothing for being read.

use crate::answer::{Outcome, fixed};
use crate::client::Client;
use crate::generation::Shared;
use crate::request::Request;
use millstream_net::clock;
use millstream_telemetry::metrics::{Exposition, Snapshot, Upstream, UpstreamPeer};
use millstream_upstream::{PeerAccount, PeerState};
use millstream_wire::{FieldId, Headers};
use std::collections::HashMap;

/// Answers with the text that the client's `Accept` wants.
pub(super) async fn answer(request: &mut Request, client: &mut Client) -> Outcome {
    let exposition = Exposition::wanted(request.field(FieldId::Accept).unwrap_or_default());
    let mut snapshot = snapshot(&request.generation.shared);
    snapshot.add_logs(request.worker.log_writer.statistics());
    let text = snapshot.exposed(exposition);
    let mut headers = Headers::default();
    headers.push(b"Content-Type", exposition.content_type().as_bytes());
    headers.push(b"Cache-Control", b"no-store");
    headers.push(b"Vary", b"Accept");
    fixed::whole(request, client, 200, &headers, text.as_bytes()).await
}

/// The counts of all workers, with those of the upstream servers in force.
fn snapshot(shared: &Shared) -> Snapshot {
    let (mut snapshot, now) = (shared.registry.snapshot(), clock::now());
    snapshot.upstreams = shared
        .groups
        .iter()
        .map(|group| Upstream {
            name: group.name().to_owned(),
            peers: by_address(group.in_force().accounts(now)),
        })
        .collect();
    snapshot
}

/// Prometheus knows a peer by its address: one that stands in several places is told once, with the sum.
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
    }
    peers
}
