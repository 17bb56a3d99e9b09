//! Certificates that the library does not look at, where a known authority issued them itself: those of version 1, as
//! `openssl x509 -req` makes them without extensions, and authorities' own.
//!
//! What is looked at is what OpenSSL looks at in such a chain of two (RFC 5280 §6.1): the signature, the time, and what is revoked;
//! and the authorities above one that is known, for any chain. Next: `authorities`, which comes here.

use super::revocation::{self, RevocationList};
use super::unverified::Unverified;
use crate::certificate::Certificate;
use crate::certificate::extension::{
    ALTERNATIVE_NAMES, BASIC_CONSTRAINTS, EXTENDED_KEY_USAGE, KEY_USAGE, NETSCAPE_TYPE,
};
use crate::element::{self, SEQUENCE};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls_pki_types::{CertificateDer, SubjectPublicKeyInfoDer, TrustAnchor};

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
    /// What they have revoked, where that is asked for.
    pub(super) lists: Option<Vec<RevocationList>>,
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

    /// The certificate of the known authority of that number.
    fn certificate(&self, number: usize) -> Option<Certificate<'_>> {
        Certificate::read(self.certificates.get(*self.numbers.get(number)?)?)
    }

    /// Whether the lists are of a certificate, and it is in none of them.
    pub(super) fn is_not_revoked(
        &self,
        issuer: &Certificate<'_>,
        certificate: &Certificate<'_>,
        now: i64,
    ) -> Result<(), Unverified> {
        let judge = |lists: &Vec<_>| revocation::judge(lists, issuer, certificate, &self.algorithms, now);
        self.lists.as_ref().map_or(Ok(()), judge)
    }

    /// The same of one that the known authority of that number issued.
    pub(super) fn has_not_revoked(
        &self,
        number: usize,
        certificate: &Certificate<'_>,
        now: i64,
    ) -> Result<(), Unverified> {
        if self.lists.is_none() {
            return Ok(());
        }
        let issuer = self.certificate(number).ok_or(Unverified::Malformed)?;
        self.is_not_revoked(&issuer, certificate, now)
    }

    /// Whether the known authority's key signed the certificate.
    fn has_signed(&self, anchor: &TrustAnchor<'_>, certificate: &Certificate<'_>) -> bool {
        let key = element::write(SEQUENCE, &anchor.subject_public_key_info);
        certificate.signed.is_by(&SubjectPublicKeyInfoDer::from(key), &self.algorithms)
    }

    /// The known authority that signed a certificate and is good at that time; none where nobody did.
    fn signer(&self, parsed: &Certificate<'_>, now: i64) -> Option<Result<usize, Unverified>> {
        let name = parsed.issuer.element.content;
        let signs =
            |anchor: &TrustAnchor<'_>| anchor.subject.as_ref() == name && self.has_signed(anchor, parsed);
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
            let Some(parsed) = self.certificate(number) else { break };
            if parsed.is_self_issued() {
                // OpenSSL asks the lists of those that issued themselves too.
                own = self.is_not_revoked(&parsed, &parsed, now).and(own);
                break;
            }
            let Some(signer) = self.signer(&parsed, now) else { break };
            number = signer?;
            count += 1;
            own = self.has_not_revoked(number, &parsed, now).and(own);
        }
        own.map(|()| count)
    }
}

/// Whether a known authority issued the certificate, and it is good at that time in seconds since the epoch: how many stand
/// between.
pub(super) fn judge(known: &Known, leaf: &CertificateDer<'_>, now: u64) -> Result<usize, Unverified> {
    let parsed = Certificate::read(leaf).filter(|parsed| parsed.whole == &leaf[..]);
    let parsed = parsed.ok_or(Unverified::Malformed)?;
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let number = issuer(known, leaf, &parsed, now)?;
    let (start, end) = parsed.validity();
    if now < start {
        return Err(Unverified::NotYetValid);
    }
    if now > end {
        return Err(Unverified::Expired);
    }
    if !is_understood(&parsed) {
        return Err(Unverified::Purpose);
    }
    let own = match number {
        Some(number) => known.has_not_revoked(number, &parsed, now),
        None => known.is_not_revoked(&parsed, &parsed, now),
    };
    // As OpenSSL reports it, what is wrong further up counts.
    let between = number.map_or(Ok(0), |number| known.above(number, now))?;
    own.map(|()| between)
}

/// The number of the known authority that signed the certificate; none of one that is known itself. That needs no signature: it was
/// written in the file byte for byte.
fn issuer(
    known: &Known,
    leaf: &CertificateDer<'_>,
    parsed: &Certificate<'_>,
    now: i64,
) -> Result<Option<usize>, Unverified> {
    if parsed.is_self_issued() && known.certificates.iter().any(|one| one == leaf) {
        return Ok(None);
    }
    let name = parsed.issuer.element.content;
    let named = |(_, anchor): &(usize, &TrustAnchor<'_>)| anchor.subject.as_ref() == name;
    let mut why = Unverified::UnknownIssuer;
    for (number, anchor) in known.anchors.iter().enumerate().filter(named) {
        // What it may name is checked by the library alone.
        if anchor.name_constraints.is_some() {
            continue;
        }
        why = match known.has_signed(anchor, parsed) {
            true => match known.is_in_force(number, now) {
                Ok(()) => return Ok(Some(number)),
                Err(not) => not,
            },
            false => Unverified::Signature,
        };
    }
    Err(why)
}

/// What a certificate says and calls critical must be understood. What it may be used for is read by `usage`.
fn is_understood(parsed: &Certificate<'_>) -> bool {
    parsed.extensions.iter().filter(|extension| extension.is_critical).all(|extension| {
        extension.is_any(&[EXTENDED_KEY_USAGE, KEY_USAGE, NETSCAPE_TYPE])
            || extension.is_any(&[BASIC_CONSTRAINTS, ALTERNATIVE_NAMES]) && extension.parts().is_some()
    })
}
