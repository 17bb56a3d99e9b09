//! Who asked with which of the values that are part of the key: one client's own value is no evidence for others.
//!
//! A combination of values counts as one value: what is one client's own may look as if its preferences were the reason. Requests with
//! one that few clients sent are passed on.
//!
//! Before: `plan`; next: `route`, and `report`, which lists the others.

use crate::hash::Key;
use crate::plan::{Plan, bits};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Combinations of values that are counted.
const MOST: usize = 128;

/// Requests with a value from which on it is frequent, and clients that it then must have.
const FREQUENT: u32 = 10;
pub(crate) const FEWEST_CLIENTS: u32 = 2;

struct Combination {
    requests: u32,
    /// Bits of clients.
    clients: u64,
    /// In the order of their dimensions.
    values: Box<[u32]>,
}

impl Combination {
    fn is_frequent(&self) -> bool {
        self.requests >= FREQUENT
    }

    fn has_several_clients(&self) -> bool {
        self.clients.count_ones() >= FEWEST_CLIENTS
    }
}

#[derive(Default)]
pub(crate) struct Selection {
    counts: HashMap<u64, Combination>,
}

impl Selection {
    pub(crate) fn clear(&mut self) {
        self.counts.clear();
    }

    /// Whether several clients have sent these values by now.
    pub(crate) fn add(&mut self, key: &Key, plan: &Plan, values: &[u32], client: u32) -> bool {
        if plan.selected == 0 {
            return true;
        }
        let value = plan.value(key, values);
        if self.counts.len() == MOST && !self.counts.contains_key(&value) {
            return false;
        }
        let of = self.counts.entry(value).or_insert_with(|| {
            let values = bits(plan.selected).map(|number| values.get(number).copied().unwrap_or(0)).collect();
            Combination { requests: 0, clients: 0, values }
        });
        of.requests = of.requests.saturating_add(1);
        of.clients |= 1 << (client / 2 % 64);
        of.is_frequent() && of.has_several_clients()
    }

    /// Whether each frequent value was that of several clients.
    pub(crate) fn has_several_clients_of_each(&self) -> bool {
        self.counts.values().filter(|of| of.is_frequent()).all(Combination::has_several_clients)
    }

    /// The combinations that several clients have sent, most frequent first, of the values in some places: none of which one client has
    /// another combination for its own.
    pub(crate) fn usual(&self, places: &[usize]) -> Vec<Vec<u32>> {
        let mut of_places: BTreeMap<Vec<u32>, (u32, bool)> = BTreeMap::new();
        for of in self.counts.values().filter(|of| of.is_frequent()) {
            let values = places.iter().map(|place| of.values[*place]).collect();
            let (requests, is_usual) = of_places.entry(values).or_insert((0, true));
            *requests = requests.saturating_add(of.requests);
            *is_usual &= of.has_several_clients();
        }
        let usual = of_places.into_iter().filter(|(_, (_, is_usual))| *is_usual);
        let mut list: Vec<(u32, Vec<u32>)> =
            usual.map(|(values, (requests, _))| (requests, values)).collect();
        list.sort_by_key(|(requests, _)| Reverse(*requests));
        list.into_iter().map(|(_, values)| values).collect()
    }

    /// How many values there were. One if the key has none.
    pub(crate) fn len(&self) -> u32 {
        self.counts.len().max(1) as u32
    }

    pub(crate) fn bytes(&self) -> usize {
        self.counts.capacity() * (size_of::<(u64, Combination)>() + 1 + 4 * 4)
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
        let one_has_its_own = of(&pairs[..7], 3);
        assert!(!one_has_its_own.has_several_clients_of_each());
        assert_eq!(one_has_its_own.usual(&[0, 1]), [[1, 1], [1, 2], [2, 1]]);
        assert_eq!(
            one_has_its_own.usual(&[0]),
            [[1]],
            "with the other value of the key, it is one client's own"
        );
        assert!(of(&[], 0).has_several_clients_of_each() && of(&pairs, 0).len() == 1);
    }
}
