//! The index of a zone's files, in parts with a lock each, so that whoever asks for one file waits for nothing long.
//!
//! Worker loops ask it under a shard's lock. With ten million files in one table, making that table larger takes most of a
//! second; a part of five hundred grows in a fraction of a millisecond. Names are digests, so the parts are alike.
//! Next: `index`, one part.

use super::index::{Index, SAMPLES};
use super::lock;
use super::place::Name;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A power of two.
const PARTS: usize = 512;
/// Distance between victims' parts: by the golden section, so that few files are never examined in one order.
const STRIDE: usize = 317;

#[derive(Debug)]
pub(super) struct Files {
    parts: Box<[Mutex<Index>]>,
    count: AtomicU64,
    bytes: AtomicU64,
    /// The part where [`Files::inactive`] continues.
    swept: AtomicUsize,
    victim: AtomicUsize,
}

/// Position of a walk over all files. Every file that existed at its start is visited although others come
/// and go.
#[derive(Debug)]
pub(super) struct Cursor {
    part: usize,
    below: usize,
}

impl Cursor {
    pub(super) fn begin() -> Cursor {
        Cursor { part: 0, below: usize::MAX }
    }

    pub(super) fn is_end(&self) -> bool {
        self.part == PARTS
    }
}

impl Files {
    pub(super) fn new() -> Files {
        Files {
            parts: (0..PARTS).map(|_| Mutex::new(Index::new())).collect(),
            count: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            swept: AtomicUsize::new(0),
            victim: AtomicUsize::new(0),
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn contains(&self, name: &Name) -> bool {
        lock(self.part(name)).contains(name)
    }

    pub(super) fn order(&self, name: &Name) -> Option<u64> {
        lock(self.part(name)).order(name)
    }

    pub(super) fn touch(&self, name: &Name, now: u32) {
        lock(self.part(name)).touch(name, now);
    }

    /// Adds or updates a file. `key` is the hash of its key, 0 if unknown.
    pub(super) fn insert(&self, name: Name, bytes: u64, now: u32, order: u64, key: u64) {
        self.change(&name, |index| index.insert(name, bytes, now, order, key));
    }

    /// Adds a file that was found, unless it is known.
    pub(super) fn note(&self, name: Name, bytes: u64, now: u32) {
        self.change(&name, |index| index.note(name, bytes, now));
    }

    pub(super) fn was_read(&self, name: Name, bytes: u64, now: u32, key: u64) {
        self.change(&name, |index| index.was_read(name, bytes, now, key));
    }

    /// Returns the hash of its key, 0 if unknown.
    pub(super) fn remove(&self, name: &Name) -> Option<u64> {
        self.change(name, |index| index.remove(name))
    }

    /// Of a few random ones, the one unused for longest.
    pub(super) fn least_used(&self) -> Option<Name> {
        let first = self.victim.fetch_add(STRIDE, Ordering::Relaxed);
        let (mut left, mut found) = (SAMPLES, None);
        for offset in 0..PARTS {
            let mut part = lock(&self.parts[(first + offset) % PARTS]);
            let least = part.least_used(left);
            left = left.saturating_sub(part.len());
            found = match (found, least) {
                (Some(one), Some(other)) => Some(std::cmp::min(one, other)),
                (one, other) => one.or(other),
            };
            if left == 0 {
                break;
            }
        }
        found.map(|(_, name)| name)
    }

    /// Files unused for more than `inactive` seconds among about the next `budget`, at most `most`. True at
    /// the end, after which the next call starts over.
    pub(super) fn inactive(&self, now: u32, inactive: u32, budget: usize, most: usize) -> (Vec<Name>, bool) {
        let (mut found, mut left) = (Vec::new(), budget);
        let mut at = self.swept.load(Ordering::Relaxed);
        while at < PARTS && left > 0 && found.len() < most {
            let mut part = lock(&self.parts[at]);
            let (names, is_end) = part.inactive(now, inactive, left, most - found.len());
            left = left.saturating_sub(part.len().max(1));
            found.extend(names);
            if !is_end {
                break;
            }
            at += 1;
        }
        let is_end = at == PARTS;
        self.swept.store(if is_end { 0 } else { at }, Ordering::Relaxed);
        (found, is_end)
    }

    pub(super) fn names(&self, cursor: &mut Cursor, most: usize) -> Vec<Name> {
        let mut found = Vec::new();
        while !cursor.is_end() && found.len() < most {
            let (names, start) = lock(&self.parts[cursor.part]).names_below(cursor.below, most - found.len());
            found.extend(names);
            cursor.below = start;
            if start == 0 {
                *cursor = Cursor { part: cursor.part + 1, below: usize::MAX };
            }
        }
        found
    }

    pub(super) fn cost(&self) -> u64 {
        let parts: u64 = self.parts.iter().map(|part| lock(part).cost()).sum();
        parts + (PARTS * size_of::<Mutex<Index>>()) as u64
    }

    fn part(&self, name: &Name) -> &Mutex<Index> {
        // Not the byte that chooses the stripe, so that the files of a stripe are in many parts.
        &self.parts[usize::from(u16::from_le_bytes([name[1], name[2]])) % PARTS]
    }

    /// Changes a part and keeps the sums consistent with it.
    fn change<T>(&self, name: &Name, change: impl FnOnce(&mut Index) -> T) -> T {
        let mut part = lock(self.part(name));
        let before = (part.len() as u64, part.bytes());
        let outcome = change(&mut part);
        // Wraps where it becomes less, and so does the sum.
        self.count.fetch_add((part.len() as u64).wrapping_sub(before.0), Ordering::Relaxed);
        self.bytes.fetch_add(part.bytes().wrapping_sub(before.1), Ordering::Relaxed);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_net::clock;
    use std::collections::HashSet;
    use std::time::Duration;

    fn name(number: u64) -> Name {
        crate::key::md5(&number.to_le_bytes())
    }

    #[test]
    fn the_sums_are_those_of_what_is_there() {
        let files = Files::new();
        (0..2000).for_each(|number| files.insert(name(number), 5000, 100, 1, 9));
        (0..2000).for_each(|number| files.note(name(number), 1, 100));
        (0..2000).step_by(2).for_each(|number| assert_eq!(files.remove(&name(number)), Some(9)));
        assert_eq!((files.len(), files.bytes(), files.remove(&name(0))), (1000, 1000 * 8192, None));
        assert!((0..2000).all(|number| files.contains(&name(number)) == (number % 2 == 1)));
        (0..1000).for_each(|_| _ = files.least_used().and_then(|name| files.remove(&name)));
        assert_eq!((files.len(), files.bytes(), files.least_used()), (0, 0, None));
    }

    #[test]
    fn a_walk_and_a_sweep_meet_every_file_a_few_at_a_time() {
        let files = Files::new();
        (0..3000).for_each(|number| files.insert(name(number), 1, 100, 0, 0));
        let (mut cursor, mut met) = (Cursor::begin(), HashSet::new());
        while !cursor.is_end() {
            let names = files.names(&mut cursor, 256);
            assert!(names.len() <= 256);
            names.iter().step_by(2).for_each(|name| _ = files.remove(name));
            met.extend(names);
        }
        assert_eq!(met.len(), 3000);
        let (mut found, mut rounds) = (HashSet::new(), 0);
        loop {
            let (names, is_end) = files.inactive(1000, 50, 200, 64);
            rounds += 1;
            found.extend(names);
            if is_end {
                break;
            }
        }
        assert!(found.len() == 1500 && rounds >= 1500 / 64, "{} in {rounds}", found.len());
    }

    #[test]
    fn what_goes_is_among_the_least_used_of_few_files_and_of_many() {
        for count in [200, 20_000] {
            let files = Files::new();
            (0..count).for_each(|number| files.insert(name(number), 1, number as u32, 0, number));
            let gone = (0..100).filter_map(|_| files.least_used().and_then(|name| files.remove(&name)));
            let sum: u64 = gone.sum();
            assert!(sum < 100 * count * 3 / 10, "by chance it would be about {}: {sum}", 50 * count);
        }
    }

    /// `cargo test --profile dist -p millstream-cache longest -- --ignored --nocapture`
    #[test]
    #[ignore = "takes a gigabyte and some time; it prints a figure"]
    fn the_longest_that_a_file_of_ten_million_is_waited_for() {
        let mut one = Index::new();
        let mut longest = [Duration::ZERO; 2];
        let files = Files::new();
        for number in 0..10_000_000 {
            let name = name(number);
            let start = clock::now();
            one.insert(name, 1, 0, 0, 0);
            let middle = clock::now();
            files.insert(name, 1, 0, 0, 0);
            longest[0] = longest[0].max(middle - start);
            longest[1] = longest[1].max(clock::now() - middle);
        }
        println!("one table: {:?}; in parts: {:?}", longest[0], longest[1]);
    }
}
