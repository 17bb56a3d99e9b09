//! The pairs of certificate and key of a server as they are in use, each with what its authority says of it (RFC 6066 §8).
//!
//! Both change while the process runs: files are read again when somebody says so, and a pair that is broken then leaves the one
//! before it in use. Nothing here looks at a clock or waits. Before: `pem`; next: `certificates`, which clients are given them by.

use super::TlsError;
use super::pem::{items, pair, read};
use super::stamp::Stamp;
use crate::certificate::Certificate;
use crate::element::{self, INTEGER};
use millstream_conf::model::{PemSource, Tls};
use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;
use rustls_pki_types::CertificateDer;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The pairs of a server, in the order of its directives.
#[derive(Default)]
pub(super) struct Held {
    pairs: Mutex<Vec<HeldPair>>,
    /// `ssl_stapling_file`.
    stapled: Option<PathBuf>,
    stapled_was: Mutex<Option<Stamp>>,
    /// What may have issued them, beside what stands in their own files.
    authorities: Vec<CertificateDer<'static>>,
    passwords: Vec<Vec<u8>>,
    provider: Option<Arc<CryptoProvider>>,
}

struct HeldPair {
    certificate: PemSource,
    key: PemSource,
    /// How the files were when they were read last, well or not.
    were: (Option<Stamp>, Option<Stamp>),
    current: Arc<CertifiedKey>,
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("pairs", &self.lock().len()).finish_non_exhaustive()
    }
}

/// What came of reading a file again that has changed.
#[derive(Debug)]
pub enum ReadAgain {
    /// What it holds is in use with the next handshake.
    InUse(PathBuf),
    /// It cannot be used; what was in use stays.
    Broken(TlsError),
}

impl Held {
    /// Reads the pairs of a server that are files or texts.
    pub(super) fn read(
        tls: &Tls,
        passwords: &[Vec<u8>],
        provider: &Arc<CryptoProvider>,
    ) -> Result<Held, TlsError> {
        let stapling = tls.stapling.as_ref();
        let stapled = stapling.and_then(|stapling| stapling.file.clone());
        let stapled_was = stapled.as_deref().and_then(Stamp::of_file);
        let response = stapled.as_deref().map(read).transpose()?;
        let asks = stapling.filter(|stapling| stapling.file.is_none());
        let authorities = asks.and_then(|stapling| stapling.authorities.as_deref()).map(items).transpose()?;
        let mut pairs = Vec::with_capacity(tls.certificates.len());
        for (certificate, key) in tls.certificates.iter().filter(|(one, _)| *one != PemSource::Issued) {
            let were = (Stamp::of(certificate), Stamp::of(key));
            let current = Arc::new(pair(certificate, key, passwords, provider)?);
            pairs.push(HeldPair { certificate: certificate.clone(), key: key.clone(), were, current });
        }
        for (certificate, key) in &tls.replacing {
            let were = (Stamp::of(certificate), Stamp::of(key));
            let current = Arc::new(pair(certificate, key, passwords, provider)?);
            pairs.retain(|other: &HeldPair| other.current.key.algorithm() != current.key.algorithm());
            pairs.push(HeldPair { certificate: certificate.clone(), key: key.clone(), were, current });
        }
        let held = Held {
            pairs: Mutex::new(pairs),
            stapled,
            stapled_was: Mutex::new(stapled_was),
            authorities: authorities.unwrap_or_default(),
            passwords: passwords.to_vec(),
            provider: Some(provider.clone()),
        };
        response.into_iter().for_each(|response| held.staple_file(&response));
        Ok(held)
    }

    /// Those in use.
    pub(super) fn keys(&self) -> Vec<Arc<CertifiedKey>> {
        self.lock().iter().map(|pair| pair.current.clone()).collect()
    }

    /// The files that they are read from.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let file = |source: &PemSource| match source {
            PemSource::File(path) => Some(path.clone()),
            _ => None,
        };
        let pairs = self.lock();
        let named = pairs.iter().flat_map(|pair| [file(&pair.certificate), file(&pair.key)]).flatten();
        named.chain(self.stapled.clone()).collect()
    }

    /// Reads what has changed since it was read last.
    pub(super) fn read_again(&self) -> Vec<ReadAgain> {
        let mut read_again = Vec::new();
        let Some(provider) = &self.provider else { return read_again };
        let mut pairs = self.lock();
        for held in pairs.iter_mut() {
            let are = (Stamp::of(&held.certificate), Stamp::of(&held.key));
            if held.were == are {
                continue;
            }
            held.were = are;
            match pair(&held.certificate, &held.key, &self.passwords, provider) {
                Ok(mut made) => {
                    // What is said of a certificate holds for that one alone.
                    let is_same = made.cert.first() == held.current.cert.first();
                    made.ocsp = held.current.ocsp.clone().filter(|_| is_same);
                    held.current = Arc::new(made);
                    read_again.push(ReadAgain::InUse(held.certificate.name()));
                }
                Err(error) => read_again.push(ReadAgain::Broken(error)),
            }
        }
        drop(pairs);
        let Some(file) = &self.stapled else { return read_again };
        let is = Stamp::of_file(file);
        let was =
            std::mem::replace(&mut *self.stapled_was.lock().unwrap_or_else(PoisonError::into_inner), is);
        if was == is && read_again.is_empty() {
            return read_again;
        }
        match read(file) {
            Ok(response) => {
                self.staple_file(&response);
                read_again.extend((was != is).then(|| ReadAgain::InUse(file.clone())));
            }
            Err(error) => read_again.push(ReadAgain::Broken(error)),
        }
        read_again
    }

    /// What a file says goes with the certificate that it speaks of; with the only one whatever it says, as in nginx.
    fn staple_file(&self, response: &[u8]) {
        let mut pairs = self.lock();
        let is_only = pairs.len() == 1;
        for held in pairs.iter_mut() {
            if is_only || held.current.cert.first().is_some_and(|leaf| speaks_of(response, leaf)) {
                held.staple(Some(response));
            }
        }
    }

    /// What the authority says goes with this certificate from now on, or nothing. `false` where it is no longer in use.
    pub(super) fn staple(&self, leaf: &CertificateDer<'_>, response: Option<&[u8]>) -> bool {
        let mut pairs = self.lock();
        let its = pairs.iter_mut().filter(|held| held.current.cert.first().is_some_and(|one| one == leaf));
        its.map(|held| held.staple(response)).count() > 0
    }

    fn lock(&self) -> MutexGuard<'_, Vec<HeldPair>> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldPair {
    fn staple(&mut self, response: Option<&[u8]>) {
        let mut made = (*self.current).clone();
        made.ocsp = response.map(<[u8]>::to_vec);
        self.current = Arc::new(made);
    }
}

/// Whether the number of the certificate stands in it, as an INTEGER (RFC 6960 §4.2.1).
fn speaks_of(response: &[u8], leaf: &CertificateDer<'_>) -> bool {
    let Some(parsed) = Certificate::read(leaf) else { return false };
    let element = element::write(INTEGER, parsed.raw_serial());
    response.windows(element.len()).any(|part| part == element)
}

/// The certificate of a pair, with those that may have issued it.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// Where it was read, or what was issued.
    pub name: PathBuf,
    /// The certificate.
    pub certificate: CertificateDer<'static>,
    /// The rest of its file, and the authorities of its server.
    pub above: Vec<CertificateDer<'static>>,
    /// What is sent with it now.
    pub stapled: Option<Vec<u8>>,
}

impl Leaf {
    /// That of a pair; `None` where it has no certificate.
    pub(super) fn of(
        pair: &CertifiedKey,
        name: PathBuf,
        authorities: &[CertificateDer<'static>],
    ) -> Option<Leaf> {
        let (certificate, rest) = pair.cert.split_first()?;
        let above = rest.iter().chain(authorities).cloned().collect();
        Some(Leaf { name, certificate: certificate.clone(), above, stapled: pair.ocsp.clone() })
    }
}

impl Held {
    /// The certificates in use.
    pub(super) fn leaves(&self) -> Vec<Leaf> {
        let leaf = |held: &HeldPair| Leaf::of(&held.current, held.certificate.name(), &self.authorities);
        self.lock().iter().filter_map(leaf).collect()
    }

    /// What may have issued them, beside what stands in their own files.
    pub(super) fn authorities(&self) -> &[CertificateDer<'static>] {
        &self.authorities
    }
}
