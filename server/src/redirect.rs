//! Where a client is sent to: a path becomes a URL, as `absolute_redirect` and those beside it say.
//!
//! Before: `request`; next: `content/fixed` and `exchange/answer_head`, which send clients elsewhere.

use crate::request::Request;
use millstream_net::Address;
use millstream_wire::{FieldId, host};
use std::net::IpAddr;

/// Adds scheme, host and port to a path, if the location wants that; a URL is unchanged.
pub fn absolute(request: &Request, url: Vec<u8>) -> Vec<u8> {
    let settings = &request.location().settings.redirects;
    if !(url.starts_with(b"/") && settings.absolute) {
        return url;
    }
    let encrypted = request.connection.tls.is_some();
    let (scheme, usual) = if encrypted { ("https://", 443) } else { ("http://", 80) };
    let mut out = Vec::with_capacity(url.len() + 64);
    out.extend_from_slice(scheme.as_bytes());
    let names = |host: &[u8]| host::validate(host).is_ok();
    let names_host =
        request.received.head.authority.is_some() || request.field(FieldId::Host).is_some_and(names);
    match &request.connection.local {
        _ if settings.server_name => out.extend_from_slice(request.server().name.as_bytes()),
        // Who named no host came to an address.
        Address::Tcp(local) if !names_host => match local.ip().to_canonical() {
            IpAddr::V4(address) => out.extend_from_slice(address.to_string().as_bytes()),
            IpAddr::V6(address) => out.extend_from_slice(format!("[{address}]").as_bytes()),
        },
        _ => out.extend_from_slice(&request.route.host),
    }
    if let Address::Tcp(local) = &request.connection.local
        && settings.port
        && local.port() != usual
    {
        out.extend_from_slice(format!(":{}", local.port()).as_bytes());
    }
    out.extend_from_slice(&url);
    out
}
