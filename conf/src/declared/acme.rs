//! Who issues certificates by ACME (RFC 8555), and which certificates are asked of whom.
//!
//! Plain data; nothing of a key is shown. Before: `features/acme`, which reads it; next: `millstream-acme`, which asks.

use crate::address::PeerAddress;
use crate::declared::resolver::ResolverId;
use crate::source::Span;
use crate::tree::Word;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Index into `Http::acme_issuers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AcmeIssuerId(pub u32);

/// Index into `Http::acme_certificates`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AcmeCertificateId(pub u32);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcmeIssuer {
    pub name: String,
    pub span: Span,
    pub uri: WebUrl,
    pub account_key: AccountKey,
    pub challenge: AcmeChallenge,
    pub common_name_in_csr: bool,
    pub contacts: Vec<String>,
    pub external_account: Option<ExternalAccount>,
    /// `preferred_chain`: the common name of the topmost certificate's issuer.
    pub preferred_chain: Option<String>,
    pub profile: Option<AcmeProfile>,
    /// `ssl_trusted_certificate`; without it, the authorities of the system.
    pub trusted: Option<PathBuf>,
    pub verifies: bool,
    /// `None` = `off`.
    pub state_path: Option<PathBuf>,
    /// Whether `state_path` is the default below the prefix, which a start may put elsewhere.
    pub has_default_state: bool,
    pub accepts_terms: bool,
    /// Of the issuer, else of the `http` block; `None` uses the system's resolver.
    pub resolver: Option<ResolverId>,
    pub resolver_timeout: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcmeCertificate {
    pub issuer: AcmeIssuerId,
    /// Each once, as written; never empty.
    pub identifiers: Vec<AcmeIdentifier>,
    pub key: KeyKind,
}

#[derive(Debug)]
pub struct AcmeOrder {
    pub issuer: Word,
    pub identifiers: Vec<AcmeIdentifier>,
    pub key: KeyKind,
    pub span: Span,
    /// Whether any identifier was written, valid or not.
    pub names_any: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AcmeIdentifier {
    /// In lower case, without asterisk.
    Dns(String),
    /// An address (RFC 8738).
    Ip(IpAddr),
}

impl fmt::Display for AcmeIdentifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AcmeIdentifier::Dns(name) => f.write_str(name),
            AcmeIdentifier::Ip(address) => address.fmt(f),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum KeyKind {
    #[default]
    Ecdsa256,
    Ecdsa384,
    Ecdsa521,
    Rsa2048,
    Rsa3072,
    Rsa4096,
}

/// An algorithm without size stands for its first kind.
pub const KEY_KINDS: [(&str, KeyKind); 6] = [
    ("ecdsa:256", KeyKind::Ecdsa256),
    ("ecdsa:384", KeyKind::Ecdsa384),
    ("ecdsa:521", KeyKind::Ecdsa521),
    ("rsa:2048", KeyKind::Rsa2048),
    ("rsa:3072", KeyKind::Rsa3072),
    ("rsa:4096", KeyKind::Rsa4096),
];

impl KeyKind {
    pub fn text(self) -> &'static str {
        KEY_KINDS.iter().find(|(_, kind)| *kind == self).map_or("", |(text, _)| text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountKey {
    /// Generated if it does not exist.
    Made(KeyKind),
    File(PathBuf),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AcmeChallenge {
    /// A request over HTTP (RFC 8555 §8.3).
    #[default]
    Http01,
    /// A handshake of TLS (RFC 8737).
    TlsAlpn01,
}

impl AcmeChallenge {
    pub fn name(self) -> &'static str {
        match self {
            AcmeChallenge::Http01 => "http-01",
            AcmeChallenge::TlsAlpn01 => "tls-alpn-01",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcmeProfile {
    pub name: String,
    /// `require`: no certificate rather than one of another profile.
    pub required: bool,
}

/// `external_account_key`: binds an account that is known elsewhere (RFC 8555 §7.3.4).
#[derive(Clone, PartialEq, Eq)]
pub struct ExternalAccount {
    pub id: String,
    /// Base64url without padding.
    pub key: Box<str>,
}

impl fmt::Debug for ExternalAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalAccount").field("id", &self.id).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebUrl {
    pub text: String,
    /// Host and port as written.
    pub authority: String,
    pub address: PeerAddress,
    pub target: String,
}

impl WebUrl {
    /// `None` unless it is an `https` URL (RFC 8555 §6.1).
    pub fn parse(text: &str) -> Option<WebUrl> {
        Self::of("https://", 443, text)
    }

    /// The same for a URL without TLS.
    pub fn parse_plain(text: &str) -> Option<WebUrl> {
        Self::of("http://", 80, text)
    }

    fn of(scheme: &str, port: u16, text: &str) -> Option<WebUrl> {
        let (start, rest) = text.split_at_checked(scheme.len())?;
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
        if !start.eq_ignore_ascii_case(scheme) || !is_plain {
            return None;
        }
        let (authority, target) = match rest.find(['/', '?']) {
            Some(end) => rest.split_at(end),
            None => (rest, "/"),
        };
        let target = if target.starts_with('?') { format!("/{target}") } else { target.to_owned() };
        let address = match PeerAddress::parse(authority, port)? {
            PeerAddress::Unix(_) => return None,
            address => address,
        };
        Some(WebUrl { text: text.to_owned(), authority: authority.to_owned(), address, target })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_host_a_port_and_a_target_and_is_one_of_tls() {
        for (text, expected) in [
            ("https://acme.example.com/directory", Some(("acme.example.com", "/directory"))),
            ("HTTPS://127.0.0.1:14000/dir?a=b", Some(("127.0.0.1:14000", "/dir?a=b"))),
            ("https://[::1]:14000", Some(("[::1]:14000", "/"))),
            ("https://ca?x", Some(("ca", "/?x"))),
            ("http://acme.example.com/directory", None),
            ("acme.example.com", None),
            ("https://", None),
            ("https:///directory", None),
            ("https://unix:/run/ca", None),
            ("https://ca/dir\r\nHost: b", None),
            ("https://user@ca/", None),
        ] {
            let found = WebUrl::parse(text);
            assert_eq!(found.as_ref().map(|url| (&*url.authority, &*url.target)), expected, "{text}");
        }
    }

    #[test]
    fn nothing_of_a_key_is_shown() {
        let account = ExternalAccount { id: "kid".into(), key: "c2VjcmV0".into() };
        assert_eq!(format!("{account:?}"), "ExternalAccount { id: \"kid\", .. }");
    }
}
