//! `least_time`: the peer that is expected to be done first, for its weight; equals take turns.
//!
//! A request is expected to take what those before took on average, as often as there are requests before it. Times are
//! those that all workers have seen. Before: `times`, which keeps them.

use super::{Ask, Set, least};
use crate::peer::Member;
use millstream_conf::model::TimeTo;
use std::time::Instant;

pub(super) fn choose(to: TimeTo, set: Set<'_>, ask: &Ask<'_>) -> Option<usize> {
    for index in (0..set.members.len()).filter(|&index| set.is_open(index, ask)) {
        set.members[index].standing.times().look(ask.now);
    }
    least::choose(set, ask, |member| cost(to, member, ask.now))
}

/// In milliseconds from now.
pub(super) fn cost(to: TimeTo, member: &Member, now: Instant) -> u64 {
    let one = member.standing.times().expected(to, member.parameters.fail_timeout, now);
    one * (1 + u64::from(member.standing.active()))
}
