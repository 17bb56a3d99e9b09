//! An http or https URL in its parts (RFC 3986, RFC 9110 §4.2), as much of it as a request needs.

use millstream_wire::host::{self, HostPort};
use millstream_wire::{octets, target};

const AUTHORITY: &str =
    "its host must be a name or an address (IPv6 in brackets), and its port one between 1 and 65535";

/// What a URL says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Whether it is https.
    pub is_https: bool,
    /// The name or address, an IPv6 one without its brackets.
    pub host: String,
    /// The port, 80 or 443 where none is written.
    pub port: u16,
    /// What `Host` says.
    pub authority: String,
    /// Path and query as they go into the request line.
    pub target: String,
}

impl Url {
    /// Takes a URL apart; without a scheme it is `http`.
    ///
    /// # Errors
    /// What is wrong with it, and what to write.
    pub fn parse(text: &str) -> Result<Url, &'static str> {
        let (is_https, rest) = match split_scheme(text) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            Some(_) => return Err("only http:// and https:// can be"),
            None if text.starts_with('/') => return Err("a URL begins with http:// or https://"),
            None => (false, text),
        };
        // RFC 3986 §3.5: a fragment is never sent.
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err("a user in a URL is not sent: write -H 'Authorization: …'");
        }
        if authority.is_empty() {
            return Err("it names no host");
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
pub(super) fn split_scheme(text: &str) -> Option<(&str, &str)> {
    text.split_once("://").filter(|(scheme, _)| !scheme.contains(['/', '?', '#']))
}

/// As a URL has it: what no URL may have in it in percent.
pub fn escaped(text: &[u8]) -> String {
    let mut out = Vec::new();
    target::encode_raw(text, &mut out);
    String::from_utf8(out).expect("all but ASCII is escaped")
}
