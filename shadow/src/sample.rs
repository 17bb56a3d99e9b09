//! The URLs that are sampled, in a fixed amount of memory.
//!
//! As in SHARDS (Waldspurger et al., FAST '15), a URL is sampled if the hash of its key is below a threshold, so each of its
//! requests is seen. Each route has a threshold of its own: when there is no room, the route with the most keys halves it.
//! From half full on, a URL must be seen twice to be kept, so that random URLs do not push out what is known. Before:
//! `simulation`; next: `shadow`.

use crate::seen::Seen;
use crate::simulation::Entry;
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// URLs, and bytes that they may take with all that is kept of them.
pub const MOST_KEYS: usize = 16_384;
pub const MOST_BYTES: usize = 14 << 20;

const BLOOM_BITS: u64 = 1 << 17;

/// Paths whose latest responses are compared with those of other queries, and responses of each.
const PATHS: usize = 1_024;
const OF_A_PATH: usize = 2;

pub(crate) struct Sample {
    pub(crate) entries: HashMap<u64, Entry, RandomState>,
    bytes: usize,
    /// URLs that were seen once.
    once: Box<[u64]>,
    once_count: u64,
    paths: Vec<(u64, Vec<Seen>)>,
}

/// Whether there is room for a URL.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Yes,
    /// It was seen for the first time while there is little room.
    NotYet,
    /// Another key must go first.
    No,
}

impl Sample {
    pub(crate) fn new() -> Sample {
        Sample {
            entries: HashMap::default(),
            bytes: 0,
            once: vec![0; (BLOOM_BITS / 64) as usize].into(),
            once_count: 0,
            paths: Vec::new(),
        }
    }

    pub(crate) fn room(&mut self, url: u64) -> Room {
        if self.entries.contains_key(&url) {
            return Room::Yes;
        }
        let is_half_full = self.entries.len() * 2 >= MOST_KEYS || self.bytes * 2 >= MOST_BYTES;
        if !is_half_full || self.was_seen(url) {
            return if self.is_full() { Room::No } else { Room::Yes };
        }
        Room::NotYet
    }

    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() >= MOST_KEYS || self.bytes >= MOST_BYTES
    }

    fn was_seen(&mut self, url: u64) -> bool {
        let bits = [url % BLOOM_BITS, (url >> 20) % BLOOM_BITS];
        let is_set = |once: &[u64], bit: u64| once[(bit / 64) as usize] & (1 << (bit % 64)) != 0;
        let was_seen = bits.iter().all(|bit| is_set(&self.once, *bit));
        if !was_seen {
            if self.once_count * 8 > BLOOM_BITS {
                self.once.fill(0);
                self.once_count = 0;
            }
            bits.iter().for_each(|bit| self.once[(bit / 64) as usize] |= 1 << (bit % 64));
            self.once_count += 1;
        }
        was_seen
    }

    /// Works on the entry of a URL, which is made if there is none.
    pub(crate) fn with<R>(
        &mut self,
        url: u64,
        new: impl FnOnce() -> Entry,
        work: impl FnOnce(&mut Entry) -> R,
    ) -> R {
        let entry = self.entries.entry(url).or_insert_with(|| {
            let entry = new();
            self.bytes += entry.bytes();
            entry
        });
        let before = entry.bytes();
        let result = work(entry);
        self.bytes = (self.bytes + entry.bytes()).saturating_sub(before);
        result
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(u64, &Entry) -> bool) {
        let bytes = &mut self.bytes;
        self.entries.retain(|url, entry| {
            let stays = keep(*url, entry);
            if !stays {
                *bytes = bytes.saturating_sub(entry.bytes());
            }
            stays
        });
    }

    /// The latest responses to a path, and the slot for its next one.
    pub(crate) fn of_path(&self, path: u64) -> &[Seen] {
        let slot = self.paths.get(path as usize % PATHS);
        slot.filter(|(of, _)| *of == path).map_or(&[], |(_, seen)| seen)
    }

    pub(crate) fn keep_of_path(&mut self, path: u64, seen: &Seen) {
        self.paths.resize_with(PATHS, Default::default);
        let (of, list) = &mut self.paths[path as usize % PATHS];
        if *of != path {
            *of = path;
            list.clear();
        }
        if list.len() == OF_A_PATH {
            list.remove(0);
        }
        list.push(seen.clone());
    }

    pub(crate) fn bytes(&self) -> usize {
        let paths: usize =
            self.paths.iter().map(|(_, seen)| 40 + seen.iter().map(Seen::bytes).sum::<usize>()).sum();
        self.bytes + self.entries.capacity() * (size_of::<Entry>() + 9) + (BLOOM_BITS / 8) as usize + paths
    }
}
