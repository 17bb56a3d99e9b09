//! What a proxy in front says of its client: X-Forwarded-For, -Proto and -Host and X-Real-IP, believed of a `trusted_proxy` alone.
//!
//! The connection's own address decides whom to believe: everything else in a request is whatever somebody wrote. Of a list
//! the last element counts, which is the one that the trusted proxy itself put there; of addresses, the last that is not a
//! trusted one's. Next: `variables`, which show it.

use crate::network::contains;
use crate::request::Request;
use millstream_conf::model::Network;
use millstream_net::Address;
use millstream_wire::{FieldId, host, list};
use smallvec::SmallVec;
use std::net::{IpAddr, SocketAddr};

#[cfg(test)]
mod tests;

const LONGEST_SCHEME: usize = 16;

pub fn is_trusted(request: &Request) -> bool {
    trusts(request, &request.connection.remote)
}

fn trusts(request: &Request, address: &Address) -> bool {
    is_among(&request.location().settings.forwarded.trusted, address)
}

fn is_among(networks: &[Network], address: &Address) -> bool {
    networks.iter().any(|network| contains(network, address))
}

/// The client by lines of forwarded addresses: the last one, if `peer` is one of `proxies`; if `recursive`,
/// the last that is not. What is no address ends the chain.
pub fn behind(peer: &Address, lines: &[&[u8]], proxies: &[Network], recursive: bool) -> Option<SocketAddr> {
    let mut found = None;
    if !is_among(proxies, peer) {
        return None;
    }
    for line in lines.iter().rev() {
        let mut is_empty = true;
        for element in line.rsplit(|byte| matches!(byte, b' ' | b',')).filter(|element| !element.is_empty()) {
            is_empty = false;
            let Some(next) = address(element) else { return found };
            found = Some(next);
            if !recursive || !is_among(proxies, &Address::Tcp(next)) {
                return found;
            }
        }
        if is_empty {
            break;
        }
    }
    found
}

pub fn append_for(request: &Request, out: &mut Vec<u8>) {
    if !is_trusted(request) {
        out.extend_from_slice(request.client_text().as_bytes());
        return;
    }
    match real(request).and_then(|_| client(request)) {
        Some(address) => {
            out.extend_from_slice(address.ip().to_string().as_bytes());
            out.extend_from_slice(b", ");
        }
        None => {
            for value in request.fields().all(FieldId::XForwardedFor) {
                out.extend_from_slice(value);
                out.extend_from_slice(b", ");
            }
        }
    }
    out.extend_from_slice(request.connection.remote_text.as_bytes());
}

pub fn append_addr(request: &Request, out: &mut Vec<u8>) {
    match client(request) {
        Some(address) => out.extend_from_slice(address.ip().to_string().as_bytes()),
        None => out.extend_from_slice(request.client_text().as_bytes()),
    }
}

/// Skips all trusted proxies.
pub fn client(request: &Request) -> Option<SocketAddr> {
    let lines: SmallVec<[&[u8]; 4]> = match real(request) {
        Some(line) => [line].into_iter().collect(),
        None => request.fields().all(FieldId::XForwardedFor).collect(),
    };
    behind(&request.connection.remote, &lines, &request.location().settings.forwarded.trusted, true)
}

/// The last X-Real-IP, if there is no X-Forwarded-For: a proxy that appends to that may pass on any X-Real-IP
/// of a client.
fn real(request: &Request) -> Option<&[u8]> {
    let says_nothing = |line: &[u8]| list::elements(line).all(<[u8]>::is_empty);
    let fields = request.fields();
    if fields.all(FieldId::XForwardedFor).all(says_nothing) {
        fields.all(FieldId::XRealIp).last()
    } else {
        None
    }
}

pub fn proto(request: &Request) -> Option<Vec<u8>> {
    let said = last(request, FieldId::XForwardedProto)?;
    let is_scheme = said.len() <= LONGEST_SCHEME && said.iter().all(u8::is_ascii_alphabetic);
    is_scheme.then(|| said.to_ascii_lowercase())
}

/// With its port.
pub fn host(request: &Request) -> Option<&[u8]> {
    last(request, FieldId::XForwardedHost).filter(|said| host::validate(said).is_ok())
}

fn last(request: &Request, field: FieldId) -> Option<&[u8]> {
    if !is_trusted(request) {
        return None;
    }
    let line = request.fields().all(field).last()?;
    list::elements(line).last().filter(|element| !element.is_empty())
}

/// An element of X-Forwarded-For, perhaps with a port; 0 without.
pub fn address(element: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(element.trim_ascii()).ok()?;
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    bare.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 0)).or_else(|_| text.parse()).ok()
}
