//! Counting without contention: each thread has its own cells, and whoever looks sums them.
//!
//! A cell is written by its thread alone, with a load and a store (no read-modify-write, no shared cache line).
//! Nothing here may be registered by name during a request. Next: `table`, the vocabulary; `snapshot`, the sums;
//! `prometheus`, their text.

mod table;
mod misses;
mod snapshot;
mod prometheus;
#[cfg(test)]
mod tests;

pub use misses::{Cause, CauseFamily, LOCATIONS, MissCount};
pub(crate) use prometheus::zone_families;
pub use snapshot::{LocationSnapshot, Snapshot, ZoneSnapshot};
pub use table::{CacheStatus, Counter, Gauge, MetricLine, Timing};

use crate::histogram::Histogram;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Status zones over the life of the process; zones past it are not counted.
pub const ZONES: usize = 1024;

/// Zones whose cells are made at once, when the first of them is used.
const ZONES_PER_PAGE: usize = 16;

/// All threads' metrics. One per process.
#[derive(Debug, Default)]
pub struct Registry {
    workers: Mutex<Vec<Arc<WorkerMetrics>>>,
    zones: Mutex<Vec<String>>,
    locations: Mutex<Vec<String>>,
}

/// One thread's metrics. Everything but reading belongs to that thread: a second writer would lose counts.
#[derive(Debug)]
#[repr(align(128))]
pub struct WorkerMetrics {
    counters: [AtomicU64; Counter::COUNT],
    /// Two's complement: a connection may be closed by another thread's books than opened it.
    gauges: [AtomicU64; Gauge::COUNT],
    timings: [Histogram; Timing::COUNT],
    zones: [OnceLock<Box<[ZoneCells; ZONES_PER_PAGE]>>; ZONES / ZONES_PER_PAGE],
    misses: misses::MissPages,
}

/// One thread's counts of one `status_zone`.
#[derive(Debug, Default)]
struct ZoneCells {
    requests: AtomicU64,
    /// By class, 1xx first.
    responses: [AtomicU64; 5],
    received: AtomicU64,
    sent: AtomicU64,
    cache: [AtomicU64; CacheStatus::ALL.len()],
}

/// Adds to a cell that only this thread writes.
fn add(cell: &AtomicU64, value: u64) {
    cell.store(cell.load(Ordering::Relaxed).wrapping_add(value), Ordering::Relaxed);
}

impl Registry {
    /// No threads, no zones.
    pub fn new() -> Self {
        Registry::default()
    }

    /// Cells for one thread. Those of a thread that is gone are handed on, so that its counts stay in the sums and
    /// reloads do not add up.
    pub fn worker(&self) -> Arc<WorkerMetrics> {
        let mut workers = lock(&self.workers);
        if let Some(free) = workers.iter().find(|worker| Arc::strong_count(worker) == 1) {
            return Arc::clone(free);
        }
        let worker = Arc::new(WorkerMetrics::new());
        workers.push(Arc::clone(&worker));
        worker
    }

    /// The number of a `status_zone`, the same for the same name over all reloads. At load, never per request.
    pub fn zone(&self, name: &str) -> u32 {
        numbered(&self.zones, name, ZONES)
    }

    /// The number of a location with a cache, as [`Registry::zone`].
    pub fn location(&self, name: &str) -> u32 {
        numbered(&self.locations, name, LOCATIONS)
    }

    /// The sums over all threads, now.
    pub fn snapshot(&self) -> Snapshot {
        let zones = lock(&self.zones).clone();
        let locations = lock(&self.locations).clone();
        let mut snapshot = Snapshot::empty(zones, locations);
        for worker in lock(&self.workers).iter() {
            snapshot.take(worker);
        }
        snapshot
    }
}

/// The position of a name among those known, or behind them; `most` where there is no room.
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
            timings: std::array::from_fn(|_| Histogram::default()),
            zones: [const { OnceLock::new() }; ZONES / ZONES_PER_PAGE],
            misses: [const { OnceLock::new() }; LOCATIONS / misses::LOCATIONS_PER_PAGE],
        }
    }

    /// Adds to a counter. Owner thread only.
    #[inline]
    pub fn add(&self, counter: Counter, value: u64) {
        add(&self.counters[counter as usize], value);
    }

    /// Moves a gauge up or down. Owner thread only.
    #[inline]
    pub fn gauge_add(&self, gauge: Gauge, change: i64) {
        add(&self.gauges[gauge as usize], change.cast_unsigned());
    }

    /// Sets this thread's part of a gauge. Owner thread only.
    #[inline]
    pub fn gauge_set(&self, gauge: Gauge, value: i64) {
        self.gauges[gauge as usize].store(value.cast_unsigned(), Ordering::Relaxed);
    }

    /// This thread's part of a gauge.
    pub fn gauge(&self, gauge: Gauge) -> i64 {
        self.gauges[gauge as usize].load(Ordering::Relaxed).cast_signed()
    }

    /// This thread's part of a counter.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters[counter as usize].load(Ordering::Relaxed)
    }

    /// Records a time. Owner thread only.
    #[inline]
    pub fn observe(&self, timing: Timing, time: Duration) {
        self.timings[timing as usize].record(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// Counts a finished request in a zone of [`Registry::zone`], with its bytes on the client's side. Owner
    /// thread only.
    pub fn zone_request(&self, zone: u32, status: u16, received: u64, sent: u64, cache: Option<CacheStatus>) {
        let index = zone as usize;
        let Some(page) = self.zones.get(index / ZONES_PER_PAGE) else { return };
        let page = page.get_or_init(|| Box::new(std::array::from_fn(|_| ZoneCells::default())));
        let cells = &page[index % ZONES_PER_PAGE];
        add(&cells.requests, 1);
        add(&cells.responses[usize::from(status / 100).clamp(1, 5) - 1], 1);
        add(&cells.received, received);
        add(&cells.sent, sent);
        if let Some(cache) = cache {
            add(&cells.cache[cache as usize], 1);
        }
    }
}
