//! How an exchange ends for its client, once the head is sent.

use super::Proxied;
use crate::client::Client;
use crate::request::Request;

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
