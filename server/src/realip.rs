//! Whom a request came from, where a proxy in front is trusted to say it (`set_real_ip_from`).
//!
//! It stands twice on the page of phases, as in nginx: for the server, and once more in the location; the first that finds an address
//! counts. Before: `forwarded`, which walks along the proxies; next: `Request::client`, which everybody asks.

use crate::forwarded;
use crate::request::{ClientAddress, Request};
use millstream_conf::model::RealIpHeader;
use millstream_net::Address;
use millstream_wire::FieldId;
use smallvec::SmallVec;

#[cfg(test)]
mod tests;

/// Takes the address that the settings in force have the request come from.
pub fn take(request: &mut Request) {
    if request.client.is_some() || request.location().settings.realip.is_none() {
        return;
    }
    let generation = request.generation.clone();
    let Some(realip) = &generation.http().location(request.location).settings.realip else { return };
    let fields = request.fields();
    let lines: SmallVec<[&[u8]; 4]> = match &realip.header {
        RealIpHeader::ForwardedFor => fields.all(FieldId::XForwardedFor).collect(),
        RealIpHeader::Field(name) => fields.named(name.as_bytes()).into_iter().collect(),
        RealIpHeader::ProxyProtocol => return,
    };
    let found = forwarded::behind(&request.connection.remote, &lines, &realip.from, realip.recursive);
    drop(lines);
    if let Some(address) = found {
        request.client =
            Some(ClientAddress { text: address.ip().to_string().into(), address: Address::Tcp(address) });
    }
}
