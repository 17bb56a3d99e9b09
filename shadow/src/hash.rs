//! Keyed hashes: all that is ever kept of a request or a response.
//!
//! The key is random, lives as long as the process and is written nowhere, so a hash means nothing outside of it. Next:
//! `digest`, which hashes bodies as they pass.

use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;
use std::hash::{BuildHasher, Hasher};

/// The key of all hashes of one observation.
#[derive(Clone)]
pub struct Key(SeedableRandomState);

impl Key {
    /// A key that no one knows.
    pub fn random() -> Key {
        Key(SeedableRandomState::random())
    }

    /// For tests: the same hashes in each run.
    pub fn from_seed(seed: u64) -> Key {
        Key(SeedableRandomState::with_seed(seed, SharedSeed::global_fixed()))
    }

    pub(crate) fn bytes(&self, bytes: &[u8]) -> u64 {
        self.join(0, bytes)
    }

    /// The hash of bytes after what `before` stands for.
    pub(crate) fn join(&self, before: u64, bytes: &[u8]) -> u64 {
        let mut hasher = self.0.build_hasher();
        hasher.write_u64(before);
        hasher.write(bytes);
        hasher.finish()
    }

    pub(crate) fn pair(&self, first: u64, second: u64) -> u64 {
        let mut hasher = self.0.build_hasher();
        hasher.write_u64(first);
        hasher.write_u64(second);
        hasher.finish()
    }

    /// Never zero, which stands for an absent value.
    pub(crate) fn value(&self, bytes: &[u8]) -> u32 {
        (self.bytes(bytes) as u32).max(1)
    }
}

const BLOCK: usize = 256;

/// A hash of bytes that does not depend on the pieces in which they arrive.
pub(crate) struct Blocks {
    state: u64,
    held: [u8; BLOCK],
    length: usize,
}

impl Blocks {
    pub(crate) fn new() -> Blocks {
        Blocks { state: 0, held: [0; BLOCK], length: 0 }
    }

    pub(crate) fn feed(&mut self, key: &Key, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.length == 0 && bytes.len() >= BLOCK {
                let (block, rest) = bytes.split_at(BLOCK);
                self.state = key.join(self.state, block);
                bytes = rest;
                continue;
            }
            let (now, rest) = bytes.split_at(bytes.len().min(BLOCK - self.length));
            self.held[self.length..self.length + now.len()].copy_from_slice(now);
            self.length += now.len();
            bytes = rest;
            if self.length == BLOCK {
                self.state = key.join(self.state, &self.held);
                self.length = 0;
            }
        }
    }

    pub(crate) fn finish(&self, key: &Key) -> u64 {
        key.join(self.state, &self.held[..self.length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_a_body_does_not_depend_on_its_pieces() {
        let key = Key::from_seed(1);
        let body: Vec<u8> = (0..2_000_u32).map(|number| (number % 251) as u8).collect();
        let hash = |size: usize| {
            let mut blocks = Blocks::new();
            body.chunks(size).for_each(|piece| blocks.feed(&key, piece));
            blocks.finish(&key)
        };
        assert!([1, 7, 255, 256, 257, 2_000].iter().all(|size| hash(*size) == hash(64)));
    }
}
