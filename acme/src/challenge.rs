//! What an authority is shown that looks whose a name is: a text, or a certificate made for that (RFC 8555 §8.3, RFC 8737 §3).
//!
//! Before: `key`; next: `order`, which opens one for each name; `millstream-net`'s `tls/challenges`, which keeps those that are open.

use crate::failure::AcmeFailure;
use aws_lc_rs::digest::{SHA256, digest};
use millstream_conf::model::{AcmeChallenge, AcmeIdentifier, KeyKind};
use millstream_net::tls::{Challenges, OpenChallenge};
use std::fmt::Write;
use std::net::IpAddr;
use std::sync::Arc;

const LONGEST_TOKEN: usize = 512;

/// Responds to one challenge until the returned value is dropped.
pub(crate) fn open(
    challenges: &Arc<Challenges>,
    way: AcmeChallenge,
    identifier: &AcmeIdentifier,
    token: &str,
    thumbprint: &str,
) -> Result<OpenChallenge, AcmeFailure> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if token.is_empty() || token.len() > LONGEST_TOKEN || !token.bytes().all(fits) {
        return Err(AcmeFailure::Answer("contains an invalid token"));
    }
    let text = format!("{token}.{thumbprint}");
    let opened = match way {
        AcmeChallenge::Http01 => challenges.open_text(token, &text),
        AcmeChallenge::TlsAlpn01 => {
            let pem = certificate(identifier, &text)?;
            challenges.open_certificate(&asked_as(identifier), &pem).map_err(AcmeFailure::Unusable)?
        }
    };
    opened.ok_or(AcmeFailure::Answer("contains a challenge that is already in progress"))
}

/// A self-signed certificate and key for TLS-ALPN-01 (RFC 8737 §3).
fn certificate(identifier: &AcmeIdentifier, text: &str) -> Result<String, AcmeFailure> {
    let failed =
        |error: rcgen::Error| AcmeFailure::Key(format!("cannot create the challenge certificate: {error}"));
    let key = crate::key::make(KeyKind::Ecdsa256)?;
    let mut parameters = rcgen::CertificateParams::new(vec![identifier.to_string()]).map_err(failed)?;
    let known = digest(&SHA256, text.as_bytes());
    parameters.custom_extensions.push(rcgen::CustomExtension::new_acme_identifier(known.as_ref()));
    let made = parameters.self_signed(&key).map_err(failed)?;
    Ok(format!("{}{}", made.pem(), key.serialize_pem()))
}

/// The SNI that the authority sends; for an address its reverse look-up name (RFC 8738 §6).
fn asked_as(identifier: &AcmeIdentifier) -> String {
    match identifier {
        AcmeIdentifier::Dns(name) => name.clone(),
        AcmeIdentifier::Ip(IpAddr::V4(address)) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        AcmeIdentifier::Ip(IpAddr::V6(address)) => {
            let mut name = String::with_capacity(72);
            for byte in address.octets().iter().rev() {
                _ = write!(name, "{:x}.{:x}.", byte & 15, byte >> 4);
            }
            name.push_str("ip6.arpa");
            name
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_asked_for_as_in_reverse_look_ups() {
        let asked = |text: &str| asked_as(&AcmeIdentifier::Ip(text.parse().expect("an address")));
        assert_eq!(asked("192.0.2.1"), "1.2.0.192.in-addr.arpa");
        assert_eq!(
            asked("2001:db8::1"),
            "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"
        );
    }

    #[test]
    fn a_challenge_is_open_until_it_is_dropped_and_a_broken_token_opens_none() {
        let challenges = Arc::new(Challenges::default());
        let name = AcmeIdentifier::Dns("a.test".into());
        for way in [AcmeChallenge::Http01, AcmeChallenge::TlsAlpn01] {
            let opened = open(&challenges, way, &name, "token", "thumb").expect("it can be opened");
            assert!(!challenges.is_empty());
            assert_eq!(challenges.text("token").is_some(), way == AcmeChallenge::Http01);
            drop(opened);
            assert!(challenges.is_empty());
        }
        for token in ["", "../a", "a\r\nb", &"a".repeat(LONGEST_TOKEN + 1)] {
            assert!(open(&challenges, AcmeChallenge::Http01, &name, token, "thumb").is_err());
        }
    }
}
