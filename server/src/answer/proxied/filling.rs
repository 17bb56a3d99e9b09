//! An answer on its way into the cache, with the client that asked for it following the fill.
//!
//! Reading the upstream and serving the client are two halves of one task: a slow client does not slow the fill down, and
//! one that leaves does not stop it, as long as somebody wants it or it is being stored. An answer that breaks off
//! is never stored: the fill is dropped, and its followers see the cut.

use super::answer_head::visible;
use super::{Passing, Proxied};
use crate::client::{AnswerHead, Client, ClientFailure};
use crate::request::Request;
use bytes::Bytes;
use millstream_cache::{Fill, Follower};
use millstream_conf::model::Proxy;
use millstream_upstream::{Connection, ExchangeError, Part, Turn};
use millstream_wire::conditional::{self, Outcome, Validators};
use millstream_wire::{FieldId, Fields};
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Poll, ready};
use std::time::Duration;

/// Bytes framed for the client before they are written even though more is there.
const QUEUE: usize = 64 * 1024;

/// What became of a fill.
struct Filled {
    connection: Connection,
    length: u64,
    error: Option<ExchangeError>,
    /// Whether it ended cleanly; else, without an error, nobody wanted it any more.
    whole: bool,
}

impl<'a> Passing<'a> {
    /// Fills the cache and serves the client from the fill.
    pub(super) async fn fill(mut self, connection: Connection, turn: Turn<'a>, fill: Fill) -> Proxied {
        let timeout = self.proxy.read_timeout;
        let alone = Cell::new(self.client.is_none());
        let (filled, served) = match self.client.take() {
            Some(client) => {
                // Nothing was pushed yet, so there is a beginning to follow from.
                let Some(follower) = fill.follow() else { return Proxied::Failed(502) };
                let (request, proxy) = (&mut *self.request, self.proxy);
                let serving = async {
                    let served = serve(client, request, proxy, follower).await;
                    alone.set(true);
                    served
                };
                tokio::join!(read_all(connection, fill, timeout, &alone), serving)
            }
            None => (read_all(connection, fill, timeout, &alone).await, Ok(())),
        };
        match &filled.error {
            Some(error) => self.broke_off(&filled.connection, error, filled.length),
            None if filled.whole => self.finished(filled.connection, turn, filled.length),
            None => self.note_end(&filled.connection, filled.length, millstream_net::clock::now()),
        }
        match served {
            Ok(()) => Proxied::Done,
            Err(failure) => Proxied::ClientFailed(failure),
        }
    }
}

/// Upstream to cache.
async fn read_all(
    mut connection: Connection,
    mut fill: Fill,
    timeout: Duration,
    alone: &Cell<bool>,
) -> Filled {
    let mut length = 0;
    let error = loop {
        match connection.next_part() {
            Ok(Part::Data(piece)) => {
                length += piece.len() as u64;
                fill.push(Bytes::copy_from_slice(piece));
                fill.ready().await;
                if alone.get() && !fill.has_followers() && !fill.is_storing() {
                    return Filled { connection, length, error: None, whole: false };
                }
            }
            Ok(Part::Empty) => {
                if let Err(error) = connection.fill_body(timeout).await {
                    break error;
                }
            }
            Ok(Part::End) => {
                // Not stored where the disk is full or the entry was purged meanwhile; the followers have it all.
                _ = fill.finish().await;
                return Filled { connection, length, error: None, whole: true };
            }
            Err(error) => break error,
        }
    };
    drop(fill);
    Filled { connection, length, error: Some(error), whole: false }
}

/// Cache to client.
async fn serve(
    client: &mut Client,
    request: &mut Request,
    proxy: &Proxy,
    mut follower: Follower,
) -> Result<(), ClientFailure> {
    let stored = follower.head().clone();
    // Fields that are not stored are for this client all the same.
    let own = request.own_head.take();
    let fields = own.as_ref().map_or(stored.fields(), |own| own.view());
    let mut visible = visible(proxy, fields);
    let condition = match stored.status {
        200 => conditional::evaluate(request.method, request.fields(), Validators::of(stored.fields())),
        _ => Outcome::Proceed,
    };
    let status = match condition {
        Outcome::Proceed => stored.status,
        Outcome::NotModified => 304,
        Outcome::PreconditionFailed => 412,
    };
    let length = match condition {
        Outcome::PreconditionFailed => Some(0),
        Outcome::Proceed | Outcome::NotModified => stored.content_length.filter(|_| status != 204),
    };
    if status == 304 {
        // What describes the body stays away from an answer without one (RFC 9110 §15.4.5).
        visible.retain(|field| !matches!(field.id, FieldId::ContentType | FieldId::ContentEncoding));
    }
    let fields = Fields::new(fields.bytes(), &visible);
    // Only an answer that was old when it came has an age now.
    let age = (stored.lifetime.initial_age.as_secs() > 0).then_some(stored.lifetime.initial_age.as_secs());
    client.begin(request, AnswerHead { status, fields, length, compressible: true, age });
    if condition != Outcome::Proceed || !request.wants_body() {
        client.end(request, None);
        return client.flush(request).await;
    }
    loop {
        let piece = {
            let mut next = pin!(follower.next());
            poll_fn(|context| match next.as_mut().poll(context) {
                Poll::Ready(piece) => Poll::Ready(Ok(piece)),
                Poll::Pending => {
                    ready!(client.poll_flush(context, request))?;
                    Poll::Pending
                }
            })
            .await?
        };
        match piece {
            Some(Ok(piece)) => client.push(request, &piece),
            Some(Err(_)) => {
                client.abandon();
                request.keep_alive = false;
                return client.flush(request).await;
            }
            None => {
                client.end(request, None);
                return client.flush(request).await;
            }
        }
        if client.queued() >= QUEUE {
            client.flush(request).await?;
        }
    }
}
