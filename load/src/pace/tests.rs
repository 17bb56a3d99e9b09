//! Equal distances that do not drift, and exponential ones that are.

use super::*;

const SECOND: u64 = 1_000_000_000;

fn steady(rate: f64, arrivals: Arrivals, phase: f64, seed: u64) -> Pace {
    Pace::new(Growth::Rate(1e9 / rate), arrivals, phase, seed)
}

fn staged(stages: &[RateStage], share: f64, arrivals: Arrivals, phase: f64) -> Pace {
    Pace::new(Growth::of(stages, share), arrivals, phase, 1)
}

fn dues(mut pace: Pace, until: u64) -> Vec<u64> {
    let mut dues = Vec::new();
    while pace.due() < until {
        dues.push(pace.due());
        pace.advance();
    }
    dues
}

#[test]
fn equal_distances_do_not_drift_over_a_day() {
    let mut pace = steady(3.0, Arrivals::Constant, 0.0, 0);
    for _ in 0..3 * 24 * 3600 {
        pace.advance();
    }
    assert!(pace.due().abs_diff(24 * 3600 * SECOND) <= 1, "{}", pace.due());
}

#[test]
fn threads_together_keep_equal_distances() {
    let mut all: Vec<u64> =
        (0..4).flat_map(|n| dues(steady(250.0, Arrivals::Constant, f64::from(n) / 4.0, 0), SECOND)).collect();
    all.sort_unstable();
    assert_eq!(all.len(), 1000);
    assert!(all.windows(2).all(|pair| pair[1] - pair[0] == 1_000_000));
}

#[test]
fn poisson_distances_have_the_mean_and_the_spread_of_an_exponential() {
    let dues = dues(steady(1000.0, Arrivals::Poisson, 0.0, 7), 100 * SECOND);
    let distances: Vec<f64> = dues.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
    let count = distances.len() as f64;
    let mean = distances.iter().sum::<f64>() / count;
    let variance = distances.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / count;
    let longer = distances.iter().filter(|&&d| d > 3.0).count() as f64 / count;
    // 100,000 draws: three standard errors are about 0.01.
    assert!((mean - 1.0).abs() < 0.01, "mean {mean}");
    assert!((variance.sqrt() - 1.0).abs() < 0.02, "deviation {}", variance.sqrt());
    assert!((longer - (-3f64).exp()).abs() < 0.003, "share above three means {longer}");
}

#[test]
fn a_seed_repeats_its_stream_and_another_has_another() {
    let stream = |seed| dues(steady(100.0, Arrivals::Poisson, 0.0, seed), SECOND);
    assert_eq!(stream(1), stream(1));
    assert_ne!(stream(1), stream(2));
}

#[test]
fn what_is_left_is_counted_without_going_through_it() {
    let mut pace = steady(10.0, Arrivals::Constant, 0.5, 0);
    assert_eq!(pace.left_until(SECOND), 10);
    pace.advance();
    assert_eq!(pace.left_until(SECOND), 9);
    assert_eq!(pace.left_until(0), 0);
    assert_eq!(steady(1e8, Arrivals::Constant, 0.0, 0).left_until(24 * 3600 * SECOND), 8_640_000_000_000);
}

/// What is told of the requests before `end`: each moment as often as it stands for a request.
fn told(pace: &mut Pace, end: u64, most: u64) -> (u64, Vec<(u64, u64)>) {
    let mut told = Vec::new();
    let count = pace.each_until(end, most, |due, count| told.push((due, count)));
    (count, told)
}

#[test]
fn a_few_requests_are_told_one_by_one_and_very_many_in_parts() {
    for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
        let pace = steady(1_000.0, arrivals, 0.0, 3);
        let each = dues(pace.clone(), 5 * SECOND);
        let (count, some) = told(&mut pace.clone(), 5 * SECOND, u64::MAX);
        assert_eq!((count, some.iter().map(|(due, _)| *due).collect::<Vec<_>>()), (each.len() as u64, each));
        assert_eq!(told(&mut pace.clone(), 5 * SECOND, 7).0, 7);
        let (count, parts) = told(&mut steady(1e8, arrivals, 0.0, 3), 10 * SECOND, u64::MAX);
        assert!(count.abs_diff(1_000_000_000) < 10 && parts.len() as u64 == PARTS, "{count}");
        assert_eq!(parts.iter().map(|(_, count)| count).sum::<u64>(), count);
        let late = parts.iter().filter(|(due, _)| *due >= 5 * SECOND).map(|(_, count)| count).sum::<u64>();
        assert!(late.abs_diff(500_000_000) < 20_000, "{late}");
        assert!(parts.iter().all(|(due, _)| *due <= 10 * SECOND));
    }
}

#[test]
fn what_lies_before_a_moment_is_passed_over_at_once() {
    let mut pace = steady(1e8, Arrivals::Constant, 0.5, 0);
    pace.skip_to(24 * 3600 * SECOND);
    assert_eq!(pace.due(), 24 * 3600 * SECOND + 5);
    pace.skip_to(3);
    assert_eq!(pace.due(), 24 * 3600 * SECOND + 5);
    let waits: Vec<f64> = (0..2_000)
        .map(|seed| {
            let mut pace = steady(1_000.0, Arrivals::Poisson, 0.0, seed);
            pace.skip_to(SECOND);
            (pace.due() - SECOND) as f64 / 1e6
        })
        .collect();
    let mean = waits.iter().sum::<f64>() / waits.len() as f64;
    assert!((mean - 1.0).abs() < 0.1, "arrivals without memory: {mean}");
}

fn stage(seconds: u64, rate: f64) -> RateStage {
    RateStage { duration: std::time::Duration::from_secs(seconds), rate }
}

#[test]
fn a_stage_ramps_from_the_rate_before_it_and_a_jump_takes_no_time() {
    // 0 to 100 in 10 s: 500. A jump to 1,000, held for 2 s: 2,000. Down to 0 in 4 s: 2,000.
    let stages = [stage(10, 100.0), stage(0, 1_000.0), stage(2, 1_000.0), stage(4, 0.0)];
    let mut all: Vec<u64> = (0..3)
        .flat_map(|part| {
            let pace = staged(&stages, 1.0 / 3.0, Arrivals::Constant, f64::from(part) / 3.0);
            assert_eq!(pace.left_until(16 * SECOND), dues(pace.clone(), 16 * SECOND).len() as u64);
            dues(pace, u64::MAX)
        })
        .collect();
    all.sort_unstable();
    let within =
        |from: u64, to: u64| all.iter().filter(|due| (from * SECOND..to * SECOND).contains(due)).count();
    let found = [within(0, 5), within(5, 10), within(10, 11), within(11, 12), within(12, 16)];
    for (found, expected) in found.into_iter().zip([125, 375, 1_000, 1_000, 2_000]) {
        assert!(found.abs_diff(expected) <= 2, "{found} of {expected}");
    }
    assert!(all.last().is_some_and(|last| *last < 16 * SECOND));
    let random = staged(&stages, 1.0, Arrivals::Poisson, 0.0);
    // 4,500 ± 67 are Poisson's.
    assert!(dues(random, u64::MAX).len().abs_diff(4_500) < 300);
}

#[test]
fn what_a_stage_asked_for_before_a_moment_is_passed_over() {
    let mut pace = staged(&[stage(10, 100.0)], 1.0, Arrivals::Constant, 0.0);
    pace.skip_to(5 * SECOND);
    assert!(pace.due() >= 5 * SECOND && pace.due() < 5 * SECOND + SECOND / 25, "{}", pace.due());
    assert!(pace.left_until(10 * SECOND).abs_diff(375) <= 1);
}

#[test]
fn moments_of_a_log_are_kept_and_end() {
    let pace = Pace::new(Growth::Moments([5, 5, 900].into()), Arrivals::Constant, 0.5, 0);
    assert_eq!((pace.left_until(6), pace.left_until(1_000)), (2, 3));
    assert_eq!(dues(pace, u64::MAX), [5, 5, 900]);
}
