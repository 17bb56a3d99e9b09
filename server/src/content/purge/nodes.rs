//! The other nodes of a cluster, as a purge reached them.

use crate::generation::Shared;
use millstream_cluster::{How, NodeState, Publication, What};
use millstream_net::clock;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Longest wait until a purge is in force on all nodes.
const EVERYWHERE: Duration = Duration::from_secs(2);

/// Which nodes a purge is to be in force on before it is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitFor {
    #[default]
    All,
    /// This one; the others follow.
    Here,
}

/// A node after a purge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeOutcome {
    pub node: String,
    /// `in_force`, `waiting`, `cut_off` or `different_keys`.
    pub state: String,
    /// For how long it has been cut off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

/// Orders on their way to the other nodes.
#[derive(Default)]
pub(super) struct OnTheirWay(Vec<Publication>);

impl OnTheirWay {
    /// Nothing if the zone is in no cluster.
    pub(super) fn give(&mut self, shared: &Shared, zone: usize, (what, how): (What, How), wait: WaitFor) {
        if let Some(door) = shared.clusters.door(zone) {
            let publication = door.publish(what, how, wait == WaitFor::All);
            if wait == WaitFor::All {
                self.0.push(publication);
            }
        }
    }

    /// Waits for the nodes. Also returns whether the purge is in force on all of them.
    pub(super) async fn arrive(self) -> (Vec<NodeOutcome>, bool) {
        let end = clock::now() + EVERYWHERE;
        let mut nodes: BTreeMap<String, (bool, NodeState)> = BTreeMap::new();
        let mut is_everywhere = true;
        for publication in self.0 {
            let reached = publication.reached(end.saturating_duration_since(clock::now())).await;
            is_everywhere &= reached.is_everywhere();
            for (at, node) in reached.nodes.into_iter().enumerate() {
                let known = nodes.entry(node.name).or_insert((at > 0, node.state));
                if rank(node.state) > rank(known.1) {
                    known.1 = node.state;
                }
            }
        }
        let mut nodes: Vec<_> = nodes.into_iter().collect();
        // This one first.
        nodes.sort_by_key(|(_, (is_other, _))| *is_other);
        (nodes.into_iter().map(|(node, (_, state))| outcome(node, state)).collect(), is_everywhere)
    }
}

fn rank(state: NodeState) -> u8 {
    match state {
        NodeState::InForce => 0,
        NodeState::CutOff(_) => 1,
        NodeState::DifferentKeys => 2,
        NodeState::Waiting => 3,
    }
}

fn outcome(node: String, state: NodeState) -> NodeOutcome {
    let (state, seconds) = match state {
        NodeState::InForce => ("in_force", None),
        NodeState::Waiting => ("waiting", None),
        NodeState::DifferentKeys => ("different_keys", None),
        NodeState::CutOff(silent) => ("cut_off", Some(silent.as_secs())),
    };
    NodeOutcome { node, state: state.to_owned(), seconds }
}
