//! The certificate that a client showed, as the server of a request sees it.
//!
//! It is judged by the server that takes the request, by that server's own authorities, whatever server the handshake was with: neither
//! a resumed session nor another Host brings a judgement along. A server that does not verify knows of no certificate.
//! Before: `judged`. Next: `admission`, which refuses; `variables`, which tell.

use crate::request::Request;
use millstream_conf::model::Template;
use millstream_conf::variables::Source;
use millstream_net::tls::{Clients, Unverified};
use std::sync::Arc;

/// DER.
pub fn shown(request: &Request) -> Option<&[u8]> {
    let certificate = request.connection.certificate.as_ref()?;
    clients(request)?;
    certificate.own()
}

pub fn judgement(request: &Request) -> Option<Result<(), Unverified>> {
    let certificate = request.connection.certificate.as_ref()?;
    Some(certificate.judged_by(clients(request)?))
}

fn clients(request: &Request) -> Option<&Arc<Clients>> {
    request.generation.shared.handshakes.clients.get(request.route.server.0 as usize)?.as_ref()
}

/// Whether a text contains the client's identity by certificate.
pub fn is_named_in(template: &Template) -> bool {
    template.variables().any(|variable| variable.source() == Source::Certificate)
}
