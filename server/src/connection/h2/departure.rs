//! How a connection ends: in two steps, so that no request on its way is lost (RFC 9113 §6.8).
//!
//! ```text
//! Staying ──stop, or as many requests as may be──▶ Announced ──a round trip──▶ Closing ──no stream left──▶ closed
//! ```
//! Between the steps requests still count, for the client sent them before it heard. What breaks the rules ends at once.

use super::Fate;
use crate::connection::accepted::{Accepted, DRAIN_PATIENCE};
use crate::worker::Stage;
use millstream_conf::model::Level;
use millstream_net::streams::Carrier;
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
    Closing(u32),
}

pub(super) const FAREWELL: [u8; 8] = *b"farewell";

impl Departure {
    pub(super) fn is_announced(self) -> bool {
        matches!(self, Departure::Announced(_))
    }

    pub(super) fn is_closing(self) -> bool {
        matches!(self, Departure::Closing(_))
    }

    pub(super) fn leave_in_time(&mut self, now: Instant, accepted: &Accepted, carrier: &Carrier) {
        if *self != Departure::Staying || !has_to_leave(accepted, now) {
            return;
        }
        *self = Departure::Announced(now + DRAIN_PATIENCE);
        carrier.frame(|out| {
            write::goaway(out, LARGEST, ErrorCode::NoError, b"");
            write::ping(out, false, FAREWELL);
        });
    }

    /// `last`: the stream of the last request so far.
    pub(super) fn say_farewell(&mut self, last: u32, carrier: &Carrier) {
        *self = Departure::Closing(last);
        self.say_goaway(ErrorCode::NoError, last, carrier);
    }

    /// GOAWAY. The first last-stream number stays in force, whatever is sent later.
    fn say_goaway(self, code: ErrorCode, last: u32, carrier: &Carrier) {
        let told = match self {
            Departure::Closing(told) => told,
            Departure::Staying | Departure::Announced(_) => last,
        };
        carrier.frame(|out| write::goaway(out, told, code, b""));
    }

    /// GOAWAY with the reason, unless sent already; logs the client's errors.
    pub(super) fn say_last(&mut self, end: &Fate, last: u32, accepted: &Accepted, carrier: &Carrier) {
        match *end {
            Fate::Gone => {}
            Fate::Over if self.is_closing() => {}
            Fate::Over => self.say_farewell(last, carrier),
            Fate::Broken(code, what) => {
                let counter = match code {
                    ErrorCode::EnhanceYourCalm => Counter::Http2Floods,
                    _ => Counter::Http2ConnectionErrors,
                };
                accepted.worker.metrics.add(counter, 1);
                let log = &accepted.generation.shared.logs.main;
                let remote = &accepted.facts.remote;
                log.tell(Level::Info, format_args!("client sent {what} ({})", code.name()), || {
                    About::client(remote)
                });
                self.say_goaway(code, last, carrier);
            }
        }
    }
}

fn has_to_leave(accepted: &Accepted, now: Instant) -> bool {
    let keepalive = &accepted.settings().keepalive;
    accepted.is_leaving
        || accepted.worker.stage() != Stage::Running
        || accepted.worker.is_short()
        || accepted.facts.requests.get() >= keepalive.requests
        || now.saturating_duration_since(accepted.facts.opened) >= keepalive.time
}
