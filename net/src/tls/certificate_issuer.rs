//! The authority that issued a certificate, by whose key is checked what is said of it (RFC 6960 §4.2.2.2).
//!
//! Nothing is asked of anybody here, and no ASN.1 of OCSP is read: that is `millstream-acme`'s. Before: `direct`, which judges in the same way.

use crate::certificate::Certificate;
use rustls::crypto::{WebPkiSupportedAlgorithms, aws_lc_rs};
use rustls_pki_types::{CertificateDer, UnixTime};
use std::fmt;
use std::time::Duration;
use webpki::{EndEntityCert, KeyUsage, RawPublicKeyEntity};

/// id-kp-OCSPSigning (RFC 6960 §4.2.2.2), as it stands in a certificate.
const OCSP_SIGNING: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x09];

/// An authority, by its certificate.
#[derive(Clone)]
pub struct CertificateIssuer {
    certificate: CertificateDer<'static>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl fmt::Debug for CertificateIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateIssuer").finish_non_exhaustive()
    }
}

impl CertificateIssuer {
    /// The one among these that signed the certificate.
    pub fn of<'a>(
        leaf: &CertificateDer<'_>,
        among: impl IntoIterator<Item = &'a CertificateDer<'static>>,
    ) -> Option<CertificateIssuer> {
        let parsed = Certificate::read(leaf)?;
        let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
        let is_it = |candidate: &&CertificateDer<'static>| {
            Certificate::read(candidate).is_some_and(|one| one.subject.element == parsed.issuer.element)
                && is_signed(&algorithms, candidate, parsed.signed.message, parsed.signed.signature)
        };
        let certificate = among.into_iter().find(is_it)?.clone();
        Some(CertificateIssuer { certificate, algorithms })
    }

    /// Its certificate.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Whether it signed the message itself.
    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        is_signed(&self.algorithms, &self.certificate, message, signature)
    }

    /// Whether one signed the message whom it lets speak of what it issued, and who is good at that time in seconds since 1970.
    pub fn has_let_sign(
        &self,
        delegate: &CertificateDer<'_>,
        message: &[u8],
        signature: &[u8],
        now: u64,
    ) -> bool {
        let Ok(anchor) = webpki::anchor_from_trusted_cert(&self.certificate) else { return false };
        let Ok(parsed) = EndEntityCert::try_from(delegate) else { return false };
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
        let usage = KeyUsage::required(OCSP_SIGNING);
        // Nobody else in between: it must be the authority itself that lets it.
        let anchors = [anchor];
        let path = parsed.verify_for_usage(self.algorithms.all, &anchors, &[], now, usage, None, None);
        path.is_ok() && is_signed(&self.algorithms, delegate, message, signature)
    }

    /// Its name and its key as they go into the question (RFC 6960 §4.1.1): what is hashed.
    pub fn hashed(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let parsed = Certificate::read(&self.certificate)?;
        Some((parsed.subject.element.whole.to_vec(), parsed.public_key.to_vec()))
    }
}

fn is_signed(
    algorithms: &WebPkiSupportedAlgorithms,
    by: &CertificateDer<'_>,
    message: &[u8],
    signature: &[u8],
) -> bool {
    let Some(key) = Certificate::read(by).map(|parsed| parsed.key()) else { return false };
    let Ok(key) = RawPublicKeyEntity::try_from(&key) else { return false };
    algorithms.all.iter().any(|algorithm| key.verify_signature(*algorithm, message, signature).is_ok())
}
