//! How a request ends, and with it perhaps the connection: logged and counted, then the next request or a close.

use super::{Connection, Ending, lingering, spare};
use crate::access_log;
use crate::counting;
use crate::request::Request;
use crate::tracing;
use crate::worker::{Awaits, Stage};
use millstream_conf::model::Settings;
use millstream_net::clock;
use millstream_net::timer::{Deadline, with_deadline};
use millstream_telemetry::metrics::Counter;
use std::pin::pin;
use std::time::{Duration, Instant};

/// The longest that a connection stays open for its line to be in the log.
const LOG_WAIT: Duration = Duration::from_millis(250);

/// Whether a connection goes on.
#[derive(PartialEq, Eq)]
pub(super) enum Next {
    Request,
    Close(Closing),
}

/// How a connection closes.
#[derive(PartialEq, Eq, Clone, Copy)]
pub(super) enum Closing {
    /// After a whole answer, with nothing to read as far as is known.
    Clean,
    /// The client may still be sending.
    Unread,
    /// It was too slow, or is not there to read the rest of its answer: nothing more is waited for.
    Now,
    /// Its answer was cut where a clean end would look like the end of the whole.
    Reset,
}

impl Connection {
    /// The connection ends in the middle of a head: logged, with nothing answered.
    pub(super) fn left(&mut self, mut request: Box<Request>, status: u16) {
        request.bytes.append(self.client.rest());
        request.sent.status = status;
        request.keep_alive = false;
        self.conclude(request, clock::now());
    }

    /// Logs and counts a request and decides how the connection goes on.
    pub(super) fn conclude(&mut self, mut request: Box<Request>, now: Instant) -> Next {
        let body_left = self.client.body_pending();
        let ending = self.client.settle();
        let metrics = &self.worker.metrics;
        metrics.add(Counter::Requests, 1);
        counting::finished(&request, now);
        if request.trace.get().is_some() {
            tracing::end(&request);
        }
        if let Some(ticket) = access_log::write(&request, now) {
            self.ticket = Some(ticket);
        }
        self.last_used = now;
        // A client that was told that it may go on is not cut by a graceful stop that began meanwhile: its next request
        // is answered, with `Connection: close`.
        let goes_on = request.keep_alive && !body_left && self.worker.stage() != Stage::Stopping;
        self.client.deadline().set(now + request.location().settings.keepalive.timeout);
        // What follows on the connection is not held up by what this one counts for, nor does its body stay with it.
        request.body_file = None;
        request.limited.under_way.clear();
        let unread = body_left || !self.client.rest().is_empty();
        spare::keep(request);
        match ending {
            Ending::Whole if goes_on => Next::Request,
            Ending::Whole | Ending::Closing if unread => Next::Close(Closing::Unread),
            Ending::Whole | Ending::Closing => Next::Close(Closing::Clean),
            Ending::Cut => Next::Close(Closing::Now),
            Ending::CutUnseen => Next::Close(Closing::Reset),
        }
    }

    /// Waits until the last unbuffered line is in its file, but not for a disk that hangs.
    pub(super) async fn until_logged(&self) {
        let Some(ticket) = self.ticket else { return };
        let log_writer = self.worker.log_writer.clone();
        let mut deadline = Deadline::new();
        deadline.set(clock::now() + LOG_WAIT);
        if with_deadline(&mut deadline, log_writer.written(ticket)).await.is_err() {
            log_writer.stop_waiting();
        }
    }

    pub(super) async fn close(&mut self, closing: Closing) {
        self.until_logged().await;
        let http = self.generation.http();
        let server = http.listeners[self.facts.listener.get()].default_server;
        let settings: &Settings = &http.location(http.server(server).own).settings;
        let Some((stream, place)) = self.client.connection() else { return };
        let unread = match closing {
            Closing::Clean => stream.has_unread(),
            Closing::Unread => true,
            Closing::Now => false,
            Closing::Reset => return stream.reset_on_close(),
        };
        let lingering = pin!(lingering::close(stream, settings, unread));
        // Where its place is needed, what the client still sends is reset.
        _ = place.unless_shed(Awaits::Close(clock::now()), lingering).await;
    }
}
