//! The dynamic table (RFC 7541 §2.3.2): the latest lines, the oldest of which go when there is no more room.
//!
//! Lines lie one behind the other in one run of bytes; those that went leave a gap at the start, which is closed once
//! it is as long as what is left. So a byte is moved once at the most, and the memory is bounded by the largest size:
//! twice its bytes for the lines and less than once for where they are. An empty table has allocated nothing.

use super::line::{self, Flaw, Line, LineName};
use std::collections::VecDeque;

/// RFC 9113 §6.5.2.
pub const DEFAULT_SIZE: usize = 4096;

/// Lines of one peer. Sizes are those of RFC 7541 §4.1: name, value and 32 for each line.
#[derive(Debug)]
pub struct DynamicTable {
    bytes: Vec<u8>,
    /// Octets removed from the front of `bytes` so far, modulo 2^32.
    base: u32,
    /// From the oldest to the latest.
    entries: VecDeque<Entry>,
    size: usize,
    largest: usize,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Start of its text counted from the first octet ever stored, modulo 2^32.
    start: u32,
    length: u32,
    name_length: u32,
    called: LineName,
    flaw: Option<Flaw>,
}

impl Entry {
    fn start_in(&self, base: u32) -> usize {
        self.start.wrapping_sub(base) as usize
    }
}

impl Default for DynamicTable {
    fn default() -> DynamicTable {
        DynamicTable { bytes: Vec::new(), base: 0, entries: VecDeque::new(), size: 0, largest: DEFAULT_SIZE }
    }
}

impl DynamicTable {
    /// `age` counts back from the latest line.
    #[inline]
    pub fn line(&self, age: usize) -> Option<Line<'_>> {
        let entry = self.entries.get(self.entries.len().wrapping_sub(1).wrapping_sub(age))?;
        let start = entry.start_in(self.base);
        let text = self.bytes.get(start..start + entry.length as usize)?;
        Some(Line::new(entry.called, entry.flaw, text, entry.name_length))
    }

    /// Evicts older lines. A line larger than the table empties it and is not added (§4.4).
    pub fn insert(&mut self, line: Line<'_>) {
        let room = match self.largest.checked_sub(line.size()) {
            Some(room) => room,
            None => return self.shrink_to(0),
        };
        self.shrink_to(room);
        let text = line.text();
        self.make_room(text.len());
        let start = self.base.wrapping_add(self.bytes.len() as u32);
        self.bytes.extend_from_slice(text);
        self.entries.push_back(Entry {
            start,
            length: text.len() as u32,
            name_length: line.name_length(),
            called: line.called,
            flaw: line.flaw,
        });
        self.size += line.size();
    }

    pub fn resize(&mut self, largest: usize) {
        self.largest = largest;
        self.shrink_to(largest);
        if largest == 0 {
            // A peer that uses no table should not pay for one.
            (self.bytes, self.entries) = (Vec::new(), VecDeque::new());
        }
    }

    pub fn largest(&self) -> usize {
        self.largest
    }

    pub fn size(&self) -> usize {
        self.size
    }

    /// Octets of heap memory, spare capacity included.
    pub fn memory(&self) -> usize {
        self.bytes.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    fn shrink_to(&mut self, room: usize) {
        while self.size > room
            && let Some(oldest) = self.entries.pop_front()
        {
            self.size -= line::size_of(oldest.length as usize);
        }
    }

    /// Closes the gap at the start once it is as long as what will follow it, and grows the memory within its
    /// bound.
    fn make_room(&mut self, length: usize) {
        let gap = self.entries.front().map_or(self.bytes.len(), |oldest| oldest.start_in(self.base));
        if gap >= self.bytes.len() - gap + length || self.entries.is_empty() {
            self.bytes.drain(..gap);
            self.base = self.base.wrapping_add(gap as u32);
        }
        let needed = self.bytes.len() + length;
        if needed > self.bytes.capacity() {
            let capacity = needed.next_power_of_two().min(2 * self.largest).max(needed);
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
    }
}
