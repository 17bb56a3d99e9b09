//! Certificates and keys from PEM files, and which of several a client gets.
//!
//! A server may have one certificate per kind of key (RSA and ECDSA); the client's signature schemes and
//! suites decide, elliptic curves before RSA because they cost a tenth of the CPU. Next: `held`, for how they change.

use super::TlsError;
use super::held::Held;
use millstream_conf::model::Tls;
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CipherSuite, SignatureAlgorithm};
use rustls_pki_types::CertificateDer;
use std::sync::{Arc, PoisonError, RwLock};

/// The certificates of one server, preferred first; none where all are issued or evaluated.
#[derive(Debug)]
pub(super) struct Certificates {
    /// Those that were read of files, which may change ([`super::held`]).
    pub(super) held: Held,
    /// What clients get: one lock and one count for each handshake.
    keys: RwLock<Arc<[Arc<CertifiedKey>]>>,
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
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, TlsError> {
        if tls.certificates.is_empty() {
            return Err(TlsError::NoneNamed);
        }
        let held = Held::read(tls, passwords, provider)?;
        let certificates = Self::of(held.keys(), provider);
        Ok(Certificates { held, ..certificates })
    }

    /// Those that were read.
    pub(super) fn of(keys: Vec<Arc<CertifiedKey>>, provider: &CryptoProvider) -> Self {
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
        Certificates { held: Held::default(), keys: RwLock::new(in_order(keys)), suites, any_key }
    }

    /// The next handshakes have these, of which those before are a part.
    pub(super) fn publish(&self) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = in_order(self.held.keys());
    }

    fn keys(&self) -> Arc<[Arc<CertifiedKey>]> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The certificates themselves.
    pub(super) fn identity(&self) -> Vec<CertificateDer<'static>> {
        self.keys().iter().filter_map(|key| key.cert.first()).cloned().collect()
    }
}

fn in_order(mut keys: Vec<Arc<CertifiedKey>>) -> Arc<[Arc<CertifiedKey>]> {
    // Stable: among keys of a kind the file's order stays.
    keys.sort_by_key(|key| key.key.algorithm() == SignatureAlgorithm::RSA);
    keys.into()
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
        let keys = self.keys();
        let all = || first.iter().chain(keys.iter()).chain(&last);
        // Where none fits, the library finds the words for the refusal.
        all().find(fits).or(all().next()).cloned()
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.choose(&client, None)
    }
}
