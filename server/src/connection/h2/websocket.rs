//! A WebSocket on a stream (RFC 8441): the extended CONNECT that asks for one becomes the request by which HTTP/1.1 does.
//!
//! Configurations, rights and upstreams then have one kind of them. The 101 that comes of it is a 200 on the stream, which `exchange/tunnel`
//! says. Before: `heads`.

use crate::request::{Received, Request};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use millstream_wire::Method;

const KEY: &str = "sec-websocket-key";

/// Turns an extended CONNECT into an upgrade request (RFC 6455 §4.1).
pub(super) fn as_upgrade(request: &mut Request) {
    request.method = Method::Get;
    // The client has no use for one (RFC 8441 §5), and a request has one of them (RFC 6455 §11.3.1).
    let Received { bytes, head, .. } = &mut request.received;
    head.fields.retain(|field| !field.name(bytes).eq_ignore_ascii_case(KEY.as_bytes()));
    // It only has to be another one each time.
    let key = STANDARD.encode(&request.id()[..16]);
    for (name, value) in [("connection", "upgrade"), ("upgrade", "websocket"), (KEY, &key)] {
        request.received.append_field(name.as_bytes(), value.as_bytes());
    }
}
