//! How a request ends, and with it perhaps the connection: logged and counted, then the next request or a close.

use super::{Connection, Ending, lingering};
use crate::request::Request;
use crate::worker::{Awaits, Stage};
use millstream_net::clock;
use std::pin::pin;
use std::time::Instant;

#[derive(PartialEq, Eq)]
pub(super) enum Next {
    Request,
    Close(Closing),
}

#[derive(PartialEq, Eq, Clone, Copy)]
pub(super) enum Closing {
    Clean,
    Unread,
    /// It was too slow or is gone: do not wait.
    Now,
    /// The response was cut and a clean close would hide it.
    Reset,
}

impl Connection {
    pub(super) fn left(&mut self, mut request: Box<Request>, status: u16) {
        request.received.bytes.append(self.client.rest());
        request.sent.status = status;
        request.keep_alive = false;
        self.conclude(request, clock::now());
    }

    pub(super) fn conclude(&mut self, request: Box<Request>, now: Instant) -> Next {
        let body_left = self.client.body_pending();
        let ending = self.client.settle();
        // A client that was told that it may go on is not cut by a graceful stop that began meanwhile: its next request
        // is answered, with `Connection: close`.
        let goes_on = request.keep_alive && !body_left && self.accepted.worker.stage() != Stage::Stopping;
        self.client.deadline().set(now + request.location().settings.keepalive.timeout);
        let unread = body_left || !self.client.rest().is_empty();
        self.accepted.record(request, now);
        match ending {
            Ending::Whole if goes_on => Next::Request,
            Ending::Whole | Ending::Closing if unread => Next::Close(Closing::Unread),
            Ending::Whole | Ending::Closing => Next::Close(Closing::Clean),
            Ending::Cut => Next::Close(Closing::Now),
            Ending::CutUnseen => Next::Close(Closing::Reset),
        }
    }

    pub(super) async fn close(&mut self, closing: Closing) {
        self.accepted.until_logged().await;
        let settings = &self.accepted.settings().lingering;
        let Some((stream, place)) = self.client.connection() else { return };
        let unread = match closing {
            Closing::Clean => stream.has_unread(),
            Closing::Unread => true,
            Closing::Now => return lingering::close_now(stream).await,
            Closing::Reset => return stream.reset_on_close(),
        };
        let lingering = pin!(lingering::close(stream, settings, unread));
        // Where its place is needed, what the client still sends is reset.
        _ = place.unless_shed(Awaits::Close(clock::now()), lingering).await;
    }
}
