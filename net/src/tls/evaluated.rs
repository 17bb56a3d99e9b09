//! Certificates whose names have variables in them: they are read at each handshake, off the loop.
//!
//! What was read is remembered, up to a bound, for as long as its files stay as they were. Before: `certificates`. Next: `acceptor`, which knows
//! what the variables come to.

use super::certificates::Certificates;
use super::issued::{Issued, resolver};
use super::pem::pair;
use super::stamp::Stamp;
use super::{ServerTls, TlsError};
use crate::blocking;
use millstream_conf::model::{PemSource, Template};
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Pairs that are remembered of a server; the oldest goes first.
const MOST: usize = 256;

/// What a server reads at each handshake.
pub(super) struct Evaluated {
    pub(super) pairs: Vec<(PemSource, PemSource)>,
    pub(super) passwords: Vec<Vec<u8>>,
    pub(super) provider: Arc<CryptoProvider>,
    pub(super) remembered: Mutex<VecDeque<Remembered>>,
    /// What an authority issues beside these.
    pub(super) issued: Option<Arc<Issued>>,
}

impl fmt::Debug for Evaluated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evaluated").field("pairs", &self.pairs.len()).finish_non_exhaustive()
    }
}

/// A certificate with its key, and how its files were.
pub(super) struct Remembered {
    certificate: PemSource,
    key: PemSource,
    were: (Option<Stamp>, Option<Stamp>),
    read: Arc<CertifiedKey>,
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

    fn pair(&self, certificate: PemSource, key: PemSource) -> Result<Arc<CertifiedKey>, TlsError> {
        // Looked at before it is read: what changes meanwhile is read once more.
        let are = (Stamp::of(&certificate), Stamp::of(&key));
        let lock = || self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |known: &Remembered| known.certificate == certificate && known.key == key;
        if let Some(known) = lock().iter().find(|known| is_it(known) && known.were == are) {
            return Ok(known.read.clone());
        }
        let read = Arc::new(pair(&certificate, &key, &self.passwords, &self.provider)?);
        let mut remembered = lock();
        remembered.retain(|known| !is_it(known));
        if remembered.len() == MOST {
            remembered.pop_front();
        }
        remembered.push_back(Remembered { certificate, key, were: are, read: read.clone() });
        Ok(read)
    }
}

/// The configuration of a server with these certificates; `http2`: it offers HTTP/2.
pub(super) async fn config(
    server: &Arc<ServerTls>,
    http2: bool,
    sources: Vec<(PemSource, PemSource)>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let server = server.clone();
    blocking::run(move || {
        let known = &server.configs[usize::from(http2)];
        let Some(evaluated) = &server.evaluated else { return Ok(known.clone()) };
        let keys: Result<Vec<_>, _> =
            sources.into_iter().map(|(certificate, key)| evaluated.pair(certificate, key)).collect();
        let mut config = (**known).clone();
        config.cert_resolver =
            resolver(Arc::new(Certificates::of(keys?, &evaluated.provider)), evaluated.issued.as_ref());
        Ok(Arc::new(config))
    })
    .await
}
