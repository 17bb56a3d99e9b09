//! The rest of a request's body, sent while its response comes (RFC 9112 §9.5, RFC 9113 §8.1): what both sides of a stream of gRPC live
//! by, and servers that respond before they have read all.
//!
//! It takes a piece at a time and waits until the upstream has it, so that neither side is read faster than the other takes.

use super::request_body::{RequestBody, read_at};
use crate::client::{BodyProgress, Client, ClientFailure};
use crate::request::Request;
use millstream_net::buffers;
use millstream_upstream::{Connection, ExchangeError};
use std::fs::File;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

const PIECE: usize = 16 * 1024;

pub(super) struct Upward {
    piece: Vec<u8>,
    sent: usize,
    source: BodySource,
    timeout: Duration,
}

/// Where the pieces behind this one come from.
enum BodySource {
    Client,
    File { file: Arc<File>, at: u64, length: u64, reading: Option<FileReading> },
    Ended,
}

type FileReading = Pin<Box<dyn Future<Output = io::Result<Vec<u8>>>>>;

pub(super) enum Stuck {
    Client(ClientFailure),
    Upstream(ExchangeError),
}

impl Upward {
    /// What is unsent of a body, if the server may still have it.
    pub(super) fn of(
        body: &RequestBody,
        connection: &mut Connection,
        timeout: Duration,
    ) -> Option<Box<Upward>> {
        if !connection.is_sending() {
            return None;
        }
        let at = connection.body_given();
        let (piece, is_last) = connection.take_unsent();
        let source = match body {
            RequestBody::None => return None,
            RequestBody::File(file, length) if !is_last => {
                BodySource::File { file: Arc::clone(file), at, length: *length, reading: None }
            }
            RequestBody::Stream { .. } if !is_last => BodySource::Client,
            _ => BodySource::Ended,
        };
        Some(Box::new(Upward { piece, sent: 0, source, timeout }))
    }

    pub(super) fn needs_client(&self) -> bool {
        matches!(self.source, BodySource::Client)
    }

    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        mut client: Option<(&mut Client, &mut Request)>,
        connection: &mut Connection,
    ) -> Poll<Result<(), Stuck>> {
        loop {
            if self.piece.is_empty() {
                ready!(self.poll_piece(context, &mut client))?;
            }
            let (rest, is_last) = (&self.piece[self.sent..], matches!(self.source, BodySource::Ended));
            match ready!(connection.poll_send_piece(context, rest, is_last, self.timeout)) {
                Ok(count) => self.sent += count,
                Err(error @ ExchangeError::SendTimeout) => return Poll::Ready(Err(Stuck::Upstream(error))),
                // What it has to say is on its way.
                Err(_) => return Poll::Ready(Ok(())),
            }
            if self.sent < self.piece.len() {
                continue;
            }
            let is_out = is_last && self.piece.is_empty();
            self.sent = 0;
            buffers::give(std::mem::take(&mut self.piece));
            if is_out {
                connection.sent_whole();
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
        client: &mut Option<(&mut Client, &mut Request)>,
    ) -> Poll<Result<(), Stuck>> {
        match &mut self.source {
            BodySource::Ended => {}
            BodySource::Client => {
                let Some((client, request)) = client else { return Poll::Pending };
                self.piece = buffers::take();
                let read = client.poll_body_within(context, request, &mut self.piece, PIECE);
                if read.is_pending() {
                    // Who says nothing for long costs no buffer.
                    buffers::give(std::mem::take(&mut self.piece));
                }
                if ready!(read).map_err(Stuck::Client)? == BodyProgress::End {
                    self.source = BodySource::Ended;
                }
            }
            BodySource::File { file, at, length, reading } => {
                let size = (*length - *at).min(PIECE as u64);
                let read = reading.get_or_insert_with(|| {
                    let (file, at) = (Arc::clone(file), *at);
                    Box::pin(async move { read_at(&file, buffers::take(), at, size as usize).await })
                });
                let read = ready!(read.as_mut().poll(context));
                self.piece = read.map_err(|error| Stuck::Upstream(ExchangeError::Write(error)))?;
                (*reading, *at) = (None, *at + size);
                if at == length {
                    self.source = BodySource::Ended;
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}
