//! How a connection ends: in two steps, so that no request on its way is lost (RFC 9113 §6.8).
//!
//! ```text
//! Staying ──stop, or as many requests as may be──▶ Announced ──a round trip──▶ Closing ──no stream left──▶ closed
//! ```
//! Between the steps requests still count, for the client sent them before it heard. What breaks the rules ends at once. Before: `h2`.

use super::super::accepted::DRAIN_PATIENCE;
use super::{Fate, Http2Connection};
use crate::worker::Stage;
use millstream_conf::model::Level;
use millstream_telemetry::about::About;
use millstream_telemetry::metrics::Counter;
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::window::LARGEST;
use millstream_wire::h2::write;
use std::time::Instant;

/// How far a connection is on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Departure {
    /// It is not.
    Staying,
    /// The client was told that there will be an end; it comes with the answer to our PING, or then.
    Announced(Instant),
    /// Requests beyond the last one count for nothing: the client has been told so and may send them elsewhere.
    Closing,
}

/// What our PING says, by which its answer is known.
pub(super) const FAREWELL: [u8; 8] = *b"farewell";

impl Departure {
    /// Whether requests are taken on.
    pub(super) fn takes_requests(self) -> bool {
        self != Departure::Closing
    }
}

impl Http2Connection {
    /// Whether the connection is to take no more requests.
    fn has_to_leave(&self, now: Instant) -> bool {
        let keepalive = &self.accepted.settings().keepalive;
        self.accepted.is_leaving
            || self.accepted.worker.stage() != Stage::Running
            || self.accepted.worker.is_short()
            || self.accepted.facts.requests.get() >= keepalive.requests
            || now.saturating_duration_since(self.accepted.facts.opened) >= keepalive.time
    }

    /// Tells the client that there will be an end, once there is a reason.
    pub(super) fn leave_in_time(&mut self, now: Instant) {
        if self.departure != Departure::Staying || !self.has_to_leave(now) {
            return;
        }
        self.departure = Departure::Announced(now + DRAIN_PATIENCE);
        self.carrier.frame(|out| {
            write::goaway(out, LARGEST, ErrorCode::NoError, b"");
            write::ping(out, false, FAREWELL);
        });
    }

    /// Tells the client which request was the last one.
    pub(super) fn say_farewell(&mut self) {
        self.departure = Departure::Closing;
        self.say_goaway(ErrorCode::NoError);
    }

    /// Requests that came behind what the client was told of first count for nothing, whatever is told later.
    fn say_goaway(&mut self, code: ErrorCode) {
        self.last_told = self.last_told.min(self.last);
        self.carrier.frame(|out| write::goaway(out, self.last_told, code, b""));
    }

    /// Tells the client why there is an end, where it has not been told, and our own log where it is the client's doing.
    pub(super) fn say_last(&mut self, end: &Fate) {
        match *end {
            Fate::Gone => return,
            Fate::Over if self.departure == Departure::Closing => {}
            Fate::Over => self.say_farewell(),
            Fate::Broken(code, what) => {
                let metrics = &self.accepted.worker.metrics;
                let counter = match code {
                    ErrorCode::EnhanceYourCalm => Counter::Http2Floods,
                    _ => Counter::Http2ConnectionErrors,
                };
                metrics.add(counter, 1);
                let log = &self.accepted.generation.shared.main_log;
                let remote = &self.accepted.facts.remote;
                log.tell(Level::Info, format_args!("client sent {what} ({})", code.name()), || {
                    About::client(remote)
                });
                self.say_goaway(code);
            }
        }
        let mut words = Vec::new();
        self.carrier.take(&mut words);
        self.output.extend_from_slice(&words);
    }
}
