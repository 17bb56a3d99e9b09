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

const MOST_SHARDS: u64 = 16;
/// Bytes; small zones are not split, as each shard could fill up alone.
const LEAST_SHARD: u64 = 64 * 1024;

#[derive(Debug)]
struct Table<S> {
    shards: Box<[Mutex<Shard<S>>]>,
    hasher: RandomState,
}

/// Valid as long as something prevents the key's removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    shard: u32,
    node: u32,
}

impl<S> Table<S> {
    /// `size` in bytes; an entry costs `overhead` and its key, rounded up to a power of two as in nginx's
    /// slabs.
    fn new(size: u64, overhead: usize) -> Self {
        let count = (size / LEAST_SHARD).clamp(1, MOST_SHARDS);
        let shard = || Mutex::new(Shard::new(size / count, overhead));
        Table { shards: (0..count).map(|_| shard()).collect(), hasher: RandomState::default() }
    }

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
