//! Buckets tile the numbers, and quantiles are as exact as promised.

use super::*;

fn filled(values: impl IntoIterator<Item = u64>) -> HistogramSnapshot {
    let histogram = Histogram::new(Steps::Fine);
    values.into_iter().for_each(|value| histogram.record(value));
    let mut snapshot = HistogramSnapshot::new(Steps::Fine);
    histogram.add_to(&mut snapshot);
    snapshot
}

#[test]
fn every_bucket_begins_where_the_one_before_ends() {
    for steps in [Steps::Fine, Steps::Coarse] {
        for bucket in 0..steps.buckets() {
            let last = steps.upper_bound(bucket);
            assert_eq!(steps.bucket_of(last), bucket);
            if bucket + 1 < steps.buckets() {
                assert_eq!(steps.bucket_of(last + 1), bucket + 1);
            } else {
                assert_eq!(last, LARGEST);
            }
        }
    }
}

#[test]
fn a_value_is_known_to_one_step_of_itself() {
    for steps in [Steps::Fine, Steps::Coarse] {
        for value in [1, 31, 32, 33, 999, 1_000_000, 12_345_678, LARGEST - 1] {
            let bound = steps.upper_bound(steps.bucket_of(value));
            assert!(
                bound >= value && (bound - value) * steps.count() <= value,
                "{steps:?}: {value} → {bound}"
            );
        }
    }
}

#[test]
fn quantiles_of_a_thousand_even_values() {
    let snapshot = filled(1..=1000);
    assert_eq!(snapshot.count(), 1000);
    assert_eq!(snapshot.sum(), 500_500);
    for (quantile, exact) in [(0.5, 500), (0.9, 900), (0.99, 990), (1.0, 1000), (0.0, 1)] {
        let found = snapshot.quantile(quantile).expect("there are values");
        assert!(found >= exact && found - exact <= exact / 31, "{quantile}: {found}");
    }
    assert_eq!(HistogramSnapshot::new(Steps::Fine).quantile(0.5), None);
}

#[test]
fn values_past_the_largest_are_counted_in_the_last_bucket() {
    let snapshot = filled([u64::MAX]);
    assert_eq!(snapshot.quantile(1.0), Some(LARGEST));
    assert_eq!(snapshot.sum(), LARGEST);
}

#[test]
fn a_difference_holds_what_came_between() {
    let earlier = filled([10, 20]);
    let later = filled([10, 20, 3000]);
    let between = later.since(&earlier);
    assert_eq!((between.count(), between.sum(), between.count_up_to(20)), (1, 3000, 0));
    let mut sum = between;
    sum.add(&earlier);
    assert_eq!(sum, later);
}
