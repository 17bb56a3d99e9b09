//! Certificates of clients: which are asked for, and what is found of one that came.
//!
//! A handshake only proves that the client has the key of the certificate that it shows (RFC 8446 §4.4.3). Whether the certificate is good is
//! judged by whoever serves a request, by the authorities of that request's server: so a session that is resumed, or a
//! connection that asks for another server, brings no judgement along. Before: `authorities`, which judge.

use super::TlsError;
use super::authorities::Authorities;
use super::schemes;
use super::unverified::Unverified;
use super::usage::Purpose;
use crate::certificate::Certificate;
use millstream_conf::model::{ClientCertificates, VerifyClient};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};

#[cfg(test)]
mod tests;

/// What a server knows of the authorities of its clients.
#[derive(Debug)]
pub struct Clients {
    authorities: Authorities,
    /// The names that clients are told.
    told: Vec<DistinguishedName>,
}

impl Clients {
    /// Reads the files that the settings name; nothing where no certificate is asked for. For start and reload only.
    ///
    /// # Errors
    /// What is wrong with a file.
    pub(super) fn read(
        settings: &ClientCertificates,
        algorithms: WebPkiSupportedAlgorithms,
    ) -> Result<Option<Self>, TlsError> {
        if settings.verify == VerifyClient::Off {
            return Ok(None);
        }
        let mut clients =
            Clients { authorities: Authorities::new(settings.depth, algorithms), told: Vec::new() };
        if let Some(file) = &settings.authorities {
            let found = clients.authorities.know(file)?;
            clients.told = names(found);
        }
        if let Some(file) = &settings.trusted {
            clients.authorities.know(file)?;
        }
        if let Some(file) = &settings.revoked {
            clients.authorities.revoke(file)?;
        }
        Ok(Some(clients))
    }

    /// The names that clients are told, as they stand in certificates.
    pub(super) fn told(&self) -> impl Iterator<Item = &[u8]> {
        self.told.iter().map(|name| name.as_ref())
    }

    /// Whether a chain, the client's own certificate first, leads to a known authority now.
    ///
    /// # Errors
    /// Why it does not.
    pub fn judge(&self, chain: &[CertificateDer<'_>]) -> Result<(), Unverified> {
        self.authorities.judge(chain, Purpose::Client)
    }
}

/// The names of authorities, each once.
fn names(authorities: &[CertificateDer<'_>]) -> Vec<DistinguishedName> {
    let mut names: Vec<DistinguishedName> = Vec::new();
    for authority in authorities {
        let Some(parsed) = Certificate::read(authority) else { continue };
        // The outer element is put around it again.
        let name = DistinguishedName::in_sequence(parsed.subject.element.content);
        if !names.iter().any(|known| known.as_ref() == name.as_ref()) {
            names.push(name);
        }
    }
    names
}

impl ClientCertVerifier for Clients {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.told
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.check_tls12(message, certificate, signed).inspect(|_| schemes::note(signed.scheme))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.check_tls13(message, certificate, signed).inspect(|_| schemes::note(signed.scheme))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.schemes()
    }
}
