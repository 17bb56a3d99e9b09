//! The peer that costs least for its weight; equals take turns.
//!
//! What a cost is, the methods say. Before: `round_robin`; next: `least_conn`, `least_time`, and `random`, which compares two.

use super::{Ask, Set, round_robin};
use crate::peer::Member;
use std::cmp::Ordering;
use std::time::Instant;

/// `cost` is called under the group's lock, more than once for equals.
pub(super) fn choose(set: Set<'_>, ask: &Ask<'_>, cost: impl Fn(&Member) -> u64) -> Option<usize> {
    let _turns = set.lock();
    let mut best: Option<(usize, u64)> = None;
    let mut has_equal = false;
    for index in (0..set.members.len()).filter(|&index| set.is_open(index, ask)) {
        let member = &set.members[index];
        let own = cost(member);
        match best.map(|(best, least)| compare((member, own), (&set.members[best], least), ask.now)) {
            Some(Ordering::Greater) => {}
            Some(Ordering::Equal) => has_equal = true,
            Some(Ordering::Less) | None => (best, has_equal) = (Some((index, own)), false),
        }
    }
    let (best, least) = best?;
    if !has_equal {
        return Some(set.first + best);
    }
    let is_equal = |&index: &usize| {
        let member = &set.members[index];
        compare((member, cost(member)), (&set.members[best], least), ask.now).is_eq()
    };
    let equals = (best..set.members.len()).filter(is_equal);
    // Loads may change meanwhile; then the one that was found is as good.
    let chosen = round_robin::choose_among(set, ask, equals).unwrap_or(best);
    Some(set.first + chosen)
}

/// Compares cost per weight without dividing.
pub(super) fn compare((one, cost): (&Member, u64), (other, its): (&Member, u64), now: Instant) -> Ordering {
    let weight = |of: &Member| of.standing.weight(&of.parameters, now).unsigned_abs();
    cost.saturating_mul(weight(other)).cmp(&its.saturating_mul(weight(one)))
}
