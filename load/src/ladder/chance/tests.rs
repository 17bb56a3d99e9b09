//! The decisions by simulation: how often climbs of steps that are all alike tell a difference, and how often a true one is told.

use super::*;
use crate::report::samples::Noise;

/// Climbs that are simulated.
const CLIMBS: usize = 10_000;
/// What is more than chance in so many of them: three deviations above one in twenty.
const MOST: f64 = 0.05 + 0.0066;

/// Rates of a climb: the second step is `times` the others, noise is relative, and `shared` is the part of its variance that a round has in
/// common.
fn climb(
    noise: &mut Noise,
    steps: usize,
    rounds: usize,
    between: f64,
    shared: f64,
    times: f64,
) -> Vec<Vec<f64>> {
    let rounds: Vec<f64> = (0..rounds).map(|_| shared.sqrt() * noise.normal()).collect();
    let level = |step: usize| if step == 1 { times } else { 1.0 };
    let of = |step: usize, noise: &mut Noise| {
        let own = |noise: &mut Noise| (1.0 - shared).sqrt() * noise.normal();
        rounds.iter().map(|round| 1_000.0 * level(step) * (between * (round + own(noise))).exp()).collect()
    };
    (0..steps).map(|step| of(step, noise)).collect()
}

fn best_of(rates: &[Vec<f64>]) -> Option<Best> {
    // The later half is of another kind.
    best(rates, &(0..rates.len()).map(|step| (step, step >= rates.len().div_ceil(2))).collect::<Vec<_>>())
}

/// The share of climbs of which something is told.
fn told(
    seed: u64,
    climbs: usize,
    make: impl Fn(&mut Noise) -> Vec<Vec<f64>>,
    tells: impl Fn(&[Vec<f64>]) -> bool,
) -> f64 {
    let mut noise = Noise(seed);
    (0..climbs).filter(|_| tells(&make(&mut noise))).count() as f64 / climbs as f64
}

#[test]
fn steps_that_are_alike_are_told_apart_in_one_of_twenty_climbs_at_the_most() {
    for (number, between) in [0.05, 0.10, 0.25].into_iter().enumerate() {
        for (rounds, shared) in [(4, 0.0), (5, 0.5), (6, 0.0), (6, 0.5), (8, 0.0)] {
            let make = |noise: &mut Noise| climb(noise, 11, rounds, between, shared, 1.0);
            // One step after the other: the third against the fourth stands for all, which are made alike.
            let share = told(number as u64, CLIMBS, make, |rates| compare(rates, 2, 3).is_apart());
            assert!(share <= MOST, "{rounds} rounds, ±{between}, shared {shared}: {share}");
        }
    }
}

#[test]
fn a_step_that_varies_more_than_the_other_is_told_apart_no_more_often() {
    // With fewer rounds than six it is: docs/ladder.md says so.
    for (rounds, most) in [(6, MOST), (5, 0.0625 + 0.008), (4, 0.125 + 0.01)] {
        let make = |noise: &mut Noise| {
            let mut rates = climb(noise, 2, rounds, 0.01, 0.0, 1.0);
            rates[1].iter_mut().for_each(|rate| *rate = 1_000.0 * (0.25 * noise.normal()).exp());
            rates
        };
        let share = told(5, CLIMBS, make, |rates| compare(rates, 0, 1).is_apart());
        assert!(share <= most, "{rounds} rounds: {share}");
    }
}

#[test]
fn the_best_is_named_falsely_in_one_of_twenty_climbs_at_the_most() {
    for (number, between) in [0.05, 0.10, 0.25].into_iter().enumerate() {
        for (steps, rounds, shared) in [(2, 4, 0.0), (3, 5, 0.0), (8, 4, 0.0), (8, 6, 0.5)] {
            let (mut noise, mut left_out, mut named) = (Noise(100 + number as u64), 0, 0);
            for _ in 0..CLIMBS {
                let found = best_of(&climb(&mut noise, steps, rounds, between, shared, 1.0)).expect("steps");
                // Of steps that are all alike each is a best one: any that is left out is left out falsely, be it step 0.
                left_out += usize::from(found.step != 0 && !found.alike.contains(&0));
                named += usize::from(found.alike.is_empty());
            }
            for falsely in [left_out, named] {
                let share = falsely as f64 / CLIMBS as f64;
                assert!(share <= MOST, "{steps} steps, {rounds} rounds, ±{between}: {share}");
            }
        }
    }
}

#[test]
fn a_fifth_more_is_found_as_often_as_the_manual_says() {
    // Rounds, noise between them, the part that a round shares, and the share of climbs that tell the step from one before and name it the
    // best of eight, as docs/ladder.md has them.
    for (rounds, between, shared, step, top) in POWER {
        let make = |noise: &mut Noise| climb(noise, 8, rounds, between, shared, 1.2);
        let found = told(7, 2_000, make, |rates| compare(rates, 0, 1).is_apart());
        let named = told(7, 2_000, make, |rates| best_of(rates) == Some(Best { step: 1, alike: Vec::new() }));
        let is_as_told = (found - step).abs() < 0.04 && (named - top).abs() < 0.04;
        assert!(is_as_told, "{rounds} rounds, ±{between}, shared {shared}: {found}, {named}");
    }
}

/// See above.
const POWER: [(usize, f64, f64, f64, f64); 12] = [
    (4, 0.05, 0.0, 0.92, 0.68),
    (5, 0.05, 0.0, 0.99, 0.93),
    (6, 0.05, 0.0, 1.00, 0.99),
    (4, 0.10, 0.0, 0.36, 0.05),
    (5, 0.10, 0.0, 0.54, 0.13),
    (6, 0.10, 0.0, 0.70, 0.28),
    (4, 0.10, 0.5, 0.62, 0.21),
    (5, 0.10, 0.5, 0.83, 0.47),
    (6, 0.10, 0.5, 0.94, 0.75),
    (4, 0.25, 0.5, 0.12, 0.00),
    (5, 0.25, 0.5, 0.17, 0.01),
    (6, 0.25, 0.5, 0.25, 0.02),
];

#[test]
fn fewer_rounds_than_four_tell_nothing_and_more_steps_ask_for_more_of_them() {
    let rates = [vec![1.0, 1.1, 1.2], vec![100.0, 110.0, 120.0]];
    assert!(!compare(&rates, 0, 1).is_apart());
    assert_eq!([2, 3, 4, 8, 11].map(rounds_for_best), [4, 4, 5, 5, 5]);
    assert_eq!(best(&[], &[]), None);
}

#[test]
fn four_rounds_leave_out_those_of_the_worse_kind_and_five_each_that_is_worse() {
    let of = |rounds: usize| {
        let rates = |level: f64| (0..rounds).map(|round| level + round as f64).collect::<Vec<_>>();
        let all: Vec<Vec<f64>> =
            [100.0, 90.0, 95.0, 93.0, 2_000.0, 2_501.0, 2_600.0, 2_602.0].map(rates).to_vec();
        best_of(&all)
    };
    assert_eq!(of(4), Some(Best { step: 7, alike: vec![6, 5, 4] }));
    assert_eq!(of(5), Some(Best { step: 7, alike: vec![6] }));
}

#[test]
fn a_round_in_which_everything_was_slow_does_not_hide_a_step_that_is_faster() {
    let slow = [1.0, 0.4, 1.0, 0.7, 1.1, 0.9];
    let of = |level: f64| {
        slow.iter().enumerate().map(|(place, slow)| level * slow * (1.0 + 0.01 * place as f64)).collect()
    };
    let rates: Vec<Vec<f64>> = [100.0, 115.0, 50.0, 900.0, 70.0, 10.0].map(of).to_vec();
    assert!(compare(&rates, 0, 1).is_apart());
    assert!(!compare(&rates[..2], 0, 1).is_apart(), "with nothing that tells of the rounds it is hidden");
}
