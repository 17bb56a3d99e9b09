//! A certificate that an authority issues while the process runs: nothing at first, then always the newest.
//!
//! One value is shared by every configuration that wants it and by whoever brings a new one, so that a handshake after that has it without
//! a reload. Before: `certificates`, which asks for it; next: `millstream-acme`, which brings it.

use super::TlsError;
use super::certificates::Certificates;
use super::pem::pair;
use millstream_conf::model::PemSource;
use rustls::crypto::aws_lc_rs;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// The certificate that is in use, where there is one.
pub struct Issued {
    /// What it is for; sessions of one are not resumed under another.
    name: Box<str>,
    current: RwLock<Option<Arc<CertifiedKey>>>,
}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issued").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Issued {
    /// None yet.
    pub fn new(name: impl Into<Box<str>>) -> Arc<Issued> {
        Arc::new(Issued { name: name.into(), current: RwLock::new(None) })
    }

    /// What it is for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether none is there.
    pub fn is_empty(&self) -> bool {
        self.current().is_none()
    }

    /// From now on every handshake has this one: a chain and its key as PEM.
    ///
    /// # Errors
    /// What is wrong with them; what was in use stays.
    pub fn put(&self, pem: &str) -> Result<(), TlsError> {
        let source = PemSource::Data(pem.into());
        let made = pair(&source, &source, &[], &aws_lc_rs::default_provider())?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(made));
        Ok(())
    }

    pub(super) fn current(&self) -> Option<Arc<CertifiedKey>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Certificates of a server of which one is issued.
#[derive(Debug)]
pub(super) struct WithIssued {
    pub(super) issued: Arc<Issued>,
    pub(super) others: Arc<Certificates>,
}

impl ResolvesServerCert for WithIssued {
    fn resolve(&self, client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.others.choose(&client, self.issued.current())
    }
}

/// How the certificates of a server are chosen from.
pub(super) fn resolver(
    others: Arc<Certificates>,
    issued: Option<&Arc<Issued>>,
) -> Arc<dyn ResolvesServerCert> {
    match issued {
        Some(issued) => Arc::new(WithIssued { issued: issued.clone(), others }),
        None => others,
    }
}
