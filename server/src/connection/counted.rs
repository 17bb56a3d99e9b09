//! A connection among those that are counted: how many are open, and what they do.

use millstream_telemetry::metrics::{Gauge, WorkerMetrics};
use std::sync::Arc;

/// A connection in the gauges, also if it ends by a panic.
pub(super) struct Counted {
    metrics: Arc<WorkerMetrics>,
    /// What it does beside being open; nothing is idle.
    state: Option<Gauge>,
}

impl Counted {
    /// One more that is open.
    pub(super) fn new(metrics: Arc<WorkerMetrics>) -> Counted {
        metrics.gauge_add(Gauge::ConnectionsActive, 1);
        Counted { metrics, state: None }
    }

    /// What it does now.
    pub(super) fn is(&mut self, state: Option<Gauge>) {
        if self.state == state {
            return;
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
