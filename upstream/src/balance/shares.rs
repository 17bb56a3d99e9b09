//! The peers' weights laid end to end, so that a number falls on one of them.

use super::{Ask, MOST_MISSES, Set};
use crate::peer::Member;
use crate::tried::Search;

#[derive(Debug)]
pub(crate) struct Shares {
    ends: Box<[u64]>,
}

impl Shares {
    pub(super) fn of(members: &[Member]) -> Shares {
        let mut end = 0;
        let ends = members.iter().map(|member| {
            end += member.parameters.weight.unsigned_abs();
            end
        });
        Shares { ends: ends.collect() }
    }

    pub(super) fn total(&self) -> u64 {
        self.ends.last().copied().unwrap_or(1)
    }

    pub(super) fn find(&self, number: u64) -> usize {
        let place = number % self.total();
        self.ends.partition_point(|end| *end <= place)
    }

    /// Tries successive numbers of `hash` until one falls on a server that may be asked. `None`: the others
    /// take turns.
    pub(super) fn search(
        &self,
        set: Set<'_>,
        ask: &mut Ask<'_>,
        hash: impl Fn(&Search) -> u32,
    ) -> Option<usize> {
        let mut search = ask.tried.search.clone();
        let mut found = None;
        while found.is_none() && search.misses <= MOST_MISSES {
            search.hash = hash(&search);
            search.rounds += 1;
            let index = self.find(u64::from(search.hash));
            if set.is_open(index, ask) {
                found = Some(set.first + index);
            } else {
                search.misses += 1;
            }
        }
        ask.tried.search = search;
        found
    }
}
