//! What is counted of one upstream server at one address: a part for each worker, kept where the server is.

use super::{add, add_all};
use crate::histogram::{Histogram, HistogramSnapshot, Steps};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum PeerTiming {
    /// With the handshake.
    Connect,
    Header,
    Response,
}

impl PeerTiming {
    /// In the order of their numbers.
    pub const ALL: [PeerTiming; 3] = [PeerTiming::Connect, PeerTiming::Header, PeerTiming::Response];
}

const CLASSES: usize = 5;

/// One worker's counts. All but reading belongs to that worker.
#[derive(Debug, Default)]
pub struct PeerCells {
    requests: AtomicU64,
    responses: [AtomicU64; CLASSES],
    sent: AtomicU64,
    received: AtomicU64,
    failures: AtomicU64,
    outages: AtomicU64,
    judged: AtomicU64,
    errors: AtomicU64,
    active: AtomicU64,
    timings: [OnceLock<Histogram>; PeerTiming::ALL.len()],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerCounts {
    pub requests: u64,
    /// By status class, 1xx first.
    pub responses: [u64; CLASSES],
    pub sent: u64,
    pub received: u64,
    pub failures: u64,
    /// Times that it reached `max_fails` and was left out.
    pub outages: u64,
    pub active: u64,
    timings: [HistogramSnapshot; PeerTiming::ALL.len()],
}

impl PeerCells {
    #[inline]
    pub fn enter(&self) {
        add(&self.requests, 1);
        add(&self.active, 1);
    }

    #[inline]
    pub fn leave(&self) {
        add(&self.active, u64::MAX);
    }

    pub fn answered(&self, status: u16) {
        add(&self.responses[usize::from(status / 100).clamp(1, CLASSES) - 1], 1);
    }

    pub fn passed(&self, received: u64, sent: u64) {
        add(&self.received, received);
        add(&self.sent, sent);
    }

    /// `is_out`: it is left out because of it.
    pub fn failed(&self, is_out: bool) {
        add(&self.failures, 1);
        add(&self.outages, u64::from(is_out));
    }

    /// A response or failed exchange, for `outlier_ejection`.
    pub fn judged(&self, is_error: bool) {
        add(&self.judged, 1);
        add(&self.errors, u64::from(is_error));
    }

    pub fn add_judged_to(&self, (judged, errors): &mut (u64, u64)) {
        *judged += self.judged.load(Ordering::Relaxed);
        *errors += self.errors.load(Ordering::Relaxed);
    }

    pub fn took(&self, what: PeerTiming, time: Duration) {
        let histogram = self.timings[what as usize].get_or_init(|| Histogram::new(Steps::Coarse));
        histogram.record(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    pub fn add_to(&self, sum: &mut PeerCounts) {
        sum.requests += self.requests.load(Ordering::Relaxed);
        add_all(&mut sum.responses, &self.responses);
        sum.sent += self.sent.load(Ordering::Relaxed);
        sum.received += self.received.load(Ordering::Relaxed);
        sum.failures += self.failures.load(Ordering::Relaxed);
        sum.outages += self.outages.load(Ordering::Relaxed);
        sum.active = sum.active.wrapping_add(self.active.load(Ordering::Relaxed));
        for (sum, timing) in sum.timings.iter_mut().zip(&self.timings) {
            if let Some(timing) = timing.get() {
                timing.add_to(sum);
            }
        }
    }
}

impl Default for PeerCounts {
    fn default() -> Self {
        PeerCounts {
            requests: 0,
            responses: [0; CLASSES],
            sent: 0,
            received: 0,
            failures: 0,
            outages: 0,
            active: 0,
            timings: PeerTiming::ALL.map(|_| HistogramSnapshot::new(Steps::Coarse)),
        }
    }
}

impl PeerCounts {
    pub fn add(&mut self, other: &PeerCounts) {
        let PeerCounts { requests, responses, sent, received, failures, outages, active, timings } = other;
        self.requests += requests;
        for (sum, count) in self.responses.iter_mut().zip(responses) {
            *sum += count;
        }
        self.sent += sent;
        self.received += received;
        self.failures += failures;
        self.outages += outages;
        self.active = self.active.wrapping_add(*active);
        for (sum, timing) in self.timings.iter_mut().zip(timings) {
            sum.add(timing);
        }
    }

    /// In microseconds.
    pub fn timing(&self, what: PeerTiming) -> &HistogramSnapshot {
        &self.timings[what as usize]
    }
}
