//! The clusters of the configuration: each zone with its nodes.
//!
//! Before: `millstream-cluster`'s `door`, which knows them.

use millstream_cluster::{Shown, ShownNode};
use millstream_net::clock;
use millstream_server::clusters::RunningCluster;
use millstream_server::generation::Shared;
use millstream_telemetry::metrics::{Counter, Gauge, Snapshot, Timing};
use serde::Serialize;
use std::time::Duration;

/// One zone of a cluster, as its node sees it.
#[derive(Debug, Serialize)]
pub(crate) struct ClusteredZone {
    cluster: String,
    zone: String,
    node: String,
    /// `joining`, `confirmed`, `replaying` or `cut_off`.
    state: &'static str,
    cut_off_seconds: Option<f64>,
    epoch: u64,
    head: u64,
    sequence: u64,
    /// Entries of the log that this node has not applied yet.
    lag: u64,
    /// Purges and invalidations of this node that no other node knows yet.
    unpublished: usize,
    /// Purges and invalidations of other nodes that this one has applied.
    carried_out: u64,
    /// Times that requests stopped waiting for the engine.
    breaker_opened: u64,
    /// Why the engine is not reached.
    failure: Option<String>,
    nodes: Vec<ClusterNode>,
}

#[derive(Debug, Serialize)]
struct ClusterNode {
    node: String,
    /// `connected`, `different_keys` or `cut_off`, as far as this node knows.
    state: &'static str,
    id: String,
    sequence: u64,
    /// Entries of the log that it has not applied yet.
    lag: u64,
    cut_off_seconds: Option<f64>,
    silent_seconds: f64,
}

pub(crate) fn all(shared: &Shared) -> Vec<ClusteredZone> {
    let zones = |cluster: &RunningCluster| -> Vec<ClusteredZone> {
        cluster.bus.doors().iter().map(|door| zone(&cluster.name, door.shown())).collect()
    };
    shared.clusters.running().iter().flat_map(zones).collect()
}

/// Adds up all zones.
pub(crate) fn add_to(snapshot: &mut Snapshot, shared: &Shared) {
    let (mut cut_off, mut lag, mut unpublished, mut nodes) = (0, 0, 0, 0);
    for door in shared.clusters.running().iter().flat_map(|cluster| cluster.bus.doors()) {
        let (shown, account) = (door.shown(), door.account());
        cut_off += i64::from(shown.cut_off.is_some());
        lag += i64::try_from(shown.head.saturating_sub(shown.sequence)).unwrap_or(i64::MAX);
        unpublished += i64::try_from(shown.unpublished).unwrap_or(i64::MAX);
        nodes += shown.nodes.iter().filter(|node| node.cut_off.is_none()).count() as i64;
        snapshot.add(Counter::ClusterApplied, account.carried_out());
        snapshot.add(Counter::ClusterZonePurges, account.zone_purges());
        snapshot.add(Counter::ClusterBreakerOpened, shown.breaker_opened);
        account.add_script_time_to(snapshot.timing_mut(Timing::ClusterScript));
    }
    let (mut sharing, mut alone, mut left_out, now) = (0, 0, 0, clock::now());
    for door in shared.clusters.running().iter().flat_map(|cluster| cluster.bus.limit_doors()) {
        sharing += i64::from(door.nodes()) - 1;
        alone += i64::from(door.is_alone(now));
        left_out += i64::try_from(door.left_out()).unwrap_or(i64::MAX);
    }
    for (gauge, value) in [
        (Gauge::ClusterCutOff, cut_off),
        (Gauge::ClusterLag, lag),
        (Gauge::ClusterUnpublished, unpublished),
        (Gauge::ClusterNodes, nodes),
        (Gauge::ClusterLimitNodes, sharing),
        (Gauge::ClusterLimitsAlone, alone),
        (Gauge::ClusterCountsLeftOut, left_out),
    ] {
        snapshot.set_gauge(gauge, value);
    }
}

fn zone(cluster: &str, shown: Shown) -> ClusteredZone {
    let state = match (shown.cut_off, shown.is_replaying) {
        (None, _) => "confirmed",
        (Some(_), true) => "replaying",
        (Some(_), false) if shown.epoch == 0 => "joining",
        (Some(_), false) => "cut_off",
    };
    ClusteredZone {
        cluster: cluster.to_owned(),
        zone: shown.zone,
        node: shown.node,
        state,
        cut_off_seconds: shown.cut_off.as_ref().map(Duration::as_secs_f64),
        epoch: shown.epoch,
        head: shown.head,
        sequence: shown.sequence,
        lag: shown.head.saturating_sub(shown.sequence),
        unpublished: shown.unpublished,
        carried_out: shown.carried_out,
        breaker_opened: shown.breaker_opened,
        failure: shown.failure,
        nodes: shown.nodes.into_iter().map(node).collect(),
    }
}

fn node(shown: ShownNode) -> ClusterNode {
    ClusterNode {
        node: shown.name,
        state: match shown.cut_off {
            Some(_) => "cut_off",
            None if shown.has_different_keys => "different_keys",
            None => "connected",
        },
        id: shown.id,
        sequence: shown.sequence,
        lag: shown.lag,
        cut_off_seconds: shown.cut_off.as_ref().map(Duration::as_secs_f64),
        silent_seconds: shown.silent.as_secs_f64(),
    }
}
