//! TLS to a peer: by which settings, and under which name.
//!
//! Next: `dial`, which a connection is made by.

use millstream_net::tls::TlsConnector;
use std::rc::Rc;
use std::sync::Arc;

/// What a connection's handshake goes by.
#[derive(Debug, Clone)]
pub struct Secured {
    /// The settings, with their files.
    pub connector: Arc<TlsConnector>,
    /// The name of the server.
    pub name: Rc<str>,
}

impl PartialEq for Secured {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.connector, &other.connector) && self.name == other.name
    }
}
