//! What a look-up has granted: the right to fill a key, and where it stands among the other fills and the purges.
//!
//! Next: `right`, what its holder may do with it.

use crate::key::Key;
use crate::policy::Asker;
use std::sync::Arc;
use std::time::Instant;

#[derive(Debug, Clone)]
pub(crate) struct Grant {
    pub(crate) key: Arc<Key>,
    pub(crate) values: Option<Arc<[u8]>>,
    /// The right to move the line on; `None` for a fill beside any line.
    pub(crate) right: Option<u64>,
    pub(crate) order: u64,
    /// Where it stands among the purges.
    pub(crate) born: u64,
    /// When it was looked up; `None` for a request that did not look, which says little about those who do.
    pub(crate) since: Option<Instant>,
    /// Who asks by it: a response to a client with a credential says nothing about those to others.
    pub(crate) asker: Asker,
}
