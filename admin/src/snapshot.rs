//! All that is counted at one moment: the counts of all threads, the log writer's, and those of the upstream servers in force.
//!
//! The sums are made here, for each who asks; counting costs nothing for being read. Next: `metrics`, which answers with them;
//! `millstream`'s `exporting`, which sends them.

use crate::cluster;
use millstream_net::certificate::Certificate;
use millstream_net::{clock, process};
use millstream_server::generation::Shared;
use millstream_telemetry::log_writer::LogStatistics;
use millstream_telemetry::metrics::{
    CacheTier, CertificateEnd, Gauge, ProcessSnapshot, Snapshot, Upstream, UpstreamPeer,
};
use millstream_upstream::{PeerAccount, PeerState};
use std::collections::HashMap;

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
    snapshot.set_gauge(Gauge::ConfigurationLoaded, shared.edition.loaded / 1000);
    snapshot.set_gauge(Gauge::CacheVerifyOff, i64::from(shared.zones.verified.off()));
    cluster::add_to(&mut snapshot, shared);
    snapshot.tiers = tiers(shared);
    snapshot.certificates = certificates(shared);
    snapshot.process = Some(ProcessSnapshot { version: env!("CARGO_PKG_VERSION"), ..process::usage() });
    snapshot
}

fn tiers(shared: &Shared) -> Vec<CacheTier> {
    let zones = shared.zones.stores.iter().zip(&shared.configuration.http.cache_zones);
    let tiers = zones.flat_map(|(store, conf)| {
        let (stats, zone) = (store.stats(), || store.name().to_owned());
        let memory = CacheTier {
            zone: zone(),
            tier: "memory",
            entries: stats.keys,
            bytes: stats.memory_bytes,
            max_bytes: Some(stats.memory_limit),
            evictions: stats.evictions,
        };
        let disk = store.path().map(|_| CacheTier {
            zone: zone(),
            tier: "disk",
            entries: stats.files,
            bytes: stats.disk_bytes,
            max_bytes: conf.max_size,
            evictions: stats.files_removed.saturating_sub(stats.files_unlinked),
        });
        [Some(memory), disk].into_iter().flatten()
    });
    tiers.collect()
}

/// One expiry for each name of a server.
fn certificates(shared: &Shared) -> Vec<CertificateEnd> {
    let mut ends: Vec<CertificateEnd> = Vec::new();
    for (server, tls) in shared.configuration.http.servers.iter().zip(&shared.handshakes.certificates) {
        for leaf in tls.iter().flat_map(|tls| tls.leaves()) {
            let Some(read) = Certificate::read(&leaf.certificate) else { continue };
            let not_after = u64::try_from(read.validity().1).unwrap_or(0);
            let certificate = leaf.name.display().to_string();
            let end = CertificateEnd { server: server.name.clone(), certificate, not_after };
            let is_same = |known: &&mut CertificateEnd| {
                (&known.server, &known.certificate) == (&end.server, &end.certificate)
            };
            match ends.iter_mut().find(is_same) {
                Some(known) => known.not_after = known.not_after.min(end.not_after),
                None => ends.push(end),
            }
        }
    }
    ends
}

/// Metrics identify a peer by its address: repeated ones are summed.
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
