//! A request whose response no client gets: it is read here, and stored nowhere.

use super::{Filling, OpenedFill, open};
use crate::request::Request;
use crate::watched::Watched;
use std::future::{Future, poll_fn};
use std::pin::pin;
use tokio::sync::oneshot;

/// `watched` observes it. `read` also returns whether it has read the whole response. `None`: there was none.
pub async fn unserved<R>(
    request: Request,
    watched: Option<Box<Watched>>,
    read: impl AsyncFnOnce(OpenedFill) -> (R, bool),
) -> Option<R> {
    let (tap, opened) = oneshot::channel();
    let mut exchange = pin!(open(request, Filling::Check(watched), None, tap));
    let mut reading = pin!(async {
        match opened.await {
            Ok(opened) => Some(read(opened).await),
            Err(_) => None,
        }
    });
    let mut has_ended = false;
    let read = poll_fn(|context| {
        has_ended = has_ended || exchange.as_mut().poll(context).is_ready();
        reading.as_mut().poll(context)
    });
    let (read, is_whole) = read.await?;
    // Whole, it gives its connection back; the rest of a long body is not waited for.
    if !has_ended && is_whole {
        exchange.await;
    }
    Some(read)
}
