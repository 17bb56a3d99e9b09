//! A connection among those that are counted: how many are open, and what they do.

use millstream_telemetry::metrics::{Gauge, WorkerMetrics};
use std::sync::Arc;

/// Counts the connection until dropped, by a panic too.
pub(super) struct Counted {
    metrics: Arc<WorkerMetrics>,
    /// `None`: idle.
    state: Option<Gauge>,
    processing: Option<Processing>,
}

impl Counted {
    pub(super) fn new(metrics: Arc<WorkerMetrics>) -> Counted {
        metrics.gauge_add(Gauge::ConnectionsActive, 1);
        Counted { metrics, state: None, processing: None }
    }

    /// A request that waits for its response, in its zones.
    pub(super) fn answers(&mut self, zones: (u32, u32)) {
        self.is(None);
        self.is(Some(Gauge::ConnectionsWriting));
        self.processing = Some(Processing::of(self.metrics.clone(), zones));
    }

    pub(super) fn is(&mut self, state: Option<Gauge>) {
        if self.state == state {
            return;
        }
        self.processing = None;
        for (gauge, change) in [(self.state, -1), (state, 1)] {
            gauge.into_iter().for_each(|gauge| self.metrics.gauge_add(gauge, change));
        }
        self.state = state;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.is(None);
        self.metrics.gauge_add(Gauge::ConnectionsActive, -1);
    }
}

/// Counts a waiting request until dropped, by a panic too.
pub(super) struct Processing {
    metrics: Arc<WorkerMetrics>,
    zones: (u32, u32),
}

impl Processing {
    pub(super) fn of(metrics: Arc<WorkerMetrics>, zones: (u32, u32)) -> Processing {
        metrics.processing(zones, 1);
        Processing { metrics, zones }
    }
}

impl Drop for Processing {
    fn drop(&mut self) {
        self.metrics.processing(self.zones, -1);
    }
}
