//! One call of gRPC of our own to one server: what a check of its health asks with `type=grpc`.
//!
//! HTTP/2 is spoken at once, or where the location has TLS as ALPN agrees; nothing that requests are sent goes along but their host.

use super::{CONNECTING, ProbeError, failed};
use crate::exchange::{destination, pass_of};
use crate::request::Request;
use millstream_net::grpc::{GrpcCall, GrpcConnection, GrpcReply};
use millstream_net::timer::Deadline;
use millstream_upstream::{Dial, Peer, Secured};
use std::sync::Arc;

/// Uses the kept connection, if any, and keeps it if the call has an outcome.
pub(crate) async fn probe_grpc(
    request: &Request,
    peer: &Peer,
    (path, message): (&str, &[u8]),
    kept: &mut Option<GrpcConnection>,
) -> Result<GrpcReply, ProbeError> {
    let generation = request.generation.clone();
    let pass = pass_of(request, &generation).ok_or(ProbeError::Unspeakable)?;
    let known = destination::known(request, &generation, pass).ok_or(ProbeError::Unspeakable)?;
    let scheme = if known.dial.secured.is_some() { "https" } else { "http" };
    let base = format!("{scheme}://{}", String::from_utf8_lossy(&request.route.host));
    let call = GrpcCall { base: &base, path, fields: &[], message };
    if let Some(mut connection) = kept.take()
        && connection.is_ready().await
    {
        match connection.call(&call).await {
            // The server closed it while it idled, which says nothing about its health.
            Err(error) if error.is_stale() => {}
            answered => {
                *kept = answered.is_ok().then_some(connection);
                return answered.map_err(ProbeError::Grpc);
            }
        }
    }
    let mut deadline = Deadline::new();
    let dial = agreeing(known.dial);
    let reaching = dial.reach(&peer.address, pass.exchange.connect_timeout, &mut deadline);
    let stream = reaching.await.map_err(|error| failed(pass, error, CONNECTING))?;
    let mut connection = GrpcConnection::open(stream).await.map_err(ProbeError::Grpc)?;
    let reply = connection.call(&call).await.map_err(ProbeError::Grpc)?;
    *kept = Some(connection);
    Ok(reply)
}

fn agreeing(dial: Dial) -> Dial {
    let offering = |secured: Secured| Secured {
        connector: Arc::new(secured.connector.as_ref().clone().offering(&[b"h2"])),
        ..secured
    };
    Dial { secured: dial.secured.map(offering), ..dial }
}
