//! `least_conn`: the peer with the fewest requests for its weight; equals take turns.
//!
//! Counts are those of all workers, as in nginx with a `zone`.

use super::{Ask, Set, least};
use crate::peer::Member;

pub(super) fn choose(set: Set<'_>, ask: &Ask<'_>) -> Option<usize> {
    least::choose(set, ask, cost)
}

pub(super) fn cost(member: &Member) -> u64 {
    u64::from(member.standing.active())
}
