//! The rest of a request's body, sent while its answer comes (RFC 9113 §8.1): what both sides of a stream of gRPC live by.
//!
//! It takes a piece at a time and waits until the upstream has it, so that neither side is read faster than the other takes. Next: `transfer`,
//! which polls it beside the answer.

use crate::client::{BodyProgress, Client, ClientFailure};
use crate::request::Request;
use millstream_net::buffers;
use millstream_upstream::{Connection, ExchangeError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

const PIECE: usize = 16 * 1024;

#[derive(Debug, Default)]
pub(super) struct Upward {
    piece: Vec<u8>,
    sent: usize,
    has_ended: bool,
}

pub(super) enum Stuck {
    Client(ClientFailure),
    Upstream(ExchangeError),
}

impl Upward {
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        (client, request): (&mut Client, &mut Request),
        connection: &mut Connection,
        timeout: Duration,
    ) -> Poll<Result<(), Stuck>> {
        loop {
            if self.piece.is_empty() && !self.has_ended {
                self.piece = buffers::take();
                let read = client.poll_body_within(context, request, &mut self.piece, PIECE);
                if read.is_pending() {
                    // Who says nothing for long costs no buffer.
                    buffers::give(std::mem::take(&mut self.piece));
                }
                self.has_ended = ready!(read).map_err(Stuck::Client)? == BodyProgress::End;
            }
            let rest = &self.piece[self.sent..];
            match ready!(connection.poll_send_piece(context, rest, self.has_ended, timeout)) {
                Ok(count) => self.sent += count,
                Err(error @ ExchangeError::SendTimeout) => return Poll::Ready(Err(Stuck::Upstream(error))),
                // What it has to say is on its way.
                Err(_) => return Poll::Ready(Ok(())),
            }
            if self.sent < self.piece.len() {
                continue;
            }
            self.sent = 0;
            buffers::give(std::mem::take(&mut self.piece));
            if self.has_ended {
                connection.sent_whole();
                return Poll::Ready(Ok(()));
            }
        }
    }
}
