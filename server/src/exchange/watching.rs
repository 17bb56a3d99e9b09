//! Waiting on behalf of a client that may leave meanwhile.

use crate::client::{Client, ClientFailure};
use millstream_cache::Awaited;
use millstream_net::clock;
use millstream_net::timer::Deadline;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Poll, ready};
use std::time::Duration;

pub(super) async fn watch<F: Future>(
    client: Option<&mut Client>,
    future: F,
) -> Result<F::Output, ClientFailure> {
    let future = pin!(future);
    match client {
        Some(client) => client.unless_gone(future).await,
        None => Ok(future.await),
    }
}

/// As [`watch`], for a fill: after the client has left it ends after `bound`, unless others wait then.
pub(super) async fn watch_for_others<F: Future>(
    client: Option<&mut Client>,
    future: F,
    awaited: &Awaited,
    bound: Duration,
) -> Result<F::Output, ClientFailure> {
    let mut future = pin!(future);
    let Some(client) = client else { return Ok(future.await) };
    let (mut has_left, mut deadline) = (false, Deadline::new());
    poll_fn(|context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Ok(output));
        }
        if !has_left {
            ready!(client.poll_gone(context));
            has_left = true;
        }
        loop {
            if deadline.at().is_none() {
                deadline.set(clock::now() + bound);
            }
            ready!(deadline.poll(context));
            deadline.clear();
            if !awaited.by_others() {
                return Poll::Ready(Err(ClientFailure::Gone));
            }
        }
    })
    .await
}
