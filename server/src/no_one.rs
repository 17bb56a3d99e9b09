//! The connection of no client: what is asked of an upstream so that it shows what anybody gets.
//!
//! Next: `exchange/probing` and `cached/verify/bare`, which ask so.

use crate::request::{ClientAddress, ConnectionFacts, Request};
use millstream_net::{Address, clock};
use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;

/// The address of no client (RFC 7600 §4.8).
const NO_ONE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 0, 8)), 0);

/// As if it had come from the address of no client, without a certificate, on the same port and by the same protocol.
pub fn asks(request: &mut Request) {
    request.connection = Rc::new(connection(&request.connection));
    let address = Address::Tcp(NO_ONE);
    request.received.client = Some(ClientAddress { text: address.host_text(), address });
}

fn connection(of: &ConnectionFacts) -> ConnectionFacts {
    let mut tls = of.tls.clone();
    if let Some(tls) = &mut tls {
        tls.certificates = None;
    }
    let address = Address::Tcp(NO_ONE);
    ConnectionFacts {
        serial: of.serial,
        remote_text: address.host_text(),
        remote: address,
        local: of.local.clone(),
        listener: Cell::new(of.listener.get()),
        is_plain_on_tls: of.is_plain_on_tls,
        proxied: None,
        tls,
        certificate: None,
        opened: clock::now(),
        requests: Cell::new(of.requests.get()),
        copies: Cell::new(0),
    }
}
