//! The counts of connections and requests, over all workers, as `stub_status` and variables show them.

use crate::request::Request;
use millstream_telemetry::metrics::{Counter, Gauge};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    pub accepted: u64,
    pub requests: u64,
    pub active: u64,
    pub reading: u64,
    pub writing: u64,
    pub waiting: u64,
}

impl Connections {
    /// Counts the request itself, as a hit is not counted while it is written.
    pub fn of(request: &Request) -> Connections {
        let snapshot = request.generation.shared.registry.snapshot();
        let gauge = |gauge| u64::try_from(snapshot.gauge(gauge)).unwrap_or(0);
        let (reading, writing) = (gauge(Gauge::ConnectionsReading), gauge(Gauge::ConnectionsWriting).max(1));
        let active = gauge(Gauge::ConnectionsActive).max(1);
        Connections {
            accepted: snapshot.counter(Counter::ConnectionsAccepted),
            requests: snapshot.counter(Counter::Requests) + reading + writing,
            active,
            reading,
            writing,
            waiting: active.saturating_sub(reading + writing),
        }
    }
}
