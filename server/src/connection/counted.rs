//! A connection among those that are counted: how many are open, and what they do.

use millstream_telemetry::metrics::{Gauge, WorkerMetrics};
use std::sync::Arc;

/// A connection in the gauges, also if it ends by a panic.
pub(super) struct Counted {
    metrics: Arc<WorkerMetrics>,
    /// What it does beside being open; nothing is idle.
    state: Option<Gauge>,
    /// The zones that its request is in, of a server and of a location, while it waits for its answer.
    zones: Option<(u32, u32)>,
}

impl Counted {
    /// One more that is open.
    pub(super) fn new(metrics: Arc<WorkerMetrics>) -> Counted {
        metrics.gauge_add(Gauge::ConnectionsActive, 1);
        Counted { metrics, state: None, zones: None }
    }

    /// It has a request that was not answered at once, in the zones of its server and its location.
    pub(super) fn answers(&mut self, zones: (u32, u32)) {
        self.is(None);
        self.is(Some(Gauge::ConnectionsWriting));
        self.metrics.processing(zones, 1);
        self.zones = Some(zones);
    }

    /// What it does now.
    pub(super) fn is(&mut self, state: Option<Gauge>) {
        if self.state == state {
            return;
        }
        if let Some(zones) = self.zones.take() {
            self.metrics.processing(zones, -1);
        }
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
