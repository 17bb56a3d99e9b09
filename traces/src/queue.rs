//! Where spans wait to be exported: as many as `batch_size` × `batch_count`, handed over without waiting, taken in batches.
//!
//! Whoever hands over wakes the exporter for the first span and for a full batch, and for nothing else. Before: `span`; next: `exporter`.

use crate::span::Span;
use millstream_net::clock;
use millstream_net::timer::Deadline;
use std::future::{Future, poll_fn};
use std::ops::Deref;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::Notify;

#[derive(Debug)]
pub struct SpanQueue {
    batch: usize,
    most: usize,
    waiting: Mutex<Waiting>,
    woken: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    spans: Vec<Span>,
    is_closed: bool,
}

impl SpanQueue {
    pub fn new(batch_size: usize, batch_count: usize) -> SpanQueue {
        SpanQueue {
            batch: batch_size,
            most: batch_size.saturating_mul(batch_count),
            waiting: Mutex::default(),
            woken: Notify::new(),
        }
    }

    /// Takes the spans of a request; returns how many were dropped for lack of room, the last first.
    pub fn hand_over(&self, mut spans: Vec<Span>) -> usize {
        let mut waiting = self.lock();
        let before = waiting.spans.len();
        let fit = spans.len().min(self.most.saturating_sub(before));
        let dropped = spans.len() - fit;
        waiting.spans.extend(spans.drain(..fit));
        let after = waiting.spans.len();
        drop(waiting);
        if after > before && (before == 0 || before < self.batch && after >= self.batch) {
            self.woken.notify_one();
        }
        dropped
    }

    /// Ends waiting: what is queued is taken at once, and then nothing more.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.woken.notify_one();
    }

    /// A full batch as soon as there is one, a part of one once its first span has waited for `interval`.
    /// `None` when closed and empty.
    pub async fn next(&self, interval: Duration) -> Option<Vec<Span>> {
        let mut due = Deadline::new();
        loop {
            if let Some(taken) = self.take(&due, interval) {
                return taken;
            }
            let mut woken = pin!(self.woken.notified());
            poll_fn(|context| match woken.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => due.poll(context),
            })
            .await;
        }
    }

    /// `None`: wait.
    fn take(&self, due: &Deadline, interval: Duration) -> Option<Option<Vec<Span>>> {
        let mut waiting = self.lock();
        let count = waiting.spans.len();
        let now = clock::now();
        let is_due = due.at().is_some_and(|at| at <= now);
        if count >= self.batch || count > 0 && (waiting.is_closed || is_due) {
            let rest = waiting.spans.split_off(count.min(self.batch));
            return Some(Some(std::mem::replace(&mut waiting.spans, rest)));
        }
        if waiting.is_closed {
            return Some(None);
        }
        if count > 0 && due.at().is_none() {
            due.set(now + interval);
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sending end. The queue closes when the last configuration with it is gone.
#[derive(Debug)]
pub struct SpanSink(Arc<SpanQueue>);

impl SpanSink {
    pub fn new(queue: SpanQueue) -> SpanSink {
        SpanSink(Arc::new(queue))
    }

    pub fn queue(&self) -> Arc<SpanQueue> {
        self.0.clone()
    }
}

impl Deref for SpanSink {
    type Target = SpanQueue;

    fn deref(&self) -> &SpanQueue {
        &self.0
    }
}

impl Drop for SpanSink {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{SpanId, TraceId};
    use crate::span::SpanKind;

    fn spans(count: usize) -> Vec<Span> {
        let one = |number: usize| Span {
            trace: TraceId::random(),
            id: SpanId::random(),
            parent: None,
            state: String::new(),
            name: "x".into(),
            kind: SpanKind::Internal,
            start: number as u64,
            end: number as u64,
            attributes: Vec::new(),
            failed: false,
        };
        (0..count).map(one).collect()
    }

    fn next(queue: &SpanQueue, interval: Duration) -> Option<usize> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(queue.next(interval)).map(|batch| batch.len())
    }

    #[test]
    fn it_takes_what_fits_and_says_what_it_drops() {
        let queue = SpanQueue::new(2, 2);
        for (count, dropped) in [(3, 0), (3, 2), (1, 1), (0, 0)] {
            assert_eq!(queue.hand_over(spans(count)), dropped, "{count}");
        }
        let batch = next(&queue, Duration::from_secs(3600));
        assert_eq!(batch, Some(2), "a full batch waits for nothing");
        assert_eq!(queue.hand_over(spans(3)), 1);
    }

    #[test]
    fn what_is_less_than_a_batch_waits_for_the_interval() {
        let queue = SpanQueue::new(512, 4);
        queue.hand_over(spans(5));
        assert_eq!(next(&queue, Duration::from_millis(1)), Some(5));
    }

    #[test]
    fn a_closed_queue_gives_what_it_has_and_then_nothing() {
        let sink = SpanSink::new(SpanQueue::new(2, 4));
        let queue = sink.queue();
        sink.hand_over(spans(3));
        drop(sink);
        let hour = Duration::from_secs(3600);
        assert_eq!((next(&queue, hour), next(&queue, hour), next(&queue, hour)), (Some(2), Some(1), None));
    }
}
