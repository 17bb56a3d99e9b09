//! Addresses: where Millstream listens and where it connects to.
//!
//! Names are kept as names; nothing is resolved here. Next: `features/listen`, `features/upstream`, which read them;
//! `millstream-net`'s `address`, that of an open connection.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ListenAddress {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// A host name; never an address literal (those are [`PeerAddress::Tcp`]).
    pub host: String,
    /// The port; 80 where none was written.
    pub port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PeerAddress {
    Tcp(SocketAddr),
    /// A name, resolved by the system when the configuration is put to work.
    Name(HostPort),
    Unix(PathBuf),
}

impl PeerAddress {
    /// `None` unless it is `host[:port]` or `unix:path`; without a port, the scheme's.
    pub fn parse(text: &str, default_port: u16) -> Option<PeerAddress> {
        if let Some(path) = text.strip_prefix("unix:") {
            return (!path.is_empty()).then(|| PeerAddress::Unix(path.into()));
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return (address.port() != 0).then_some(PeerAddress::Tcp(address));
        }
        if let Some(bare) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return Some(PeerAddress::Tcp(SocketAddr::new(bare.parse::<IpAddr>().ok()?, default_port)));
        }
        if let Ok(ip) = text.parse::<IpAddr>() {
            return ip.is_ipv4().then_some(PeerAddress::Tcp(SocketAddr::new(ip, default_port)));
        }
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, port.parse::<u16>().ok().filter(|port| *port != 0)?),
            None => (text, default_port),
        };
        let named =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_') || byte >= 0x80;
        let valid = !host.is_empty() && host.bytes().all(named);
        valid.then(|| PeerAddress::Name(HostPort { host: host.to_owned(), port }))
    }
}

/// A server of an engine as one text: `redis://[user:password@]host[:port]`, `rediss://…` for TLS, or an address alone.
#[derive(Debug, PartialEq, Eq)]
pub struct EngineUrl {
    pub address: PeerAddress,
    pub user: Option<String>,
    pub password: Option<String>,
    /// TLS.
    pub is_secured: bool,
}

impl EngineUrl {
    /// `None` unless it is one of these. User and password may have `%XX`.
    pub fn parse(text: &str, default_port: u16) -> Option<EngineUrl> {
        let (is_secured, rest) = match (text.strip_prefix("redis://"), text.strip_prefix("rediss://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => {
                let address = PeerAddress::parse(text, default_port)?;
                return Some(EngineUrl { address, user: None, password: None, is_secured: false });
            }
        };
        let (rights, address) = rest.rsplit_once('@').unwrap_or(("", rest));
        let (user, password) = rights.split_once(':').unwrap_or((rights, ""));
        let given = |text: &str| decoded(text).map(|text| (!text.is_empty()).then_some(text));
        let address = PeerAddress::parse(address.strip_suffix('/').unwrap_or(address), default_port)?;
        if matches!(address, PeerAddress::Unix(_)) {
            return None;
        }
        Some(EngineUrl { address, user: given(user)?, password: given(password)?, is_secured })
    }
}

/// `None` for a `%` without two hexadecimal digits, or what is not UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? * 16 + digit()?) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// A local address, with or without a port; port 0 is any.
pub fn local_address(text: &str) -> Option<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    bare.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_of_an_engine_has_user_password_and_whether_it_is_encrypted() {
        let check = |text: &str, expected: Option<(&str, &str, &str, bool)>| {
            let parsed = EngineUrl::parse(text, 6379);
            let expected = expected.map(|(address, user, password, is_secured)| EngineUrl {
                address: PeerAddress::parse(address, 1).expect("an address"),
                user: (!user.is_empty()).then(|| user.to_owned()),
                password: (!password.is_empty()).then(|| password.to_owned()),
                is_secured,
            });
            assert_eq!(parsed, expected, "{text}");
        };
        check("10.0.0.5", Some(("10.0.0.5:6379", "", "", false)));
        check("unix:/run/redis.sock", Some(("unix:/run/redis.sock", "", "", false)));
        check("redis://engine", Some(("engine:6379", "", "", false)));
        check("redis://engine:7000/", Some(("engine:7000", "", "", false)));
        check("rediss://me:p%40ss:word@[::1]:7000", Some(("[::1]:7000", "me", "p@ss:word", true)));
        check("redis://:word@10.0.0.5", Some(("10.0.0.5:6379", "", "word", false)));
        for wrong in
            ["redis://", "redis://unix:/run/a.sock", "redis://a:%4@host", "redis://host/3", "http://a"]
        {
            check(wrong, None);
        }
    }
}
