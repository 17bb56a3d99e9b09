//! How an exchange ends for its client, once the head is sent.

use super::Proxied;
use super::answer_head::visible_behind;
use crate::client::Client;
use crate::request::Request;
use millstream_conf::model::Pass;
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
pub(super) fn passed_trailers(
    proxy: &Pass,
    request: &mut Request,
    trailers: Option<Fields<'_>>,
) -> Option<Headers> {
    let trailers = trailers.filter(|trailers| !trailers.is_empty())?;
    request.tries.trailers = Some(Headers::copied_from(trailers, |_, _, _| true));
    let passed = visible_behind(&proxy.exchange, trailers);
    Some(passed).filter(|passed| proxy.passes_trailers() && !passed.view().is_empty())
}
