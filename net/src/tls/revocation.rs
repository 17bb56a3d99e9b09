//! Lists of what authorities have revoked, and what they say of a certificate together (RFC 5280 §5, §6.3.3).
//!
//! A file may have several lists of one authority: an old one and a new one, or one for each part of its certificates. The library
//! stops at the first that fits. As in OpenSSL, the newest list counts that is in force and is of all that the certificate is part
//! of, wherever it stands in the file. Next: `direct` and `authorities`, which ask for each certificate of a chain.

use super::scope::{self, Scope};
use super::signed::{Signed, is_signed};
use super::unverified::Unverified;
use super::usage;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls_pki_types::{CertificateRevocationListDer, SubjectPublicKeyInfoDer};
use std::collections::HashSet;
use x509_parser::certificate::X509Certificate;
use x509_parser::error::X509Error;
use x509_parser::extensions::{ParsedExtension, X509Extension};
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::{CertificateRevocationList, RevokedCertificate};
use x509_parser::x509::{ReasonCode, X509Version};

/// What one list says.
#[derive(Debug)]
pub(super) struct RevocationList {
    issuer: Vec<u8>,
    /// The authority's key, where it says which.
    key: Option<Vec<u8>>,
    /// Seconds since the epoch.
    this_update: i64,
    /// Without one it lasts.
    next_update: Option<i64>,
    /// Serial numbers.
    revoked: HashSet<Vec<u8>>,
    scope: Scope,
    /// Only what has changed since another list.
    is_delta: bool,
    message: Vec<u8>,
    algorithm: Vec<u8>,
    signature: Vec<u8>,
}

impl RevocationList {
    /// Reads a list of version 1 or 2; none where it must not be used, because it calls critical what is not known.
    ///
    /// # Errors
    /// It is malformed.
    pub(super) fn read(list: &CertificateRevocationListDer<'_>) -> Result<Option<Self>, X509Error> {
        let (rest, parsed) = CertificateRevocationList::from_der(list).map_err(|error| match error {
            x509_parser::nom::Err::Error(error) | x509_parser::nom::Err::Failure(error) => error,
            x509_parser::nom::Err::Incomplete(_) => X509Error::Generic,
        })?;
        if !rest.is_empty() {
            return Err(X509Error::Generic);
        }
        if !matches!(parsed.version(), None | Some(X509Version::V2)) {
            return Err(X509Error::InvalidVersion);
        }
        let scope = match find(parsed.extensions(), ISSUING_DISTRIBUTION_POINT) {
            Some(extension) => Scope::read(extension.value),
            None => Some(Scope::default()),
        };
        let are_known = parsed.extensions().iter().all(is_known)
            && parsed
                .iter_revoked_certificates()
                .flat_map(RevokedCertificate::extensions)
                .all(is_known_of_entry);
        let Some(scope) = scope.filter(|_| are_known) else { return Ok(None) };
        let is_removed = |entry: &&RevokedCertificate<'_>| {
            entry.reason_code().is_some_and(|(_, reason)| reason == ReasonCode::RemoveFromCRL)
        };
        let revoked = parsed.iter_revoked_certificates().filter(|entry| !is_removed(entry));
        Ok(Some(RevocationList {
            issuer: parsed.issuer().as_raw().to_vec(),
            key: parsed.extensions().iter().find_map(|extension| match extension.parsed_extension() {
                ParsedExtension::AuthorityKeyIdentifier(key) => {
                    key.key_identifier.as_ref().map(|key| key.0.to_vec())
                }
                _ => None,
            }),
            this_update: parsed.last_update().timestamp(),
            next_update: parsed.next_update().map(|time| time.timestamp()),
            revoked: revoked.map(|entry| entry.raw_serial().to_vec()).collect(),
            scope,
            is_delta: find(parsed.extensions(), DELTA).is_some(),
            message: parsed.tbs_cert_list.as_ref().to_vec(),
            algorithm: parsed.signature_algorithm.algorithm.as_bytes().to_vec(),
            signature: parsed.signature_value.data.to_vec(),
        }))
    }

    /// Whether it is of the issuer with this key, and the certificate with these distribution points is part of what it is of.
    fn is_of(&self, key: Option<&[u8]>, certificate: &X509Certificate<'_>, points: &[&[u8]]) -> bool {
        // Two authorities may have one name.
        let is_of_key = self.key.as_deref().zip(key).is_none_or(|(of, key)| of == key);
        is_of_key
            && self.issuer == certificate.issuer().as_raw()
            && self.scope.has(certificate.is_ca(), points)
    }

    /// Whether it says all that is to be said of the certificates that it is of.
    fn is_whole(&self) -> bool {
        !self.is_delta && !self.scope.is_of_some_reasons
    }

    fn is_in_force(&self, now: i64) -> bool {
        self.this_update <= now && self.next_update.is_none_or(|next| now < next)
    }

    fn signed(&self) -> Signed<'_> {
        Signed { message: &self.message, algorithm: &self.algorithm, signature: &self.signature }
    }
}

/// What the lists say of a certificate at a time in seconds since the epoch: its issuer must have one that is in force, and the certificate must
/// not be in it.
pub(super) fn judge(
    lists: &[RevocationList],
    issuer: &X509Certificate<'_>,
    certificate: &X509Certificate<'_>,
    algorithms: &WebPkiSupportedAlgorithms,
    now: i64,
) -> Result<(), Unverified> {
    if !usage::signs_lists(issuer) {
        return Err(Unverified::NoRevocationList);
    }
    let key = issuer.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::SubjectKeyIdentifier(key) => Some(key.0),
        _ => None,
    });
    let points = find(certificate.extensions(), DISTRIBUTION_POINTS);
    let points = scope::points(points.map(|points| points.value));
    let of_it: Vec<_> = lists.iter().filter(|list| list.is_of(key, certificate, &points)).collect();
    let in_force = |list: &&&RevocationList| list.is_in_force(now);
    let newest =
        of_it.iter().filter(in_force).filter(|list| list.is_whole()).map(|list| list.this_update).max();
    let Some(newest) = newest else {
        let last = of_it.iter().filter(|list| list.is_whole()).max_by_key(|list| list.this_update);
        return Err(match last {
            None => Unverified::NoRevocationList,
            Some(list) if list.revoked.contains(certificate.raw_serial()) => Unverified::Revoked,
            Some(list) if now < list.this_update => Unverified::RevocationListNotYetValid,
            Some(_) => Unverified::RevocationListExpired,
        });
    };
    // Older ones are replaced by it. Those of the same second say the same of when they are from, so that each counts; those that are
    // not whole add to it.
    let mut found = Ok(());
    let key = SubjectPublicKeyInfoDer::from(issuer.public_key().raw);
    for list in of_it.iter().filter(in_force).filter(|list| list.this_update >= newest) {
        if !is_signed(algorithms, &key, &list.signed()) {
            found = Err(Unverified::RevocationListSignature);
        } else if list.revoked.contains(certificate.raw_serial()) {
            return Err(Unverified::Revoked);
        }
    }
    found
}

/// The last number of the extensions of RFC 5280, 2.5.29.N.
const REASON: u8 = 21;
const INVALIDITY_DATE: u8 = 24;
const DELTA: u8 = 27;
const ISSUING_DISTRIBUTION_POINT: u8 = 28;
const CERTIFICATE_ISSUER: u8 = 29;
const DISTRIBUTION_POINTS: u8 = 31;
const AUTHORITY_KEY: u8 = 35;

fn number(extension: &X509Extension<'_>) -> Option<u8> {
    match extension.oid.as_bytes() {
        [0x55, 0x1d, number] => Some(*number),
        _ => None,
    }
}

fn find<'a>(extensions: &'a [X509Extension<'a>], of: u8) -> Option<&'a X509Extension<'a>> {
    extensions.iter().find(|extension| number(extension) == Some(of))
}

fn is_known(extension: &X509Extension<'_>) -> bool {
    !extension.critical
        || matches!(number(extension), Some(DELTA | ISSUING_DISTRIBUTION_POINT | AUTHORITY_KEY))
}

/// Whether an entry says what is known. One of another authority's certificate is not: its number says nothing of ours.
fn is_known_of_entry(extension: &X509Extension<'_>) -> bool {
    match number(extension) {
        Some(REASON | INVALIDITY_DATE) => true,
        Some(CERTIFICATE_ISSUER) => false,
        _ => !extension.critical,
    }
}
