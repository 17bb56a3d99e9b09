//! Who a request is from, really: its connection, what the PROXY protocol says, what a trusted proxy says, and what any proxy
//! has written into it.
//!
//! A proxy makes its clients look like itself, so a request is from everybody whom anything about it names. One rule for all
//! who let somebody in by address alone. Before: `realip`, which takes the word of trusted proxies; next: `right`.

use crate::forwarded;
use crate::network::{contains, is_local as is_local_address};
use crate::request::Request;
use millstream_conf::model::Network;
use millstream_net::Address;
use millstream_wire::client_address::is_client_address;
use millstream_wire::list;
use std::net::{IpAddr, SocketAddr};

#[cfg(test)]
mod tests;

/// Fields that proxies add, besides those with the client's address.
const PASSED_ON: [&[u8]; 9] = [
    b"via",
    b"x-forwarded-host",
    b"x-forwarded-proto",
    b"x-forwarded-port",
    b"x-forwarded-server",
    b"x-forwarded-by",
    b"x-forwarded-scheme",
    b"cf-ray",
    b"cdn-loop",
];

/// An error says why a request is not local. No error proves nothing: a proxy need not reveal itself.
pub fn is_local(request: &Request) -> Result<(), &'static str> {
    let peer = &request.connection.remote;
    let source = source(request)?;
    if ![peer, request.client(), &source].into_iter().all(is_local_address) {
        return Err("the request comes from another machine");
    }
    let is_sign = |name: &[u8]| {
        is_client_address(name) || PASSED_ON.iter().any(|known| name.eq_ignore_ascii_case(known))
    };
    if request.received.client.is_some()
        || is_proxy(request)
        || request.fields().iter().any(|(_, name, _)| is_sign(name))
    {
        return Err("the request was forwarded by a proxy, so its client may not be local");
    }
    Ok(())
}

/// Every address that it may come from must be in the list; after a trusted proxy (`set_real_ip_from`) that
/// is only one.
pub fn is_of(request: &Request, has: impl Fn(&Address) -> bool) -> Result<(), &'static str> {
    const STRANGER: &str = "the address is not in the list";
    if request.received.client.is_some() {
        return if has(request.client()) { Ok(()) } else { Err(STRANGER) };
    }
    if !has(&request.connection.remote) || !has(&source(request)?) {
        return Err(STRANGER);
    }
    let fields = request.fields();
    let mut said = fields.iter().filter(|(_, name, _)| is_client_address(name));
    let is_within = |value: &[u8]| {
        list::elements(value).all(|element| address(element).is_some_and(|address| has(&address)))
    };
    if said.all(|(_, _, value)| is_within(value)) {
        return Ok(());
    }
    Err("a proxy forwarded the request from an address that is not in the list")
}

/// The client that limits count. Behind an untrusted proxy it is the proxy, and all its clients are one.
pub fn client(request: &Request) -> IpAddr {
    let said = || request.connection.proxied.as_ref().map(|said| said.source);
    match forwarded::client(request).or_else(|| if request.received.client.is_none() { said() } else { None })
    {
        Some(address) => Address::Tcp(address).subscriber(),
        None => request.client().subscriber(),
    }
}

/// The source by the PROXY protocol, else the peer. A proxy that names none (UNKNOWN, LOCAL) leaves it open.
fn source(request: &Request) -> Result<Address, &'static str> {
    let connection = &request.connection;
    let listener = request.generation.http().listeners.get(connection.listener.get());
    match &connection.proxied {
        Some(said) => Ok(Address::Tcp(said.source)),
        None if listener.is_some_and(|listener| listener.proxy_protocol) => {
            Err("the PROXY protocol header contains no source address")
        }
        None => Ok(connection.remote.clone()),
    }
}

/// Whether the peer is configured as a proxy.
fn is_proxy(request: &Request) -> bool {
    let settings = &request.location().settings;
    let has =
        |networks: &[Network]| networks.iter().any(|network| contains(network, &request.connection.remote));
    forwarded::is_trusted(request) || settings.realip.as_ref().is_some_and(|realip| has(&realip.from))
}

/// An address with or without a port, or an element of Forwarded (`for="[2001:db8::1]:4711";proto=https`).
fn address(element: &[u8]) -> Option<Address> {
    let mut parameters = element.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let named = parameters.find_map(|parameter| {
        let (name, value) = parameter.split_at_checked(4)?;
        name.eq_ignore_ascii_case(b"for=").then_some(value)
    });
    let bare = named.unwrap_or(element).trim_ascii();
    let bare = bare.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(bare);
    let found: Option<SocketAddr> = forwarded::address(bare);
    found.map(Address::Tcp)
}
