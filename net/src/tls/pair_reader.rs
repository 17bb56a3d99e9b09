//! Pairs of certificate and key that are read when a handshake wants them.
//!
//! What was read is kept in [`super::kept_pairs`]. Reading blocks; whoever does it while the process runs does it off the loop.
//! Before: `pem`; next: `evaluated` for clients, `connector` for upstream servers.

use super::TlsError;
use super::kept_pairs::KeptPairs;
use super::pem::read_pair;
use super::stamp::Stamp;
use crate::clock;
use millstream_conf::model::{CertificateCache, PemSource};
use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Reads pairs and makes of each what handshakes go by.
pub(super) struct PairReader<T> {
    passwords: Vec<Vec<u8>>,
    provider: Arc<CryptoProvider>,
    kept: Mutex<KeptPairs<T>>,
    make: fn(CertifiedKey) -> T,
}

impl<T> fmt::Debug for PairReader<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PairReader").finish_non_exhaustive()
    }
}

impl<T: Clone> PairReader<T> {
    /// One that has read nothing; `make` is what becomes of a pair.
    pub(super) fn new(
        cache: Option<CertificateCache>,
        passwords: Vec<Vec<u8>>,
        provider: Arc<CryptoProvider>,
        make: fn(CertifiedKey) -> T,
    ) -> PairReader<T> {
        PairReader { passwords, provider, kept: Mutex::new(KeptPairs::new(cache)), make }
    }

    /// A pair for which no file needs to be looked at.
    pub(super) fn known(&self, sources: &(PemSource, PemSource)) -> Option<T> {
        self.kept().find(sources, clock::now())
    }

    /// A pair, which is read unless its files are as they were.
    pub(super) fn read(&self, sources: (PemSource, PemSource)) -> Result<T, TlsError> {
        // Looked at before it is read: what changes meanwhile is read once more.
        let are = (Stamp::of(&sources.0), Stamp::of(&sources.1));
        if let Some(known) = self.kept().find_unchanged(&sources, are, clock::now()) {
            return Ok(known);
        }
        let (pair, is_sealed) = read_pair(&sources.0, &sources.1, &self.passwords, &self.provider)?;
        let made = (self.make)(pair);
        self.kept().keep(sources, are, made.clone(), is_sealed, clock::now());
        Ok(made)
    }

    /// What its keys are used with.
    pub(super) fn provider(&self) -> &CryptoProvider {
        &self.provider
    }

    fn kept(&self) -> MutexGuard<'_, KeptPairs<T>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
