//! `random`: any peer, by its weight; `random two`: of two such the less loaded, or the one that will be done first.
//!
//! Chance comes from a generator of each thread's own, so that nothing is shared.

use super::shares::Shares;
use super::{Ask, MOST_MISSES, Set, least};
use crate::peer::Member;
use std::cell::Cell;
use std::cmp::Ordering;
use std::hash::{BuildHasher, RandomState};

thread_local! {
    /// Seeded by the system through the standard library's hasher.
    static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(0u8));
}

/// splitmix64: spreads load, not for secrets.
pub(super) fn draw() -> u64 {
    let state = STATE.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    STATE.set(state);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// `None`: the others take turns.
pub(super) fn choose(
    shares: &Shares,
    set: Set<'_>,
    ask: &mut Ask<'_>,
    draw: &mut dyn FnMut() -> u64,
) -> Option<usize> {
    find(shares, set, ask, draw, None).map(|index| set.first + index)
}

pub(super) fn choose_two(
    shares: &Shares,
    set: Set<'_>,
    ask: &mut Ask<'_>,
    draw: &mut dyn FnMut() -> u64,
    cost: impl Fn(&Member) -> u64,
) -> Option<usize> {
    let one = find(shares, set, ask, draw, None)?;
    let other = find(shares, set, ask, draw, Some(one))?;
    let (first, second) = (&set.members[one], &set.members[other]);
    let better = match least::compare((second, cost(second)), (first, cost(first)), ask.now) {
        Ordering::Greater => one,
        Ordering::Less | Ordering::Equal => other,
    };
    Some(set.first + better)
}

fn find(
    shares: &Shares,
    set: Set<'_>,
    ask: &mut Ask<'_>,
    draw: &mut dyn FnMut() -> u64,
    but: Option<usize>,
) -> Option<usize> {
    while ask.tried.search.misses <= MOST_MISSES {
        let index = shares.find(draw());
        if but != Some(index) && set.is_open(index, ask) {
            return Some(index);
        }
        ask.tried.search.misses += 1;
    }
    None
}
