//! A certificate that an authority issues while the process runs: nothing at first, then always the newest.
//!
//! One value is shared by every configuration that wants it and by whoever brings a new one, so that a handshake after that has it without
//! a reload. Before: `certificates`, which asks for it; next: `millstream-acme`, which brings it.

use super::TlsError;
use super::certificates::Certificates;
use super::held::Leaf;
use super::pem::pair;
use millstream_conf::model::PemSource;
use rustls::crypto::aws_lc_rs;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::CertificateDer;
use std::fmt;
use std::path::PathBuf;
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
        let mut made = pair(&source, &source, &[], &aws_lc_rs::default_provider())?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let same = current.as_ref().filter(|before| before.cert.first() == made.cert.first());
        made.ocsp = same.and_then(|before| before.ocsp.clone());
        *current = Some(Arc::new(made));
        Ok(())
    }

    /// The certificate in use, with those that came with it and these authorities.
    pub(super) fn leaf(&self, authorities: &[CertificateDer<'static>]) -> Option<Leaf> {
        Leaf::of(self.current()?.as_ref(), PathBuf::from(&*self.name), authorities)
    }

    /// What the authority says goes with this certificate from now on, or nothing; with one that was issued since goes nothing that was said
    /// of the one before.
    pub(super) fn staple(&self, leaf: &CertificateDer<'_>, response: Option<&[u8]>) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(of) = current.as_mut().filter(|of| of.cert.first() == Some(leaf)) {
            let mut made = (**of).clone();
            made.ocsp = response.map(<[u8]>::to_vec);
            *of = Arc::new(made);
        }
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
