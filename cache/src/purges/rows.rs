//! The latest rules of single things, bounded: past that the oldest are folded into one for all of their kind.
//!
//! Folding can only purge more, and spares what was born or checked since. Next: `rules`, which has some.

use super::How;
use super::rule::Rule;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// A number and its moment; number 0 is no rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) number: u64,
    pub(super) at: i64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) hard: Mark,
    pub(super) soft: Mark,
}

impl Marks {
    pub(super) fn newest(&self) -> Mark {
        if self.hard.number > self.soft.number { self.hard } else { self.soft }
    }

    pub(super) fn take(&mut self, rule: &Rule) {
        let mark = Mark { number: rule.number, at: rule.at };
        let held = match rule.how {
            How::Hard => &mut self.hard,
            How::Soft => &mut self.soft,
        };
        if mark.number > held.number {
            *held = mark;
        }
    }

    pub(super) fn join(&mut self, other: &Marks) {
        if other.hard.number > self.hard.number {
            self.hard = other.hard;
        }
        if other.soft.number > self.soft.number {
            self.soft = other.soft;
        }
    }

    /// Forgets what a wider rule covers; returns whether anything is left.
    pub(super) fn says_more_than(&mut self, wider: &Marks) -> bool {
        if self.hard.number <= wider.hard.number {
            self.hard = Mark::default();
        }
        if self.soft.number <= wider.soft.number.max(wider.hard.number) {
            self.soft = Mark::default();
        }
        self.newest().number > 0
    }
}

#[derive(Debug)]
pub(super) struct Rows<T, const MOST: usize> {
    marks: HashMap<T, Marks>,
    /// In the order of their rules; one with a later rule is there again.
    queue: VecDeque<(u64, T)>,
}

impl<T, const MOST: usize> Default for Rows<T, MOST> {
    fn default() -> Self {
        Rows { marks: HashMap::new(), queue: VecDeque::new() }
    }
}

impl<T: Copy + Eq + Hash, const MOST: usize> Rows<T, MOST> {
    pub(super) fn len(&self) -> usize {
        self.marks.len()
    }

    /// Including outdated ones.
    #[cfg(test)]
    pub(super) fn queue_len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn get(&self, row: &T) -> Option<&Marks> {
        self.marks.get(row)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&T, &Marks)> {
        self.marks.iter()
    }

    /// Adds a rule unless `wider` covers it. Returns what was folded, for all of this kind.
    pub(super) fn admit(&mut self, row: T, rule: &Rule, wider: &Marks) -> Marks {
        let mut folded = Marks::default();
        let marks = self.marks.entry(row).or_default();
        marks.take(rule);
        if !marks.says_more_than(wider) {
            self.marks.remove(&row);
            return folded;
        }
        self.queue.push_back((marks.newest().number, row));
        while self.marks.len() > MOST {
            let Some((number, row)) = self.queue.pop_front() else { break };
            if self.marks.get(&row).is_some_and(|marks| marks.newest().number == number)
                && let Some(oldest) = self.marks.remove(&row)
            {
                folded.join(&oldest);
            }
        }
        if self.queue.len() > 2 * self.marks.len() + 1024 {
            self.order();
        }
        folded
    }

    /// Forgets what a wider rule covers.
    pub(super) fn leave_to(&mut self, wider: &Marks) {
        self.marks.retain(|_, marks| marks.says_more_than(wider));
        self.order();
    }

    fn order(&mut self) {
        let mut rows: Vec<_> = self.marks.iter().map(|(row, marks)| (marks.newest().number, *row)).collect();
        rows.sort_unstable_by_key(|(number, _)| *number);
        self.queue = rows.into();
    }
}
