//! A connection among those that are counted: how many are open, and what they do.

use millstream_telemetry::metrics::{Gauge, WorkerMetrics};
use std::sync::Arc;

/// A connection in the gauges, also if it ends by a panic.
pub(super) struct Counted {
    metrics: Arc<WorkerMetrics>,
    /// What it does beside being open; nothing is idle.
    state: Option<Gauge>,
    /// Its request, while that waits for its answer.
    processing: Option<Processing>,
}

impl Counted {
    /// One more that is open.
    pub(super) fn new(metrics: Arc<WorkerMetrics>) -> Counted {
        metrics.gauge_add(Gauge::ConnectionsActive, 1);
        Counted { metrics, state: None, processing: None }
    }

    /// It has a request that was not answered at once, in the zones of its server and its location.
    pub(super) fn answers(&mut self, zones: (u32, u32)) {
        self.is(None);
        self.is(Some(Gauge::ConnectionsWriting));
        self.processing = Some(Processing::of(self.metrics.clone(), zones));
    }

    /// What it does now.
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

/// A request among those of its zones that wait for their answers, also if it ends by a panic.
pub(super) struct Processing {
    metrics: Arc<WorkerMetrics>,
    zones: (u32, u32),
}

impl Processing {
    /// One more, in the zones of its server and its location.
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
