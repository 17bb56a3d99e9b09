//! What is counted of finished requests, in the zone of their server and in that of their location.

use super::pages::Pages;
use super::{CacheStatus, add, add_all};
use crate::histogram::{Histogram, HistogramSnapshot, Steps};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A completed request, as it is counted.
#[derive(Debug, Clone, Copy)]
pub struct Finished {
    /// 0 without a response.
    pub status: u16,
    pub received: u64,
    pub sent: u64,
    /// `None` if the cache was not involved.
    pub cache: Option<CacheStatus>,
    /// From the first byte of its head to the last of its response.
    pub took: Duration,
}

/// Status classes, 1xx first, then requests without a response.
const CLASSES: usize = 6;

/// The class of requests without a response: the client left, or was disconnected (`return 444`).
const DISCARDED: usize = 5;

const LEAST_CODE: u16 = 100;

/// 512 statuses, up to 611.
type CodePages = Pages<AtomicU64, 32>;

#[derive(Debug, Default)]
pub(super) struct HttpCells {
    /// Requests waiting for their response; those served at once are never counted.
    processing: AtomicU64,
    responses: [AtomicU64; CLASSES],
    received: AtomicU64,
    sent: AtomicU64,
    cache: [AtomicU64; CacheStatus::ALL.len()],
    /// By status from [`LEAST_CODE`]. Made with the first request, then page by page.
    codes: OnceLock<Box<CodePages>>,
    /// Microseconds. Made with the first request: most zones of a large configuration have none.
    latency: OnceLock<Histogram>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpSnapshot {
    /// Requests in progress; those that complete at once, such as hits in memory, are never counted.
    pub processing: u64,
    /// By status class, 1xx first, then requests without a response.
    pub responses: [u64; CLASSES],
    pub codes: BTreeMap<u16, u64>,
    pub received: u64,
    pub sent: u64,
    /// In the order of [`CacheStatus::ALL`].
    pub cache: [u64; CacheStatus::ALL.len()],
    /// From the first byte of a head to the last of its response, in microseconds.
    pub latency: HistogramSnapshot,
}

impl HttpCells {
    pub(super) fn process(&self, change: i64) {
        add(&self.processing, change.cast_unsigned());
    }

    #[inline]
    pub(super) fn count(&self, of: &Finished) {
        let class = class(of.status);
        add(&self.responses[class], 1);
        if class != DISCARDED
            && let Some(code) = of.status.checked_sub(LEAST_CODE)
            && let Some(cell) = self.codes.get_or_init(|| Box::new(CodePages::new())).cells(u32::from(code))
        {
            add(cell, 1);
        }
        add(&self.received, of.received);
        add(&self.sent, of.sent);
        if let Some(cache) = of.cache {
            add(&self.cache[cache as usize], 1);
        }
        let latency = self.latency.get_or_init(|| Histogram::new(Steps::Coarse));
        latency.record(u64::try_from(of.took.as_micros()).unwrap_or(u64::MAX));
    }

    pub(super) fn add_to(&self, sum: &mut HttpSnapshot) {
        sum.processing = sum.processing.wrapping_add(self.processing.load(Ordering::Relaxed));
        add_all(&mut sum.responses, &self.responses);
        add_all(std::slice::from_mut(&mut sum.received), std::slice::from_ref(&self.received));
        add_all(std::slice::from_mut(&mut sum.sent), std::slice::from_ref(&self.sent));
        add_all(&mut sum.cache, &self.cache);
        if let Some(codes) = self.codes.get() {
            codes.each(|code, cell| {
                let count = cell.load(Ordering::Relaxed);
                if count > 0 {
                    *sum.codes.entry(LEAST_CODE.saturating_add(code)).or_default() += count;
                }
            });
        }
        if let Some(latency) = self.latency.get() {
            latency.add_to(&mut sum.latency);
        }
    }
}

/// 444 and 499 are nginx's log values for no response.
fn class(status: u16) -> usize {
    match status {
        0 | 444 | 499 => DISCARDED,
        _ => usize::from(status / 100).clamp(1, 5) - 1,
    }
}

impl Default for HttpSnapshot {
    fn default() -> Self {
        HttpSnapshot {
            processing: 0,
            responses: [0; CLASSES],
            codes: BTreeMap::new(),
            received: 0,
            sent: 0,
            cache: [0; CacheStatus::ALL.len()],
            latency: HistogramSnapshot::new(Steps::Coarse),
        }
    }
}

impl HttpSnapshot {
    pub fn requests(&self) -> u64 {
        self.responses.iter().sum()
    }

    pub fn discarded(&self) -> u64 {
        self.responses[DISCARDED]
    }

    pub fn cached(&self, status: CacheStatus) -> u64 {
        self.cache[status as usize]
    }

    /// Requests that the cache served without the upstream.
    pub fn saved(&self) -> u64 {
        [CacheStatus::Hit, CacheStatus::Stale, CacheStatus::Updating]
            .map(|status| self.cached(status))
            .iter()
            .sum()
    }
}
