//! The peers' weights laid end to end, so that a number falls on one of them.

use crate::peer::Member;

/// Where each peer's share ends.
#[derive(Debug)]
pub(crate) struct Shares {
    ends: Box<[u64]>,
}

impl Shares {
    /// Those of some members, of which there is at least one.
    pub(super) fn of(members: &[Member]) -> Shares {
        let mut end = 0;
        let ends = members.iter().map(|member| {
            end += member.parameters.weight.unsigned_abs();
            end
        });
        Shares { ends: ends.collect() }
    }

    /// The sum of all weights.
    pub(super) fn total(&self) -> u64 {
        self.ends.last().copied().unwrap_or(1)
    }

    /// On whom a number falls, modulo the sum.
    pub(super) fn find(&self, number: u64) -> usize {
        let place = number % self.total();
        self.ends.partition_point(|end| *end <= place)
    }
}
