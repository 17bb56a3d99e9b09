//! Whom a request came from, where a proxy in front is trusted to say it (`set_real_ip_from`).
//!
//! It stands twice on the page of phases, as in nginx: for the server, and once more in the location; the first that finds an address
//! counts. Before: `forwarded`, which walks along the proxies; next: `Request::client`, which everybody asks.

use crate::forwarded;
use crate::network::contains;
use crate::request::{ClientAddress, Request};
use millstream_conf::model::{Network, RealIpHeader};
use millstream_net::Address;
use millstream_wire::FieldId;
use smallvec::SmallVec;

#[cfg(test)]
mod tests;

/// Sets the client's address by the settings in force.
pub fn take(request: &mut Request) {
    if request.received.client.is_some() || request.location().settings.realip.is_none() {
        return;
    }
    let generation = request.generation.clone();
    let Some(realip) = &generation.http().location(request.route.location).settings.realip else { return };
    let fields = request.fields();
    let lines: SmallVec<[&[u8]; 4]> = match &realip.header {
        RealIpHeader::ForwardedFor => fields.all(FieldId::XForwardedFor).collect(),
        RealIpHeader::Field(name) => fields.named(name.as_bytes()).into_iter().collect(),
        RealIpHeader::ProxyProtocol => return from_header(request, &realip.from),
    };
    let found = forwarded::behind(&request.connection.remote, &lines, &realip.from, realip.recursive);
    drop(lines);
    if let Some(address) = found {
        request.received.client =
            Some(ClientAddress { text: address.ip().to_string().into(), address: Address::Tcp(address) });
    }
}

fn from_header(request: &mut Request, proxies: &[Network]) {
    let connection = &request.connection;
    let is_trusted = proxies.iter().any(|network| contains(network, &connection.remote));
    if let Some(said) = connection.proxied.as_ref().filter(|_| is_trusted) {
        let (text, address) = (said.source.ip().to_string().into(), Address::Tcp(said.source));
        request.received.client = Some(ClientAddress { text, address });
    }
}
