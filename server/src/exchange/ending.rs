//! How an exchange ends for its client, once the head is sent.

use super::answer_head::visible_behind;
use super::{Passing, Proxied};
use crate::client::Client;
use crate::request::Request;
use millstream_wire::{Fields, Headers};

pub(super) async fn flushed(client: &mut Client, request: &mut Request) -> Proxied {
    match client.flush(request).await {
        Ok(()) => Proxied::Done,
        Err(failure) => Proxied::ClientFailed(failure),
    }
}

pub(super) async fn cut(client: &mut Client, request: &mut Request) -> Proxied {
    client.abandon();
    request.keep_alive = false;
    flushed(client, request).await
}

/// Keeps an upstream's trailers for the log; returns those that the client gets.
pub(super) fn passed_trailers(passing: &mut Passing<'_>, trailers: Option<Fields<'_>>) -> Option<Headers> {
    let trailers = trailers.filter(|trailers| !trailers.is_empty())?;
    passing.request.tries.trailers = Some(Headers::copied_from(trailers, |_, _, _| true));
    let passed = visible_behind(&passing.proxy.exchange, trailers);
    Some(passed).filter(|passed| passing.proxy.passes_trailers() && !passed.view().is_empty())
}
