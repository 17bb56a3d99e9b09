//! A certificate that was issued: its chain and key as one PEM text, and what it says of itself.
//!
//! Before: `order`, which brings it; next: `state`, which keeps it.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use millstream_conf::model::{AcmeCertificate, AcmeIdentifier, AcmeIssuer};
use millstream_net::certificate::Certificate;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::fmt;
use std::fmt::Write;

pub struct Issuance {
    /// PEM, the chain before the key.
    pub pem: String,
    /// First and last second of validity, since 1970.
    pub validity: (i64, i64),
    /// The certificate's name in renewal information (RFC 9773 §4.1).
    pub(crate) renewal_id: Option<String>,
}

impl fmt::Debug for Issuance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issuance").field("validity", &self.validity).finish_non_exhaustive()
    }
}

impl Issuance {
    /// `None` if the text holds no certificate.
    pub fn read(pem: String) -> Option<Issuance> {
        let leaf = CertificateDer::pem_slice_iter(pem.as_bytes()).next()?.ok()?;
        let certificate = Certificate::read(&leaf)?;
        let renewal_id = certificate.authority_key().map(|authority| {
            format!(
                "{}.{}",
                URL_SAFE_NO_PAD.encode(authority),
                URL_SAFE_NO_PAD.encode(certificate.raw_serial())
            )
        });
        Some(Issuance { validity: certificate.validity(), renewal_id, pem })
    }
}

pub(crate) fn leads_up_to(chain: &str, name: &str) -> bool {
    let topmost = CertificateDer::pem_slice_iter(chain.as_bytes()).filter_map(Result::ok).last();
    let issuer = topmost.as_deref().and_then(Certificate::read);
    issuer.is_some_and(|certificate| certificate.issuer_common_names().any(|common| common == name))
}

pub fn name_of(issuer: &AcmeIssuer, certificate: &AcmeCertificate) -> String {
    let mut all = format!("{}\n{}\n", issuer.uri.text, certificate.key.text());
    for identifier in &certificate.identifiers {
        _ = writeln!(all, "{identifier}");
    }
    let hash = digest(&SHA256, all.as_bytes());
    let mut name = format!("{}-", first(certificate));
    for byte in &hash.as_ref()[..8] {
        _ = write!(name, "{byte:02x}");
    }
    name
}

pub(crate) fn first(certificate: &AcmeCertificate) -> String {
    let all = &certificate.identifiers;
    let name = all.iter().find(|one| matches!(one, AcmeIdentifier::Dns(_))).or(all.first());
    name.map(ToString::to_string).unwrap_or_default()
}

pub(crate) fn names(certificate: &AcmeCertificate) -> String {
    match certificate.identifiers.len() {
        0 | 1 => first(certificate),
        count => format!("{} and {} more", first(certificate), count - 1),
    }
}
