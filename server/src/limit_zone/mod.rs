//! What limits remember of each key: a table of bounded memory that all workers share.
//!
//! It is cut into shards, each under a lock that is held for one look-up; a known key is found without allocating. Within a
//! shard the keys are in the order of their last use. Time comes in as milliseconds. Next: `requests` and `connections`, what
//! the two kinds of zones remember; `limits`, which asks them.

mod shard;
pub mod requests;
pub mod connections;
pub mod passed;

use foldhash::fast::RandomState;
use shard::Shard;
use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Shards of a zone at the most.
const MOST_SHARDS: u64 = 16;
/// A shard has at least so many bytes, so that a small zone is not cut into pieces that are full one by one.
const LEAST_SHARD: u64 = 64 * 1024;

/// A table from keys to what is remembered of them.
#[derive(Debug)]
struct Table<S> {
    shards: Box<[Mutex<Shard<S>>]>,
    hasher: RandomState,
}

/// A key's place in a table. It holds for as long as something keeps the key from being removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    shard: u32,
    node: u32,
}

impl<S> Table<S> {
    /// A table of so many bytes; one entry costs `overhead` and its key, rounded up to a power of two as nginx's slabs do it.
    fn new(size: u64, overhead: usize) -> Self {
        let count = (size / LEAST_SHARD).clamp(1, MOST_SHARDS);
        let shard = || Mutex::new(Shard::new(size / count, overhead));
        Table { shards: (0..count).map(|_| shard()).collect(), hasher: RandomState::default() }
    }

    /// Locks the shard of a key; with the shard's number and the key's hash.
    fn of(&self, key: &[u8]) -> (u32, u64, MutexGuard<'_, Shard<S>>) {
        let hash = self.hasher.hash_one(key);
        // The table inside a shard takes the other end of the hash.
        let shard = (hash >> 32) as usize % self.shards.len();
        (shard as u32, hash, self.lock(shard as u32))
    }

    fn lock(&self, shard: u32) -> MutexGuard<'_, Shard<S>> {
        // No code that runs under it can leave it half changed.
        self.shards[shard as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rehash(&self) -> impl Fn(&[u8]) -> u64 {
        |key| self.hasher.hash_one(key)
    }
}
