//! The request on its way to a server: the head, and the body out of memory, out of a file, or as the client sends it.

use super::Passing;
use super::broken::AttemptFailure;
use super::request_body::{PIECE, RequestBody, read_at};
use super::watching::watch;
use crate::client::BodyProgress;
use millstream_net::buffers;
use millstream_upstream::{Connection, ExchangeError};
use std::fs::File;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Bytes of a streamed body kept until a server has responded: a stream's first messages.
const MOST_KEPT: usize = 16 * 1024;

impl RequestBody {
    /// Behind the head `out`. False: it is to be streamed.
    pub(super) async fn send(
        &self,
        connection: &mut Connection,
        out: &[u8],
        timeout: Duration,
    ) -> Result<bool, ExchangeError> {
        match self {
            RequestBody::None => connection.send(out, b"", true, timeout).await?,
            RequestBody::Memory(bytes) => connection.send(out, bytes, true, timeout).await?,
            RequestBody::File(file, length) => {
                connection.send(out, b"", false, timeout).await?;
                Box::pin(send_file(connection, file, *length, timeout)).await?;
            }
            RequestBody::Stream { first, .. } => {
                connection.send(out, first, false, timeout).await?;
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Sends on: what the server did not take before, and what is behind it. False: the upstream responds before all of it is sent.
pub(super) async fn send_on(
    passing: &mut Passing<'_>,
    connection: &mut Connection,
) -> Result<Result<bool, ExchangeError>, AttemptFailure> {
    let timeout = passing.proxy.exchange.send_timeout;
    let sending = async {
        if connection.send_unsent(timeout).await? {
            return Ok(true);
        }
        match &passing.terms.body {
            RequestBody::File(file, length) => {
                send_file(connection, file, *length, timeout).await.map(|()| true)
            }
            RequestBody::Stream { .. } => Ok(false),
            RequestBody::None | RequestBody::Memory(_) => Ok(true),
        }
    };
    let watched = passing.client.as_deref_mut().filter(|_| passing.terms.watching);
    match watch(watched, sending).await.map_err(AttemptFailure::Client)? {
        Ok(false) => send_stream(passing, connection).await,
        done => Ok(done),
    }
}

async fn send_stream(
    passing: &mut Passing<'_>,
    connection: &mut Connection,
) -> Result<Result<bool, ExchangeError>, AttemptFailure> {
    let RequestBody::Stream { begun, first, .. } = &mut passing.terms.body else { return Ok(Ok(true)) };
    let Some(client) = passing.client.as_deref_mut() else { return Ok(Ok(true)) };
    // What a server refuses over HTTP/2 can be sent once more, as long as it is little.
    let most_kept = if passing.proxy.is_http2() { MOST_KEPT } else { 0 };
    let mut piece = buffers::take();
    let outcome = loop {
        piece.clear();
        let step = {
            let mut reading = pin!(client.read_body(passing.request, &mut piece));
            poll_fn(|context| match reading.as_mut().poll(context) {
                Poll::Ready(progress) => Poll::Ready(Some(progress)),
                Poll::Pending => connection.poll_speaks(context).map(|()| None),
            })
            .await
        };
        let progress = match step {
            None => {
                client.set_busy();
                break Ok(Ok(false));
            }
            Some(Err(failure)) => break Err(AttemptFailure::Client(failure)),
            Some(Ok(progress)) => progress,
        };
        if !*begun && first.len() + piece.len() <= most_kept {
            first.extend_from_slice(&piece);
        } else {
            (*begun, *first) = (true, Vec::new());
        }
        let ended = progress == BodyProgress::End;
        match connection.send(b"", &piece, ended, passing.proxy.exchange.send_timeout).await {
            Ok(()) if ended => break Ok(Ok(true)),
            Ok(()) => {}
            Err(error) => break Ok(Err(error)),
        }
    };
    buffers::give(piece);
    outcome
}

/// From where it was left.
async fn send_file(
    connection: &mut Connection,
    file: &Arc<File>,
    length: u64,
    timeout: Duration,
) -> Result<(), ExchangeError> {
    let (mut sent, mut piece) = (connection.body_given(), Vec::new());
    loop {
        let size = usize::try_from(length - sent).unwrap_or(PIECE).min(PIECE);
        piece = read_at(file, piece, sent, size).await.map_err(ExchangeError::Write)?;
        sent += size as u64;
        connection.send(b"", &piece, sent == length, timeout).await?;
        if sent == length {
            return Ok(());
        }
    }
}
