//! `geo`: by which address a value is looked up.

use crate::forwarded;
use crate::request::Request;
use crate::variables::evaluate;
use millstream_conf::model::Geo;
use millstream_net::Address;
use millstream_wire::FieldId;
use smallvec::SmallVec;
use std::net::{IpAddr, SocketAddr};

pub(super) fn append(geo: &Geo, request: &Request, out: &mut Vec<u8>) {
    let mut address = match &geo.address {
        None => Some(request.client().clone()),
        Some(variable) => {
            let start = out.len();
            evaluate(variable, request, out);
            let ip = std::str::from_utf8(&out[start..]).ok().and_then(|text| text.parse::<IpAddr>().ok());
            out.truncate(start);
            ip.map(|ip| Address::Tcp(SocketAddr::new(ip, 0)))
        }
    };
    if let Some(peer) = address.as_ref().filter(|_| !geo.proxies.is_empty()) {
        let lines: SmallVec<[&[u8]; 4]> = request.fields().all(FieldId::XForwardedFor).collect();
        if let Some(found) = forwarded::behind(peer, &lines, &geo.proxies, geo.recursive) {
            address = Some(Address::Tcp(found));
        }
    }
    let ip = match address {
        Some(Address::Tcp(socket)) => Some(socket.ip()),
        Some(Address::Unix(_)) | None => None,
    };
    out.extend_from_slice(geo.find(ip).as_bytes());
}
