//! Interval of percentiles from a histogram, though requests of one moment share its luck.
//!
//! With independent requests the rank of a true percentile is binomial (Thompson 1936). They are not: so the histogram is
//! taken as one of fewer requests, as many as give the spread that the slices show. Pure numbers. Next: `text`.

use super::Ratio;
use super::series;
use super::student;
use crate::outcome::Slice;
use hdrhistogram::Histogram;

/// The fewest independent requests beyond a percentile, expected, with which it can be bounded.
pub const EXPECTED_BEYOND: f64 = 10.0;

/// A distribution and how far its requests depend on each other.
pub(super) struct Distribution {
    histogram: Histogram<u64>,
    /// The longest latency of each slice.
    longest: Vec<u64>,
    /// By what the variance at the median and at the 99th percentile is larger than with independent requests.
    at_median: f64,
    at_99: f64,
}

/// A percentile and what it lies between, microseconds, all above 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Interval {
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Nobody measures for more times as long.
const LONGER: f64 = 20.0;

impl Distribution {
    pub(super) fn new(histogram: Histogram<u64>, slices: &[&Slice]) -> Distribution {
        // Not only those with answers: what waited until the end of the run is in the last one's.
        let answered: Vec<&&Slice> =
            slices.iter().filter(|slice| slice.answers > 0 || slice.max > 0).collect();
        let of =
            |value: fn(&Slice) -> u64| answered.iter().map(|slice| value(slice) as f64).collect::<Vec<_>>();
        let at_median = dependence(&histogram, 50.0, &of(|slice| slice.p50));
        let at_99 = dependence(&histogram, 99.0, &of(|slice| slice.p99));
        let longest = answered.iter().map(|slice| slice.max).collect();
        Distribution { histogram, longest, at_median, at_99 }
    }

    /// What the true percentile lies between with probability `level`; the error says why it cannot be told.
    pub(super) fn bounds(&self, percent: f64, level: f64) -> Result<Interval, String> {
        let share = percent / 100.0;
        let all = self.histogram.len() as f64;
        let dependence = match percent {
            _ if percent <= 50.0 => self.at_median,
            _ if percent < 99.0 => self.at_median.max(self.at_99),
            _ => self.at_99.max(self.clustering(percent)),
        };
        let independent = all / dependence;
        if independent * (1.0 - share) < EXPECTED_BEYOND {
            let times = (EXPECTED_BEYOND / (independent * (1.0 - share)).max(1e-3)).ceil().max(2.0);
            return Err(match times {
                _ if all * (1.0 - share) < EXPECTED_BEYOND => {
                    format!("too few answers beyond it: measure {times} times as long")
                }
                ..=LONGER => format!("its slow answers came in bunches: measure {times} times as long"),
                _ => "its slow answers came in a bunch or two (a stall, a restless machine): measure again"
                    .to_owned(),
            });
        }
        let reach = student::normal_quantile(level) * (share * (1.0 - share) / independent).sqrt();
        let at = |share: f64| self.histogram.value_at_quantile(share.clamp(0.0, 1.0));
        // A recorded value stands for all that share its cell; half a microsecond below is where 0 would be.
        Ok(Interval {
            value: (self.histogram.median_equivalent(at(share)) as f64).max(0.5),
            low: (self.histogram.lowest_equivalent(at(share - reach)) as f64).max(0.5),
            high: (self.histogram.highest_equivalent(at(share + reach)) as f64).max(0.5) + 1.0,
        })
    }

    /// Whether every answer of the one took longer than every answer of the other. Were both of one distribution, of ten slices
    /// each the ten slowest would be one run's by a chance of 2 in C(20, 10), which is 1 in 92,378.
    pub(super) fn is_apart(&self, other: &Distribution) -> bool {
        let is_long = |one: &Distribution| one.longest.len() >= series::FEWEST;
        let below = |one: &Distribution, other: &Distribution| one.histogram.max() < other.histogram.min();
        is_long(self) && is_long(other) && (below(self, other) || below(other, self))
    }

    /// How many slow answers come together: the inverse of the extremal index, by its blocks estimator (Smith and
    /// Weissman 1994) with the slices as blocks. 1 where every slice has one, which says nothing of clusters.
    fn clustering(&self, percent: f64) -> f64 {
        let limit = self.histogram.highest_equivalent(self.histogram.value_at_percentile(percent));
        let (blocks, all) = (self.longest.len() as f64, self.histogram.len() as f64);
        let hit = self.longest.iter().filter(|longest| **longest > limit).count() as f64;
        let beyond = all - self.histogram.count_between(0, limit) as f64;
        if hit == 0.0 || hit >= blocks || beyond <= 0.0 {
            return 1.0;
        }
        let clusters = -blocks * (-hit / blocks).ln_1p();
        (beyond / clusters).max(1.0)
    }
}

/// By what the variance of a percentile is larger than with independent requests: that of the mean of the slices' own
/// percentiles, carried from values to ranks by the density there, over the binomial one. At least 1.
fn dependence(histogram: &Histogram<u64>, percent: f64, slices: &[f64]) -> f64 {
    let Some(found) = series::batches(slices) else { return 1.0 };
    if histogram.is_empty() {
        return 1.0;
    }
    let (share, all) = (percent / 100.0, histogram.len() as f64);
    let value = histogram.value_at_percentile(percent);
    // Wide enough that the cells of the histogram do not matter, and not wider than what the error spans.
    let window = (2.0 * found.error).max(3.0 * histogram.equivalent_range(value) as f64);
    let (low, high) = ((value as f64 - window).max(0.0) as u64, (value as f64 + window) as u64);
    let inside = histogram.count_between(low, high) as f64 / all;
    let density = inside / (high - low + 1) as f64;
    ((found.error * density).powi(2) / (share * (1.0 - share) / all)).max(1.0)
}

/// `b / a` with the interval that follows from both bounds (MOVER: Zou and Donner 2008, on logarithms).
pub(super) fn ratio(a: Interval, b: Interval) -> Ratio {
    let value = b.value / a.value;
    let down = (b.value / b.low).ln().hypot((a.high / a.value).ln());
    let up = (b.high / b.value).ln().hypot((a.value / a.low).ln());
    Ratio { value, low: value * (-down).exp(), high: value * up.exp() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram;

    fn even(values: u64) -> Histogram<u64> {
        let mut histogram = histogram::empty();
        (1..=values).for_each(|value| histogram.saturating_record(value));
        histogram
    }

    #[test]
    fn independent_requests_have_binomial_bounds() {
        let distribution = Distribution::new(even(10_000), &[]);
        let found = distribution.bounds(50.0, 0.95).expect("10,000 are enough");
        // Rank 5,000 ± 1.96·√(10,000·¼) = 4,902 to 5,098, within the histogram's three digits.
        assert!((found.low - 4_902.0).abs() < 6.0 && (found.high - 5_098.0).abs() < 10.0, "{found:?}");
        assert!(Distribution::new(even(10_100), &[]).bounds(99.9, 0.95).is_ok());
        assert!(
            Distribution::new(even(9_000), &[])
                .bounds(99.9, 0.95)
                .is_err_and(|why| why.contains("2 times as long"))
        );
        assert!(Distribution::new(histogram::empty(), &[]).bounds(50.0, 0.95).is_err());
    }

    #[test]
    fn slow_answers_that_come_together_count_as_few() {
        // 10,000 requests in 100 slices; the slowest hundred of them all in 4 slices.
        let slices: Vec<Slice> = (0..100)
            .map(|place| Slice {
                answers: 100,
                seconds: 0.1,
                p50: 5_000,
                p99: 5_000,
                max: if place < 4 { 10_000 } else { 9_000 },
                ..Slice::default()
            })
            .collect();
        let distribution = Distribution::new(even(10_000), &slices.iter().collect::<Vec<_>>());
        assert!((distribution.clustering(99.0) - 24.0).abs() < 3.0, "{}", distribution.clustering(99.0));
        assert!(distribution.bounds(99.0, 0.95).is_err());
        assert!(distribution.bounds(50.0, 0.95).is_ok());
    }

    #[test]
    fn slices_that_differ_more_than_chance_widen_the_bounds() {
        let slices = |spread: u64| -> Vec<Slice> {
            let p50 = |place: u64| 5_000 + place * 7 % 11 * spread - 5 * spread;
            (0..100)
                .map(|place| Slice { answers: 100, p50: p50(place), p99: 9_900, ..Slice::default() })
                .collect()
        };
        let width = |slices: &[Slice]| {
            let found =
                Distribution::new(even(10_000), &slices.iter().collect::<Vec<_>>()).bounds(50.0, 0.95);
            found.map(|found| found.high - found.low).expect("10,000 are enough")
        };
        assert!(
            width(&slices(700)) > 3.0 * width(&slices(1)),
            "{} {}",
            width(&slices(700)),
            width(&slices(1))
        );
    }

    #[test]
    fn ratios_of_bounds_reach_as_far_as_both_errors_together() {
        let side = |value: f64| Interval { value, low: value / 1.03, high: value * 1.04 };
        let found = ratio(side(100.0), side(100.0));
        assert!((found.high.ln() - 1.04f64.ln().hypot(1.03f64.ln())).abs() < 1e-12 && !found.excludes_one());
        assert!(ratio(side(100.0), side(110.0)).excludes_one());
    }
}
