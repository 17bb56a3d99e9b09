//! The test by tables and by simulation: how often it claims a difference that is not there, and how often it finds one.

use super::*;
use crate::report::samples::Noise;

fn differ(first: &[f64], second: &[f64]) -> bool {
    probability(first, second) <= FALSE_CLAIMS
}

/// Runs of a kind whose level differs from run to run by so much, relative.
fn runs(noise: &mut Noise, count: usize, level: f64, between: f64) -> Vec<f64> {
    (0..count).map(|_| level * (between * noise.normal()).exp()).collect()
}

/// The share of so many comparisons that claim a difference, where the second is `times` the first.
fn claimed(comparisons: usize, count: usize, between: f64, times: f64) -> f64 {
    let mut noise = Noise((count * 1_000) as u64 + (between * 100.0) as u64);
    let claims = (0..comparisons).filter(|_| {
        differ(&runs(&mut noise, count, 1_000.0, between), &runs(&mut noise, count, 1_000.0 * times, between))
    });
    claims.count() as f64 / comparisons as f64
}

#[test]
fn probabilities_are_those_of_the_tables() {
    // Two-sided, as tables of U have them: groups that do not overlap, and some that do.
    let to = |count: usize| (1..=count).map(|value| value as f64).collect::<Vec<_>>();
    let above = |count: usize| (1..=count).map(|value| 100.0 + value as f64).collect::<Vec<_>>();
    for (count, expected) in [(3, 2.0 / 20.0), (4, 2.0 / 70.0), (5, 2.0 / 252.0), (10, 2.0 / 184_756.0)] {
        assert!((probability(&to(count), &above(count)) - expected).abs() < 1e-12, "{count}");
        assert!((smallest(count, count) - expected).abs() < 1e-12, "{count}");
    }
    // U = 2 of five and five: 4 of 252 a side (Mann and Whitney 1947, table I: .016).
    assert!(
        (probability(&[1.0, 2.0, 3.0, 4.0, 7.0], &[5.0, 6.0, 8.0, 9.0, 10.0]) - 8.0 / 252.0).abs() < 1e-12
    );
    assert_eq!(probability(&[5.0; 6], &[5.0; 6]), 1.0);
    assert_eq!(probability(&[], &[1.0]), 1.0);
    // One tie across: the four sums that are as far off, of 70.
    assert!((probability(&[1.0, 2.0, 3.0, 4.0], &[4.0, 5.0, 6.0, 7.0]) - 4.0 / 70.0).abs() < 1e-12);
    assert!(!can_tell(3, 3) && can_tell(4, 4) && can_tell(3, 5));
}

#[test]
fn runs_of_one_kind_are_called_different_in_one_of_twenty_at_the_most() {
    for between in [0.05, 0.10, 0.25] {
        for count in [4, 5, 6, 8] {
            let share = claimed(10_000, count, between, 1.0);
            // The test is exact; what the simulation adds is its own chance, three deviations of it.
            let chance = 3.0 * (FALSE_CLAIMS * (1.0 - FALSE_CLAIMS) / 10_000.0).sqrt();
            assert!(share <= FALSE_CLAIMS + chance, "{count} runs a side, ±{between}: {share}");
        }
    }
}

#[test]
fn a_fifth_more_is_found_as_often_as_the_manual_says() {
    // Runs a side, noise between them, and the share of true differences of 20 % that are found, as docs/comparing.md has it.
    for (count, between, expected) in [
        (4, 0.05, 0.94),
        (5, 0.05, 0.99),
        (8, 0.05, 1.00),
        (4, 0.10, 0.42),
        (5, 0.10, 0.59),
        (8, 0.10, 0.90),
        (4, 0.25, 0.08),
        (5, 0.25, 0.12),
        (8, 0.25, 0.26),
    ] {
        let share = claimed(10_000, count, between, 1.2);
        assert!((share - expected).abs() < 0.02, "{count} runs a side, ±{between}: {share}, not {expected}");
    }
}

#[test]
fn the_interval_has_the_true_ratio_and_says_what_the_test_says() {
    let mut noise = Noise(7);
    let (mut inside, mut agree) = (0, 0);
    for _ in 0..2_000 {
        let (first, second) = (runs(&mut noise, 5, 100.0, 0.1), runs(&mut noise, 5, 120.0, 0.1));
        let found = ratio(&first, &second).expect("five a side are enough");
        assert!(found.low <= found.value && found.value <= found.high, "{found:?}");
        inside += usize::from(found.low <= 1.2 && 1.2 <= found.high);
        agree += usize::from((found.low > 1.0 || found.high < 1.0) == differ(&first, &second));
    }
    assert!(inside >= 1_900, "{inside} of 2,000");
    assert_eq!(agree, 2_000);
    assert_eq!(ratio(&[0.0, 1.0, 2.0, 3.0], &[1.0, 2.0, 3.0, 4.0]), None);
    assert_eq!(ratio(&[1.0; 3], &[2.0; 3]), None);
}
