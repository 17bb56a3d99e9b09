//! Things in a row without gaps, in pieces of memory that never move: adding one never copies the others.
//!
//! The row is kept dense by moving the last thing to where one was taken, so memory goes back piece by piece as things
//! go; whoever remembers indices corrects the one that changed. Next: `shard`.

use std::ops::{Index, IndexMut};

/// Bytes of a piece: one of the allocator's sizes, allocated quickly.
const PIECE: usize = 8192;

#[derive(Debug)]
pub(crate) struct Slab<T> {
    pieces: Vec<Vec<T>>,
    length: usize,
}

impl<T> Slab<T> {
    const IN_PIECE: usize = if size_of::<T>() < PIECE { PIECE / size_of::<T>() } else { 1 };

    pub(crate) const fn new() -> Slab<T> {
        Slab { pieces: Vec::new(), length: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn push(&mut self, thing: T) -> usize {
        let index = self.length;
        if index / Self::IN_PIECE == self.pieces.len() {
            self.pieces.push(Vec::with_capacity(Self::IN_PIECE));
        }
        self.pieces[index / Self::IN_PIECE].push(thing);
        self.length += 1;
        index
    }

    /// The last thing, if it is another, has its index from now on.
    pub(crate) fn swap_remove(&mut self, index: usize) -> T {
        assert!(index < self.length, "the index is one of the row");
        self.length -= 1;
        let piece = self.pieces.last_mut().expect("there is at least one thing");
        let last = piece.pop().expect("a piece that is empty is given back");
        if piece.is_empty() {
            self.pieces.pop();
        }
        if index == self.length { last } else { std::mem::replace(&mut self[index], last) }
    }
}

impl<T> Index<usize> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        &self.pieces[index / Self::IN_PIECE][index % Self::IN_PIECE]
    }
}

impl<T> IndexMut<usize> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.pieces[index / Self::IN_PIECE][index % Self::IN_PIECE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_stays_dense_and_gives_its_memory_back() {
        let mut row = Slab::<u64>::new();
        let count = 3 * Slab::<u64>::IN_PIECE;
        for number in 0..count {
            assert_eq!(row.push(number as u64), number);
        }
        assert_eq!(row.swap_remove(1), 1);
        assert_eq!((row[1], row.len()), (count as u64 - 1, count - 1));
        assert_eq!(row.swap_remove(row.len() - 1), count as u64 - 2);
        while row.len() > 0 {
            row.swap_remove(row.len() / 2);
        }
        assert!(row.pieces.is_empty());
    }
}
