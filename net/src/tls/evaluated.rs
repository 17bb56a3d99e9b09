//! Certificates whose names have variables in them: they are read when a handshake wants them, off the loop.
//!
//! Before: `pair_reader`, `certificates`. Next: `acceptor`, which knows what the variables come to.

use super::certificates::Certificates;
use super::issued::{IssuedHere, resolver};
use super::pair_reader::PairReader;
use super::{ServerTls, TlsError};
use crate::blocking;
use millstream_conf::model::{PemSource, Template};
use rustls::ServerConfig;
use rustls::sign::CertifiedKey;
use std::sync::Arc;

/// What a server reads when a handshake wants it.
#[derive(Debug)]
pub(super) struct Evaluated {
    pub(super) pairs: Vec<(PemSource, PemSource)>,
    pub(super) reader: PairReader<Arc<CertifiedKey>>,
    /// What an authority issues beside these.
    pub(super) issued: Option<Arc<IssuedHere>>,
}

impl Evaluated {
    /// What the names come to; `say` knows the variables.
    pub(super) fn sources(&self, say: impl Fn(&Template) -> Vec<u8>) -> Vec<(PemSource, PemSource)> {
        self.pairs.iter().map(|(one, key)| (one.evaluated(&say), key.evaluated(&say))).collect()
    }

    fn config(&self, known: &ServerConfig, keys: Vec<Arc<CertifiedKey>>) -> Arc<ServerConfig> {
        let mut config = known.clone();
        let certificates = Arc::new(Certificates::of(keys, self.reader.provider()));
        config.cert_resolver = resolver(certificates, self.issued.as_ref());
        Arc::new(config)
    }
}

/// A configuration of a server, with these certificates where they are known at a handshake alone.
pub(super) async fn config(
    server: &Arc<ServerTls>,
    known: Arc<ServerConfig>,
    sources: Vec<(PemSource, PemSource)>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let Some(evaluated) = &server.evaluated else { return Ok(known) };
    // All pairs, where no file needs to be looked at for them.
    let keys: Option<Vec<_>> = sources.iter().map(|pair| evaluated.reader.known(pair)).collect();
    if let Some(keys) = keys {
        return Ok(evaluated.config(&known, keys));
    }
    let server = server.clone();
    blocking::run(move || {
        let Some(evaluated) = &server.evaluated else { return Ok(known) };
        let keys: Result<Vec<_>, _> = sources.into_iter().map(|pair| evaluated.reader.read(pair)).collect();
        Ok(evaluated.config(&known, keys?))
    })
    .await
}
