//! A distribution of durations as a report has it, and up to where it is known.

use crate::histogram;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// By how much a percentile may be longer than it says and still be told as known.
const LITTLE: f64 = 1.05;

/// The percentiles that are told.
pub const PERCENTILES: [f64; 6] = [50.0, 75.0, 90.0, 99.0, 99.9, 99.99];

/// Each of [`PERCENTILES`] by its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Percentiles {
    /// The median, microseconds.
    pub(crate) p50_us: u64,
    p75_us: u64,
    p90_us: u64,
    p99_us: u64,
    /// 99.9 %; of fewer than 1,000 durations it is the longest, and so on.
    p99_9_us: u64,
    p99_99_us: u64,
}

impl Percentiles {
    fn of(histogram: &Histogram<u64>) -> Percentiles {
        let all = PERCENTILES.map(|percent| percentile(histogram, percent));
        let [p50_us, p75_us, p90_us, p99_us, p99_9_us, p99_99_us] = all;
        Percentiles { p50_us, p75_us, p90_us, p99_us, p99_9_us, p99_99_us }
    }

    /// Percent and microseconds of each.
    fn iter(&self) -> impl Iterator<Item = (f64, u64)> + use<> {
        let Percentiles { p50_us, p75_us, p90_us, p99_us, p99_9_us, p99_99_us } = *self;
        PERCENTILES.into_iter().zip([p50_us, p75_us, p90_us, p99_us, p99_9_us, p99_99_us])
    }
}

/// A distribution of durations, in microseconds, three significant digits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// The mean.
    #[serde(rename = "mean_us")]
    pub mean: f64,
    /// The standard deviation.
    #[serde(rename = "deviation_us")]
    pub deviation: f64,
    /// The least of an answer; 0: none came.
    #[serde(rename = "min_us")]
    pub min: u64,
    /// The most.
    #[serde(rename = "max_us")]
    pub max: u64,
    /// Percent and microseconds for each of [`PERCENTILES`]. All are here; one of `n` durations with `n × (1 - percent / 100)`
    /// below 1 is the longest alone, and reports for people leave it out.
    #[serde(flatten)]
    pub percentiles: Percentiles,
    /// Up to this percentile all is known: were the requests that had no answer in time, or when the run ended, never answered,
    /// it would be longer by a twentieth at the most. One above it is at least what it says. 100 where every request had its answer;
    /// below that the mean and the most are at least what they say, too.
    #[serde(default = "all")]
    pub known_to: f64,
    /// The whole histogram: HdrHistogram's V2 encoding, deflated, in Base64, as its other tools read it.
    pub histogram: String,
}

/// [`Latency::known_to`] where every request had its answer, as files have it that do not say.
fn all() -> f64 {
    100.0
}

/// The highest percentile of those told up to which all are known, see [`Latency::known_to`]; 0: none is.
fn known_to(histogram: &Histogram<u64>, answers: &Histogram<u64>) -> f64 {
    if answers.len() == histogram.len() {
        return all();
    }
    let is_known = |percent: f64| {
        let rank = (percent / 100.0 * histogram.len() as f64).ceil();
        let share = rank / answers.len() as f64;
        let least = histogram.value_at_percentile(percent) as f64;
        share <= 1.0 && answers.value_at_quantile(share) as f64 <= least * LITTLE
    };
    PERCENTILES.into_iter().take_while(|percent| is_known(*percent)).last().unwrap_or(0.0)
}

/// A percentile of a histogram of microseconds, no longer than the longest; 0 of none.
pub(crate) fn percentile(histogram: &Histogram<u64>, percent: f64) -> u64 {
    histogram.value_at_percentile(percent).min(histogram.max())
}

/// With so few digits behind the point that a text of it, read again, is the same number.
fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

impl Latency {
    /// What a histogram of microseconds comes to. An empty one is all zeros.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        Self::with_unfinished(histogram, &histogram::empty())
    }

    /// The same where these of the histogram's durations are of requests that had no answer yet.
    pub fn with_unfinished(histogram: &Histogram<u64>, unfinished: &Histogram<u64>) -> Self {
        let mut answers = histogram.clone();
        // It fails where there are more of these than of all, which cannot be.
        _ = answers.subtract(unfinished);
        Latency {
            mean: thousandths(histogram.mean()),
            deviation: thousandths(histogram.stdev()),
            min: answers.min(),
            max: histogram.max(),
            percentiles: Percentiles::of(histogram),
            known_to: known_to(histogram, &answers),
            histogram: histogram::encode(histogram),
        }
    }

    /// Whether nothing was measured: its zeros are then no figures.
    pub fn is_empty(&self) -> bool {
        self.max == 0
    }

    /// Whether a percentile is a figure; else it is at least what it says. The most is the percentile 100.
    pub fn is_known(&self, percent: f64) -> bool {
        percent <= self.known_to
    }

    /// Whether a percentile says anything but what the longest does: one of so many durations must lie beyond it, so of 20 the
    /// 95th is the last that does. Those above it are the longest by other names, and by chance.
    pub fn tells(&self, percent: f64) -> bool {
        // A hair is allowed for: 99.9 is not exact.
        percent >= 100.0 || self.decoded().len() as f64 * (100.0 - percent) > 100.0 - 1e-6
    }

    /// A percentile: 100 is the longest, one that is not in the list comes from the histogram.
    pub fn percentile(&self, percent: f64) -> u64 {
        let listed = self.percentiles.iter().find(|(name, _)| (name - percent).abs() < 1e-9);
        match listed {
            _ if percent >= 100.0 => self.max,
            Some((_, value)) => value,
            None => percentile(&self.decoded(), percent),
        }
    }

    /// The whole histogram; an empty one where a file has none that can be read.
    pub fn decoded(&self) -> Histogram<u64> {
        histogram::decode(&self.histogram).unwrap_or_else(|_| histogram::empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl Iterator<Item = u64>) -> Histogram<u64> {
        let mut histogram = histogram::empty();
        values.for_each(|value| histogram.saturating_record(value));
        histogram
    }

    #[test]
    fn a_percentile_tells_something_where_one_duration_or_more_lies_beyond_it() {
        for (count, last) in [
            (0, None),
            (1, None),
            (2, Some(50.0)),
            (3, Some(50.0)),
            (4, Some(75.0)),
            (9, Some(75.0)),
            (10, Some(90.0)),
            (20, Some(90.0)),
            (99, Some(90.0)),
            (100, Some(99.0)),
            (999, Some(99.0)),
            (1_000, Some(99.9)),
            (9_999, Some(99.9)),
            (10_000, Some(99.99)),
        ] {
            let latency = Latency::of(&of((1..=count).map(|number| number * 10)));
            let told = PERCENTILES.into_iter().take_while(|percent| latency.tells(*percent)).last();
            assert_eq!((told, latency.tells(100.0)), (last, true), "{count}");
        }
    }

    #[test]
    fn a_percentile_is_known_where_what_had_no_answer_cannot_change_it_by_much() {
        let known_to = |answers: &Histogram<u64>, waiting: &Histogram<u64>| {
            let mut both = answers.clone();
            both.add(waiting).expect("both have the same bounds");
            Latency::with_unfinished(&both, waiting).known_to
        };
        let answers = of((1..=10_000).map(|number| 1_000 + number / 10));
        assert_eq!(known_to(&answers, &of([].into_iter())), 100.0);
        assert_eq!(known_to(&answers, &of([1].into_iter())), 99.99, "one on its way says nothing");
        // A stall at the end: what waits has waited for long, and only what lies above it is not known.
        assert_eq!(known_to(&answers, &of((1..=1_000).map(|number| 10_000 + number))), 90.0);
        // A queue that grows: as many wait as have waited, from nothing on.
        assert_eq!(known_to(&of((1..=1_000).map(|n| n * 100)), &of((1..=500).map(|n| n * 200))), 0.0);
        assert_eq!(known_to(&of([].into_iter()), &of([5].into_iter())), 0.0);
    }

    #[test]
    fn the_least_is_that_of_an_answer_and_not_of_what_has_hardly_waited() {
        let (all, waiting) = (of([5, 20_000, 30_000].into_iter()), of([5].into_iter()));
        let latency = Latency::with_unfinished(&all, &waiting);
        assert_eq!((latency.min / 100, latency.max / 100), (200, 300));
        assert_eq!(Latency::with_unfinished(&waiting, &waiting).min, 0, "no answer came");
    }
}
