//! The clusters that cache zones take part in, on one configuration.
//!
//! Next: `millstream-cluster`, which carries orders; `content/purge` and `caching/invalidation`, which give them.

use millstream_cluster::{Bus, Door};
use std::sync::Arc;

/// The clusters of one configuration.
#[derive(Debug, Default)]
pub struct Clusters {
    running: Vec<RunningCluster>,
    /// One per `Http::cache_zones`; `None` without a cluster.
    doors: Vec<Option<Arc<Door>>>,
}

/// A cluster, which outlives a reload that does not change it.
#[derive(Debug, Clone)]
pub struct RunningCluster {
    pub name: String,
    /// Equal if the configuration of this cluster is, with the files that it names and its zones.
    pub print: Vec<u8>,
    pub bus: Arc<Bus>,
}

impl Clusters {
    pub fn new(running: Vec<RunningCluster>, doors: Vec<Option<Arc<Door>>>) -> Clusters {
        Clusters { running, doors }
    }

    pub fn running(&self) -> &[RunningCluster] {
        &self.running
    }

    /// `zone` is the index of a cache zone.
    #[inline]
    pub fn door(&self, zone: usize) -> Option<&Arc<Door>> {
        self.doors.get(zone)?.as_ref()
    }

    /// Publishes what was given, and ends. Blocks, for seconds if the engine does not respond.
    pub fn stop(&self) {
        self.running.iter().for_each(|cluster| cluster.bus.stop());
    }
}
