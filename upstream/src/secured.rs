//! TLS to a peer: by which settings, under which name, and with which certificate of ours.
//!
//! Next: `dial`, which a connection is made by.

use millstream_conf::model::PemSource;
use millstream_net::tls::{TlsConnector, TlsError};
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

/// The TLS parameters of a connection.
#[derive(Debug, Clone)]
pub struct Secured {
    pub connector: Arc<TlsConnector>,
    pub name: Rc<str>,
    pub certificate: Option<Rc<(PemSource, PemSource)>>,
}

impl Secured {
    pub(crate) async fn ready(&self) -> Result<Cow<'_, TlsConnector>, TlsError> {
        match self.certificate.as_deref() {
            None => Ok(Cow::Borrowed(&*self.connector)),
            certificate => self.connector.showing(certificate).await.map(Cow::Owned),
        }
    }
}

impl PartialEq for Secured {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.connector, &other.connector)
            && self.name == other.name
            && self.certificate == other.certificate
    }
}
