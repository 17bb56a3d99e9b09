//! A response whose head has come: where its body comes from, and what the head says to this proxy.
//!
//! Before: `search`; next: `settling`, which decides what becomes of it.

use super::{Passing, answer_head};
use crate::filter::charset;
use crate::limits;
use crate::watched::Watched;
use millstream_conf::model::RequestSize;
use millstream_net::clock;
use millstream_upstream::{Connection, ExchangeError, Part, Turn};
use millstream_wire::Fields;
use millstream_wire::h1::head::ResponseHead;
use std::time::Instant;

/// The server's turn ends with it.
pub(super) struct Answered {
    pub(super) connection: Box<Connection>,
    pub(super) turn: Turn,
    watched: Option<Box<Watched>>,
}

impl Answered {
    /// The head has been accepted: no other server is asked.
    pub(super) fn of(
        passing: &mut Passing<'_>,
        connection: Box<Connection>,
        mut turn: Turn,
        head: &ResponseHead,
    ) -> Answered {
        passing.accepted(&mut turn);
        let mut watched = passing.terms.watched.take();
        if let Some(watched) = &mut watched {
            watched.head(head.status, head.view(connection.head_bytes()));
        }
        Answered { connection, turn, watched }
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
