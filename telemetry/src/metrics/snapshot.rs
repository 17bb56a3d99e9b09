//! The sums over all threads at one moment.
//!
//! Threads go on counting while they are read, so two sums may differ by the requests in between.
//! What no thread counts (bytes in the caches, the log writer's totals) is put in by whoever asks for the snapshot.

use super::misses::{LOCATIONS_PER_PAGE, MissCount};
use super::{CacheStatus, Cause, Counter, Gauge, Timing, WorkerMetrics, ZONES_PER_PAGE};
use crate::histogram::HistogramSnapshot;
use crate::log_writer::LogStatistics;
use std::sync::atomic::{AtomicU64, Ordering};

/// Every metric, summed.
#[derive(Debug, Clone)]
pub struct Snapshot {
    counters: [u64; Counter::COUNT],
    gauges: [i64; Gauge::COUNT],
    timings: Vec<HistogramSnapshot>,
    /// The zones with their names, in order of their numbers.
    pub zones: Vec<ZoneSnapshot>,
    /// The locations with a cache, in order of their numbers.
    pub locations: Vec<LocationSnapshot>,
}

/// Why the cache did not answer in one location, and why answers were not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocationSnapshot {
    /// Its name.
    pub name: String,
    /// By cause, in the order of [`Cause::ALL`].
    pub causes: [MissCount; Cause::COUNT],
}

/// One `status_zone`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ZoneSnapshot {
    /// Its name.
    pub name: String,
    /// Requests finished.
    pub requests: u64,
    /// Answers by class, 1xx first.
    pub responses: [u64; 5],
    /// Bytes received from clients.
    pub received: u64,
    /// Bytes sent to clients.
    pub sent: u64,
    /// Requests by cache status, in the order of [`CacheStatus::ALL`].
    pub cache: [u64; CacheStatus::ALL.len()],
}

impl Snapshot {
    pub(super) fn empty(zones: Vec<String>, locations: Vec<String>) -> Self {
        let causes = [MissCount::default(); Cause::COUNT];
        let locations = locations.into_iter().map(|name| LocationSnapshot { name, causes }).collect();
        let zones = zones.into_iter().map(|name| ZoneSnapshot { name, ..ZoneSnapshot::default() }).collect();
        Snapshot {
            counters: [0; Counter::COUNT],
            gauges: [0; Gauge::COUNT],
            timings: vec![HistogramSnapshot::default(); Timing::COUNT],
            zones,
            locations,
        }
    }

    /// Adds one thread's counts.
    pub(super) fn take(&mut self, worker: &WorkerMetrics) {
        add_all(&mut self.counters, &worker.counters);
        for (sum, gauge) in self.gauges.iter_mut().zip(&worker.gauges) {
            *sum = sum.wrapping_add(gauge.load(Ordering::Relaxed).cast_signed());
        }
        for (sum, timing) in self.timings.iter_mut().zip(&worker.timings) {
            timing.add_to(sum);
        }
        for (page, zones) in worker.zones.iter().zip(self.zones.chunks_mut(ZONES_PER_PAGE)) {
            let Some(page) = page.get() else { continue };
            for (zone, cells) in zones.iter_mut().zip(page.iter()) {
                zone.requests += cells.requests.load(Ordering::Relaxed);
                zone.received += cells.received.load(Ordering::Relaxed);
                zone.sent += cells.sent.load(Ordering::Relaxed);
                add_all(&mut zone.responses, &cells.responses);
                add_all(&mut zone.cache, &cells.cache);
            }
        }
        for (page, locations) in worker.misses.iter().zip(self.locations.chunks_mut(LOCATIONS_PER_PAGE)) {
            let Some(page) = page.get() else { continue };
            for (location, cells) in locations.iter_mut().zip(page.iter()) {
                cells.add_to(&mut location.causes);
            }
        }
    }

    /// The value of a counter.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters[counter as usize]
    }

    /// The value of a gauge.
    pub fn gauge(&self, gauge: Gauge) -> i64 {
        self.gauges[gauge as usize]
    }

    /// The times recorded, in microseconds.
    pub fn timing(&self, timing: Timing) -> &HistogramSnapshot {
        &self.timings[timing as usize]
    }

    /// Sets a gauge that no thread keeps.
    pub fn set_gauge(&mut self, gauge: Gauge, value: i64) {
        self.gauges[gauge as usize] = value;
    }

    /// Adds to a counter what no thread counts.
    pub fn add(&mut self, counter: Counter, value: u64) {
        self.counters[counter as usize] += value;
    }

    /// Adds the log writer's totals.
    pub fn add_logs(&mut self, logs: LogStatistics) {
        self.add(Counter::LogBytesWritten, logs.bytes_written);
        self.add(Counter::LogBytesDropped, logs.bytes_dropped);
        self.add(Counter::LogErrors, logs.errors);
    }
}

fn add_all(sums: &mut [u64], cells: &[AtomicU64]) {
    for (sum, cell) in sums.iter_mut().zip(cells) {
        *sum = sum.wrapping_add(cell.load(Ordering::Relaxed));
    }
}
