//! `split_clients`: a share of all clients for each value.
//!
//! Next: `features/split_clients`, which reads them; `millstream-server`'s `made/split_clients`, which hashes.

use crate::template::Template;

#[derive(Debug)]
pub struct SplitClients {
    pub key: Template,
    /// In file order; the first that contains the hash is taken.
    pub shares: Box<[Share]>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Share {
    /// Exclusive upper bound of the hash; `None` = no bound.
    pub below: Option<u32>,
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
