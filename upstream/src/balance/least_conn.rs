//! `least_conn`: the peer with the fewest requests for its weight; equals take turns.
//!
//! Counts are those of all workers, as in nginx with a `zone`.

use super::{Ask, Set, round_robin};
use crate::peer::Member;
use std::cmp::Ordering;

/// The least loaded peer.
pub(super) fn choose(set: Set<'_>, ask: &Ask<'_>) -> Option<usize> {
    let _turns = set.lock();
    let mut best: Option<usize> = None;
    let mut has_equal = false;
    for index in (0..set.members.len()).filter(|&index| set.is_open(index, ask)) {
        match best.map(|best| load(&set.members[index], &set.members[best])) {
            Some(Ordering::Greater) => {}
            Some(Ordering::Equal) => has_equal = true,
            Some(Ordering::Less) | None => (best, has_equal) = (Some(index), false),
        }
    }
    let best = best?;
    if !has_equal {
        return Some(set.first + best);
    }
    let is_equal = |&index: &usize| load(&set.members[index], &set.members[best]).is_eq();
    let equals = (best..set.members.len()).filter(is_equal);
    // Loads may change meanwhile; then the one that was found is as good.
    let chosen = round_robin::choose_among(set, ask, equals).unwrap_or(best);
    Some(set.first + chosen)
}

/// Compares the loads of two peers: requests over weight, without dividing.
pub(super) fn load(one: &Member, other: &Member) -> Ordering {
    let share = |of: &Member, weight: i64| i64::from(of.standing.active()) * weight;
    share(one, other.parameters.weight).cmp(&share(other, one.parameters.weight))
}
