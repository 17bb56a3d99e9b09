//! Some of a zone's files: which there are, how large, and how long unused: 16 bytes of name and a few numbers for each.
//!
//! It knows names, not keys: that is what a directory tells without opening a file, so a million of them are listed in
//! a second. Of a file that was read or written it knows the key's hash too, which leads from a name to what memory has
//! of it. Which file has to go is found by looking at a few at random and taking the one unused for longest.
//! Next: `files`, all of them.

use super::place::Name;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// Files examined to choose a victim.
pub(super) const SAMPLES: usize = 12;
/// Filesystems allocate pages.
const PAGE: u64 = 4096;

#[derive(Debug, Clone, Copy)]
struct Item {
    name: Name,
    pages: u32,
    /// Seconds since 1970.
    used_at: u32,
    /// Place of the entry in the order; 0 = existed at start.
    order: u64,
    /// The hash of its key in the memory tier; 0 while nothing of it was in memory.
    key: u64,
}

#[derive(Debug)]
pub(crate) struct Index {
    hasher: RandomState,
    table: HashTable<u32>,
    items: Vec<Item>,
    pages: u64,
    random: u64,
    swept: usize,
}

impl Index {
    pub(crate) fn new() -> Index {
        let hasher = RandomState::default();
        let random = hasher.hash_one(0u8) | 1;
        Index { hasher, table: HashTable::new(), items: Vec::new(), pages: 0, random, swept: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.pages * PAGE
    }

    pub(crate) fn contains(&self, name: &Name) -> bool {
        self.find(name).is_some()
    }

    pub(crate) fn order(&self, name: &Name) -> Option<u64> {
        self.find(name).map(|index| self.items[index].order)
    }

    pub(crate) fn touch(&mut self, name: &Name, now: u32) {
        if let Some(index) = self.find(name) {
            self.items[index].used_at = now;
        }
    }

    /// Adds or updates a file. `key` is the hash of its key, 0 if unknown.
    pub(crate) fn insert(&mut self, name: Name, bytes: u64, now: u32, order: u64, key: u64) {
        let pages = u32::try_from(bytes.div_ceil(PAGE)).unwrap_or(u32::MAX);
        self.pages += u64::from(pages);
        let item = Item { name, pages, used_at: now, order, key };
        match self.find(&name) {
            Some(index) => {
                self.pages -= u64::from(self.items[index].pages);
                self.items[index] = item;
            }
            None => {
                if self.items.len() == self.items.capacity() {
                    // All parts are alike, and so would all have half of their room free at once.
                    self.items.reserve_exact((self.items.len() / 8).max(4));
                }
                self.items.push(item);
                let index = (self.items.len() - 1) as u32;
                let (hasher, items) = (&self.hasher, &self.items);
                self.table.insert_unique(hasher.hash_one(name), index, |&other| {
                    hasher.hash_one(items[other as usize].name)
                });
            }
        }
    }

    /// Adds a file that was found, unless it is known.
    pub(crate) fn note(&mut self, name: Name, bytes: u64, now: u32) {
        if !self.contains(&name) {
            self.insert(name, bytes, now, 0, 0);
        }
    }

    pub(crate) fn was_read(&mut self, name: Name, bytes: u64, now: u32, key: u64) {
        // It may not have been come upon yet.
        self.note(name, bytes, now);
        if let Some(index) = self.find(&name) {
            let item = &mut self.items[index];
            (item.used_at, item.key) = (now, key);
        }
    }

    /// Returns the hash of its key, 0 if unknown.
    pub(crate) fn remove(&mut self, name: &Name) -> Option<u64> {
        let index = self.find(name)?;
        self.unlist(name, index);
        let item = self.items.swap_remove(index);
        self.pages -= u64::from(item.pages);
        // The last one now stands where the removed one stood.
        if let Some(moved) = self.items.get(index) {
            let (hash, last) = (self.hasher.hash_one(moved.name), self.items.len() as u32);
            if let Some(place) = self.table.find_mut(hash, |&other| other == last) {
                *place = index as u32;
            }
        }
        Some(item.key)
    }

    /// Of a few random ones, the one unused for longest, after the second of its last use.
    pub(crate) fn least_used(&mut self, samples: usize) -> Option<(u32, Name)> {
        let count = self.items.len();
        (0..samples.min(count))
            .map(|_| {
                let at = self.random_number() as usize % count;
                self.items[at]
            })
            .min_by_key(|item| item.used_at)
            .map(|item| (item.used_at, item.name))
    }

    /// Files unused for more than `inactive` seconds among the next `budget`, at most `most`. True at the
    /// end, after which the next call starts over.
    pub(crate) fn inactive(
        &mut self,
        now: u32,
        inactive: u32,
        budget: usize,
        most: usize,
    ) -> (Vec<Name>, bool) {
        let mut found = Vec::new();
        let from = if self.swept == 0 { self.items.len() } else { self.swept.min(self.items.len()) };
        let end = from.saturating_sub(budget);
        // Downwards, as in `names_below`: what is removed is replaced from above.
        self.swept = from;
        while self.swept > end && found.len() < most {
            self.swept -= 1;
            let item = &self.items[self.swept];
            if now.saturating_sub(item.used_at) > inactive {
                found.push(item.name);
            }
        }
        (found, self.swept == 0)
    }

    /// Up to `most` names at indices below `below`, highest first, and where they start. Going down, every
    /// file that existed at the start is visited although others come and go: a freed index is filled from
    /// above.
    pub(crate) fn names_below(&self, below: usize, most: usize) -> (Vec<Name>, usize) {
        let end = below.min(self.items.len());
        let start = end.saturating_sub(most);
        (self.items[start..end].iter().rev().map(|item| item.name).collect(), start)
    }

    pub(crate) fn cost(&self) -> u64 {
        (self.items.capacity() * size_of::<Item>() + self.table.allocation_size()) as u64
    }

    fn find(&self, name: &Name) -> Option<usize> {
        let same = |&index: &u32| self.items[index as usize].name == *name;
        self.table.find(self.hasher.hash_one(name), same).map(|&index| index as usize)
    }

    fn unlist(&mut self, name: &Name, index: usize) {
        if let Ok(place) = self.table.find_entry(self.hasher.hash_one(name), |&other| other as usize == index)
        {
            place.remove();
        }
    }

    /// xorshift64: the choice of victims need not be unpredictable.
    fn random_number(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: u8) -> Name {
        [number; 16]
    }

    #[test]
    fn files_are_found_counted_and_removed_in_any_order() {
        let mut index = Index::new();
        for number in 0..100 {
            index.insert(name(number), 5000, u32::from(number), 0, 9);
        }
        index.insert(name(7), 1, 7, 9, 9);
        assert_eq!((index.len(), index.bytes()), (100, (99 * 2 + 1) * PAGE));
        assert_eq!(index.order(&name(7)), Some(9));
        for number in (0..100).step_by(3) {
            assert_eq!((index.remove(&name(number)), index.remove(&name(number))), (Some(9), None));
        }
        assert!((0..100).all(|number| index.contains(&name(number)) == (number % 3 != 0)));
        assert_eq!(index.bytes(), (65 * 2 + 1) * PAGE);
    }

    #[test]
    fn files_unused_for_too_long_are_found_a_few_at_a_time() {
        let mut index = Index::new();
        for number in 0..10 {
            index.insert(name(number), 1, 100, 0, 0);
        }
        index.touch(&name(3), 200);
        let mut found: Vec<_> = (0..5).flat_map(|_| index.inactive(201, 50, 2, 9).0).collect();
        found.sort_unstable();
        assert_eq!(found.len(), 9);
        assert!(!found.contains(&name(3)));
        assert_eq!(index.inactive(201, 50, 100, 4), ([9, 8, 7, 6].map(name).to_vec(), false));
        assert!(index.inactive(201, 50, 100, 100).1);
    }

    #[test]
    fn going_down_every_file_is_met_although_others_come_and_go() {
        let mut index = Index::new();
        (0..100).for_each(|number| index.insert(name(number), 1, 0, 0, 0));
        let (mut met, mut below) = (Vec::new(), usize::MAX);
        while below > 0 {
            let (names, start) = index.names_below(below, 7);
            names.iter().step_by(2).for_each(|name| assert!(index.remove(name).is_some()));
            index.insert(name(100 + met.len() as u8), 1, 0, 0, 0);
            met.extend(names);
            below = start;
        }
        (0..100).for_each(|number| assert!(met.contains(&name(number)), "{number}"));
    }

    #[test]
    fn what_goes_is_among_the_least_used() {
        let mut index = Index::new();
        for number in 0..200 {
            index.insert(name(number), 1, u32::from(number), 0, 0);
        }
        let mut sum = 0;
        for _ in 0..100 {
            sum += u32::from(index.least_used(SAMPLES).expect("there are files").1[0]);
        }
        assert!(sum < 100 * 60, "by chance it would be about 9,950: {sum}");
    }
}
