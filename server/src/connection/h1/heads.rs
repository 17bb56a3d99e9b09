//! Waiting for a request: its head read as it comes, with the timeouts of an idle connection and of a slow head.
//!
//! While a connection is idle it holds no buffer.

use super::{Connection, DRAIN_GRACE, DRAIN_PATIENCE};
use crate::request::Request;
use crate::worker::{Awaits, Stage, idle_since};
use millstream_net::{buffers, clock};
use millstream_telemetry::metrics::Gauge;
use millstream_wire::h1::head::{HeadError, Progress};
use std::task::{Context, Poll};

/// Larger heads keep the buffer they were read into.
const COPIED: usize = 2048;

pub(super) enum HeadOutcome {
    Request(Box<Request>),
    Refused(Box<Request>, HeadError),
    TimedOut(Option<Box<Request>>),
    Closed,
}

impl Connection {
    /// Holds no buffer while it waits for a first byte.
    pub(super) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        pending: &mut Option<Box<Request>>,
    ) -> Poll<HeadOutcome> {
        // Bytes that are there before anything is read came behind the request before.
        let mut waited = true;
        loop {
            if !self.client.rest().is_empty() {
                let request = match pending {
                    Some(request) => request,
                    None => {
                        self.client.deadline().clear();
                        let request = pending.insert(self.accepted.new_request());
                        request.received.pipelined = waited;
                        request
                    }
                };
                let mut parsed =
                    request.received.head.parse(self.client.rest(), &self.accepted.head_limits());
                if parsed == Err(HeadError::FieldsTooLarge)
                    && let Some(wider) =
                        self.accepted.wider_limits(&request.received.head, self.client.rest())
                {
                    request.received.head.clear();
                    parsed = request.received.head.parse(self.client.rest(), &wider);
                }
                match parsed {
                    Ok(Progress::Complete) => {
                        self.client.deadline().clear();
                        self.client.set_busy();
                        let request = pending.take().expect("it was put there above");
                        return Poll::Ready(HeadOutcome::Request(self.take_head(request)));
                    }
                    Ok(Progress::Partial) => {}
                    Err(error) => {
                        let mut request = pending.take().expect("it was put there above");
                        request.received.bytes.append(self.client.rest());
                        return Poll::Ready(HeadOutcome::Refused(request, error));
                    }
                }
            }
            match self.client.poll_read_more(cx) {
                Poll::Ready(Ok(count)) if count > 0 => {
                    waited = false;
                }
                Poll::Ready(_) => return Poll::Ready(HeadOutcome::Closed),
                Poll::Pending => {
                    self.client.release_buffer();
                    return self.poll_waiting(cx, pending);
                }
            }
        }
    }

    fn poll_waiting(
        &mut self,
        cx: &mut Context<'_>,
        pending: &mut Option<Box<Request>>,
    ) -> Poll<HeadOutcome> {
        let idle = pending.is_none();
        self.accepted.counted.is((!idle).then_some(Gauge::ConnectionsReading));
        let awaits = match pending {
            None => Awaits::Request(self.accepted.last_used),
            Some(request) => {
                Awaits::Head(idle_since(request.received.started, self.client.rest().len(), clock::now()))
            }
        };
        self.client.wait(awaits, cx.waker());
        self.accepted.follow_generation();
        let stage = self.accepted.worker.stage();
        if stage == Stage::Stopping || self.client.is_shed() {
            return Poll::Ready(HeadOutcome::Closed);
        }
        if idle && (stage == Stage::Draining || self.accepted.is_leaving) {
            let is_new = self.accepted.facts.requests.get() == 0;
            let until = self.accepted.last_used + if is_new { DRAIN_PATIENCE } else { DRAIN_GRACE };
            if clock::now() >= until {
                return Poll::Ready(HeadOutcome::Closed);
            }
            self.client.deadline().set(until);
        }
        if self.client.deadline().at().is_none() {
            let timeout = self.accepted.server().settings.client_header.timeout;
            self.client.deadline().set(clock::now() + timeout);
        }
        self.client.deadline().poll(cx).map(|()| HeadOutcome::TimedOut(pending.take()))
    }

    fn take_head(&mut self, mut request: Box<Request>) -> Box<Request> {
        let rest = self.client.rest();
        let length = request.received.head.length;
        if length <= COPIED {
            request.received.bytes.extend_from_slice(&rest[..length]);
            if rest.len() == length {
                rest.clear();
            } else {
                rest.drain(..length);
            }
        } else if rest.len() == length {
            std::mem::swap(&mut request.received.bytes, rest);
            if rest.capacity() < buffers::SIZE {
                // It held a head only; what is read next wants a buffer.
                *rest = Vec::new();
            }
        } else {
            request.received.bytes.extend_from_slice(&rest[..length]);
            rest.drain(..length);
        }
        request.method = request.received.head.method;
        request
    }
}
