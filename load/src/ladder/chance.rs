//! Which differences between steps are more than chance: the exact rank test over rounds.
//!
//! Pure: rates in, decisions out. What slows a machine down for a while slows all steps of that round, so each round's own level, as the
//! steps show it that are not compared, is taken out first. The two that are compared have no part in it, so their ranks stay exchangeable
//! and the test stays valid; what it gains is told in docs/ladder.md and checked in this file's tests. Next: `gain`, which says it.

use crate::rank::{self, Compared, FALSE_CLAIMS, median};

/// So many other steps tell the level of a round; the median of fewer adds more noise than it takes away (by simulation).
const OTHERS: usize = 4;

/// Rounds of which groups that do not overlap differ by more than chance.
pub const FEWEST: u32 = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Best {
    pub step: usize,
    /// Those that the rounds do not tell from it.
    pub alike: Vec<usize>,
}

/// Compares two steps of a climb; `rates` are those of each step, round by round.
pub fn compare(rates: &[Vec<f64>], first: usize, second: usize) -> Compared {
    let levels = levels(rates, first, second);
    let level = |step: usize| -> Vec<f64> {
        rates[step].iter().enumerate().map(|(round, rate)| rate / levels(round)).collect()
    };
    rank::compare(&level(first), &level(second))
}

/// How fast the others were in each round, times what is usual for them.
fn levels(rates: &[Vec<f64>], first: usize, second: usize) -> impl Fn(usize) -> f64 {
    let others = rates.iter().enumerate().filter(|(step, _)| *step != first && *step != second);
    let others = others.map(|(_, rates)| (rates, median(rates.clone()))).filter(|(_, usual)| *usual > 0.0);
    let others: Vec<(&Vec<f64>, f64)> = others.collect();
    move |round| {
        let of_round = |(rates, usual): &(&Vec<f64>, f64)| Some(rates.get(round)? / usual);
        let level: Vec<f64> = others.iter().filter_map(of_round).filter(|level| *level > 0.0).collect();
        if level.len() < OTHERS { 1.0 } else { median(level) }
    }
}

/// Of the chance of one in twenty to leave the true best out, this goes to the test of a kind against the other as a whole, which is one
/// test; the rest to those of one step against each other one, which are as many as there are steps.
const OF_KINDS: f64 = 0.01;

/// Which of some steps gives most, each with whether it is of the one kind or of the other (with a cache, or without); `None` of none.
///
/// One alone is named where it differs from each of the others: that is false in one of twenty climbs at the most, since already the test
/// against the true best fails so seldom. Else the set has all but those that are worse than the best, by Bonferroni's bound over all
/// others (one-sided), or worse than all steps of the other kind together. A best one among them is then left out in one of twenty climbs at
/// the most (a confidence set of the best, as Gupta's of 1956).
pub fn best(rates: &[Vec<f64>], among: &[(usize, bool)]) -> Option<Best> {
    let of = |step: usize| median(rates[step].clone());
    let (step, _) = among.iter().copied().max_by(|one, other| of(one.0).total_cmp(&of(other.0)))?;
    let others: Vec<_> = among.iter().copied().filter(|(other, _)| *other != step).collect();
    let p = |other: usize| compare(rates, other, step).p;
    let mut alike = Vec::new();
    if !others.iter().all(|(other, _)| p(*other) <= FALSE_CLAIMS) {
        let is_worse = |other: usize| of_several(p(other), others.len()) <= FALSE_CLAIMS - OF_KINDS;
        let of_other_kind = |kind: bool| {
            among.iter().filter(move |(_, its)| *its != kind).flat_map(|(step, _)| &rates[*step])
        };
        let is_of_worse_kind = |step: usize, kind: bool| {
            let pooled: Vec<f64> = of_other_kind(kind).copied().collect();
            median(pooled.clone()) > of(step) && rank::probability(&rates[step], &pooled) / 2.0 <= OF_KINDS
        };
        let stays = others.iter().filter(|(step, kind)| !is_worse(*step) && !is_of_worse_kind(*step, *kind));
        alike = stays.map(|(step, _)| *step).collect();
        alike.sort_by(|one, other| of(*other).total_cmp(&of(*one)));
    }
    Some(Best { step, alike })
}

/// Rounds that it takes to leave any of so many steps of one kind out of the best.
pub fn rounds_for_best(steps: usize) -> u32 {
    let smallest = |rounds: u32| rank::smallest(rounds as usize, rounds as usize);
    let is_enough =
        |rounds: &u32| of_several(smallest(*rounds), steps.saturating_sub(1)) <= FALSE_CLAIMS - OF_KINDS;
    (FEWEST..).find(is_enough).unwrap_or(FEWEST)
}

/// How often one of several comparisons finds the best of all worse by so much, where both ways of two are one alone.
pub(crate) fn of_several(p: f64, comparisons: usize) -> f64 {
    p * (comparisons as f64 / 2.0).max(1.0)
}

#[cfg(test)]
mod tests;
