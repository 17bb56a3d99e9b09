//! How long one thing held this thread's loop while everything else that was ready waited.
//!
//! ```text
//! wait ──▶ working ─ request ─ request ─ request ─ working ──▶ wait
//!        └── edge ──┘└stretch┘└stretch┘└── edge ──┘
//! ```
//! A stretch lies between two moments that requests read from the clock anyway. What is left of a round, its two edges,
//! counts as one stretch: tokio knows how long the round was. So nothing is sampled, and no clock is read for this.
//! A stretch is an upper bound: it includes the time that the kernel gave to other threads.

use millstream_telemetry::metrics::{Timing, WorkerMetrics};
use std::cell::{Cell, OnceCell};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::RuntimeMetrics;

/// Shorter stretches are normal and not recorded.
const SHORTEST: Duration = Duration::from_millis(1);

struct Loop {
    runtime: RuntimeMetrics,
    metrics: Arc<WorkerMetrics>,
    /// Total work before the present round.
    worked: Cell<Duration>,
}

thread_local! {
    static LOOP: OnceCell<Loop> = const { OnceCell::new() };
    /// First and last time reported by requests in the present round.
    static TOLD: Cell<Option<(Instant, Instant)>> = const { Cell::new(None) };
}

pub fn watch(runtime: RuntimeMetrics, metrics: Arc<WorkerMetrics>) {
    let worked = Cell::new(runtime.worker_total_busy_duration(0));
    // A thread has one loop; another one would be counted with the first.
    LOOP.with(|watched| _ = watched.set(Loop { runtime, metrics, worked }));
}

#[inline]
pub fn tell(metrics: &WorkerMetrics, now: Instant) {
    TOLD.with(|told| {
        let first = told.get().map_or(now, |(first, last)| {
            record(metrics, now.saturating_duration_since(last));
            first
        });
        told.set(Some((first, now)));
    });
}

/// The runtime's `on_thread_unpark`: the previous round is over.
pub fn waited() {
    let between = TOLD.take().map_or(Duration::ZERO, |(first, last)| last.saturating_duration_since(first));
    LOOP.with(|watched| {
        let Some(Loop { runtime, metrics, worked }) = watched.get() else { return };
        let now_worked = runtime.worker_total_busy_duration(0);
        let round = now_worked.saturating_sub(worked.replace(now_worked));
        record(metrics, round.saturating_sub(between));
    });
}

fn record(metrics: &WorkerMetrics, stretch: Duration) {
    if stretch >= SHORTEST {
        metrics.observe(Timing::LoopHeld, stretch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_telemetry::metrics::Registry;

    #[test]
    fn a_stretch_between_two_requests_is_recorded_where_it_is_long_and_a_wait_ends_it() {
        let registry = Registry::new();
        let metrics = registry.worker();
        let recorded = || registry.snapshot().timing(Timing::LoopHeld).count();
        let start = millstream_net::clock::now();
        let at = |micros| start + Duration::from_micros(micros);
        tell(&metrics, at(0));
        tell(&metrics, at(999));
        assert_eq!(recorded(), 0);
        tell(&metrics, at(7_000));
        assert_eq!((recorded(), registry.snapshot().timing(Timing::LoopHeld).sum()), (1, 6_001));
        waited();
        tell(&metrics, at(50_000));
        tell(&metrics, at(50_900));
        assert_eq!(recorded(), 1);
    }
}
