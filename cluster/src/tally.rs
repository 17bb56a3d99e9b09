//! Counts on their way between nodes: what the others do not know yet of this one, and what this one knows of them.
//!
//! Both are bounded; what does not fit is counted. Plain data under the lock of a door. Next: `limit_door`.

use crate::order::Issuer;
use crate::secret::KeyHash;
use crate::usage::MOST_KEYS;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Counts of other nodes that are remembered.
const MOST_OTHERS: usize = 262_144;
/// A count that a node has not repeated for as long is that of a node that is gone.
pub(crate) const FORGOTTEN: Duration = Duration::from_secs(5);

/// What is to be sent.
#[derive(Debug, Default)]
pub(crate) struct Unsent {
    counts: HashMap<KeyHash, u32>,
    pub(crate) left_out: u64,
}

impl Unsent {
    pub(crate) fn change(&mut self, key: KeyHash, change: impl FnOnce(&mut u32)) {
        if self.counts.len() >= MOST_KEYS && !self.counts.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        change(self.counts.entry(key).or_default());
    }

    /// Unless there is a later one.
    pub(crate) fn offer(&mut self, key: KeyHash, count: u32) {
        if !self.counts.contains_key(&key) {
            self.change(key, |known| *known = count);
        }
    }

    pub(crate) fn take(&mut self) -> Vec<(KeyHash, u32)> {
        self.counts.drain().collect()
    }
}

/// Requests under way on other nodes.
#[derive(Debug, Default)]
pub(crate) struct Others {
    counts: HashMap<KeyHash, Vec<OtherCount>>,
    total: usize,
    pub(crate) left_out: u64,
}

#[derive(Debug)]
struct OtherCount {
    node: Issuer,
    count: u32,
    heard: Instant,
}

impl Others {
    pub(crate) fn hear(&mut self, node: Issuer, key: KeyHash, count: u32, now: Instant) {
        let known = self.counts.get_mut(&key);
        if let Some(other) = known.and_then(|all| all.iter_mut().find(|other| other.node == node)) {
            (other.count, other.heard) = (count, now);
        } else if count > 0 && self.total < MOST_OTHERS {
            self.total += 1;
            self.counts.entry(key).or_default().push(OtherCount { node, count, heard: now });
        } else if count > 0 {
            self.left_out += 1;
        }
    }

    pub(crate) fn of(&self, key: &KeyHash, now: Instant) -> u32 {
        let all = self.counts.get(key).map_or(&[][..], Vec::as_slice);
        let live = all.iter().filter(|other| other.is_live(now));
        live.fold(0, |sum, other| sum.saturating_add(other.count))
    }

    /// Forgets what has ended, and nodes that are gone.
    pub(crate) fn tidy(&mut self, now: Instant) {
        self.counts.retain(|_, all| {
            all.retain(|other| other.count > 0 && other.is_live(now));
            !all.is_empty()
        });
        self.total = self.counts.values().map(Vec::len).sum();
    }
}

impl OtherCount {
    fn is_live(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.heard) < FORGOTTEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_net::clock;

    #[test]
    fn counts_of_other_nodes_add_up_until_they_are_not_repeated() {
        let (mut others, start) = (Others::default(), clock::now());
        let [one, two] = [Issuer([1; 16]), Issuer([2; 16])];
        let later = start + FORGOTTEN / 2;
        others.hear(one, [7; 16], 3, start);
        others.hear(two, [7; 16], 2, start);
        others.hear(two, [8; 16], 9, start);
        assert_eq!(others.of(&[7; 16], start), 5);
        others.hear(two, [7; 16], 4, later);
        assert_eq!(others.of(&[7; 16], later), 7, "a count replaces the one before");
        assert_eq!(others.of(&[7; 16], start + FORGOTTEN), 4, "the first node is gone");
        others.hear(two, [7; 16], 0, later);
        assert_eq!(others.of(&[7; 16], later), 3);
        others.tidy(start + FORGOTTEN);
        assert_eq!((others.counts.len(), others.total), (0, 0));
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let mut unsent = Unsent::default();
        for key in 0..MOST_KEYS as u128 + 3 {
            unsent.change(key.to_le_bytes(), |count| *count += 1);
        }
        unsent.change([0; 16], |count| *count += 1);
        assert_eq!(unsent.left_out, 3);
        let sent = unsent.take();
        assert_eq!(sent.len(), MOST_KEYS);
        assert!(sent.contains(&([0; 16], 2)), "a known key always fits");
        assert!(unsent.take().is_empty());
    }
}
