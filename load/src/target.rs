//! From what a user asks for to a target: the URL taken apart, its name resolved, the request written out.
//!
//! Nothing is loaded that the user has not named, and an address of the public internet not without a second word.
//! Next: `probe`, `drive`.

mod url;
#[cfg(test)]
mod tests;

pub use url::Url;

use crate::http2_request::Http2Request;
use crate::plan::{Expect, Target};
use millstream_net::resolve;
use millstream_wire::h1::encode;
use millstream_wire::{Version, octets};
use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// The longest wait for the system's resolver.
const RESOLVING: Duration = Duration::from_secs(10);

/// What is to be asked for.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// `http://host[:port]/path?query`, or https.
    pub url: String,
    /// The method; empty: GET, or POST where there is a body.
    pub method: String,
    /// Further fields. `Host` and `Connection` given here replace those that are made.
    pub fields: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Whether the connection is to be used again; else the request says `Connection: close`.
    pub keep_alive: bool,
    /// Whether it is asked in HTTP/2: over TLS by ALPN, else with prior knowledge.
    pub http2: bool,
    /// Statuses from 400 on that an answer may have, see [`Expect::also`].
    pub also: Vec<u16>,
}

/// What the user has allowed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Permission {
    /// Loading an address of the public internet.
    pub public: bool,
}

/// Why there is no target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetError {
    /// The URL is none, and why.
    BadUrl(String, &'static str),
    /// The method is none, or one that a load cannot use.
    BadMethod(String),
    /// A field that must not be sent, and why.
    BadField(String, &'static str),
    /// The request cannot be one of HTTP/2, and why.
    NotHttp2(String, &'static str),
    /// The name has no address, and what the system said.
    NoSuchHost(String, String),
    /// The address is one of the public internet, and nobody allowed it.
    Public(String, IpAddr),
}

impl fmt::Display for TargetError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetError::BadUrl(url, why) => write!(out, "\"{url}\" cannot be loaded: {why}"),
            TargetError::BadMethod(method) => write!(out, "\"{method}\" is no method that can be loaded"),
            TargetError::BadField(name, why) => write!(out, "the field \"{name}\" cannot be sent: {why}"),
            TargetError::NotHttp2(url, why) => write!(out, "{url} cannot be asked for in HTTP/2: {why}"),
            TargetError::NoSuchHost(host, why) => write!(out, "no such host: \"{host}\" ({why})"),
            TargetError::Public(host, address) if *host == address.to_string() => write!(
                out,
                "{host} is an address of the public internet: load only what is yours, and say --yes"
            ),
            TargetError::Public(host, address) => write!(
                out,
                "{host} is {address}, an address of the public internet: load only what is yours, and say --yes"
            ),
        }
    }
}

impl std::error::Error for TargetError {}

/// Makes a target. Blocks while the system resolves the name, at most ten seconds.
///
/// # Errors
/// See [`TargetError`]; nothing was connected to.
pub fn resolve(ask: &Ask, may: Permission) -> Result<Target, TargetError> {
    one(ask, may, &mut KnownAddresses::new())
}

/// Makes many; each name is resolved once.
///
/// # Errors
/// The first that cannot be.
pub fn resolve_all(asks: &[Ask], may: Permission) -> Result<Vec<Target>, TargetError> {
    let mut known = KnownAddresses::new();
    asks.iter().map(|ask| one(ask, may, &mut known)).collect()
}

/// Addresses by host and port.
type KnownAddresses = HashMap<(String, u16), Vec<SocketAddr>>;

fn one(ask: &Ask, may: Permission, known: &mut KnownAddresses) -> Result<Target, TargetError> {
    let url = Url::parse(&ask.url).map_err(|why| TargetError::BadUrl(ask.url.clone(), why))?;
    let request: Arc<[u8]> = request(ask, &url)?.into();
    let http2 = if ask.http2 {
        let made = Http2Request::of(&request, url.is_https);
        Some(Arc::new(made.map_err(|why| TargetError::NotHttp2(ask.url.clone(), why))?))
    } else {
        None
    };
    let name = (url.host.clone(), url.port);
    let addresses = match known.get(&name) {
        Some(addresses) => addresses.clone(),
        None => {
            let found = addresses(&url)?;
            known.insert(name, found.clone());
            found
        }
    };
    if let Some(public) = addresses.iter().map(SocketAddr::ip).find(|ip| is_public(*ip))
        && !may.public
    {
        return Err(TargetError::Public(url.host, public));
    }
    Ok(Target {
        url: ask.url.clone(),
        addresses,
        tls: url.is_https.then(|| url.host.clone()),
        request,
        http2,
        is_head: ask.method == "HEAD",
        expect: Expect { also: ask.also.clone(), ..Expect::default() },
    })
}

fn addresses(url: &Url) -> Result<Vec<SocketAddr>, TargetError> {
    if let Ok(ip) = url.host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, url.port)]);
    }
    let name = millstream_conf::model::HostPort { host: url.host.clone(), port: url.port };
    let (tell, told) = mpsc::sync_channel(1);
    // The system's resolver takes as long as it likes; a thread of its own can be left behind with it.
    std::thread::spawn(move || _ = tell.send(resolve::resolve_blocking(&name)));
    match told.recv_timeout(RESOLVING) {
        Ok(Ok(addresses)) => Ok(addresses),
        Ok(Err(error)) => Err(TargetError::NoSuchHost(url.host.clone(), without_number(&error.to_string()))),
        Err(_) => Err(TargetError::NoSuchHost(
            url.host.clone(),
            "the resolver gave no answer in ten seconds".to_owned(),
        )),
    }
}

/// The resolver's words without the library's in front of them.
fn without_number(said: &str) -> String {
    said.rsplit_once("failed to lookup address information: ").map_or(said, |(_, why)| why).to_owned()
}

/// The request as it goes out.
fn request(ask: &Ask, url: &Url) -> Result<Vec<u8>, TargetError> {
    let method = match (ask.method.as_str(), ask.body.is_empty()) {
        ("", true) => "GET",
        ("", false) => "POST",
        (method, _) => method,
    };
    if !octets::is_token(method.as_bytes()) || method == "CONNECT" {
        return Err(TargetError::BadMethod(method.to_owned()));
    }
    for (name, value) in &ask.fields {
        let bad = |why| Err(TargetError::BadField(name.clone(), why));
        if name.is_empty() || !octets::is_token(name.as_bytes()) {
            return bad("that is no field name");
        }
        if !octets::is_value(value.as_bytes()) {
            return bad("its value has control characters");
        }
        if ["content-length", "transfer-encoding"].iter().any(|own| name.eq_ignore_ascii_case(own)) {
            return bad("the length is that of the body");
        }
    }
    let is_given = |wanted: &str| ask.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
    let mut out = Vec::new();
    encode::request_line(&mut out, method.as_bytes(), url.target.as_bytes(), Version::Http11);
    if !is_given("host") {
        encode::field(&mut out, b"Host", url.authority.as_bytes());
    }
    for (name, value) in &ask.fields {
        encode::field(&mut out, name.as_bytes(), value.trim().as_bytes());
    }
    if !ask.keep_alive && !is_given("connection") {
        encode::field(&mut out, b"Connection", b"close");
    }
    // RFC 9110 §8.6: methods that give content a meaning announce its length, be it nothing.
    if !ask.body.is_empty() || ["POST", "PUT", "PATCH"].contains(&method) {
        encode::field(&mut out, b"Content-Length", ask.body.len().to_string().as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(&ask.body);
    Ok(out)
}

/// Whether an address is one of the public internet: neither this machine's, nor a private network's, nor of a link.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or_else(|| is_public_v6(v6), is_public_v4),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    // RFC 6598: networks behind a carrier's translation.
    let is_shared = first == 100 && second & 0xc0 == 64;
    let is_here = address.is_loopback() || address.is_unspecified();
    !(is_here || address.is_private() || address.is_link_local() || is_shared)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let is_here = address.is_loopback() || address.is_unspecified();
    !(is_here || address.is_unique_local() || address.is_unicast_link_local())
}
