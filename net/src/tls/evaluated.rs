//! Certificates whose names have variables in them: they are read when a handshake wants them, off the loop.
//!
//! What was read is kept in [`super::kept_pairs`]. Before: `certificates`. Next: `acceptor`, which knows what the variables come to.

use super::certificates::Certificates;
use super::issued::{IssuedHere, resolver};
use super::kept_pairs::KeptPairs;
use super::pem::pair;
use super::stamp::Stamp;
use super::{ServerTls, TlsError};
use crate::{blocking, clock};
use millstream_conf::model::{PemSource, Template};
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a server reads when a handshake wants it.
pub(super) struct Evaluated {
    pub(super) pairs: Vec<(PemSource, PemSource)>,
    pub(super) passwords: Vec<Vec<u8>>,
    pub(super) provider: Arc<CryptoProvider>,
    pub(super) kept: Mutex<KeptPairs>,
    /// What an authority issues beside these.
    pub(super) issued: Option<Arc<IssuedHere>>,
}

impl fmt::Debug for Evaluated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evaluated").field("pairs", &self.pairs.len()).finish_non_exhaustive()
    }
}

impl Evaluated {
    /// What the names come to; `say` knows the variables.
    pub(super) fn sources(&self, say: impl Fn(&Template) -> Vec<u8>) -> Vec<(PemSource, PemSource)> {
        let come_to = |source: &PemSource| match source {
            PemSource::Variable(text, directory) => {
                PemSource::named(&String::from_utf8_lossy(&say(text)), directory)
            }
            known => known.clone(),
        };
        self.pairs.iter().map(|(certificate, key)| (come_to(certificate), come_to(key))).collect()
    }

    /// All pairs, where no file needs to be looked at for them.
    fn known(&self, sources: &[(PemSource, PemSource)]) -> Option<Vec<Arc<CertifiedKey>>> {
        let now = clock::now();
        let mut kept = self.kept();
        sources.iter().map(|pair| kept.find(pair, now)).collect()
    }

    fn pair(&self, sources: (PemSource, PemSource)) -> Result<Arc<CertifiedKey>, TlsError> {
        // Looked at before it is read: what changes meanwhile is read once more.
        let are = (Stamp::of(&sources.0), Stamp::of(&sources.1));
        if let Some(known) = self.kept().find_unchanged(&sources, are, clock::now()) {
            return Ok(known);
        }
        let read = Arc::new(pair(&sources.0, &sources.1, &self.passwords, &self.provider)?);
        self.kept().keep(sources, are, read.clone(), clock::now());
        Ok(read)
    }

    fn config(&self, known: &ServerConfig, keys: Vec<Arc<CertifiedKey>>) -> Arc<ServerConfig> {
        let mut config = known.clone();
        let certificates = Arc::new(Certificates::of(keys, &self.provider));
        config.cert_resolver = resolver(certificates, self.issued.as_ref());
        Arc::new(config)
    }

    fn kept(&self) -> MutexGuard<'_, KeptPairs> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The configuration of a server with these certificates; `http2`: it offers HTTP/2.
pub(super) async fn config(
    server: &Arc<ServerTls>,
    http2: bool,
    sources: Vec<(PemSource, PemSource)>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let known = &server.configs[usize::from(http2)];
    let Some(evaluated) = &server.evaluated else { return Ok(known.clone()) };
    if let Some(keys) = evaluated.known(&sources) {
        return Ok(evaluated.config(known, keys));
    }
    let server = server.clone();
    blocking::run(move || {
        let known = &server.configs[usize::from(http2)];
        let Some(evaluated) = &server.evaluated else { return Ok(known.clone()) };
        let keys: Result<Vec<_>, _> = sources.into_iter().map(|pair| evaluated.pair(pair)).collect();
        Ok(evaluated.config(known, keys?))
    })
    .await
}
