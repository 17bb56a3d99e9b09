//! The certificates that a client showed, and how they were judged last.
//!
//! A judgement is that of one server's authorities, and is made anew for another's. Before: `millstream-net`'s `tls/clients`, which judges.
//! Next: `client_certificate`, which knows whose turn it is.

use millstream_net::tls::{CertificateDer, Clients, TlsInfo, Unverified};
use std::cell::RefCell;
use std::sync::Arc;

/// A client's certificate with those that lead up to its authority, its own first.
#[derive(Debug)]
pub struct ClientCertificate {
    chain: Arc<[CertificateDer<'static>]>,
    /// How it was judged last, and by whose authorities.
    judged: RefCell<Option<Judgement>>,
}

/// What somebody's authorities found.
#[derive(Debug)]
struct Judgement {
    by: Arc<Clients>,
    found: Result<(), Unverified>,
}

impl ClientCertificate {
    /// That of a connection, where its client showed one.
    pub fn of(tls: Option<&TlsInfo>) -> Option<Box<Self>> {
        let chain = tls?.certificates.clone()?;
        Some(Box::new(ClientCertificate { chain, judged: RefCell::new(None) }))
    }

    /// Its own certificate, in DER.
    pub fn own(&self) -> Option<&[u8]> {
        self.chain.first().map(|own| own.as_ref())
    }

    /// Whether it is good, by the authorities of a server.
    ///
    /// # Errors
    /// Why it is not.
    pub fn judged_by(&self, clients: &Arc<Clients>) -> Result<(), Unverified> {
        let mut judged = self.judged.borrow_mut();
        match &*judged {
            Some(judgement) if Arc::ptr_eq(&judgement.by, clients) => judgement.found,
            _ => {
                let found = clients.judge(&self.chain);
                *judged = Some(Judgement { by: clients.clone(), found });
                found
            }
        }
    }
}
