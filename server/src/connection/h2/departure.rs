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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Departure {
    Staying,
    /// The client was warned; the end comes with the response to our PING, or at this time.
    Announced(Instant),
    /// The client knows the last request that counts and may send others elsewhere.
    Closing,
}

pub(super) const FAREWELL: [u8; 8] = *b"farewell";

impl Departure {
    pub(super) fn takes_requests(self) -> bool {
        self != Departure::Closing
    }
}

impl Http2Connection {
    fn has_to_leave(&self, now: Instant) -> bool {
        let keepalive = &self.accepted.settings().keepalive;
        self.accepted.is_leaving
            || self.accepted.worker.stage() != Stage::Running
            || self.accepted.worker.is_short()
            || self.accepted.facts.requests.get() >= keepalive.requests
            || now.saturating_duration_since(self.accepted.facts.opened) >= keepalive.time
    }

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

    pub(super) fn say_farewell(&mut self) {
        self.departure = Departure::Closing;
        self.say_goaway(ErrorCode::NoError);
    }

    /// GOAWAY. The first last-stream number stays in force, whatever is sent later.
    fn say_goaway(&mut self, code: ErrorCode) {
        self.last_told = self.last_told.min(self.last);
        self.carrier.frame(|out| write::goaway(out, self.last_told, code, b""));
    }

    /// GOAWAY with the reason, unless sent already; logs the client's errors.
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
