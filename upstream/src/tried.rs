//! The peers that one request has asked, and how far its search has come.
//!
//! It belongs to one version of a group and decides nothing. Next: `balance`, which goes by it.

/// The peers that one request has asked, and how many more it may ask.
#[derive(Debug, Clone, Default)]
pub struct Tried {
    mask: u64,
    /// Peers from the 65th on.
    more: Vec<u64>,
    pub(crate) backup: bool,
    pub(crate) left: u32,
    pub(crate) search: Search,
}

/// Continues from one attempt to the next.
#[derive(Debug, Clone, Default)]
pub(crate) struct Search {
    /// Peers that were found and could not be asked. nginx gives up and takes turns after 20.
    pub(crate) misses: u32,
    pub(crate) rounds: u32,
    pub(crate) hash: u32,
}

impl Tried {
    pub(crate) fn new(left: u32) -> Tried {
        Tried { left, ..Tried::default() }
    }

    pub fn left(&self) -> u32 {
        self.left
    }

    pub fn is_empty(&self) -> bool {
        self.mask == 0 && self.more.is_empty()
    }

    /// A request that has tried no peer may search again from the start after waiting.
    pub(crate) fn forget_search(&mut self) {
        if self.is_empty() {
            (self.backup, self.search) = (false, Search::default());
        }
    }

    pub(crate) fn has(&self, index: usize) -> bool {
        if index < 64 {
            return self.mask & (1 << index) != 0;
        }
        self.more.get(index / 64 - 1).is_some_and(|word| word & (1 << (index % 64)) != 0)
    }

    pub(crate) fn add(&mut self, index: usize) {
        if index < 64 {
            self.mask |= 1 << index;
            return;
        }
        let word = index / 64 - 1;
        if self.more.len() <= word {
            self.more.resize(word + 1, 0);
        }
        self.more[word] |= 1 << (index % 64);
    }
}
