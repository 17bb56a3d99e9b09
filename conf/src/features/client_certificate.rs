//! `ssl_verify_client` and its family: whether clients show certificates, and whose are taken.
//!
//! It stands beside `tls`, for a server without a certificate of its own asks for one of its clients all the same: by the
//! handshake of the listener's default server. Files are looked at, never understood. Next: `millstream-net`'s `tls/clients`, which
//! loads them and judges.

use std::path::PathBuf;

use super::context::HTTP_SERVER;
use super::level::level;
use super::tls::pem_file;
use super::{Apply, Feature, Place, Row, once};
use crate::reading::Reading;
use crate::source::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VerifyClient {
    #[default]
    Off,
    On,
    /// If present, it must be from a known authority.
    Optional,
    /// If present, it may be from any authority.
    OptionalNoCa,
}

#[derive(Debug, Clone, Default)]
pub struct ClientCertificates {
    pub verify: VerifyClient,
    /// `ssl_client_certificate`: authorities whose names are sent to clients.
    pub authorities: Option<PathBuf>,
    /// `ssl_trusted_certificate`: authorities whose names are not sent.
    pub trusted: Option<PathBuf>,
    pub revoked: Option<PathBuf>,
    /// `ssl_verify_depth`: authorities between a certificate and a known one.
    pub depth: usize,
    /// Where the first of these stands, for errors found in files.
    pub span: Span,
}

level! {
    pub struct ClientCertificateLevel {
        verify: (VerifyClient, Span),
        authorities: (PathBuf, Span),
        trusted: PathBuf,
        revoked: PathBuf,
        depth: usize,
    }
}

impl ClientCertificateLevel {
    pub(super) fn trusted(&self) -> Option<&PathBuf> {
        self.trusted.as_ref()
    }
}

impl Feature for ClientCertificateLevel {
    type Settings = ClientCertificates;

    fn inherit(&mut self, above: &Self) {
        self.inherit_open(above);
    }

    fn resolve(&self, place: &Place<'_>, reading: &mut Reading<'_>) -> ClientCertificates {
        let (verify, span) = self.verify.unwrap_or_default();
        let knows_nobody = self.authorities.is_none() && self.trusted.is_none();
        let must_know = matches!(verify, VerifyClient::On | VerifyClient::Optional);
        // As in nginx: without a certificate of its own a server has no handshake of its own.
        if must_know && knows_nobody && place.level.tls.certificates.is_some() {
            reading
                .error(span, "no ssl_client_certificate or ssl_trusted_certificate for ssl_verify_client")
                .help("write ssl_client_certificate with the authorities of the clients, a PEM file");
        }
        ClientCertificates {
            verify,
            authorities: self.authorities.as_ref().map(|(file, _)| file.clone()),
            trusted: self.trusted.clone(),
            revoked: self.revoked.clone(),
            depth: self.depth.unwrap_or(1),
            span,
        }
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("ssl_verify_client", HTTP_SERVER, (1, 1), "on | off | optional | optional_no_ca", "off",
        "Requests a certificate from clients. With `on`, a request without a certificate gets 496, and one with an invalid certificate gets 495; \
        unless there is an `error_page`, the client receives 400. With `optional`, only an invalid certificate is an error. With `optional_no_ca`, \
        certificates of unknown authorities are accepted too, and the result is in `$ssl_client_verify`. A request for a server that verifies \
        clients gets 421 if its connection was negotiated for another configured server name.",
        Apply::Level(|l, d, r| {
            let word = &d.args[0];
            let words = [
                ("off", VerifyClient::Off), ("on", VerifyClient::On), ("optional", VerifyClient::Optional),
                ("optional_no_ca", VerifyClient::OptionalNoCa),
            ];
            l.client_certificate.verify = r.choice(word, &words).map(|verify| (verify, word.span));
        })),
    once("ssl_client_certificate", HTTP_SERVER, (1, 1), "file", "",
        "Sets a PEM file with the CA certificates that verify client certificates. Their names are sent to clients.",
        Apply::Level(|l, d, r| l.client_certificate.authorities = Some(pem_file(&d.args[0], "certificate", r)))),
    once("ssl_trusted_certificate", HTTP_SERVER, (1, 1), "file", "",
        "Sets a PEM file with further CA certificates that verify client certificates. Their names are not sent to clients.",
        Apply::Level(|l, d, r| l.client_certificate.trusted = Some(pem_file(&d.args[0], "certificate", r).0))),
    once("ssl_crl", HTTP_SERVER, (1, 1), "file", "",
        "Sets a PEM file with certificate revocation lists that are applied to client certificates. Each authority in a chain below the trusted one \
        needs a list.",
        Apply::Level(|l, d, r| l.client_certificate.revoked = Some(pem_file(&d.args[0], "revocation list", r).0))),
    once("ssl_verify_depth", HTTP_SERVER, (1, 1), "number", "1",
        "The maximum number of intermediate certificates between a client's certificate and a trusted one.",
        Apply::Level(|l, d, r| l.client_certificate.depth = r.number(&d.args[0], 0, 100).map(|depth| depth as usize))),
];
