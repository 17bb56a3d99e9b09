//! Authorities that are known, and what they say of a chain of certificates.
//!
//! Both sides of the proxy judge here: certificates of clients, and of upstream servers. Nothing is asked of the network. Before: `direct`, for
//! what the library does not look at. Next: `clients` and `connector`.

use super::direct::{self, Known};
use super::revocation::RevocationList;
use super::unverified::Unverified;
use super::usage::{self, Purpose};
use super::{TlsError, pem};
use crate::certificate::Certificate;
use crate::clock;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use std::cell::Cell;
use std::path::Path;
use std::time::Duration;
use webpki::{EndEntityCert, KeyUsage, RawPublicKeyEntity, VerifiedPath};

/// Where systems keep the authorities that they trust.
const SYSTEM_AUTHORITIES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The file of the authorities that this system trusts, where there is one.
pub fn system_authorities() -> Option<&'static Path> {
    SYSTEM_AUTHORITIES.into_iter().map(Path::new).find(|path| path.exists())
}

/// Authorities that are known.
#[derive(Debug)]
pub(super) struct Authorities {
    known: Known,
    depth: usize,
}

impl Authorities {
    /// None yet. `depth`: how many others may stand between a certificate and a known one.
    pub(super) fn new(depth: usize, algorithms: WebPkiSupportedAlgorithms) -> Self {
        let known = Known {
            certificates: Vec::new(),
            anchors: Vec::new(),
            numbers: Vec::new(),
            terms: Vec::new(),
            lists: None,
            algorithms,
        };
        Authorities { known, depth }
    }

    /// Reads those of a file; gives what stands there.
    pub(super) fn know(&mut self, file: &Path) -> Result<&[CertificateDer<'static>], TlsError> {
        let before = self.known.certificates.len();
        self.known.certificates.extend(pem::items::<CertificateDer<'static>>(file)?);
        let found = &self.known.certificates[before..];
        if found.is_empty() {
            return Err(TlsError::NoCertificate(file.to_path_buf()));
        }
        // One that cannot be read, or may not sign, is no authority of anybody; it may still be shown byte for byte.
        for (number, one) in found.iter().enumerate() {
            let Ok(anchor) = webpki::anchor_from_trusted_cert(one) else { continue };
            let Some(parsed) = Certificate::read(one) else { continue };
            if usage::signs_certificates(&parsed) {
                self.known.anchors.push(anchor.to_owned());
                self.known.numbers.push(before + number);
                self.known.terms.push(parsed.validity());
            }
        }
        Ok(found)
    }

    /// Reads what they have revoked.
    pub(super) fn revoke(&mut self, file: &Path) -> Result<(), TlsError> {
        let bad = |why: String| TlsError::BadRevocationList(file.to_path_buf(), why);
        let found = pem::items::<CertificateRevocationListDer<'static>>(file)?;
        if found.is_empty() {
            return Err(bad("the file contains no list".to_owned()));
        }
        let lists: Result<Vec<_>, _> = found.iter().map(RevocationList::read).collect();
        let lists = lists.map_err(|why| bad(why.to_owned()))?;
        self.known.lists = Some(lists.into_iter().flatten().collect());
        Ok(())
    }

    /// Whether a chain, the certificate in question first, leads to a known authority now.
    ///
    /// # Errors
    /// Why it does not.
    pub(super) fn judge(&self, chain: &[CertificateDer<'_>], purpose: Purpose) -> Result<(), Unverified> {
        let Some((leaf, others)) = chain.split_first() else { return Err(Unverified::Malformed) };
        let seconds = u64::try_from(clock::wall().seconds).unwrap_or(0);
        let revoked = Cell::new(None);
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let between = match self.path(leaf, others, purpose, now, &revoked) {
            Ok((between, number)) => {
                let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
                between + self.known.above(number, seconds)?
            }
            // OpenSSL takes certificates of version 1, and authorities' own; the library does not look at them.
            Err(webpki::Error::UnsupportedCertVersion | webpki::Error::CaUsedAsEndEntity) => {
                direct::judge(&self.known, leaf, seconds).map_err(|why| named(why, leaf, others))?
            }
            Err(error) => return Err(named(unverified(&error, revoked.take()), leaf, others)),
        };
        if between > self.depth {
            return Err(Unverified::ChainTooLong);
        }
        usage::is_for(purpose, &Certificate::read(leaf).ok_or(Unverified::Malformed)?)
    }

    /// How many authorities stand between the leaf and a known one, and that one's number. `revoked`: what the lists say of the last
    /// path that they do not let pass.
    fn path(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        purpose: Purpose,
        now: UnixTime,
        revoked: &Cell<Option<Unverified>>,
    ) -> Result<(usize, usize), webpki::Error> {
        let leaf = EndEntityCert::try_from(leaf)?;
        let usage = match purpose {
            Purpose::Client => KeyUsage::client_auth(),
            Purpose::Server => KeyUsage::server_auth(),
        };
        let (algorithms, anchors) = (self.known.algorithms.all, &self.known.anchors);
        // Another path may still be good.
        let is_good = |path: &VerifiedPath<'_>| {
            self.may_sign(path, now)?;
            self.may_last(path, now).map_err(|why| {
                revoked.set(Some(why));
                webpki::Error::UnknownRevocationStatus
            })
        };
        let path = leaf.verify_for_usage(algorithms, anchors, others, now, usage, None, Some(&is_good))?;
        Ok((path.intermediate_certificates().count(), self.number(&path)?))
    }

    /// Which known authority a path leads to. One to another, of which no list and no term is known, is not let pass.
    fn number(&self, path: &VerifiedPath<'_>) -> Result<usize, webpki::Error> {
        let mut anchors = self.known.anchors.iter();
        anchors.position(|anchor| std::ptr::eq(anchor, path.anchor())).ok_or(webpki::Error::UnknownIssuer)
    }

    /// Whether the known authority of a path is good now, and the keys of those between may sign: the library looks at
    /// neither, OpenSSL at both (RFC 5280 §6.1.4 (n)).
    fn may_sign(&self, path: &VerifiedPath<'_>, now: UnixTime) -> Result<(), webpki::Error> {
        let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        match self.known.is_in_force(self.number(path)?, seconds) {
            Ok(()) => {}
            Err(Unverified::NotYetValid) => {
                return Err(webpki::Error::CertNotValidYet { time: now, not_before: now });
            }
            Err(_) => return Err(webpki::Error::CertExpired { time: now, not_after: now }),
        }
        let signs = |one: &webpki::Cert<'_>| {
            Certificate::read(&one.der()).is_some_and(|parsed| usage::signs_certificates(&parsed))
        };
        match path.intermediate_certificates().all(signs) {
            true => Ok(()),
            false => Err(webpki::Error::EndEntityUsedAsCa),
        }
    }

    /// Whether the lists let all of a path pass.
    fn may_last(&self, path: &VerifiedPath<'_>, now: UnixTime) -> Result<(), Unverified> {
        if self.known.lists.is_none() {
            return Ok(());
        }
        let number = self.number(path).map_err(|_| Unverified::UnknownIssuer)?;
        let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let between = path.intermediate_certificates().rev().map(|one| one.der());
        let all: Vec<_> = between.chain([path.end_entity().der()]).collect();
        let mut issuer: Option<Certificate<'_>> = None;
        for certificate in &all {
            let parsed = Certificate::read(certificate).ok_or(Unverified::Malformed)?;
            match &issuer {
                None => self.known.has_not_revoked(number, &parsed, seconds)?,
                Some(issuer) => self.known.is_not_revoked(issuer, &parsed, seconds)?,
            }
            issuer = Some(parsed);
        }
        Ok(())
    }

    /// Checks a signature of a handshake of TLS 1.2 by the key that is in the certificate, whatever its version. Its schemes do not say
    /// the curve, so each is tried.
    pub(super) fn check_tls12(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check(message, certificate, signed, usize::MAX)
    }

    /// The same of TLS 1.3, where PKCS#1 v1.5 signs no handshake (RFC 8446 §4.2.3).
    pub(super) fn check_tls13(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        use SignatureScheme as S;
        let is_old = matches!(signed.scheme, S::RSA_PKCS1_SHA256 | S::RSA_PKCS1_SHA384 | S::RSA_PKCS1_SHA512);
        self.check(message, certificate, signed, usize::from(!is_old))
    }

    fn check(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
        most: usize,
    ) -> Result<HandshakeSignatureValid, Error> {
        let bad = || Error::InvalidCertificate(CertificateError::BadEncoding);
        let key = Certificate::read(certificate).ok_or_else(bad)?.key();
        let key = RawPublicKeyEntity::try_from(&key).map_err(|_| bad())?;
        let mapped = self.known.algorithms.mapping.iter().find(|(scheme, _)| *scheme == signed.scheme);
        let candidates = mapped.map(|(_, algorithms)| *algorithms).unwrap_or_default();
        let fits = candidates
            .iter()
            .take(most)
            .any(|algorithm| key.verify_signature(*algorithm, message, signed.signature()).is_ok());
        match fits {
            true => Ok(HandshakeSignatureValid::assertion()),
            false => Err(Error::InvalidCertificate(CertificateError::BadSignature)),
        }
    }

    /// The schemes by which handshakes may be signed.
    pub(super) fn schemes(&self) -> Vec<SignatureScheme> {
        self.known.algorithms.supported_schemes()
    }
}

/// OpenSSL has four names for an authority that nobody knows.
fn named(why: Unverified, leaf: &CertificateDer<'_>, others: &[CertificateDer<'_>]) -> Unverified {
    match why {
        Unverified::UnknownIssuer if is_self_issued(leaf) => Unverified::SelfSigned,
        Unverified::UnknownIssuer if others.iter().any(is_self_issued) => Unverified::SelfSignedInChain,
        Unverified::UnknownIssuer if others.is_empty() => Unverified::UnknownIssuerOfLeaf,
        other => other,
    }
}

fn is_self_issued(certificate: &CertificateDer<'_>) -> bool {
    Certificate::read(certificate).is_some_and(|parsed| parsed.is_self_issued())
}

fn unverified(error: &webpki::Error, revoked: Option<Unverified>) -> Unverified {
    use webpki::Error as E;
    match error {
        E::UnknownIssuer => Unverified::UnknownIssuer,
        E::CertExpired { .. } => Unverified::Expired,
        E::CertNotValidYet { .. } => Unverified::NotYetValid,
        E::UnknownRevocationStatus => revoked.unwrap_or(Unverified::NoRevocationList),
        E::EndEntityUsedAsCa => Unverified::Authority,
        E::RequiredEkuNotFoundContext(_) => Unverified::Purpose,
        E::MaximumPathDepthExceeded | E::PathLenConstraintViolated => Unverified::ChainTooLong,
        E::InvalidSignatureForPublicKey => Unverified::Signature,
        _ => Unverified::Malformed,
    }
}
