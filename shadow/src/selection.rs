//! Who asked with which of the values that are part of the key: one client's own value is no evidence for others.
//!
//! Before: `plan`; next: `route`, whose `verdict` asks.

use crate::hash::Key;
use crate::plan::{Plan, bits};
use std::collections::HashMap;

/// Values, and combinations of several, that are counted.
const MOST: usize = 192;

/// Requests with a value from which on it must be that of so many clients.
const FREQUENT: u32 = 10;
const FEWEST_CLIENTS: u32 = 2;

/// One in so many requests may have a combination that no other client has, if others have each of its values.
const SHARE_OF_LONELY: u32 = 5;

#[derive(Default)]
pub(crate) struct Selection {
    /// Requests, and bits of clients, by dimension and value; without a dimension for combinations of several.
    counts: HashMap<(Option<usize>, u64), (u32, u64)>,
}

impl Selection {
    pub(crate) fn clear(&mut self) {
        self.counts.clear();
    }

    pub(crate) fn add(&mut self, key: &Key, plan: &Plan, values: &[u32], client: u32) {
        for number in bits(plan.selected) {
            self.count((Some(number), values.get(number).copied().unwrap_or(0).into()), client);
        }
        if plan.selected.count_ones() > 1 {
            self.count((None, plan.value(key, values)), client);
        }
    }

    fn count(&mut self, value: (Option<usize>, u64), client: u32) {
        if self.counts.len() < MOST || self.counts.contains_key(&value) {
            let (requests, clients) = self.counts.entry(value).or_default();
            *requests = requests.saturating_add(1);
            *clients |= 1 << (client / 2 % 64);
        }
    }

    /// Whether each value was that of several clients, and so was nearly each combination.
    pub(crate) fn has_several_clients_of_each(&self) -> bool {
        let (mut lonely, mut all) = (0_u32, 0_u32);
        for ((dimension, _), (requests, clients)) in &self.counts {
            let is_lonely = *requests >= FREQUENT && clients.count_ones() < FEWEST_CLIENTS;
            if is_lonely && dimension.is_some() {
                return false;
            }
            if dimension.is_none() {
                all = all.saturating_add(*requests);
                lonely = lonely.saturating_add(if is_lonely { *requests } else { 0 });
            }
        }
        lonely.saturating_mul(SHARE_OF_LONELY) <= all
    }

    /// Different values, combined if there are several dimensions. One if there are none.
    pub(crate) fn combinations(&self, plan: &Plan) -> u32 {
        let several = plan.selected.count_ones() > 1;
        self.counts.keys().filter(|(dimension, _)| dimension.is_none() == several).count().max(1) as u32
    }

    pub(crate) fn bytes(&self) -> usize {
        self.counts.capacity() * 40
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
    fn a_value_of_one_client_is_no_evidence_and_a_rare_combination_is_none_against_it() {
        assert!(of(&[[1, 0], [1, 0], [2, 0], [2, 0]], 1).has_several_clients_of_each());
        assert!(!of(&[[1, 0], [1, 0], [2, 0]], 1).has_several_clients_of_each());
        let mut clients =
            vec![[1, 1], [1, 1], [1, 1], [1, 2], [1, 2], [1, 2], [2, 1], [2, 1], [2, 1], [2, 2]];
        assert!(
            of(&clients, 3).has_several_clients_of_each()
                && of(&clients, 3).combinations(&Plan { selected: 3, ..Plan::default() }) == 4
        );
        clients.truncate(4);
        clients.extend([[2, 1], [2, 2]]);
        assert!(!of(&clients, 3).has_several_clients_of_each(), "half of the requests");
    }
}
