//! Smooth weighted round robin, as nginx has it.
//!
//! Each choice adds every live peer's effective weight to its current weight, takes the highest (the first of
//! equals) and takes the sum off it again; so weights 5, 1, 1 give a a b a c a a. A failure takes
//! `weight / max_fails` off the effective weight, each later choice gives one back (`standing`).

use super::{Ask, Set};
use crate::standing::WHOLE;

#[cfg(test)]
mod tests;

pub(super) fn choose(set: Set<'_>, ask: &Ask<'_>) -> Option<usize> {
    let _turns = set.lock();
    choose_among(set, ask, 0..set.members.len()).map(|index| set.first + index)
}

/// `places` are indices in the set. Call it under the group's lock.
pub(super) fn choose_among(
    set: Set<'_>,
    ask: &Ask<'_>,
    places: impl Iterator<Item = usize>,
) -> Option<usize> {
    let mut best: Option<(usize, i64)> = None;
    let mut total = 0;
    for index in places.filter(|&index| set.is_open(index, ask)) {
        let member = &set.members[index];
        let (current, effective) = member.standing.credit(&member.parameters, ask.now);
        total += effective;
        if best.is_none_or(|(_, highest)| current > highest) {
            best = Some((index, current));
        }
    }
    let (chosen, _) = best?;
    set.members[chosen].standing.debit(total);
    Some(chosen)
}

/// A turn of the session's own peer out of order. It takes turns on credit, up to one round of the others',
/// as in nginx.
pub(super) fn stay(set: Set<'_>, ask: &Ask<'_>, own: usize) {
    let _turns = set.lock();
    let standing = &set.members[own].standing;
    let others = set.members.iter().enumerate().filter(|(index, _)| *index != own);
    let round: i64 = others.map(|(_, member)| member.parameters.weight * WHOLE).sum();
    if standing.current_weight() <= -round {
        return;
    }
    let open = (0..set.members.len()).filter(|&index| set.is_open(index, ask));
    let credit = |index: usize| {
        let member = &set.members[index];
        member.standing.credit(&member.parameters, ask.now).1
    };
    standing.debit(open.map(credit).sum());
}
