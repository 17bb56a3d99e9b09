//! Counting without contention: each thread has its own cells, and whoever looks sums them.
//!
//! A cell is written by its thread alone, with a load and a store (no read-modify-write, no shared cache line).
//! Nothing here may be registered by name during a request. Next: `table`, the vocabulary; `http`, `cache` and `peer`, what is counted
//! of one of many; `snapshot`, the sums; `figures`, the walk over them; `prometheus`, their text.

mod table;
mod pages;
pub mod parts;
mod http;
mod cache;
mod limit;
mod peer;
mod misses;
mod missed_urls;
mod process;
mod snapshot;
mod figures;
mod prometheus;
#[cfg(test)]
mod tests;

pub use cache::CacheSnapshot;
pub use figures::{BOUNDS, FamilyKind, Figure, FigureSink, Labels};
pub(crate) use figures::{Described, families};
pub use http::{Finished, HttpSnapshot};
pub use limit::{LimitOutcome, LimitSnapshot};
pub use missed_urls::{LONGEST_URL, MissedUrl};
pub use misses::{Cause, CauseFamily, MissCount};
pub use peer::{PeerCells, PeerCounts, PeerTiming};
pub use process::{CacheTier, CertificateEnd, ProcessSnapshot};
pub use prometheus::Exposition;
pub use snapshot::{LocationSnapshot, Origin, Snapshot, Upstream, UpstreamPeer};
pub use table::{CacheStatus, Counter, Gauge, MetricLine, Timing};

use crate::histogram::{Histogram, Steps};
use crate::recent_errors::RecentErrors;
use cache::CacheCells;
use http::HttpCells;
use limit::LimitCells;
use missed_urls::MissedUrls;
use misses::MissCells;
use pages::Pages;
use snapshot::Savings;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// 1,024 zones of servers over the life of the process; further ones are not counted.
type ServerPages = Pages<HttpCells, 64>;

/// 4,096 locations, in the same way.
type LocationPages = Pages<LocationCells, 256>;

/// 256 cache zones, in the same way.
type CachePages = Pages<CacheCells, 16>;

/// 256 zones of one kind of limits, in the same way.
type LimitPages = Pages<LimitCells, 16>;

/// All threads' metrics. One per process.
#[derive(Debug, Default)]
pub struct Registry {
    workers: Mutex<Vec<Arc<WorkerMetrics>>>,
    servers: Mutex<Vec<String>>,
    locations: Mutex<Vec<String>>,
    caches: Mutex<Vec<String>>,
    request_limits: Mutex<Vec<String>>,
    connection_limits: Mutex<Vec<String>>,
    recent_errors: Arc<RecentErrors>,
    /// Workers started to replace one that ended unexpectedly.
    respawned: AtomicU64,
    reloads: [AtomicU64; 2],
    reload_failed: AtomicBool,
    /// Of the locations, up to the last snapshot.
    savings: Mutex<Vec<Savings>>,
}

/// One thread's metrics. All but reading belongs to that thread: a second writer would lose counts.
#[derive(Debug)]
#[repr(align(128))]
pub struct WorkerMetrics {
    counters: [AtomicU64; Counter::COUNT],
    /// Two's complement: a connection may be closed by another thread than opened it.
    gauges: [AtomicU64; Gauge::COUNT],
    timings: [Histogram; Timing::COUNT],
    servers: ServerPages,
    locations: LocationPages,
    caches: CachePages,
    request_limits: LimitPages,
    connection_limits: LimitPages,
    missed_urls: MissedUrls,
}

#[derive(Debug, Default)]
struct LocationCells {
    http: HttpCells,
    /// Upstream requests for clients, and their time in microseconds.
    asked: AtomicU64,
    asked_time: AtomicU64,
    misses: MissCells,
}

/// Only this thread may write the cell.
fn add(cell: &AtomicU64, value: u64) {
    cell.store(cell.load(Ordering::Relaxed).wrapping_add(value), Ordering::Relaxed);
}

impl Registry {
    pub fn new() -> Self {
        Registry::default()
    }

    /// Cells for one thread. Those of an ended thread are reused, so that its counts stay in the sums and
    /// reloads do not accumulate.
    pub fn worker(&self) -> Arc<WorkerMetrics> {
        let mut workers = lock(&self.workers);
        if let Some(free) = workers.iter().find(|worker| Arc::strong_count(worker) == 1) {
            return Arc::clone(free);
        }
        let worker = Arc::new(WorkerMetrics::new());
        workers.push(Arc::clone(&worker));
        worker
    }

    pub fn recent_errors(&self) -> &Arc<RecentErrors> {
        &self.recent_errors
    }

    /// A worker replaces one that ended unexpectedly.
    pub fn respawn(&self) {
        self.respawned.fetch_add(1, Ordering::Relaxed);
    }

    pub fn respawned(&self) -> u64 {
        self.respawned.load(Ordering::Relaxed)
    }

    /// `succeeded`: its configuration is in force.
    pub fn reloaded(&self, succeeded: bool) {
        self.reloads[usize::from(!succeeded)].fetch_add(1, Ordering::Relaxed);
        self.reload_failed.store(!succeeded, Ordering::Relaxed);
    }

    /// The same for the same name over all reloads. At load, never per request.
    pub fn server(&self, name: &str) -> u32 {
        numbered(&self.servers, name, ServerPages::ROOM)
    }

    /// As [`Registry::server`].
    pub fn location(&self, name: &str) -> u32 {
        numbered(&self.locations, name, LocationPages::ROOM)
    }

    /// As [`Registry::server`].
    pub fn cache(&self, name: &str) -> u32 {
        numbered(&self.caches, name, CachePages::ROOM)
    }

    /// For `limit_req`, as [`Registry::server`].
    pub fn request_limit(&self, name: &str) -> u32 {
        numbered(&self.request_limits, name, LimitPages::ROOM)
    }

    /// For `limit_conn`, as [`Registry::server`].
    pub fn connection_limit(&self, name: &str) -> u32 {
        numbered(&self.connection_limits, name, LimitPages::ROOM)
    }

    pub fn snapshot(&self) -> Snapshot {
        let names = |of: &Mutex<Vec<String>>| lock(of).clone();
        let mut snapshot = Snapshot::empty(names(&self.servers), names(&self.locations), names(&self.caches));
        let limits = |of| names(of).into_iter().map(|name| (name, LimitSnapshot::default())).collect();
        snapshot.request_limits = limits(&self.request_limits);
        snapshot.connection_limits = limits(&self.connection_limits);
        for worker in lock(&self.workers).iter() {
            snapshot.take(worker);
        }
        snapshot.save(&mut lock(&self.savings));
        let [succeeded, failed] = [0, 1].map(|at: usize| self.reloads[at].load(Ordering::Relaxed));
        snapshot.add(Counter::ReloadsSucceeded, succeeded);
        snapshot.add(Counter::ReloadsFailed, failed);
        let last = !self.reload_failed.load(Ordering::Relaxed);
        snapshot.set_gauge(Gauge::LastReloadSuccessful, i64::from(last));
        snapshot
    }
}

/// The index of a name, which is added if new; `most` if there is no room.
fn numbered(names: &Mutex<Vec<String>>, name: &str, most: usize) -> u32 {
    let mut names = lock(names);
    let index = names.iter().position(|known| known == name).unwrap_or_else(|| {
        if names.len() < most {
            names.push(name.to_owned());
            return names.len() - 1;
        }
        most
    });
    index as u32
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WorkerMetrics {
    fn new() -> Self {
        WorkerMetrics {
            counters: [const { AtomicU64::new(0) }; Counter::COUNT],
            gauges: [const { AtomicU64::new(0) }; Gauge::COUNT],
            timings: std::array::from_fn(|_| Histogram::new(Steps::Fine)),
            servers: ServerPages::new(),
            locations: LocationPages::new(),
            caches: CachePages::new(),
            request_limits: LimitPages::new(),
            connection_limits: LimitPages::new(),
            missed_urls: MissedUrls::default(),
        }
    }

    /// Owner thread only.
    #[inline]
    pub fn add(&self, counter: Counter, value: u64) {
        add(&self.counters[counter as usize], value);
    }

    /// Owner thread only.
    #[inline]
    pub fn gauge_add(&self, gauge: Gauge, change: i64) {
        add(&self.gauges[gauge as usize], change.cast_unsigned());
    }

    /// Sets this thread's part. Owner thread only.
    #[inline]
    pub fn gauge_set(&self, gauge: Gauge, value: i64) {
        self.gauges[gauge as usize].store(value.cast_unsigned(), Ordering::Relaxed);
    }

    pub fn gauge(&self, gauge: Gauge) -> i64 {
        self.gauges[gauge as usize].load(Ordering::Relaxed).cast_signed()
    }

    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters[counter as usize].load(Ordering::Relaxed)
    }

    /// Owner thread only.
    #[inline]
    pub fn observe(&self, timing: Timing, time: Duration) {
        self.timings[timing as usize].record(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// In the zones of its server and its location. Owner thread only.
    #[inline]
    pub fn finished(&self, server: u32, location: u32, request: &Finished) {
        if let Some(cells) = self.servers.cells(server) {
            cells.count(request);
        }
        if let Some(cells) = self.locations.cells(location) {
            cells.http.count(request);
        }
    }

    /// Requests in progress. Owner thread only.
    pub fn processing(&self, (server, location): (u32, u32), change: i64) {
        if let Some(cells) = self.servers.cells(server) {
            cells.process(change);
        }
        if let Some(cells) = self.locations.cells(location) {
            cells.http.process(change);
        }
    }

    /// Upstream requests for a client's request, and their time. Owner thread only.
    pub fn asked(&self, location: u32, times: u64, took: Duration) {
        if let Some(cells) = self.locations.cells(location) {
            add(&cells.asked, times);
            add(&cells.asked_time, u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        }
    }

    /// `sent` are bytes to the client. Owner thread only.
    #[inline]
    pub fn cached(&self, zone: u32, status: CacheStatus, sent: u64) {
        if let Some(cells) = self.caches.cells(zone) {
            cells.count(status, sent);
        }
    }

    /// A stale entry was used, or kept, because the upstream failed. Owner thread only.
    pub fn stale_on_error(&self, zone: u32) {
        if let Some(cells) = self.caches.cells(zone) {
            cells.count_stale_on_error();
        }
    }

    /// Owner thread only.
    pub fn request_limited(&self, zone: u32, outcome: LimitOutcome) {
        if let Some(cells) = self.request_limits.cells(zone) {
            cells.count(outcome);
        }
    }

    /// Owner thread only.
    pub fn connection_limited(&self, zone: u32, outcome: LimitOutcome) {
        if let Some(cells) = self.connection_limits.cells(zone) {
            cells.count(outcome);
        }
    }

    /// A request waited for another's response. Owner thread only.
    pub fn waited(&self, zone: u32, time: Duration) {
        if let Some(cells) = self.caches.cells(zone) {
            cells.count_wait(time);
        }
    }

    /// `unix_milliseconds` is the time of the event. Owner thread only.
    pub fn miss(&self, location: u32, cause: Cause, unix_milliseconds: i64) {
        if let Some(cells) = self.locations.cells(location) {
            cells.misses.count(cause, unix_milliseconds);
        }
    }

    /// A miss counted under `cause` is explained by `reason`: its response was not stored. Owner thread only.
    pub fn explain_miss(&self, location: u32, cause: Cause, reason: Cause) {
        if let Some(cells) = self.locations.cells(location) {
            cells.misses.move_on(cause, reason);
        }
    }

    /// `took` is the upstream's time. Owner thread only.
    pub fn missed_url(&self, location: u32, url: &str, cause: Cause, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.missed_urls.count(location, url, cause, took);
    }
}

fn add_all(sums: &mut [u64], cells: &[AtomicU64]) {
    for (sum, cell) in sums.iter_mut().zip(cells) {
        *sum = sum.wrapping_add(cell.load(Ordering::Relaxed));
    }
}
