//! Words by which the answers to one client differ from those to another, where bodies change by themselves.
//!
//! A time or a counter makes every two bodies differ, so only what stays says anything: words that are in all answers to the
//! one and in none to the other. What is asked in which order is `strangers`'s to say.

use std::collections::BTreeSet;

/// Bytes of a body that are looked at.
const LOOKED_AT: usize = 4 << 20;

/// What tells two clients apart, words above all; each answer that is seen leaves the same or fewer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// In all answers to the user's own request, in none to the stranger's.
    ours: BTreeSet<Vec<u8>>,
    /// The other way round.
    theirs: BTreeSet<Vec<u8>>,
    /// Header fields that do so too.
    pub(super) fields: Vec<&'static str>,
}

impl Marks {
    /// Fields alone.
    pub(super) fn of_fields(fields: Vec<&'static str>) -> Marks {
        Marks { fields, ..Marks::default() }
    }

    /// What two bodies differ in: the one for the user, the other for a stranger.
    pub fn between(own: &[u8], other: &[u8]) -> Marks {
        let (own, other) = (words(own), words(other));
        let without = |these: &BTreeSet<&[u8]>, those: &BTreeSet<&[u8]>| {
            these.difference(those).map(|word| word.to_vec()).collect()
        };
        Marks { ours: without(&own, &other), theirs: without(&other, &own), fields: Vec::new() }
    }

    /// Takes away what a further answer to the user's own request shows to mean nothing.
    pub fn seen_by_user(&mut self, body: &[u8]) {
        let words = words(body);
        self.ours.retain(|word| words.contains(word.as_slice()));
        self.theirs.retain(|word| !words.contains(word.as_slice()));
    }

    /// The same with a further answer to the stranger's.
    pub fn seen_by_stranger(&mut self, body: &[u8]) {
        let words = words(body);
        self.ours.retain(|word| !words.contains(word.as_slice()));
        self.theirs.retain(|word| words.contains(word.as_slice()));
    }

    /// Whether nothing is left that tells them apart.
    pub fn is_empty(&self) -> bool {
        !self.has_words() && self.fields.is_empty()
    }

    /// Whether words do.
    pub fn has_words(&self) -> bool {
        !self.ours.is_empty() || !self.theirs.is_empty()
    }

    /// Whether a body that a stranger got is one for the user: all words of the one, none of the other.
    pub fn are_of_user(&self, body: &[u8]) -> bool {
        let words = words(body);
        let is_there = |word: &Vec<u8>| words.contains(word.as_slice());
        self.has_words() && self.ours.iter().all(is_there) && !self.theirs.iter().any(is_there)
    }
}

/// Runs of letters and digits; every byte above ASCII counts as a letter.
fn words(body: &[u8]) -> BTreeSet<&[u8]> {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    body[..body.len().min(LOOKED_AT)].split(|byte| !is_letter(byte)).filter(|word| !word.is_empty()).collect()
}
