//! Certificates and keys from PEM files, and which of several a client gets.
//!
//! A server may have one certificate per kind of key (RSA and ECDSA); the client's signature schemes and
//! suites decide, elliptic curves before RSA because they cost a tenth of the CPU.

use super::TlsError;
use super::keys::{self, KeyError};
use millstream_conf::model::{PemSource, Tls};
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CipherSuite, SignatureAlgorithm};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::borrow::Cow;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// The certificates of one server, preferred first; none where all are issued or evaluated.
#[derive(Debug)]
pub(super) struct Certificates {
    keys: Vec<Arc<CertifiedKey>>,
    /// Suites of TLS 1.2 that are offered, with the kind of key each needs.
    suites: Vec<(CipherSuite, SignatureAlgorithm)>,
    /// Suites of TLS 1.3 that are offered; any kind of key does.
    any_key: Vec<CipherSuite>,
}

impl Certificates {
    /// Reads pairs of certificate and key files.
    pub(super) fn read(
        tls: &Tls,
        passwords: &[Vec<u8>],
        provider: &CryptoProvider,
    ) -> Result<Self, TlsError> {
        if tls.certificates.is_empty() {
            return Err(TlsError::NoneNamed);
        }
        let mut keys = Vec::with_capacity(tls.certificates.len());
        for (certificate, key) in tls.certificates.iter().filter(|(one, _)| *one != PemSource::Issued) {
            let mut certified = pair(certificate, key, passwords, provider)?;
            certified.ocsp = tls.stapled.as_deref().map(read).transpose()?;
            keys.push(Arc::new(certified));
        }
        Ok(Self::of(keys, provider))
    }

    /// Those that were read.
    pub(super) fn of(mut keys: Vec<Arc<CertifiedKey>>, provider: &CryptoProvider) -> Self {
        // Stable: among keys of a kind the file's order stays.
        keys.sort_by_key(|key| key.key.algorithm() == SignatureAlgorithm::RSA);
        let kinds = [SignatureAlgorithm::ECDSA, SignatureAlgorithm::ED25519, SignatureAlgorithm::RSA];
        let mut suites = Vec::new();
        let mut any_key = Vec::new();
        for suite in &provider.cipher_suites {
            if suite.tls13().is_some() {
                any_key.push(suite.suite());
                continue;
            }
            let usable = kinds.into_iter().filter(|kind| suite.usable_for_signature_algorithm(*kind));
            suites.extend(usable.map(|kind| (suite.suite(), kind)));
        }
        Certificates { keys, suites, any_key }
    }
}

impl Certificates {
    /// The certificates themselves.
    pub(super) fn identity(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().filter_map(|key| key.cert.first()).map(|certificate| certificate.as_ref())
    }
}

impl Certificates {
    /// The one that a client gets, of these and perhaps one more.
    pub(super) fn choose(
        &self,
        client: &ClientHello<'_>,
        more: Option<Arc<CertifiedKey>>,
    ) -> Option<Arc<CertifiedKey>> {
        let (last, first): (Vec<_>, Vec<_>) =
            more.into_iter().partition(|key| key.key.algorithm() == SignatureAlgorithm::RSA);
        let offered = client.cipher_suites();
        let fits = |key: &&Arc<CertifiedKey>| {
            let kind = key.key.algorithm();
            key.key.choose_scheme(client.signature_schemes()).is_some()
                && (self.any_key.iter().any(|suite| offered.contains(suite))
                    || self.suites.iter().any(|(suite, of)| *of == kind && offered.contains(suite)))
        };
        let all = || first.iter().chain(&self.keys).chain(&last);
        // Where none fits, the library finds the words for the refusal.
        all().find(fits).or(all().next()).cloned()
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.choose(&client, None)
    }
}

pub(super) fn pair(
    certificate: &PemSource,
    key: &PemSource,
    passwords: &[Vec<u8>],
    provider: &CryptoProvider,
) -> Result<CertifiedKey, TlsError> {
    let chain: Vec<CertificateDer<'static>> = items_of(&text(certificate)?, &certificate.name())?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate(certificate.name()));
    }
    let file = || key.name();
    let private = keys::private(&text(key)?, passwords).map_err(|error| match error {
        KeyError::None => TlsError::NoKey(file()),
        KeyError::Broken(error) => TlsError::Pem(file(), error),
        KeyError::NeedsPassword => TlsError::NeedsPassword(file()),
        KeyError::WrongPassword => TlsError::WrongPassword(file()),
        KeyError::UnknownCipher(cipher) => TlsError::UnknownCipher(file(), cipher),
    })?;
    let signing = provider
        .key_provider
        .load_private_key(private)
        .map_err(|error| TlsError::BadKey(key.name(), error))?;
    let certified = CertifiedKey::new(chain, signing);
    match certified.keys_match() {
        // A key that cannot tell its public half is used unchecked; a handshake would show it.
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => Ok(certified),
        // What the library does not take, such as version 1, is the clients' to judge; it is enough that the key is in it.
        Err(rustls::Error::InvalidCertificate(_)) if holds_key(&certified) => Ok(certified),
        Err(error) => Err(TlsError::Mismatch(certificate.name(), key.name(), error)),
    }
}

/// Whether the certificate has the public half of its key, as it stands in every certificate (RFC 5280 §4.1.2.7).
fn holds_key(certified: &CertifiedKey) -> bool {
    let (Some(public), Some(certificate)) = (certified.key.public_key(), certified.cert.first()) else {
        return false;
    };
    let public: &[u8] = public.as_ref();
    certificate.windows(public.len()).any(|part| part == public)
}

/// The passwords of a file, where one is named.
pub(super) fn passwords(file: Option<&Path>) -> Result<Vec<Vec<u8>>, TlsError> {
    Ok(file.map(read).transpose()?.map(|text| keys::passwords(&text)).unwrap_or_default())
}

/// All items of a kind in a PEM file.
pub(super) fn items<T: PemObject>(file: &Path) -> Result<Vec<T>, TlsError> {
    items_of(&read(file)?, file)
}

fn items_of<T: PemObject>(text: &[u8], file: &Path) -> Result<Vec<T>, TlsError> {
    let items: Result<Vec<T>, _> = T::pem_slice_iter(text).collect();
    items.map_err(|error| TlsError::Pem(file.to_path_buf(), error.to_string()))
}

fn text(source: &PemSource) -> Result<Cow<'_, [u8]>, TlsError> {
    match source {
        PemSource::File(file) => read(file).map(Cow::Owned),
        PemSource::Data(text) => Ok(Cow::Borrowed(text.as_bytes())),
        // Nobody knows what it comes to here.
        PemSource::Variable(..) | PemSource::Issued => Err(TlsError::NoCertificate(source.name())),
    }
}

pub(super) fn read(file: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(file).map_err(|error| TlsError::Read(file.to_path_buf(), error))
}
