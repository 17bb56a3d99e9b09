//! From what a user asks for to a target: the URL taken apart, its name resolved, the request written out.
//!
//! Nothing is loaded that the user has not named, and an address of the public internet not without a second word.
//! Next: `probe`, `drive`.

mod redirect;
#[cfg(test)]
mod tests;

pub use redirect::{is_redirect, redirected};

use crate::http2_request::Http2Request;
use crate::plan::{Expect, PlanError, Target, Way};
use millstream_conf::model;
use millstream_net::resolve;
use millstream_wire::h1::encode;
use millstream_wire::host::{self, HostPort};
use millstream_wire::{Version, octets, target};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, mpsc};
use std::time::Duration;

pub const NO_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

const RESOLVING: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// `http://host[:port]/path?query`, or https.
    pub url: String,
    /// The method; empty: GET, or POST where there is a body.
    pub method: String,
    /// Further fields. `Host` and `Connection` given here replace those that are made.
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Whether the connection is to be used again; else the request says `Connection: close`.
    pub keep_alive: bool,
    /// Whether it is asked in HTTP/2: over TLS by ALPN, else with prior knowledge.
    pub http2: bool,
    /// Statuses from 400 on that an answer may have, see [`Expect::also`].
    pub also: Vec<u16>,
    pub way: Way,
    /// Hosts and ports in whose place others are connected to; the first that fits counts.
    pub connect_to: Vec<ConnectTo>,
}

/// Another host and port to connect to, as curl's `--connect-to`: the request, and the name for TLS, stay the URL's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectTo {
    /// The host and port of URLs that this is about; none: any.
    pub from: (Option<String>, Option<u16>),
    /// What is connected to; none: what the URL says.
    pub to: (Option<String>, Option<u16>),
}

impl ConnectTo {
    fn of(&self, host: &str, port: u16) -> Option<(String, u16)> {
        let (from_host, from_port) = &self.from;
        let fits = from_host.as_ref().is_none_or(|from| from.eq_ignore_ascii_case(host))
            && from_port.is_none_or(|from| from == port);
        fits.then(|| (self.to.0.clone().unwrap_or_else(|| host.to_owned()), self.to.1.unwrap_or(port)))
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Permission {
    pub public: bool,
}

/// Makes a target. Blocks while the system resolves the name, at most ten seconds. Errors: what cannot be loaded, and why;
/// nothing was connected to.
pub fn resolve(ask: &Ask, may: Permission) -> Result<Target, PlanError> {
    one(ask, may, &mut HashMap::new())
}

/// Makes many; each name is resolved once. Errors: the first that cannot be.
pub fn resolve_all(asks: &[Ask], may: Permission) -> Result<Vec<Target>, PlanError> {
    let mut known = HashMap::new();
    asks.iter().map(|ask| one(ask, may, &mut known)).collect()
}

type KnownAddresses = HashMap<(String, u16), Vec<SocketAddr>>;

fn one(ask: &Ask, may: Permission, known: &mut KnownAddresses) -> Result<Target, PlanError> {
    let url =
        Url::parse(&ask.url).map_err(|why| PlanError(format!("\"{}\" cannot be loaded: {why}", ask.url)))?;
    let request: Arc<[u8]> = request(ask, &url)?.into();
    let told = |why| PlanError(format!("{} cannot be requested over HTTP/2: {why}", ask.url));
    let http2 = ask.http2.then(|| Http2Request::of(&request, url.is_https)).transpose().map_err(told)?;
    let other = ask.connect_to.iter().find_map(|other| other.of(&url.host, url.port));
    let name = other.unwrap_or_else(|| (url.host.clone(), url.port));
    let addresses = match known.get(&name) {
        // A socket in the file system has no address; all that needs one sees none.
        _ if ask.way.unix_socket.is_some() => vec![NO_ADDRESS],
        Some(addresses) => addresses.clone(),
        None => {
            let found = addresses(&name.0, name.1)?;
            known.insert(name.clone(), found.clone());
            found
        }
    };
    if let Some(public) = addresses.iter().map(SocketAddr::ip).find(|ip| is_public(*ip))
        && !may.public
    {
        let host = name.0;
        let found = if host == public.to_string() { String::new() } else { format!("{public}, ") };
        return Err(PlanError(format!(
            "{host} is {found}an address of the public internet: load only your own servers, and add --yes"
        )));
    }
    // What redirects are resolved against has a scheme.
    let scheme = if split_scheme(&ask.url).is_some() { "" } else { "http://" };
    Ok(Target {
        url: format!("{scheme}{}", ask.url),
        addresses,
        tls: url.is_https.then(|| url.host.clone()),
        way: ask.way.clone(),
        request,
        http2: http2.map(Arc::new),
        is_head: ask.method == "HEAD",
        expect: Expect { also: ask.also.clone(), ..Expect::default() },
    })
}

fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>, PlanError> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    let name = model::HostPort { host: host.to_owned(), port };
    let (tell, told) = mpsc::sync_channel(1);
    // The system's resolver takes as long as it likes; a thread of its own can be left behind with it.
    std::thread::spawn(move || _ = tell.send(resolve::resolve_blocking(&name)));
    let why = match told.recv_timeout(RESOLVING) {
        Ok(Ok(addresses)) => return Ok(addresses),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the resolver did not respond within ten seconds".to_owned(),
    };
    // The resolver's words without the library's in front of them.
    let why = why.rsplit("failed to lookup address information: ").next().unwrap_or_default();
    Err(PlanError(format!("no such host: \"{host}\" ({why})")))
}

fn request(ask: &Ask, url: &Url) -> Result<Vec<u8>, PlanError> {
    let method = match (ask.method.as_str(), ask.body.is_empty()) {
        ("", true) => "GET",
        ("", false) => "POST",
        (method, _) => method,
    };
    if !octets::is_token(method.as_bytes()) || method == "CONNECT" {
        return Err(PlanError(format!("method \"{method}\" is not supported")));
    }
    for (name, value) in &ask.fields {
        let bad = |why| Err(PlanError(format!("the field \"{name}\" cannot be sent: {why}")));
        if name.is_empty() || !octets::is_token(name.as_bytes()) {
            return bad("the name is invalid");
        }
        if !octets::is_value(value.as_bytes()) {
            return bad("its value has control characters");
        }
        if ["content-length", "transfer-encoding"].iter().any(|own| name.eq_ignore_ascii_case(own)) {
            return bad("the length is set automatically from the body");
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
    let address = address.to_canonical();
    let is_near = match address {
        // RFC 6598: networks behind a carrier's translation.
        IpAddr::V4(v4) => v4.is_private() || v4.is_link_local() || matches!(v4.octets(), [100, 64..128, ..]),
        IpAddr::V6(v6) => v6.is_unique_local() || v6.is_unicast_link_local(),
    };
    !(is_near || address.is_loopback() || address.is_unspecified())
}

const AUTHORITY: &str =
    "its host must be a name or an address (IPv6 in brackets), and its port a number from 1 to 65535";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    pub is_https: bool,
    /// The name or address, an IPv6 one without its brackets.
    pub host: String,
    /// The port, 80 or 443 where none is written.
    pub port: u16,
    pub authority: String,
    pub target: String,
}

impl Url {
    /// Takes a URL apart; without a scheme it is `http`. Errors: what is wrong with it, and what to write.
    pub fn parse(text: &str) -> Result<Url, &'static str> {
        let (is_https, rest) = match split_scheme(text) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            Some(_) => return Err("only http:// and https:// are supported"),
            None if text.starts_with('/') => return Err("a URL begins with http:// or https://"),
            None => (false, text),
        };
        // RFC 3986 §3.5: a fragment is never sent.
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err("a user in a URL is not supported: write -H 'Authorization: …'");
        }
        if authority.is_empty() {
            return Err("it has no host");
        }
        let HostPort { host, port } = host::validate(authority.as_bytes()).map_err(|_| AUTHORITY)?;
        let port = match port.unwrap_or_default() {
            b"" if is_https => 443,
            b"" => 80,
            digits => octets::decimal(digits).filter(|port| *port > 0).ok_or(AUTHORITY)? as u16,
        };
        if path.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err("it has a space or a control character; write %20");
        }
        let root = if path.starts_with('/') { "" } else { "/" };
        let target = root.to_owned() + &escaped(path.as_bytes());
        let host = authority[..host.len()].trim_matches(['[', ']']).to_owned();
        Ok(Url { is_https, host, port, authority: authority.to_owned(), target })
    }
}

/// The scheme of a URL and what follows it; `None`: it begins with the host. Behind a path or a query `://` is theirs.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    text.split_once("://").filter(|(scheme, _)| !scheme.contains(['/', '?', '#']))
}

/// As a URL has it: what no URL may have in it in percent.
pub fn escaped(text: &[u8]) -> String {
    let mut out = Vec::new();
    target::encode_raw(text, &mut out);
    String::from_utf8(out).expect("all but ASCII is escaped")
}
