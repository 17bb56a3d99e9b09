//! A response whose head has come: where its body comes from, and what the head says to this proxy.

use super::upward::{Stuck, Upward};
use super::{Passing, answer_head};
use crate::client::Client;
use crate::filter::charset;
use crate::limits;
use crate::request::Request;
use crate::watched::Watched;
use millstream_conf::model::RequestSize;
use millstream_net::clock;
use millstream_upstream::{Connection, ExchangeError, Part, Turn};
use millstream_wire::Fields;
use millstream_wire::h1::head::ResponseHead;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The server's turn ends with it.
pub(super) struct Answered {
    pub(super) connection: Box<Connection>,
    pub(super) turn: Turn,
    pub(super) upward: Option<Box<Upward>>,
    watched: Option<Box<Watched>>,
}

impl Answered {
    /// The head has been accepted: no other server is asked.
    pub(super) fn of(
        passing: &mut Passing<'_>,
        mut connection: Box<Connection>,
        mut turn: Turn,
        head: &ResponseHead,
    ) -> Answered {
        passing.accepted(&mut turn);
        let mut watched = passing.terms.watched.take();
        if let Some(watched) = &mut watched {
            watched.head(head.status, head.view(connection.head_bytes()));
        }
        let timeout = passing.proxy.exchange.send_timeout;
        let upward = Upward::of(&passing.terms.body, &mut connection, timeout);
        Answered { connection, turn, upward, watched }
    }

    /// See [`Connection::next_part`].
    #[inline]
    pub(super) fn next_part(&mut self) -> Result<Part<'_>, ExchangeError> {
        let part = self.connection.next_part()?;
        if let Some(watched) = &mut self.watched {
            watched.part(&part);
        }
        Ok(part)
    }

    /// Whether its client still sends the request, so that nobody else may read the response.
    pub(super) fn needs_client(&self) -> bool {
        self.upward.as_ref().is_some_and(|upward| upward.needs_client())
    }

    /// Sends what is unsent of the request as far as the server takes it now.
    #[inline]
    pub(super) fn send_on(
        &mut self,
        context: &mut Context<'_>,
        client: Option<(&mut Client, &mut Request)>,
    ) -> Result<(), Stuck> {
        if let Some(upward) = &mut self.upward
            && let Poll::Ready(sent) = upward.poll(context, client, &mut self.connection)
        {
            self.upward = None;
            return sent;
        }
        Ok(())
    }

    /// [`Connection::poll_fill_body`] for a reader other than the client, while the request is sent.
    pub(super) fn poll_fill_body(
        &mut self,
        context: &mut Context<'_>,
        timeout: Duration,
    ) -> Poll<Result<(), ExchangeError>> {
        if let Err(Stuck::Upstream(error)) = self.send_on(context, None) {
            return Poll::Ready(Err(error));
        }
        self.connection.poll_fill_body(context, timeout)
    }

    pub(super) fn fields<'h>(&'h self, head: &'h ResponseHead) -> Fields<'h> {
        head.view(self.connection.head_bytes())
    }

    /// Takes what the head says to this proxy.
    pub(super) fn heed(&mut self, passing: &mut Passing<'_>, head: &ResponseHead) {
        let exchange = &passing.proxy.exchange;
        // Also with `X-Accel-Redirect`.
        if let Some(rate) = answer_head::limit_rate(exchange, self.fields(head)) {
            passing.request.reply.limit_rate = Some(rate);
        }
        charset::take(passing.request, self.fields(head));
        // As in nginx only for buffered responses.
        if exchange.buffering && exchange.limit_rate != RequestSize::Fixed(0) {
            let rate = limits::limit_rate::bytes(&exchange.limit_rate, passing.request);
            if rate > 0 {
                self.connection.limit_rate(rate);
            }
        }
    }

    pub(super) fn discard(self, passing: &mut Passing<'_>) {
        self.part(passing, 0);
    }

    /// Drops the body beyond this length. The connection is kept if the rest has arrived.
    pub(super) fn part(mut self, passing: &mut Passing<'_>, length: u64) {
        self.connection.pass_over();
        self.finish(passing, length, clock::now());
    }

    /// Gives the connection back.
    pub(super) fn finish(self, passing: &mut Passing<'_>, length: u64, now: Instant) {
        passing.note_end(&self.connection, length, now);
        passing.report_leftover(&self.connection);
        passing.destination.pool.put(self.connection, now);
        self.turn.succeeded(now);
    }
}
