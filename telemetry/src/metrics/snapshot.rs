//! The sums over all threads at one moment.
//!
//! Threads go on counting while they are read, so two sums may differ by the requests in between.
//! What no thread counts (bytes in the caches, the log writer's totals) is put in by whoever asks for the snapshot.

use super::{
    CacheSnapshot, CacheTier, Cause, CertificateEnd, Counter, Gauge, HttpSnapshot, LimitSnapshot, MissCount,
    MissedUrl, PeerCounts, ProcessSnapshot, Timing, WorkerMetrics,
};
use crate::histogram::{HistogramSnapshot, Steps};
use crate::log_writer::LogStatistics;
use std::sync::atomic::Ordering;

#[derive(Debug, Clone)]
pub struct Snapshot {
    counters: [u64; Counter::COUNT],
    gauges: [i64; Gauge::COUNT],
    timings: Vec<HistogramSnapshot>,
    pub servers: Vec<(String, HttpSnapshot)>,
    pub locations: Vec<LocationSnapshot>,
    pub caches: Vec<(String, CacheSnapshot)>,
    pub request_limits: Vec<(String, LimitSnapshot)>,
    pub connection_limits: Vec<(String, LimitSnapshot)>,
    /// The most missed URLs, as far as the threads' lists reach.
    pub missed_urls: Vec<MissedUrl>,
    /// Not kept by any thread: the caller fills it in.
    pub upstreams: Vec<Upstream>,
    pub process: Option<ProcessSnapshot>,
    pub tiers: Vec<CacheTier>,
    pub certificates: Vec<CertificateEnd>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocationSnapshot {
    pub name: String,
    pub http: HttpSnapshot,
    pub origin: Origin,
    /// In the order of [`Cause::ALL`].
    pub causes: [MissCount; Cause::COUNT],
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Origin {
    /// Retries included.
    pub requests: u64,
    /// Of these, in microseconds.
    pub time: u64,
    /// Served from the cache without the upstream.
    pub saved_requests: u64,
    /// Estimated time of the upstream for these, in microseconds, by its average in this location at the time
    /// of the next snapshot.
    pub saved_time: u64,
}

impl Origin {
    /// In microseconds.
    pub fn mean_time(&self) -> u64 {
        self.time.checked_div(self.requests).unwrap_or(0)
    }
}

/// The part of a location's saved time that is accounted for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Savings {
    requests: u64,
    time: u64,
}

#[derive(Debug, Clone)]
pub struct Upstream {
    pub name: String,
    pub peers: Vec<UpstreamPeer>,
}

#[derive(Debug, Clone, Default)]
pub struct UpstreamPeer {
    pub name: String,
    pub counts: PeerCounts,
    pub up: bool,
    pub checks: u64,
    pub failed_checks: u64,
    pub ejections: u64,
}

impl Snapshot {
    pub(super) fn empty(servers: Vec<String>, locations: Vec<String>, caches: Vec<String>) -> Self {
        let location = |name| LocationSnapshot {
            name,
            http: HttpSnapshot::default(),
            origin: Origin::default(),
            causes: [MissCount::default(); Cause::COUNT],
        };
        Snapshot {
            counters: [0; Counter::COUNT],
            gauges: [0; Gauge::COUNT],
            timings: vec![HistogramSnapshot::new(Steps::Fine); Timing::COUNT],
            servers: servers.into_iter().map(|name| (name, HttpSnapshot::default())).collect(),
            locations: locations.into_iter().map(location).collect(),
            caches: caches.into_iter().map(|name| (name, CacheSnapshot::default())).collect(),
            request_limits: Vec::new(),
            connection_limits: Vec::new(),
            missed_urls: Vec::new(),
            upstreams: Vec::new(),
            process: None,
            tiers: Vec::new(),
            certificates: Vec::new(),
        }
    }

    pub(super) fn take(&mut self, worker: &WorkerMetrics) {
        super::add_all(&mut self.counters, &worker.counters);
        for (sum, gauge) in self.gauges.iter_mut().zip(&worker.gauges) {
            *sum = sum.wrapping_add(gauge.load(Ordering::Relaxed).cast_signed());
        }
        for (sum, timing) in self.timings.iter_mut().zip(&worker.timings) {
            timing.add_to(sum);
        }
        worker.missed_urls.add_to(&mut self.missed_urls);
        worker.servers.add_to(&mut self.servers, |cells, (_, sum)| cells.add_to(sum));
        worker.caches.add_to(&mut self.caches, |cells, (_, sum)| cells.add_to(sum));
        worker.request_limits.add_to(&mut self.request_limits, |cells, (_, sum)| cells.add_to(sum));
        worker.connection_limits.add_to(&mut self.connection_limits, |cells, (_, sum)| cells.add_to(sum));
        worker.locations.add_to(&mut self.locations, |cells, sum| {
            cells.http.add_to(&mut sum.http);
            sum.origin.requests += cells.asked.load(Ordering::Relaxed);
            sum.origin.time += cells.asked_time.load(Ordering::Relaxed);
            cells.misses.add_to(&mut sum.causes);
        });
    }

    /// Accounts for savings since the previous snapshot, so that the sums never fall.
    pub(super) fn save(&mut self, known: &mut Vec<Savings>) {
        known.resize(self.locations.len().max(known.len()), Savings::default());
        for (location, known) in self.locations.iter_mut().zip(known) {
            let requests = location.http.saved();
            let new = requests.saturating_sub(known.requests);
            known.time = known.time.saturating_add(new.saturating_mul(location.origin.mean_time()));
            known.requests = known.requests.max(requests);
            location.origin.saved_requests = known.requests;
            location.origin.saved_time = known.time;
        }
    }

    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters[counter as usize]
    }

    pub fn gauge(&self, gauge: Gauge) -> i64 {
        self.gauges[gauge as usize]
    }

    /// In microseconds.
    pub fn timing(&self, timing: Timing) -> &HistogramSnapshot {
        &self.timings[timing as usize]
    }

    /// For a gauge that no thread keeps.
    pub fn set_gauge(&mut self, gauge: Gauge, value: i64) {
        self.gauges[gauge as usize] = value;
    }

    /// For a histogram that no thread keeps. In microseconds.
    pub fn timing_mut(&mut self, timing: Timing) -> &mut HistogramSnapshot {
        &mut self.timings[timing as usize]
    }

    /// For a counter that no thread keeps.
    pub fn add(&mut self, counter: Counter, value: u64) {
        self.counters[counter as usize] += value;
    }

    pub fn add_logs(&mut self, logs: LogStatistics) {
        self.add(Counter::LogBytesWritten, logs.bytes_written);
        self.add(Counter::LogBytesDropped, logs.bytes_dropped);
        self.add(Counter::LogErrors, logs.errors);
    }
}
