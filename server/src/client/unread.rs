//! The rest of a request's body that no one reads, on a stream whose response is a success.
//!
//! curl 7.88 reads nothing more once it has as much of a success as its `Content-Length` says, and yet sends the rest of the body: it sees
//! neither the windows that it needs for that, nor a reset (RFC 9113 §8.1). It does not notice either that it has sent all, unless
//! something comes after that. So the last byte of a success waits until the rest has come, or an empty piece behind a head without a body.
//! The rest is discarded within the bounds of `lingering_time`, `lingering_timeout` and `client_max_body_size`; then the response ends
//! anyway. What an upstream may still want of a body is its own until its response is whole. An error does not wait: clients stop for it.

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
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

pub(super) struct UnreadBody {
    stream: Rc<Http2Stream>,
    /// Whether an upstream may still be sent the body, until its response is whole.
    is_passed_on: bool,
    wait: Option<BodyWait>,
}

struct BodyWait {
    /// Bytes that may still come.
    left: u64,
    /// The longest wait between two pieces, and the end of all waiting.
    timeout: Duration,
    until: Instant,
    waiting: Deadline,
}

impl UnreadBody {
    /// What the end of a response with this status waits for.
    pub(super) fn of(client: &Client, request: &Request, status: u16) -> Option<Box<UnreadBody>> {
        let End::Stream(stream) = &client.end else { return None };
        if stream.has_all() || !(200..300).contains(&status) {
            return None;
        }
        let waits_for_us = match client.body_known() {
            true => client.awaits_continue(),
            false => request.field(FieldId::Expect).is_some(),
        };
        // gRPC has its status in a head that ends the stream, and its clients stop for it.
        let is_grpc =
            || request.field(FieldId::ContentType).is_some_and(|kind| kind.starts_with(b"application/grpc"));
        let is_discarded = request.received.framing != Framing::None
            && !waits_for_us
            && !request.is_too_large()
            && request.location().settings.lingering.close != LingeringClose::Off
            && !is_grpc();
        let is_passed_on = !request.tries.list.is_empty();
        is_discarded.then(|| Box::new(UnreadBody { stream: stream.clone(), is_passed_on, wait: None }))
    }

    /// Ready once all of the body has come, or no more of it is waited for.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, request: &Request, is_at_end: bool) -> Poll<()> {
        if self.is_passed_on && !is_at_end {
            return Poll::Pending;
        }
        let wait = self.wait.get_or_insert_with(|| BodyWait::begin(request));
        while wait.left > 0 {
            match self.stream.poll_skip(cx) {
                Poll::Ready(0) => return Poll::Ready(()),
                Poll::Ready(count) => wait.took(count),
                Poll::Pending => {
                    ready!(wait.waiting.poll(cx));
                    break;
                }
            }
        }
        self.stream.refuse_rest();
        Poll::Ready(())
    }
}

impl BodyWait {
    fn begin(request: &Request) -> BodyWait {
        let settings = &request.location().settings;
        let (limit, now) = (settings.client_body.max_size, clock::now());
        let (until, timeout) = (now + settings.lingering.time, settings.lingering.timeout);
        let waiting = Deadline::new();
        waiting.set(until.min(now + timeout));
        let left = if limit > 0 { limit.saturating_sub(request.received.body_octets) } else { u64::MAX };
        BodyWait { left, timeout, until, waiting }
    }

    fn took(&mut self, count: usize) {
        self.left = self.left.saturating_sub(count as u64);
        self.waiting.set(self.until.min(clock::now() + self.timeout));
    }
}
