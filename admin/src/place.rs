//! Where a request for a URL would come in: the listener of its port, with or without TLS.
//!
//! Behind a port that somebody else maps (a container, a balancer that ends TLS) no listener may have the URL's port; then
//! the one with a server of that name is taken, else the first. So `$scheme` is what a real request would have had.

use crate::refusal::ApiRefusal;
use millstream_conf::model::{ListenAddress, Listener, ServerName};
use millstream_net::Address;
use millstream_net::stream::TlsInfo;
use millstream_server::imagined::Entrance;
use millstream_server::request::{ConnectionFacts, Request};
use millstream_server::right;
use millstream_wire::host;
use millstream_wire::target::encode_raw;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    encrypted: bool,
    port: u16,
    /// `host[:port]` as written.
    pub host: Vec<u8>,
    /// Path and query, at least a slash.
    pub target: Vec<u8>,
}

impl Url {
    /// Parses like a browser's address bar: accepts IRIs and encodes spaces. The default scheme is `http`.
    pub(crate) fn parse(text: &[u8]) -> Result<Url, ApiRefusal> {
        let bad = || {
            let text = format!("invalid URL \"{}\": write http://host/path", String::from_utf8_lossy(text));
            ApiRefusal::new(400, "UrlInvalid", text)
        };
        if text.iter().any(u8::is_ascii_control) {
            return Err(bad());
        }
        let (encrypted, rest) = match (text.strip_prefix(b"http://"), text.strip_prefix(b"https://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ if text.windows(3).any(|three| three == b"://") || text.starts_with(b"/") => return Err(bad()),
            _ => (false, text),
        };
        // A fragment never leaves the client.
        let rest = rest.split(|&byte| byte == b'#').next().unwrap_or_default();
        let end = rest.iter().position(|byte| b"/?".contains(byte)).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let authority = in_ascii(authority).ok_or_else(bad)?;
        let valid = host::validate(&authority).map_err(|_| bad())?;
        let usual = if encrypted { 443 } else { 80 };
        let port = match valid.port.filter(|digits| !digits.is_empty()) {
            Some(digits) => {
                std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).ok_or_else(bad)?
            }
            None => usual,
        };
        let mut target = Vec::with_capacity(path.len() + 1);
        encode_raw(path, &mut target);
        if target.first() != Some(&b'/') {
            target.insert(0, b'/');
        }
        Ok(Url { encrypted, port, host: authority, target })
    }
}

/// `host[:port]` as a browser sends it, with non-ASCII names encoded (RFC 5891).
fn in_ascii(authority: &[u8]) -> Option<Vec<u8>> {
    if authority.is_ascii() {
        return Some(authority.to_vec());
    }
    let text = std::str::from_utf8(authority).ok()?;
    let (name, port) = text.split_at(text.rfind(':').unwrap_or(text.len()));
    Some((idna::domain_to_ascii(name).ok()? + port).into_bytes())
}

pub(crate) fn of(request: &Request, url: &Url) -> Result<Entrance, ApiRefusal> {
    let http = request.generation.http();
    let is_own =
        |listener: &Listener| listener.owner_only || Some(&listener.address) == http.dashboard.as_ref();
    let listeners = || http.listeners.iter().enumerate().filter(|(_, listener)| !is_own(listener));
    let has_port = |listener: &Listener| matches!(&listener.address, ListenAddress::Tcp(address) if address.port() == url.port);
    let name = host::validate(&url.host).map(|valid| valid.host.to_ascii_lowercase()).unwrap_or_default();
    let names_it = |listener: &Listener| {
        listener.servers.iter().any(|id| {
            let names = &http.server(*id).names;
            names.iter().any(|known| matches!(known, ServerName::Exact(text) if text.as_bytes() == name))
        })
    };
    let (index, listener) = listeners()
        .find(|(_, listener)| has_port(listener) && listener.ssl == url.encrypted)
        .or_else(|| listeners().find(|(_, listener)| has_port(listener)))
        .or_else(|| listeners().find(|(_, listener)| names_it(listener) && listener.ssl == url.encrypted))
        .or_else(|| listeners().find(|(_, listener)| names_it(listener)))
        .or_else(|| listeners().next())
        .ok_or_else(|| ApiRefusal::new(404, "NoServer", "the configuration has no listening server"))?;
    Ok(Entrance {
        worker: request.worker.clone(),
        generation: request.generation.clone(),
        connection: Rc::new(connection(index, listener, &name)),
    })
}

/// A note if no server has the URL's name, so that the default one takes it.
pub(crate) fn unnamed(place: &Entrance, url: &Url) -> Option<String> {
    let valid = host::validate(&url.host).ok()?;
    let name = valid.host.to_ascii_lowercase();
    let hosts = &place.generation.shared.hosts[place.connection.listener.get()];
    let is_plain = name == b"localhost" || right::is_address(&name) || hosts.names(&name);
    (!is_plain).then(|| {
        let name = String::from_utf8_lossy(&name).into_owned();
        format!("no server_name matches {name}: the default server is used")
    })
}

fn connection(index: usize, listener: &Listener, name: &[u8]) -> ConnectionFacts {
    let local = match &listener.address {
        ListenAddress::Tcp(address) if address.ip().is_unspecified() => {
            Address::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), address.port()))
        }
        other => other.into(),
    };
    let tls = TlsInfo::imagined(Some(String::from_utf8_lossy(name).into()));
    let remote = Address::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0));
    let tls = listener.ssl.then(|| Box::new(tls));
    ConnectionFacts { tls, ..ConnectionFacts::plain(remote, local, index) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_as_a_browser_takes_what_is_typed() {
        for (text, host, target) in [
            ("http://a.example/caf\u{e9}", "a.example", "/caf%C3%A9"),
            ("http://a.example/a b?c d#e f", "a.example", "/a%20b?c%20d"),
            ("http://a.example:8080/%c3%a9", "a.example:8080", "/%c3%a9"),
            ("https://B\u{fc}cher.example:8443/\u{20ac}", "xn--bcher-kva.example:8443", "/%E2%82%AC"),
            ("b\u{fc}cher.example", "xn--bcher-kva.example", "/"),
        ] {
            let Ok(url) = Url::parse(text.as_bytes()) else { panic!("{text} is a URL") };
            assert_eq!(
                (url.host.as_slice(), url.target.as_slice()),
                (host.as_bytes(), target.as_bytes()),
                "{text}"
            );
        }
        for text in ["http://a.example/\n", "http://a b/", "ftp://a/", "/path", "http://\u{ad}/"] {
            assert!(Url::parse(text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
