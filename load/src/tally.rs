//! What is counted, per thread and per tenth of a second, and how it becomes the figures of an outcome.
//!
//! A [`Tally`] belongs to one thread and is written without locks; every [`TICK`] its latest part goes to the [`Board`],
//! where all threads meet, for the live view and for the slices. Next: `drive`.

mod board;
mod by_url;
#[cfg(test)]
mod tests;

pub use board::Board;
pub(crate) use by_url::ByUrl;

use crate::histogram;
pub use crate::outcome::Failure;
use crate::outcome::{Counts, Errors, Http2Outcome};
use crate::plan::Plan;
use hdrhistogram::Histogram;
use std::time::Duration;

pub const TICK: Duration = Duration::from_millis(100);

/// Records a duration given in nanoseconds, as microseconds, at least one.
#[inline]
fn record(into: &mut Histogram<u64>, nanoseconds: u64) {
    into.saturating_record((nanoseconds / 1_000).max(1));
}

/// A request on its way; its moments are nanoseconds from the start of the run.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    pub target: u32,
    /// When it should have started.
    pub due: u64,
    pub sent: u64,
}

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
}

#[derive(Debug)]
pub struct Tally {
    pub counts: Counts,
    pub(crate) http2: Http2Outcome,
    pub(crate) by_url: ByUrl,
    /// Answers by status, 0 to 999.
    statuses: Box<[u64; 1000]>,
    /// Answers and errors; the latency is from when requests should have started to their last byte.
    pub(crate) total: Counted,
    /// Open loop only: in a closed one with keep-alive it is the latency.
    service: Option<Histogram<u64>>,
    /// From when they were sent to the first byte of the answer.
    pub(crate) first_byte: Histogram<u64>,
    send_lag: Histogram<u64>,
    /// The longest that a whole answer took which was not as expected, microseconds: it is in no latency.
    longest_unexpected: u64,
    /// Of the latency: requests that had no answer at the end, or in time.
    pub(crate) waiting: Histogram<u64>,
    tick: Counted,
}

impl Tally {
    pub(crate) fn of(plan: &Plan) -> Tally {
        // A request may be sent later than it should start.
        Tally { by_url: ByUrl::of(plan), ..Tally::new(plan.is_open() || !plan.keep_alive) }
    }

    /// The same without URLs. `has_service`: whether requests are sent later than they should start.
    pub fn new(has_service: bool) -> Tally {
        Tally {
            counts: Counts::default(),
            http2: Http2Outcome::default(),
            by_url: ByUrl::default(),
            statuses: Box::new([0; 1000]),
            total: Counted::of(histogram::empty()),
            service: has_service.then(histogram::empty),
            first_byte: histogram::empty(),
            send_lag: histogram::empty(),
            longest_unexpected: 0,
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

    #[inline]
    pub fn answered(&mut self, request: Sent, first_byte: u64, end: u64) {
        let Sent { target, due, sent } = request;
        self.tick.answered(end.saturating_sub(due));
        record(&mut self.first_byte, first_byte.saturating_sub(sent));
        if let Some(service) = &mut self.service {
            record(service, end.saturating_sub(sent));
        }
        if let Some(row) = self.by_url.row(target) {
            row.answered(end.saturating_sub(due));
        }
    }

    pub fn failed(&mut self, how: Failure, target: Option<u32>) {
        self.tick.errors.count(how);
        if let Some(row) = target.and_then(|target| self.by_url.row(target)) {
            row.errors.count(how);
        }
    }

    /// A whole answer that was not as expected took so long, in nanoseconds.
    pub(crate) fn unexpected(&mut self, nanoseconds: u64) {
        self.longest_unexpected = self.longest_unexpected.max(nanoseconds / 1_000);
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

    pub fn lagged(&mut self, nanoseconds: u64) {
        record(&mut self.send_lag, nanoseconds);
    }

    /// Hands the tick with this number to the board and begins the next. Ticks count from the start of measuring;
    /// those before it are negative and only shown, never kept.
    pub(crate) fn flush(&mut self, board: &Board, number: i64) {
        if number >= 0 {
            self.total.add(&self.tick);
        }
        board.take(&self.tick, number);
        self.tick.clear();
    }

    pub(crate) fn begin(&mut self) {
        self.by_url.clear();
        let by_url = std::mem::take(&mut self.by_url);
        let http2 = Http2Outcome { allowed: self.http2.allowed, ..Http2Outcome::default() };
        *self = Tally { http2, by_url, ..Tally::new(self.service.is_some()) };
    }

    pub(crate) fn add(&mut self, other: &Tally) {
        let (counts, more) = (&mut self.counts, &other.counts);
        counts.requests += more.requests;
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
        for (count, more) in self.statuses.iter_mut().zip(other.statuses.iter()) {
            *count += more;
        }
        self.total.add(&other.total);
        self.by_url.add(&other.by_url);
        self.http2.add(&other.http2);
        _ = self.first_byte.add(&other.first_byte);
        _ = self.send_lag.add(&other.send_lag);
        _ = self.waiting.add(&other.waiting);
        if let (Some(service), Some(more)) = (&mut self.service, &other.service) {
            _ = service.add(more);
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        let statuses = (0u16..).zip(self.statuses.iter().copied()).filter(|(_, count)| *count > 0).collect();
        let Counted { answers, errors, .. } = self.total;
        Counts { statuses, answers, errors, ..self.counts.clone() }
    }

    pub(crate) fn service(&self) -> &Histogram<u64> {
        self.service.as_ref().unwrap_or(&self.total.latency)
    }

    /// The longest that any answer took so far, microseconds.
    pub(crate) fn longest(&self) -> u64 {
        self.total.latency.max().max(self.tick.latency.max()).max(self.longest_unexpected)
    }

    /// Microseconds at the 99th percentile; 0 where nothing was sent by a schedule.
    pub(crate) fn send_lag_p99(&self) -> u64 {
        self.send_lag.value_at_quantile(0.99)
    }
}
