//! Who stands out, how many may be out, and for how long.

use super::*;

/// Of servers with 1,000 requests each and so many errors.
fn places(errors: &[u64]) -> Vec<usize> {
    let all: Vec<Conduct> = errors.iter().map(|&errors| Conduct { judged: 1000, errors }).collect();
    by_rate(&OutlierEjection::default(), &all).into_iter().map(|(place, _)| place).collect()
}

#[test]
fn a_server_stands_out_that_is_far_below_the_others() {
    for (errors, expected) in [
        (&[0, 0, 0, 0, 500][..], &[4][..]),
        (&[10, 20, 15, 900, 5, 12], &[3]),
        // All are alike, be it in failing.
        (&[500, 500, 500, 500, 500], &[]),
        (&[0, 0, 0, 0, 0], &[]),
        // So little is chance.
        (&[0, 0, 0, 0, 40], &[]),
        // Of few, nobody can say who is right.
        (&[0, 0, 0, 1000], &[]),
        // Two of ten.
        (&[0, 0, 0, 0, 0, 0, 0, 0, 900, 900], &[8, 9]),
        // Who is better than the others is no outlier.
        (&[900, 900, 900, 900, 0], &[]),
    ] {
        assert_eq!(places(errors), expected, "{errors:?}");
    }
}

#[test]
fn who_has_answered_little_is_not_compared() {
    let terms = OutlierEjection::default();
    let one = |judged, errors| Conduct { judged, errors };
    let mut all = vec![one(1000, 0); 5];
    all.push(one(99, 99));
    assert_eq!(by_rate(&terms, &all), []);
    all[5] = one(100, 100);
    assert!(matches!(by_rate(&terms, &all)[..], [(5, Conviction::Rate(own, _))] if own == 0.0));
    let none = OutlierEjection { requests: 0, ..terms };
    assert_eq!(by_rate(&none, &all), []);
}

#[test]
fn never_more_than_max_are_out() {
    let terms = |max| OutlierEjection { max, ..OutlierEjection::default() };
    for (max, all, most) in
        [(50, 2, 1), (50, 3, 1), (50, 1, 0), (10, 10, 1), (10, 9, 0), (100, 3, 3), (34, 3, 1)]
    {
        let count = (0..=all).take_while(|out| has_room(&terms(max), *out, all)).count();
        assert_eq!(count, most, "{max} % of {all}");
    }
}

#[test]
fn a_server_is_out_longer_each_time_up_to_a_bound() {
    let terms = OutlierEjection::default();
    let seconds: Vec<u64> = [1, 2, 3, 10, 11, u32::MAX].map(|times| sentence(&terms, times).as_secs()).into();
    assert_eq!(seconds, [30, 60, 90, 300, 300, 300]);
    let long = OutlierEjection { time: Duration::from_secs(3600), ..terms };
    assert_eq!(sentence(&long, 5).as_secs(), 3600);
}
