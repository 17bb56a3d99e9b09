//! A part of a table: keys by their hash, and in the order of their last use.
//!
//! Nodes lie in one vector and are chained by number, so a known key is found, changed and moved to the front without
//! allocating. It knows nothing of limits.

use hashbrown::HashTable;
use smallvec::SmallVec;

const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Shard<S> {
    numbers: HashTable<u32>,
    nodes: Vec<Node<S>>,
    /// Head of the list of free nodes, linked by `older`.
    free: u32,
    newest: u32,
    oldest: u32,
    /// Bytes left for keys.
    room: u64,
    overhead: usize,
}

#[derive(Debug)]
struct Node<S> {
    key: SmallVec<[u8; 16]>,
    newer: u32,
    older: u32,
    state: S,
}

impl<S> Shard<S> {
    pub(super) fn new(room: u64, overhead: usize) -> Self {
        Shard {
            numbers: HashTable::new(),
            nodes: Vec::new(),
            free: NONE,
            newest: NONE,
            oldest: NONE,
            room,
            overhead,
        }
    }

    pub(super) fn find(&self, hash: u64, key: &[u8]) -> Option<u32> {
        self.numbers.find(hash, |&number| self.nodes[number as usize].key.as_slice() == key).copied()
    }

    pub(super) fn state(&mut self, node: u32) -> &mut S {
        &mut self.nodes[node as usize].state
    }

    pub(super) fn key(&self, node: u32) -> &[u8] {
        &self.nodes[node as usize].key
    }

    /// Every key with its state, in no order.
    pub(super) fn each(&self) -> impl Iterator<Item = (&[u8], &S)> {
        let node = |number: &u32| &self.nodes[*number as usize];
        self.numbers.iter().map(node).map(|node| (node.key.as_slice(), &node.state))
    }

    pub(super) fn touch(&mut self, node: u32) {
        if self.newest != node {
            self.unchain(node);
            self.chain(node);
        }
    }

    pub(super) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    pub(super) fn insert(
        &mut self,
        hash: u64,
        key: &[u8],
        state: S,
        rehash: impl Fn(&[u8]) -> u64,
    ) -> Option<u32> {
        self.room = self.room.checked_sub(self.cost(key.len()))?;
        let node = Node { key: SmallVec::from_slice(key), newer: NONE, older: NONE, state };
        let number = if self.free == NONE {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            let number = self.free;
            self.free = std::mem::replace(&mut self.nodes[number as usize], node).older;
            number
        };
        let nodes = &self.nodes;
        self.numbers.insert_unique(hash, number, |&other| rehash(&nodes[other as usize].key));
        self.chain(number);
        Some(number)
    }

    pub(super) fn remove(&mut self, number: u32, rehash: impl Fn(&[u8]) -> u64) {
        self.unchain(number);
        let node = &mut self.nodes[number as usize];
        let key = std::mem::take(&mut node.key);
        (node.newer, node.older) = (NONE, self.free);
        self.free = number;
        self.room += self.cost(key.len());
        if let Ok(found) = self.numbers.find_entry(rehash(&key), |&other| other == number) {
            found.remove();
        }
    }

    fn cost(&self, key: usize) -> u64 {
        (self.overhead + key).next_power_of_two() as u64
    }

    fn chain(&mut self, number: u32) {
        let before = std::mem::replace(&mut self.newest, number);
        let node = &mut self.nodes[number as usize];
        (node.newer, node.older) = (NONE, before);
        match before {
            NONE => self.oldest = number,
            before => self.nodes[before as usize].newer = number,
        }
    }

    fn unchain(&mut self, number: u32) {
        let (newer, older) = {
            let node = &self.nodes[number as usize];
            (node.newer, node.older)
        };
        match newer {
            NONE => self.newest = older,
            newer => self.nodes[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.nodes[older as usize].newer = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(key: &[u8]) -> u64 {
        key.iter().map(|&byte| u64::from(byte)).sum()
    }

    fn keys(shard: &Shard<u8>) -> Vec<Vec<u8>> {
        let mut keys = Vec::new();
        let mut at = shard.oldest;
        while at != NONE {
            let node = &shard.nodes[at as usize];
            keys.push(node.key.to_vec());
            at = node.newer;
        }
        keys
    }

    #[test]
    fn keys_stand_in_the_order_of_their_last_use_and_take_no_more_than_their_room() {
        let mut shard = Shard::new(3 * 64, 48);
        let insert = |shard: &mut Shard<u8>, key: &[u8]| shard.insert(hash(key), key, 0, hash);
        let [one, two, three] = [b"one", b"two", b"six"].map(|key| insert(&mut shard, key).expect("room"));
        assert_eq!(insert(&mut shard, b"more"), None, "it is full");
        shard.touch(one);
        shard.touch(one);
        assert_eq!(keys(&shard), [b"two", b"six", b"one"]);
        assert_eq!(shard.oldest(), Some(two));
        shard.remove(three, hash);
        assert_eq!((shard.find(hash(b"six"), b"six"), keys(&shard).len()), (None, 2));
        assert_eq!(insert(&mut shard, &[b'x'; 20]), None, "a long key costs more");
        assert_eq!(insert(&mut shard, b"new"), Some(three), "a free place is used again");
        *shard.state(one) = 9;
        assert_eq!(shard.find(hash(b"one"), b"one").map(|node| *shard.state(node)), Some(9));
        for node in [one, two, three] {
            shard.remove(node, hash);
        }
        assert_eq!((shard.oldest(), shard.room), (None, 3 * 64));
    }
}
