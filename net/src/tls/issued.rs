//! A certificate that an authority issues while the process runs: nothing at first, then always the newest.
//!
//! One value is shared by every configuration that wants it and by whoever brings a new one, so that a handshake after that has it without
//! a reload. What is said of it belongs to a server, which may send it or not, and goes with exactly the certificate that it is about. Before:
//! `certificates`, which asks for it; next: `millstream-acme`, which brings it.

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

    fn current(&self) -> Option<Arc<CertifiedKey>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A certificate that is issued, as one server sends it.
#[derive(Debug)]
pub(super) struct IssuedHere {
    pub(super) issued: Arc<Issued>,
    /// One that was in use, and the same with what its authority says of it.
    stapled: RwLock<Option<Stapled>>,
}

#[derive(Debug)]
struct Stapled {
    plain: Arc<CertifiedKey>,
    with_response: Arc<CertifiedKey>,
}

impl IssuedHere {
    /// Without a word of any authority.
    pub(super) fn new(issued: Arc<Issued>) -> Arc<IssuedHere> {
        Arc::new(IssuedHere { issued, stapled: RwLock::default() })
    }

    /// What the next handshake gets: the newest, with what is said of it and of no other.
    fn current(&self) -> Option<Arc<CertifiedKey>> {
        let plain = self.issued.current()?;
        let stapled = self.stapled.read().unwrap_or_else(PoisonError::into_inner);
        let its = stapled.as_ref().filter(|stapled| Arc::ptr_eq(&stapled.plain, &plain));
        Some(its.map_or(plain, |stapled| stapled.with_response.clone()))
    }

    /// The certificate in use; `authorities` are those of the server.
    pub(super) fn leaf(&self, authorities: &[CertificateDer<'static>]) -> Option<Leaf> {
        let current = self.current()?;
        Leaf::of(&current, self.issued.name().into(), authorities)
    }

    /// What the authority says goes with this certificate from now on, or nothing; not with one that has come since.
    pub(super) fn staple(&self, leaf: &CertificateDer<'_>, response: Option<&[u8]>) {
        let Some(plain) = self.issued.current().filter(|key| key.cert.first() == Some(leaf)) else { return };
        let with_response = response.map(|response| {
            let mut made = (*plain).clone();
            made.ocsp = Some(response.to_vec());
            Arc::new(made)
        });
        let stapled = with_response.map(|with_response| Stapled { plain, with_response });
        *self.stapled.write().unwrap_or_else(PoisonError::into_inner) = stapled;
    }
}

/// Certificates of a server of which one is issued.
#[derive(Debug)]
struct WithIssued {
    issued: Arc<IssuedHere>,
    others: Arc<Certificates>,
}

impl ResolvesServerCert for WithIssued {
    fn resolve(&self, client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.others.choose(&client, self.issued.current())
    }
}

/// How the certificates of a server are chosen from.
pub(super) fn resolver(
    others: Arc<Certificates>,
    issued: Option<&Arc<IssuedHere>>,
) -> Arc<dyn ResolvesServerCert> {
    match issued {
        Some(issued) => Arc::new(WithIssued { issued: issued.clone(), others }),
        None => others,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pem(name: &str) -> (String, CertificateDer<'static>) {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).expect("made");
        (made.cert.pem() + &made.signing_key.serialize_pem(), made.cert.der().clone())
    }

    #[test]
    fn what_is_said_of_a_certificate_goes_with_that_one_and_never_with_the_one_that_replaces_it() {
        let ((first, one), (second, other)) = (pem("a.test"), pem("a.test"));
        let issued = Issued::new("a.test");
        let (here, elsewhere) = (IssuedHere::new(issued.clone()), IssuedHere::new(issued.clone()));
        let said = |server: &IssuedHere| server.current().and_then(|key| key.ocsp.clone());
        here.staple(&one, Some(b"of nothing"));
        assert!(here.leaf(&[]).is_none(), "there is none yet");
        issued.put(&first).expect("it is good");
        assert_eq!(said(&here), None);
        here.staple(&one, Some(b"of the first"));
        assert_eq!(said(&here).as_deref(), Some(&b"of the first"[..]));
        assert_eq!(said(&elsewhere), None, "another server sends it when it is told to");
        issued.put(&second).expect("it is good");
        assert_eq!(said(&here), None);
        here.staple(&one, Some(b"of the first, late"));
        assert_eq!(said(&here), None);
        here.staple(&other, Some(b"of the second"));
        let leaf = here.leaf(&[one]).expect("it is there");
        assert_eq!((leaf.certificate == other, leaf.above.len()), (true, 1));
        assert_eq!(leaf.stapled.as_deref(), Some(&b"of the second"[..]));
        here.staple(&other, None);
        assert_eq!(said(&here), None);
    }
}
