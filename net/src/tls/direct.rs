//! Certificates that the library does not look at, where a known authority issued them itself: those of version 1, as
//! `openssl x509 -req` makes them without extensions, and authorities' own.
//!
//! What is looked at is what OpenSSL looks at in such a chain of two (RFC 5280 §6.1): the signature, the time, and what is revoked;
//! and the authorities above one that is known, for any chain. Next: `authorities`, which comes here.

use super::der;
use super::unverified::Unverified;
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
    /// Which of the certificates each of these is.
    pub(super) numbers: Vec<usize>,
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

    /// The known authority that signed a certificate and is good at that time; none where nobody did.
    fn signer(&self, parsed: &X509Certificate<'_>, now: i64) -> Option<Result<usize, Unverified>> {
        let name = der::content(parsed.issuer().as_raw()).unwrap_or_default();
        let (message, signature) = (parsed.tbs_certificate.as_ref(), &*parsed.signature_value.data);
        let signs = |anchor: &TrustAnchor<'_>| {
            anchor.subject.as_ref() == name && is_signed(self, &key(anchor), message, signature)
        };
        let mut why = None;
        for (number, _) in self.anchors.iter().enumerate().filter(|(_, anchor)| signs(anchor)) {
            match self.is_in_force(number, now) {
                Ok(()) => return Some(Ok(number)),
                Err(not) => why = Some(Err(not)),
            }
        }
        why
    }

    /// How many stand above the known authority of that number, up to one that issued itself, or whose issuer is not known. They are
    /// looked at as if they had been shown: that an authority is known says nothing about whether it is revoked.
    pub(super) fn above(&self, number: usize, now: i64) -> Result<usize, Unverified> {
        let (mut number, mut count, mut own) = (number, 0, Ok(()));
        // Authorities may have signed each other.
        while count < self.anchors.len() {
            let certificate = self.numbers.get(number).and_then(|number| self.certificates.get(*number));
            let Some(Ok((_, parsed))) = certificate.map(|one| X509Certificate::from_der(one)) else { break };
            if parsed.subject().as_raw() == parsed.issuer().as_raw() {
                break;
            }
            let Some(signer) = self.signer(&parsed, now) else { break };
            number = signer?;
            count += 1;
            if !self.lists.is_empty() {
                own = is_not_revoked(self, &key(&self.anchors[number]), &parsed, now).and(own);
            }
        }
        own.map(|()| count)
    }
}

/// Whether a known authority issued the certificate, and it is good at that time in seconds since the epoch: how many stand
/// between.
pub(super) fn judge(known: &Known, leaf: &CertificateDer<'_>, now: u64) -> Result<usize, Unverified> {
    let Ok((rest, parsed)) = X509Certificate::from_der(leaf) else { return Err(Unverified::Malformed) };
    if !rest.is_empty() {
        return Err(Unverified::Malformed);
    }
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let (issuer, number) = issuer(known, leaf, &parsed, now)?;
    if now < parsed.validity().not_before.timestamp() {
        return Err(Unverified::NotYetValid);
    }
    if now > parsed.validity().not_after.timestamp() {
        return Err(Unverified::Expired);
    }
    if !is_understood(&parsed) {
        return Err(Unverified::Purpose);
    }
    let own = match known.lists.is_empty() {
        true => Ok(()),
        false => is_not_revoked(known, &issuer, &parsed, now),
    };
    // As OpenSSL reports it, what is wrong further up counts.
    let between = number.map_or(Ok(0), |number| known.above(number, now))?;
    own.map(|()| between)
}

/// The key of the known authority that signed the certificate, and its number. One that is known itself needs no signature: it was
/// written in the file byte for byte.
fn issuer(
    known: &Known,
    leaf: &CertificateDer<'_>,
    parsed: &X509Certificate<'_>,
    now: i64,
) -> Result<(SubjectPublicKeyInfoDer<'static>, Option<usize>), Unverified> {
    let is_self_issued = parsed.subject().as_raw() == parsed.issuer().as_raw();
    if is_self_issued && known.certificates.iter().any(|one| one == leaf) {
        return Ok((SubjectPublicKeyInfoDer::from(parsed.public_key().raw.to_vec()), None));
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
        let key = key(anchor);
        why = match is_signed(known, &key, message, signature) {
            true => match known.is_in_force(number, now) {
                Ok(()) => return Ok((key, Some(number))),
                Err(not) => not,
            },
            false => Unverified::Signature,
        };
    }
    Err(why)
}

/// The key of a known authority.
pub(super) fn key(anchor: &TrustAnchor<'_>) -> SubjectPublicKeyInfoDer<'static> {
    SubjectPublicKeyInfoDer::from(der::sequence(&anchor.subject_public_key_info))
}

/// Whether it is a list of version 1, as `openssl ca -gencrl` makes it without `crl_extensions`.
pub(super) fn is_old(list: &CertificateRevocationListDer<'_>) -> bool {
    CertificateRevocationList::from_der(list)
        .is_ok_and(|(rest, parsed)| rest.is_empty() && parsed.version().is_none())
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

/// Whether a list of its issuer is at hand, and the certificate is not in it. A list that calls anything critical, such as the part of
/// an authority's certificates that it is of, is the library's to look at.
pub(super) fn is_not_revoked(
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
        let is_of_all = !list.extensions().iter().any(|extension| extension.critical);
        if !is_of_issuer || !is_of_all || !is_signed(known, issuer, message, signature) {
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
