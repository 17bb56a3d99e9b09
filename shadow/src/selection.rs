//! Who asked with which of the values that are part of the key: one client's own value is no evidence for others.
//!
//! A combination of values counts as one value: what is one client's own may look as if its preferences were the reason.
//!
//! Before: `plan`; next: `route`, whose `verdict` asks.

use crate::hash::Key;
use crate::plan::Plan;
use std::collections::HashMap;

/// Combinations of values that are counted.
const MOST: usize = 128;

/// Requests with a value from which on it must be that of so many clients.
const FREQUENT: u32 = 10;
const FEWEST_CLIENTS: u32 = 2;

#[derive(Default)]
pub(crate) struct Selection {
    /// Requests, and bits of clients.
    counts: HashMap<u64, (u32, u64)>,
}

impl Selection {
    pub(crate) fn clear(&mut self) {
        self.counts.clear();
    }

    pub(crate) fn add(&mut self, key: &Key, plan: &Plan, values: &[u32], client: u32) {
        let value = plan.value(key, values);
        if plan.selected != 0 && (self.counts.len() < MOST || self.counts.contains_key(&value)) {
            let (requests, clients) = self.counts.entry(value).or_default();
            *requests = requests.saturating_add(1);
            *clients |= 1 << (client / 2 % 64);
        }
    }

    /// Whether each frequent value was that of several clients.
    pub(crate) fn has_several_clients_of_each(&self) -> bool {
        let mut frequent = self.counts.values().filter(|(requests, _)| *requests >= FREQUENT);
        frequent.all(|(_, clients)| clients.count_ones() >= FEWEST_CLIENTS)
    }

    /// How many values there were. One if the key has none.
    pub(crate) fn len(&self) -> u32 {
        self.counts.len().max(1) as u32
    }

    pub(crate) fn bytes(&self) -> usize {
        self.counts.capacity() * 25
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests with two values each, a hundred by each client in turn.
    fn of(clients: &[[u32; 2]], selected: u64) -> Selection {
        let (key, mut selection) = (Key::from_seed(1), Selection::default());
        let plan = Plan { selected, ..Plan::default() };
        for _ in 0..100 {
            for (client, values) in clients.iter().enumerate() {
                selection.add(&key, &plan, values, client as u32 * 2);
            }
        }
        selection
    }

    #[test]
    fn a_value_or_a_combination_of_one_client_is_no_evidence() {
        let pairs = [[1, 1], [1, 1], [1, 2], [1, 2], [2, 1], [2, 1], [2, 2], [2, 2]];
        let all = of(&pairs, 3);
        assert!(all.has_several_clients_of_each() && all.len() == 4);
        assert!(of(&pairs[..7], 1).has_several_clients_of_each());
        assert!(!of(&pairs[..7], 3).has_several_clients_of_each());
        assert!(of(&[], 0).has_several_clients_of_each() && of(&pairs, 0).len() == 1);
    }
}
