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

/// Every metric, summed.
#[derive(Debug, Clone)]
pub struct Snapshot {
    counters: [u64; Counter::COUNT],
    gauges: [i64; Gauge::COUNT],
    timings: Vec<HistogramSnapshot>,
    /// The zones of servers with their names, in order of their numbers.
    pub servers: Vec<(String, HttpSnapshot)>,
    /// The locations, in order of their numbers.
    pub locations: Vec<LocationSnapshot>,
    /// The cache zones with their names, in order of their numbers.
    pub caches: Vec<(String, CacheSnapshot)>,
    /// The zones of `limit_req` with their names, in order of their numbers.
    pub request_limits: Vec<(String, LimitSnapshot)>,
    /// The zones of `limit_conn` with their names, in order of their numbers.
    pub connection_limits: Vec<(String, LimitSnapshot)>,
    /// The URLs that most misses are for, as far as the threads' lists reach.
    pub missed_urls: Vec<MissedUrl>,
    /// The upstreams. No thread keeps them: whoever asks puts them in.
    pub upstreams: Vec<Upstream>,
    /// The process, put in as the upstreams are.
    pub process: Option<ProcessSnapshot>,
    /// The tiers of the cache zones, put in as the upstreams are.
    pub tiers: Vec<CacheTier>,
    /// The certificates in use, put in as the upstreams are.
    pub certificates: Vec<CertificateEnd>,
}

/// What is counted of one location's requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocationSnapshot {
    /// Its name.
    pub name: String,
    /// Its requests.
    pub http: HttpSnapshot,
    /// What became of its upstream's work.
    pub origin: Origin,
    /// Why the cache did not answer, and why answers were not stored, in the order of [`Cause::ALL`].
    pub causes: [MissCount; Cause::COUNT],
}

/// What the upstream of a location was asked for clients, and what the cache kept from it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Origin {
    /// Requests to upstream servers, retries included.
    pub requests: u64,
    /// How long these took, in microseconds.
    pub time: u64,
    /// Requests that the cache answered alone.
    pub saved_requests: u64,
    /// How long the upstream would have taken for these, in microseconds: each counts as long as the upstream's answers in this location
    /// had taken on average when the figures were next looked at.
    pub saved_time: u64,
}

impl Origin {
    /// How long the upstream takes for a request, in microseconds.
    pub fn mean_time(&self) -> u64 {
        self.time.checked_div(self.requests).unwrap_or(0)
    }
}

/// What of a location's saved time is accounted for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Savings {
    requests: u64,
    time: u64,
}

/// One upstream group.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// Its name.
    pub name: String,
    /// Its servers, each address for itself.
    pub peers: Vec<UpstreamPeer>,
}

/// One server of an upstream group at one address.
#[derive(Debug, Clone, Default)]
pub struct UpstreamPeer {
    /// The address.
    pub name: String,
    /// Its counts.
    pub counts: PeerCounts,
    /// Whether it may be asked.
    pub up: bool,
    /// Checks of its health.
    pub checks: u64,
    /// Those that failed.
    pub failed_checks: u64,
    /// How often it was taken out as an outlier.
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

    /// Adds one thread's counts.
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

    /// Accounts for what the locations have saved since the snapshot before, so that the sums never fall.
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
