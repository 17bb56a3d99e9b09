//! The rest of a request's body that no one reads, on a stream whose response is a success.
//!
//! curl 7.88 reads nothing more once it has as much of a success as its `Content-Length` says, and yet sends the rest of the body: it sees
//! neither the windows that it needs for that, nor a reset (RFC 9113 §8.1). It does not notice either that it has sent all, unless
//! something comes after that. So the last piece of a success waits until the rest has come, or an empty one behind a head without a body.
//! The rest is discarded within the bounds of `lingering_time`, `lingering_timeout` and `client_max_body_size`; then the response ends
//! anyway. An error does not wait: clients stop for it.

use super::Client;
use super::end::End;
use crate::request::Request;
use millstream_conf::model::LingeringClose;
use millstream_net::clock;
use millstream_net::streams::Http2Stream;
use millstream_net::timer::Deadline;
use millstream_wire::FieldId;
use millstream_wire::h1::framing::Framing;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

pub(super) struct UnreadBody {
    stream: Rc<Http2Stream>,
    /// Bytes that may still come.
    left: u64,
    /// The longest wait between two pieces, and the end of all waiting.
    timeout: Duration,
    until: Instant,
    waiting: Deadline,
}

impl Client {
    /// What the end of a response with this status waits for.
    pub(super) fn unread_body(&self, request: &Request, status: u16) -> Option<Box<UnreadBody>> {
        let End::Stream(stream) = &self.end else { return None };
        if stream.has_all() || !(200..300).contains(&status) {
            return None;
        }
        // Of a request that was passed on, an upstream gets the rest.
        let is_passed_on = !request.tries.list.is_empty();
        let waits_for_us = match self.body_known() {
            true => self.awaits_continue(),
            false => request.field(FieldId::Expect).is_some(),
        };
        let settings = &request.location().settings;
        let is_discarded = request.received.framing != Framing::None
            && !is_passed_on
            && !waits_for_us
            && !request.is_too_large()
            && settings.lingering.close != LingeringClose::Off;
        is_discarded.then(|| {
            let (limit, now) = (settings.client_body.max_size, clock::now());
            let until = now + settings.lingering.time;
            let timeout = settings.lingering.timeout;
            let waiting = Deadline::new();
            waiting.set(until.min(now + timeout));
            let left = if limit > 0 { limit.saturating_sub(request.received.body_octets) } else { u64::MAX };
            Box::new(UnreadBody { stream: stream.clone(), left, timeout, until, waiting })
        })
    }
}

impl UnreadBody {
    /// Ready once all of the body has come, or no more of it is waited for.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match self.stream.poll_skip(cx) {
                Poll::Ready(0) => return Poll::Ready(()),
                Poll::Ready(count) => {
                    self.left = self.left.saturating_sub(count as u64);
                    if self.left == 0 {
                        return Poll::Ready(());
                    }
                    self.waiting.set(self.until.min(clock::now() + self.timeout));
                }
                Poll::Pending => return self.waiting.poll(cx),
            }
        }
    }
}
