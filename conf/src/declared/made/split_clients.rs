//! `split_clients`: a share of all clients for each value.
//!
//! Next: `features/split_clients`, which reads them; `millstream-server`'s `made/split_clients`, which hashes.

use crate::template::Template;

/// A variable that has each value for a share of all clients.
#[derive(Debug)]
pub struct SplitClients {
    /// What is hashed.
    pub key: Template,
    /// In file order; the first that a hash is in is taken.
    pub shares: Box<[Share]>,
}

/// One share.
#[derive(Debug, PartialEq, Eq)]
pub struct Share {
    /// Hashes below are in it; nothing: all of them.
    pub below: Option<u32>,
    /// The value.
    pub value: Box<str>,
}

impl SplitClients {
    pub(super) fn source(&self) -> Option<&Template> {
        Some(&self.key)
    }

    pub(super) fn values(&self) -> &[Template] {
        &[]
    }
}
