//! Purges of many entries at once, as rules: an entry is checked against them when it is met, never looked for.
//!
//! ```text
//! purge ──▶ a rule with the next number ──▶ in force at once ──▶ written to the journal ──▶ done
//!              │
//!              └─ goes for what was born before it: entries, files, and fills that are under way
//! ```
//! A number counts purges and is at least the clock's milliseconds, so it grows over restarts too. A fill notes the latest
//! when it begins (`born`); an entry that was checked against all rules counts as born with the latest of them. So a
//! repeated hit costs one read of the generation. Next: `purges/rules` (what goes for what), `purges/journal` (restarts),
//! `store/purge` (the door).

mod rule;
mod rows;
mod rules;
mod journal;

#[cfg(test)]
mod tests;

pub(crate) use journal::Journal;
pub use rule::Scope;
pub(crate) use rule::{Cause, LONGEST_PREFIX, Rule, number_of_key};
pub(crate) use rules::{Rules, Verdict};

use crate::tags::Tags;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// What is to be purged, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purge {
    pub what: What,
    pub how: How,
}

/// What is to be purged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// All variants of one key: the whole key, or its text alone, which means every key of that text. Keys
    /// whose text is an equivalent spelling are included (RFC 3986 §6.2.2).
    Key(Vec<u8>),
    /// Every key whose text begins so, in any spelling.
    Prefix(Vec<u8>),
    Tag(Vec<u8>),
    All,
}

/// How it is purged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum How {
    Hard,
    /// Stale from now on: used if a stale response may be used, and may be confirmed by the upstream.
    Soft,
}

/// The result of a purge in force. Purging by rule searches for nothing, so this is about single keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Purged {
    pub in_memory: bool,
    pub on_disk: bool,
}

/// A purge that applied to something, for reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// A later purge has a greater one.
    pub number: u64,
    /// In milliseconds since 1970.
    pub at: i64,
    pub how: How,
    pub scope: Scope,
}

#[derive(Debug, Default)]
pub(crate) struct Purges {
    generation: Generation,
    rules: RwLock<Rules>,
}

/// Read by every hit and written by purges alone, so nothing that is written more often may share its cache
/// line.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Generation(AtomicU64);

impl Purges {
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.0.load(Ordering::Acquire)
    }

    pub(crate) fn rules(&self) -> RwLockReadGuard<'_, Rules> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// `born` is its place among the purges, `text` that of its key.
    pub(crate) fn verdict(&self, born: u64, tags: &Tags, text: &[u8]) -> Verdict {
        self.rules().verdict(born, tags, text)
    }

    /// The rule is in force when this returns. `at` is in milliseconds since 1970.
    pub(crate) fn declare(&self, scope: Scope, how: How, at: i64) -> Rule {
        let mut rules = self.write();
        let rule = Rule { number: rules.next_number(at), at, how, scope };
        rules.admit(&rule);
        self.generation.0.store(rules.last(), Ordering::Release);
        rule
    }

    pub(crate) fn restore(&self, journal: &[Rule]) {
        let mut rules = self.write();
        journal.iter().for_each(|rule| rules.admit(rule));
        self.generation.0.store(rules.last(), Ordering::Release);
    }

    /// Something exists that was born later than the latest known rule, because a journal was lost: the next
    /// rule must apply to it.
    pub(crate) fn outnumber(&self, born: u64) {
        if born > self.generation() {
            self.write().outnumber(born);
        }
    }

    /// A rule is complete before anything that could panic, so a poisoned lock guards complete rules.
    fn write(&self) -> RwLockWriteGuard<'_, Rules> {
        self.rules.write().unwrap_or_else(PoisonError::into_inner)
    }
}
