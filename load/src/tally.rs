//! What is counted, per thread and per tenth of a second, and how it becomes the figures of an outcome.
//!
//! A [`Tally`] belongs to one thread and is written without locks; every [`TICK`] its latest part goes to the [`Board`],
//! where all threads meet, for the live view and for the slices. Next: `drive`.

mod board;
#[cfg(test)]
mod tests;

pub use board::Board;

use crate::histogram;
pub use crate::outcome::Failure;
use crate::outcome::{Counts, Errors};
use hdrhistogram::Histogram;
use std::time::Duration;

/// How often threads report.
pub const TICK: Duration = Duration::from_millis(100);

/// Records a duration given in nanoseconds, as microseconds, at least one.
#[inline]
fn record(into: &mut Histogram<u64>, nanoseconds: u64) {
    into.saturating_record((nanoseconds / 1_000).max(1));
}

/// The moments of one answered request, in nanoseconds from the start of the run.
#[derive(Debug, Clone, Copy)]
pub struct Moments {
    /// When it should have started.
    pub due: u64,
    /// When it was sent.
    pub sent: u64,
    /// The first byte of its answer.
    pub first_byte: u64,
    /// The last byte.
    pub end: u64,
}

/// Answers, errors and latencies: of a tick, of a slice, of a URL.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    pub(crate) answers: u64,
    pub(crate) errors: Errors,
    pub(crate) latency: Histogram<u64>,
}

impl Counted {
    /// None yet, for latencies as precise as this empty histogram's.
    pub(crate) fn of(latency: Histogram<u64>) -> Counted {
        Counted { answers: 0, errors: Errors::default(), latency }
    }

    /// An answer as expected, so many nanoseconds after it was due.
    #[inline]
    pub(crate) fn answered(&mut self, nanoseconds: u64) {
        self.answers += 1;
        record(&mut self.latency, nanoseconds);
    }

    pub(crate) fn add(&mut self, other: &Counted) {
        self.answers += other.answers;
        self.errors.add(&other.errors);
        // It has room for every value that the other has.
        _ = self.latency.add(&other.latency);
    }

    pub(crate) fn clear(&mut self) {
        self.answers = 0;
        self.errors = Errors::default();
        self.latency.reset();
    }

    /// A quantile of the latencies, microseconds; 0 where there are none.
    pub(crate) fn quantile(&self, quantile: f64) -> u64 {
        self.latency.value_at_quantile(quantile).min(self.latency.max())
    }
}

/// One thread's figures of the measured time.
#[derive(Debug)]
pub struct Tally {
    /// Everything but the answers by status.
    pub counts: Counts,
    /// Answers by status, 0 to 999.
    statuses: Box<[u64; 1000]>,
    /// From when requests should have started to their last byte.
    pub(crate) latency: Histogram<u64>,
    /// Open loop only: in a closed one with keep-alive it is the latency.
    service: Option<Histogram<u64>>,
    /// From when they were sent to the first byte of the answer.
    pub(crate) first_byte: Histogram<u64>,
    send_lag: Histogram<u64>,
    /// Of the latency: requests that had no answer at the end, or in time.
    pub(crate) waiting: Histogram<u64>,
    tick: Counted,
}

impl Tally {
    /// Nothing yet. `has_service`: whether requests are sent later than they should start.
    pub fn new(has_service: bool) -> Tally {
        Tally {
            counts: Counts::default(),
            statuses: Box::new([0; 1000]),
            latency: histogram::empty(),
            service: has_service.then(histogram::empty),
            first_byte: histogram::empty(),
            send_lag: histogram::empty(),
            waiting: histogram::empty(),
            tick: Counted::of(histogram::empty()),
        }
    }

    /// A whole answer, expected or not: its status and the bytes of its body.
    #[inline]
    pub fn arrived(&mut self, status: u16, body: u64) {
        self.counts.bytes_body += body;
        if let Some(count) = self.statuses.get_mut(usize::from(status)) {
            *count += 1;
        }
    }

    /// A whole answer as expected.
    #[inline]
    pub fn answered(&mut self, at: Moments) {
        self.tick.answered(at.end.saturating_sub(at.due));
        record(&mut self.first_byte, at.first_byte.saturating_sub(at.sent));
        if let Some(service) = &mut self.service {
            record(service, at.end.saturating_sub(at.sent));
        }
    }

    /// A request that came to nothing good.
    pub fn failed(&mut self, how: Failure) {
        self.tick.errors.count(how);
    }

    /// A request that was not waited for any longer after so long, in nanoseconds: its answer would have taken longer still.
    pub fn given_up(&mut self, nanoseconds: u64) {
        record(&mut self.tick.latency, nanoseconds);
        record(&mut self.waiting, nanoseconds);
    }

    /// Requests that have no answer when the run ends, and have waited so long by then, in nanoseconds.
    pub fn unfinished(&mut self, nanoseconds: u64, count: u64) {
        let microseconds = (nanoseconds / 1_000).max(1);
        self.counts.unfinished += count;
        self.tick.latency.saturating_record_n(microseconds, count);
        self.waiting.saturating_record_n(microseconds, count);
    }

    /// By how much the generator sent a request late.
    pub fn lagged(&mut self, nanoseconds: u64) {
        record(&mut self.send_lag, nanoseconds);
    }

    /// Hands the tick with this number to the board and begins the next. Ticks count from the start of measuring;
    /// those before it are negative and only shown, never kept.
    pub(crate) fn flush(&mut self, board: &Board, number: i64) {
        if number >= 0 {
            self.counts.answers += self.tick.answers;
            self.counts.errors.add(&self.tick.errors);
            _ = self.latency.add(&self.tick.latency);
        }
        board.take(&self.tick, number);
        self.tick.clear();
    }

    /// Forgets all but what the tick holds: measuring begins.
    pub(crate) fn begin(&mut self) {
        let has_service = self.service.is_some();
        *self = Tally::new(has_service);
    }

    /// Adds another thread's figures.
    pub(crate) fn add(&mut self, other: &Tally) {
        let (counts, more) = (&mut self.counts, &other.counts);
        counts.requests += more.requests;
        counts.answers += more.answers;
        counts.bytes_read += more.bytes_read;
        counts.bytes_body += more.bytes_body;
        counts.bytes_written += more.bytes_written;
        counts.connections += more.connections;
        counts.unfinished += more.unfinished;
        counts.surplus += more.surplus;
        counts.resent += more.resent;
        counts.redirects += more.redirects;
        counts.silent += more.silent;
        counts.ran_out |= more.ran_out;
        counts.errors.add(&more.errors);
        for (count, more) in self.statuses.iter_mut().zip(other.statuses.iter()) {
            *count += more;
        }
        _ = self.latency.add(&other.latency);
        _ = self.first_byte.add(&other.first_byte);
        _ = self.send_lag.add(&other.send_lag);
        _ = self.waiting.add(&other.waiting);
        if let (Some(service), Some(more)) = (&mut self.service, &other.service) {
            _ = service.add(more);
        }
    }

    /// The counters, statuses included.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = self.counts.clone();
        counts.statuses = (0u16..)
            .zip(self.statuses.iter())
            .filter(|(_, count)| **count > 0)
            .map(|(s, c)| (s, *c))
            .collect();
        counts
    }

    /// From when they were sent.
    pub(crate) fn service(&self) -> &Histogram<u64> {
        self.service.as_ref().unwrap_or(&self.latency)
    }

    /// Microseconds at the 99th percentile; 0 where nothing was sent by a schedule.
    pub(crate) fn send_lag_p99(&self) -> u64 {
        self.send_lag.value_at_quantile(0.99)
    }
}
