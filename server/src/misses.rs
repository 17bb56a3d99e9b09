//! Why requests were not answered from the cache, counted per location: what the cache did instead, and why answers were
//! not stored.
//!
//! A miss asks an upstream, so one shared addition more costs nothing; a hit never comes here. It is of one configuration
//! and begins anew with the next. Next: `admin/misses`, which tells it.

use millstream_cache::policy::Reason;
use millstream_conf::model::Http;
use millstream_telemetry::metrics::CacheStatus;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// How often, and when last.
#[derive(Debug, Default)]
pub struct Tally {
    count: AtomicU64,
    last: AtomicI64,
}

/// The misses of one location.
#[derive(Debug, Default)]
pub struct Misses {
    by_status: [Tally; CacheStatus::ALL.len()],
    by_reason: Box<[Tally]>,
}

impl Tally {
    fn add(&self, unix_milliseconds: i64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.last.store(unix_milliseconds, Ordering::Relaxed);
    }

    /// How often.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// When last, in milliseconds since 1970; 0 = never.
    pub fn last(&self) -> i64 {
        self.last.load(Ordering::Relaxed)
    }
}

/// One per location; `None` for those without a cache.
pub fn of(http: &Http) -> Vec<Option<Box<Misses>>> {
    let has_cache = http
        .locations
        .iter()
        .map(|location| location.settings.proxy.as_ref().is_some_and(|proxy| proxy.cache.is_some()));
    has_cache.map(|has_cache| has_cache.then(|| Box::new(Misses::new()))).collect()
}

impl Misses {
    fn new() -> Misses {
        Misses {
            by_status: Default::default(),
            by_reason: Reason::ALL.iter().map(|_| Tally::default()).collect(),
        }
    }

    /// A request ended that was not a hit.
    pub fn ended(&self, status: CacheStatus, unix_milliseconds: i64) {
        self.by_status[usize::from(status.number())].add(unix_milliseconds);
    }

    /// An answer was not stored.
    pub fn not_stored(&self, reason: Reason, unix_milliseconds: i64) {
        self.by_reason[reason as usize].add(unix_milliseconds);
    }

    /// What the cache did, where it did it at all.
    pub fn statuses(&self) -> impl Iterator<Item = (CacheStatus, &Tally)> {
        CacheStatus::ALL.into_iter().zip(&self.by_status).filter(|(_, tally)| tally.count() > 0)
    }

    /// Why answers were not stored, where they were not.
    pub fn reasons(&self) -> impl Iterator<Item = (Reason, &Tally)> {
        Reason::ALL.iter().copied().zip(&self.by_reason).filter(|(_, tally)| tally.count() > 0)
    }
}
