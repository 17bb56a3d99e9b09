//! One response as it is kept: hashes of what it meant and of what its request was.
//!
//! Before: `response`, `dimension`; next: `leniency`, by which two are compared.

use crate::json::Meaning;
use crate::mark::Mark;

#[derive(Clone)]
pub(crate) struct Seen {
    /// When the request was sent and the response ended, in milliseconds since 1970.
    pub(crate) sent: u64,
    pub(crate) at: u64,
    pub(crate) meaning: Meaning,
    pub(crate) marks: Box<[Mark]>,
    /// One hash for each dimension.
    pub(crate) values: Box<[u32]>,
    /// The whole URL, with ignored arguments.
    pub(crate) url: u64,
    /// Who asked, at the least: two clients are certainly different if this is.
    pub(crate) client: u32,
    /// Who asked, at the most: equal only if all that may identify a client is.
    pub(crate) identity: u32,
    pub(crate) explicit: Option<u32>,
    pub(crate) is_storable: bool,
    /// Whether its request had a field that is not usual, so that it is passed on.
    pub(crate) is_unusual: bool,
}

impl Seen {
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Seen>() + size_of_val(&*self.marks) + size_of_val(&*self.values) + 32
    }

    pub(crate) fn age(&self, now: u64) -> u64 {
        now.saturating_sub(self.at)
    }
}
