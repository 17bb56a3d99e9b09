//! Certificates that the library does not look at, where a known authority issued them itself: those of version 1, as
//! `openssl x509 -req` makes them without extensions, and authorities' own.
//!
//! What is looked at is what OpenSSL looks at in such a chain of two (RFC 5280 §6.1): the signature, the time, the use, and what is
//! revoked. Nothing longer is followed here. Next: `authorities`, which comes here.

use super::der;
use super::unverified::Unverified;
use super::usage::{self, Purpose};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, SubjectPublicKeyInfoDer, TrustAnchor};
use webpki::RawPublicKeyEntity;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;

/// What is known of authorities.
#[derive(Debug)]
pub(super) struct Known {
    /// Their certificates, byte for byte.
    pub(super) certificates: Vec<CertificateDer<'static>>,
    /// Those of them that may sign others.
    pub(super) anchors: Vec<TrustAnchor<'static>>,
    /// From when to when each of these is good, in seconds since the epoch.
    pub(super) terms: Vec<(i64, i64)>,
    /// What they have revoked.
    pub(super) lists: Vec<CertificateRevocationListDer<'static>>,
    /// By what signatures are checked.
    pub(super) algorithms: WebPkiSupportedAlgorithms,
}

impl Known {
    /// Whether the authority of that number is good at that time.
    pub(super) fn is_in_force(&self, number: usize, now: i64) -> Result<(), Unverified> {
        match self.terms.get(number) {
            Some((first, _)) if now < *first => Err(Unverified::NotYetValid),
            Some((_, last)) if now > *last => Err(Unverified::Expired),
            _ => Ok(()),
        }
    }
}

/// Whether a known authority issued the certificate, and it is good at that time in seconds since the epoch.
pub(super) fn judge(
    known: &Known,
    leaf: &CertificateDer<'_>,
    purpose: Purpose,
    now: u64,
) -> Result<(), Unverified> {
    let Ok((rest, parsed)) = X509Certificate::from_der(leaf) else { return Err(Unverified::Malformed) };
    if !rest.is_empty() {
        return Err(Unverified::Malformed);
    }
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let issuer = issuer(known, leaf, &parsed, now)?;
    if now < parsed.validity().not_before.timestamp() {
        return Err(Unverified::NotYetValid);
    }
    if now > parsed.validity().not_after.timestamp() {
        return Err(Unverified::Expired);
    }
    if !is_understood(&parsed) {
        return Err(Unverified::Purpose);
    }
    usage::is_for(purpose, &parsed)?;
    match known.lists.is_empty() {
        true => Ok(()),
        false => is_not_revoked(known, &issuer, &parsed, now),
    }
}

/// The key of the known authority that signed the certificate. One that is known itself needs no signature: it was written in
/// the file byte for byte.
fn issuer(
    known: &Known,
    leaf: &CertificateDer<'_>,
    parsed: &X509Certificate<'_>,
    now: i64,
) -> Result<SubjectPublicKeyInfoDer<'static>, Unverified> {
    let is_self_issued = parsed.subject().as_raw() == parsed.issuer().as_raw();
    if is_self_issued && known.certificates.iter().any(|one| one == leaf) {
        return Ok(SubjectPublicKeyInfoDer::from(parsed.public_key().raw.to_vec()));
    }
    let name = der::content(parsed.issuer().as_raw()).unwrap_or_default();
    let named = |(_, anchor): &(usize, &TrustAnchor<'_>)| anchor.subject.as_ref() == name;
    let (message, signature) = (parsed.tbs_certificate.as_ref(), &*parsed.signature_value.data);
    let mut why = Unverified::UnknownIssuer;
    for (number, anchor) in known.anchors.iter().enumerate().filter(named) {
        // What it may name is checked by the library alone.
        if anchor.name_constraints.is_some() {
            continue;
        }
        let key = SubjectPublicKeyInfoDer::from(der::sequence(&anchor.subject_public_key_info));
        why = match is_signed(known, &key, message, signature) {
            true => match known.is_in_force(number, now) {
                Ok(()) => return Ok(key),
                Err(not) => not,
            },
            false => Unverified::Signature,
        };
    }
    Err(why)
}

fn is_signed(known: &Known, key: &SubjectPublicKeyInfoDer<'_>, message: &[u8], signature: &[u8]) -> bool {
    let Ok(key) = RawPublicKeyEntity::try_from(key) else { return false };
    known.algorithms.all.iter().any(|algorithm| key.verify_signature(*algorithm, message, signature).is_ok())
}

/// What a certificate says and calls critical must be understood.
fn is_understood(parsed: &X509Certificate<'_>) -> bool {
    parsed.extensions().iter().filter(|extension| extension.critical).all(|extension| {
        matches!(
            extension.parsed_extension(),
            ParsedExtension::ExtendedKeyUsage(_)
                | ParsedExtension::KeyUsage(_)
                | ParsedExtension::BasicConstraints(_)
                | ParsedExtension::SubjectAlternativeName(_)
                | ParsedExtension::NSCertType(_)
        )
    })
}

fn is_not_revoked(
    known: &Known,
    issuer: &SubjectPublicKeyInfoDer<'_>,
    parsed: &X509Certificate<'_>,
    now: i64,
) -> Result<(), Unverified> {
    let mut why = Unverified::NoRevocationList;
    for list in &known.lists {
        let Ok((_, list)) = CertificateRevocationList::from_der(list) else { continue };
        let (message, signature) = (list.tbs_cert_list.as_ref(), &*list.signature_value.data);
        let is_of_issuer = list.issuer().as_raw() == parsed.issuer().as_raw();
        if !is_of_issuer || !is_signed(known, issuer, message, signature) {
            continue;
        }
        if list.iter_revoked_certificates().any(|revoked| revoked.raw_serial() == parsed.raw_serial()) {
            return Err(Unverified::Revoked);
        }
        match list.next_update() {
            Some(next) if now <= next.timestamp() => return Ok(()),
            _ => why = Unverified::RevocationListExpired,
        }
    }
    Err(why)
}
