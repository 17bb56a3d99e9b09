//! The certificates that a client showed, and how they were judged last.
//!
//! A judgement is that of one server's authorities, and is made anew for another's. Before: `millstream-net`'s `tls/clients`, which judges.
//! Next: `client_certificate`, which knows whose turn it is.

use millstream_net::tls::{CertificateDer, Clients, TlsInfo, Unverified};
use std::cell::RefCell;
use std::sync::Arc;

/// The client's own certificate first.
#[derive(Debug)]
pub struct ClientCertificate {
    chain: Arc<[CertificateDer<'static>]>,
    judged: RefCell<Option<Judgement>>,
}

#[derive(Debug)]
struct Judgement {
    by: Arc<Clients>,
    found: Result<(), Unverified>,
}

impl ClientCertificate {
    pub fn of(tls: Option<&TlsInfo>) -> Option<Box<Self>> {
        let chain = tls?.certificates.clone()?;
        Some(Box::new(ClientCertificate { chain, judged: RefCell::new(None) }))
    }

    /// DER.
    pub fn own(&self) -> Option<&[u8]> {
        self.chain.first().map(|own| own.as_ref())
    }

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
