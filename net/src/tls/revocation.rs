//! Lists of what authorities have revoked, and what they say of a certificate together (RFC 5280 §5, §6.3.3).
//!
//! A file may have several lists of one authority: an old one and a new one, or one for each part of its certificates. The library
//! stops at the first that fits. As in OpenSSL, the newest list counts that is in force and is of all that the certificate is part
//! of, wherever it stands in the file. Next: `direct` and `authorities`, which ask for each certificate of a chain.

use super::scope::{self, Scope};
use super::unverified::Unverified;
use super::usage;
use crate::certificate::extension::{
    AUTHORITY_KEY, CERTIFICATE_ISSUER, DELTA, DISTRIBUTION_POINTS, Extension, INVALIDITY_DATE,
    ISSUING_DISTRIBUTION_POINT, REASON, SUBJECT_KEY, find,
};
use crate::certificate::name::Name;
use crate::certificate::signed::{self, Signed};
use crate::certificate::{Certificate, number, time};
use crate::element::{Element, INTEGER, OCTET_STRING, SEQUENCE};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls_pki_types::CertificateRevocationListDer;
use std::collections::HashSet;

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
    pub(super) fn read(list: &CertificateRevocationListDer<'_>) -> Result<Option<Self>, &'static str> {
        let (signed, fields) = Element::read(list).and_then(Signed::read).ok_or("generic error")?;
        let mut fields = fields.into_iter().peekable();
        let version = fields.next_if(|field| field.tag == INTEGER);
        // 1 is version 2; a list of version 1 has none.
        if version.is_some_and(|version| number(version) != Some(1)) {
            return Err("invalid version");
        }
        let algorithm = fields.next().and_then(|algorithm| signed::algorithm_of(&algorithm));
        algorithm.ok_or("invalid algorithm identifier")?;
        let issuer = fields.next().and_then(Name::read).ok_or("invalid X.509 name")?;
        let this_update = fields.next().and_then(time::read).ok_or("invalid date")?;
        let next_update = fields.next_if(|field| matches!(field.tag, time::UTC | time::GENERALIZED));
        let next_update = next_update.map(|next| time::read(next).ok_or("invalid date")).transpose()?;
        let entries = fields.next_if(|field| field.tag == SEQUENCE).map(|all| all.parts(SEQUENCE));
        let entries = entries.map_or(Some(Vec::new()), |entries| entries).ok_or("invalid extensions")?;
        let entries: Option<Vec<_>> = entries.into_iter().map(RevokedEntry::read).collect();
        let entries = entries.ok_or("invalid extensions")?;
        let extensions = fields.next().map(|own| Extension::all(Element::read(own.tagged(0xa0)?)?));
        let extensions = extensions.unwrap_or_else(|| Some(Vec::new())).filter(|_| fields.next().is_none());
        let extensions = extensions.ok_or("invalid extensions")?;
        let scope = match find(&extensions, &ISSUING_DISTRIBUTION_POINT) {
            Some(point) => Scope::read(point),
            None => Some(Scope::default()),
        };
        let are_known = extensions.iter().all(is_known)
            && entries.iter().flat_map(|entry| &entry.extensions).all(is_known_of_entry);
        let Some(scope) = scope.filter(|_| are_known) else { return Ok(None) };
        let revoked = entries.iter().filter(|entry| !entry.is_removed());
        Ok(Some(RevocationList {
            issuer: issuer.element.whole.to_vec(),
            key: extensions
                .iter()
                .filter(|extension| extension.is(&AUTHORITY_KEY))
                .find_map(Extension::authority_key)
                .map(<[u8]>::to_vec),
            this_update,
            next_update,
            revoked: revoked.map(|entry| entry.serial.to_vec()).collect(),
            scope,
            is_delta: find(&extensions, &DELTA).is_some(),
            message: signed.message.to_vec(),
            algorithm: signed.algorithm.to_vec(),
            signature: signed.signature.to_vec(),
        }))
    }

    /// Whether it is of the issuer with this key, and the certificate with these distribution points is part of what it is of.
    fn is_of(&self, key: Option<&[u8]>, certificate: &Certificate<'_>, points: &[&[u8]]) -> bool {
        // Two authorities may have one name.
        let is_of_key = self.key.as_deref().zip(key).is_none_or(|(of, key)| of == key);
        is_of_key
            && self.issuer == certificate.issuer.element.whole
            && self.scope.has(certificate.is_authority(), points)
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
    issuer: &Certificate<'_>,
    certificate: &Certificate<'_>,
    algorithms: &WebPkiSupportedAlgorithms,
    now: i64,
) -> Result<(), Unverified> {
    if !usage::signs_lists(issuer) {
        return Err(Unverified::NoRevocationList);
    }
    let key = find(&issuer.extensions, &SUBJECT_KEY);
    let key = key.and_then(|key| Element::read(key.value)?.tagged(OCTET_STRING));
    let points = scope::points(find(&certificate.extensions, &DISTRIBUTION_POINTS));
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
    let key = issuer.key();
    for list in of_it.iter().filter(in_force).filter(|list| list.this_update >= newest) {
        if !list.signed().is_by(&key, algorithms) {
            found = Err(Unverified::RevocationListSignature);
        } else if list.revoked.contains(certificate.raw_serial()) {
            return Err(Unverified::Revoked);
        }
    }
    found
}

/// What a list says of one certificate.
struct RevokedEntry<'a> {
    serial: &'a [u8],
    extensions: Vec<Extension<'a>>,
}

impl<'a> RevokedEntry<'a> {
    fn read(entry: Element<'a>) -> Option<Self> {
        let (serial, date, extensions) = match entry.parts(SEQUENCE)?[..] {
            [serial, date] => (serial, date, Vec::new()),
            [serial, date, own] => (serial, date, Extension::all(own)?),
            _ => return None,
        };
        time::read(date)?;
        Some(RevokedEntry { serial: serial.tagged(INTEGER)?, extensions })
    }

    /// Whether it only takes back what an earlier list says (RFC 5280 §5.3.1).
    fn is_removed(&self) -> bool {
        const REMOVE_FROM_CRL: &[u8] = &[0x0a, 1, 8];
        find(&self.extensions, &REASON).is_some_and(|reason| reason.value == REMOVE_FROM_CRL)
    }
}

fn is_known(extension: &Extension<'_>) -> bool {
    !extension.is_critical || extension.is_any(&[DELTA, ISSUING_DISTRIBUTION_POINT, AUTHORITY_KEY])
}

/// Whether an entry says what is known. One of another authority's certificate is not: its number says nothing of ours.
fn is_known_of_entry(extension: &Extension<'_>) -> bool {
    extension.is_any(&[REASON, INVALIDITY_DATE])
        || !extension.is_critical && !extension.is(&CERTIFICATE_ISSUER)
}
