//! What is counted of one upstream server at one address: a part for each worker, kept where the server is.

use super::{add, add_all};
use crate::histogram::{Histogram, HistogramSnapshot, Steps};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What of an exchange with a server takes time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum PeerTiming {
    /// Connecting to it, with the handshake.
    Connect,
    /// From asking to the head of its answer.
    Header,
    /// From asking to the end of its answer.
    Response,
}

impl PeerTiming {
    /// Every one, in the order of their numbers.
    pub const ALL: [PeerTiming; 3] = [PeerTiming::Connect, PeerTiming::Header, PeerTiming::Response];
}

const CLASSES: usize = 5;

/// One worker's counts. Everything but reading belongs to that worker.
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

/// The sums of all workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerCounts {
    /// Requests that it was chosen for.
    pub requests: u64,
    /// Its answers by class of status, 1xx first.
    pub responses: [u64; CLASSES],
    /// Bytes sent to it.
    pub sent: u64,
    /// Bytes received from it.
    pub received: u64,
    /// Exchanges that failed.
    pub failures: u64,
    /// Times that it reached `max_fails` and was left alone.
    pub outages: u64,
    /// Requests that it has at this moment.
    pub active: u64,
    timings: [HistogramSnapshot; PeerTiming::ALL.len()],
}

impl PeerCells {
    /// It was chosen for a request.
    #[inline]
    pub fn enter(&self) {
        add(&self.requests, 1);
        add(&self.active, 1);
    }

    /// A request is done with it.
    #[inline]
    pub fn leave(&self) {
        add(&self.active, u64::MAX);
    }

    /// The head of an answer has come.
    pub fn answered(&self, status: u16) {
        add(&self.responses[usize::from(status / 100).clamp(1, CLASSES) - 1], 1);
    }

    /// Bytes have passed.
    pub fn passed(&self, received: u64, sent: u64) {
        add(&self.received, received);
        add(&self.sent, sent);
    }

    /// An exchange failed; `is_out`: it is left alone for that.
    pub fn failed(&self, is_out: bool) {
        add(&self.failures, 1);
        add(&self.outages, u64::from(is_out));
    }

    /// It is judged by an answer, or by an exchange that failed (`outlier_ejection`).
    pub fn judged(&self, is_error: bool) {
        add(&self.judged, 1);
        add(&self.errors, u64::from(is_error));
    }

    /// Adds how often it was judged, and how often that was for an error.
    pub fn add_judged_to(&self, (judged, errors): &mut (u64, u64)) {
        *judged += self.judged.load(Ordering::Relaxed);
        *errors += self.errors.load(Ordering::Relaxed);
    }

    /// Something took its time.
    pub fn took(&self, what: PeerTiming, time: Duration) {
        let histogram = self.timings[what as usize].get_or_init(|| Histogram::new(Steps::Coarse));
        histogram.record(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// Adds these counts to a sum.
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
    /// Adds another's counts.
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

    /// How long something took, in microseconds.
    pub fn timing(&self, what: PeerTiming) -> &HistogramSnapshot {
        &self.timings[what as usize]
    }
}
