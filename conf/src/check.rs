//! Checks that need the whole http block.
//!
//! Nothing is changed here, only found. Before: `advise`, whose rules come last; next: `configuration`, which calls this.

use crate::advise;
use crate::listeners::shown;
use crate::model::{AcmeChallenge, Http, Listener};
use crate::reading::Reading;

pub fn whole(http: &Http, reading: &mut Reading<'_>) {
    certificates(http, reading);
    challenges(http, reading);
    if !reading.diagnostics.has_errors() {
        advise::whole(http, reading);
    }
}

/// An address with `ssl` needs a certificate in its default server, else (as in nginx) in every server.
fn certificates(http: &Http, reading: &mut Reading<'_>) {
    let mut missing = Vec::new();
    for listener in http.listeners.iter().filter(|listener| listener.ssl) {
        // A server whose certificate could not be used has its own error already, and its `tls`.
        if http.server(listener.default_server).settings.tls.is_none() {
            missing.push((http.server(listener.default_server).span, shown(&listener.address)));
        }
    }
    for (span, address) in missing {
        reading
            .error(
                span,
                format!("no \"ssl_certificate\" is defined for the \"listen {address} ssl\" of this server"),
            )
            .help("write ssl_certificate and ssl_certificate_key with the files of its certificate and key");
    }
}

/// The authority validates a name over HTTP or TLS, so a listener for that must exist.
fn challenges(http: &Http, reading: &mut Reading<'_>) {
    let is_public =
        |listener: &&Listener| !listener.owner_only && Some(&listener.address) != http.dashboard.as_ref();
    let listens = |ssl: bool| http.listeners.iter().filter(is_public).any(|listener| listener.ssl == ssl);
    let declared = &reading.declared;
    let asked = declared.acme_certificates.iter().map(|certificate| certificate.issuer.0 as usize);
    let mut deaf: Vec<_> = asked
        .map(|index| &declared.acme_issuers[index])
        .filter(|issuer| !listens(issuer.challenge == AcmeChallenge::TlsAlpn01))
        .map(|issuer| (issuer.span, issuer.challenge))
        .collect();
    deaf.dedup();
    for (span, challenge) in deaf {
        let (how, help) = match challenge {
            AcmeChallenge::Http01 => {
                ("without", "write listen 80; in one of the servers, or challenge tls-alpn-01;")
            }
            AcmeChallenge::TlsAlpn01 => {
                ("with", "write listen 443 ssl; in one of the servers, or challenge http-01;")
            }
        };
        let what = format!(
            "no server listens {how} TLS, which the challenge {} of this issuer requires",
            challenge.name()
        );
        reading.diagnostics.warning(span, what).help(help).once();
    }
}
