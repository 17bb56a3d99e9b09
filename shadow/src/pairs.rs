//! Pairs of responses of a route, counted by the dimensions in which their requests differed and by the time between them.
//!
//! Before: `dimension`; next: `variance`, which reads them.

use std::collections::HashMap;

/// Different patterns that are counted; the rarest gives way to a new one.
const MOST: usize = 440;

/// Milliseconds between the responses of a pair: the ends of the windows.
const WINDOWS: [u64; 4] = [1_000, 10_000, 60_000, 300_000];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Pattern {
    differing: u64,
    window: u8,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) equal: u32,
    pub(crate) differing: u32,
}

#[derive(Default)]
pub(crate) struct Pairs {
    counts: HashMap<Pattern, Counts>,
    pub(crate) total: u32,
}

impl Pairs {
    /// `dimensions`: those in which the requests differ; `apart`: milliseconds.
    pub(crate) fn add(&mut self, dimensions: u64, apart: u64, differs: bool) {
        let Some(window) = WINDOWS.iter().position(|end| apart <= *end) else { return };
        let pattern = Pattern { differing: dimensions, window: window as u8 };
        if !self.counts.contains_key(&pattern) && self.counts.len() == MOST {
            let rarest = self
                .counts
                .iter()
                .min_by_key(|(_, counts)| counts.equal + counts.differing)
                .map(|(key, _)| *key);
            rarest.map(|rarest| self.counts.remove(&rarest));
        }
        self.total = self.total.saturating_add(1);
        let counts = self.counts.entry(pattern).or_default();
        if differs { counts.differing += 1 } else { counts.equal += 1 }
    }

    pub(crate) fn clear(&mut self) {
        self.counts.clear();
        self.total = 0;
    }

    /// Each pattern with its window and counts.
    pub(crate) fn each(&self) -> impl Iterator<Item = (u64, usize, Counts)> {
        self.counts.iter().map(|(pattern, counts)| (pattern.differing, usize::from(pattern.window), *counts))
    }

    pub(crate) const fn windows() -> usize {
        WINDOWS.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<Pairs>() + self.counts.capacity() * (size_of::<(Pattern, Counts)>() + 1)
    }
}
