//! What is counted of finished requests, in the zone of their server and in that of their location.

use super::pages::Pages;
use super::{CacheStatus, add, add_all};
use crate::histogram::{Histogram, HistogramSnapshot, Steps};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A request that is over, as it is counted.
#[derive(Debug, Clone, Copy)]
pub struct Finished {
    /// The status; 0 where nothing was answered.
    pub status: u16,
    /// Bytes received from the client.
    pub received: u64,
    /// Bytes sent to the client.
    pub sent: u64,
    /// What the cache did for it, where it had a part.
    pub cache: Option<CacheStatus>,
    /// From the first byte of its head to the last of its answer.
    pub took: Duration,
}

/// Classes of statuses, 1xx first; behind them what had no answer.
const CLASSES: usize = 6;

/// The class of a request that had no answer: the client was gone, or was closed on (`return 444`).
const DISCARDED: usize = 5;

/// The least status that there is.
const LEAST_CODE: u16 = 100;

/// Pages of statuses: 512 of them, which is up to 611.
type CodePages = Pages<AtomicU64, 32>;

/// One thread's counts of one zone.
#[derive(Debug, Default)]
pub(super) struct HttpCells {
    /// Requests that wait for their answer. Whoever is answered at once never is among them.
    processing: AtomicU64,
    responses: [AtomicU64; CLASSES],
    received: AtomicU64,
    sent: AtomicU64,
    cache: [AtomicU64; CacheStatus::ALL.len()],
    /// Answers by status, [`LEAST_CODE`] first. Made with the first request, and then page by page.
    codes: OnceLock<Box<CodePages>>,
    /// Microseconds. Made with the first request: most zones of a large configuration have none.
    latency: OnceLock<Histogram>,
}

/// The sums of one zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpSnapshot {
    /// Requests that are being answered; those that are answered at once, as hits in memory are, are never seen.
    pub processing: u64,
    /// Answers by class of status, 1xx first; at the end those that had none.
    pub responses: [u64; CLASSES],
    /// Answers by status, where there were any.
    pub codes: BTreeMap<u16, u64>,
    /// Bytes received from clients.
    pub received: u64,
    /// Bytes sent to clients.
    pub sent: u64,
    /// Requests by cache status, in the order of [`CacheStatus::ALL`].
    pub cache: [u64; CacheStatus::ALL.len()],
    /// Time from the first byte of a head to the last of its answer, in microseconds.
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

/// The class that a status is counted in. Nothing was answered under 444 and 499, which are nginx's words for the log.
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
    /// Requests finished.
    pub fn requests(&self) -> u64 {
        self.responses.iter().sum()
    }

    /// Requests that had no answer.
    pub fn discarded(&self) -> u64 {
        self.responses[DISCARDED]
    }

    /// Requests with this cache status.
    pub fn cached(&self, status: CacheStatus) -> u64 {
        self.cache[status as usize]
    }

    /// Requests that the cache answered and the API never saw.
    pub fn saved(&self) -> u64 {
        [CacheStatus::Hit, CacheStatus::Stale, CacheStatus::Updating]
            .map(|status| self.cached(status))
            .iter()
            .sum()
    }
}
