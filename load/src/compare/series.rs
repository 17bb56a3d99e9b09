//! A series of slices as a mean with its error, though neighbouring slices depend on each other.
//!
//! A slow moment lasts longer than a slice, so slices are put together to batches until the means of neighbours hardly
//! correlate; what is left of it widens the error. Then two means are compared as Welch did. Pure numbers. Next: `order`.

use super::Ratio;
use super::student;

/// The fewest slices, and the fewest batches, of which an error can be told.
pub const FEWEST: usize = 10;

/// Correlation of neighbours below which batches are not made larger.
const SMALL: f64 = 0.1;

/// No correlation that was found is taken to be larger: beyond it the error would have no bound.
const LARGEST: f64 = 0.9;

/// A mean of batches.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Batches {
    /// Slices in each.
    pub(super) size: usize,
    /// How many.
    pub(super) means: usize,
    pub(super) mean: f64,
    /// The standard error of the mean.
    pub(super) error: f64,
    /// Of neighbouring batches, the bias of short series taken out.
    pub(super) correlation: f64,
    /// How many degrees of freedom the error has.
    pub(super) freedom: f64,
}

/// The mean of a series; `None` where it is shorter than [`FEWEST`].
pub(super) fn batches(values: &[f64]) -> Option<Batches> {
    if values.len() < FEWEST {
        return None;
    }
    let most = values.len() / FEWEST;
    let made = (1..=most).map(|size| batched(values, size));
    let mut last = None;
    for batches in made {
        let is_enough = batches.correlation < SMALL;
        last = Some(batches);
        if is_enough {
            break;
        }
    }
    last
}

fn batched(values: &[f64], size: usize) -> Batches {
    let means: Vec<f64> =
        values.chunks_exact(size).map(|batch| batch.iter().sum::<f64>() / size as f64).collect();
    let number = means.len() as f64;
    let mean = means.iter().sum::<f64>() / number;
    let squares: f64 = means.iter().map(|value| (value - mean).powi(2)).sum();
    let neighbours: f64 = means.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    let found = if squares > 0.0 { neighbours / squares } else { 0.0 };
    // A short series looks less correlated than it is, by (1 + 3ρ)/(n − 1) (Kendall 1954).
    let correlation = (found + (1.0 + 3.0 * found) / (number - 1.0)).clamp(-LARGEST, LARGEST);
    // The variance of the mean of a first-order autoregressive series; a negative correlation is not made use of.
    let widening = (1.0 + correlation.max(0.0)) / (1.0 - correlation.max(0.0));
    Batches {
        size,
        means: means.len(),
        mean,
        error: (squares / (number - 1.0) / number * widening).sqrt(),
        correlation,
        freedom: (number / widening - 1.0).max(1.0),
    }
}

/// The figures of a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Test {
    pub(super) t: f64,
    pub(super) freedom: f64,
    pub(super) p: f64,
}

/// `b / a` with its interval, and the test of whether it is 1; `None` where a mean is not above 0.
///
/// On logarithms, whose errors are the relative errors of the means (the delta method), so interval and test are one.
pub(super) fn ratio(a: &Batches, b: &Batches, level: f64) -> Option<(Ratio, Test)> {
    if a.mean <= 0.0 || b.mean <= 0.0 {
        return None;
    }
    let distance = (b.mean / a.mean).ln();
    let (first, second) = ((a.error / a.mean).powi(2), (b.error / b.mean).powi(2));
    let error = (first + second).sqrt();
    if error == 0.0 {
        let p = if distance == 0.0 { 1.0 } else { 0.0 };
        let value = b.mean / a.mean;
        let test = Test { t: if p > 0.0 { 0.0 } else { f64::INFINITY }, freedom: a.freedom + b.freedom, p };
        return Some((Ratio { value, low: value, high: value }, test));
    }
    // Welch 1947, Satterthwaite 1946.
    let freedom = (first + second).powi(2) / (first.powi(2) / a.freedom + second.powi(2) / b.freedom);
    let t = distance / error;
    let reach = student::quantile(level, freedom) * error;
    let ratio =
        Ratio { value: distance.exp(), low: (distance - reach).exp(), high: (distance + reach).exp() };
    Some((ratio, Test { t, freedom, p: student::two_sided(t, freedom) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn independent_slices_are_batches_of_their_own() {
        // No neighbour is like its neighbour: correlation is negative.
        let values: Vec<f64> = (0..40).map(|place| f64::from(100 + (place % 2) * 2)).collect();
        let found = batches(&values).expect("40 are enough");
        assert_eq!((found.size, found.means, found.mean), (1, 40, 101.0));
        assert!((found.error - (40.0f64 / 39.0 / 40.0).sqrt()).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn slow_waves_make_large_batches_and_wide_errors() {
        let values: Vec<f64> = (0..100).map(|place| 100.0 + (f64::from(place) / 16.0).sin()).collect();
        let found = batches(&values).expect("100 are enough");
        assert!(found.size > 5, "{found:?}");
        let naive = batched(&values, 1);
        assert!(found.error > 2.0 * naive.error / (1.0 + naive.correlation).sqrt() * 0.3);
        assert!(found.freedom < 12.0, "{found:?}");
    }

    #[test]
    fn too_few_slices_have_no_error() {
        assert_eq!(batches(&[1.0; 9]), None);
        assert!(batches(&[1.0; 10]).is_some_and(|found| found.error == 0.0));
    }

    #[test]
    fn the_interval_is_that_of_the_test() {
        let side = |mean, error| Batches { size: 1, means: 20, mean, error, correlation: 0.0, freedom: 19.0 };
        let (found, test) = ratio(&side(100.0, 1.0), &side(104.0, 1.0), 0.95).expect("both are above 0");
        assert!((test.p < 0.05) == found.excludes_one(), "{found:?} {test:?}");
        assert!((test.freedom - 38.0).abs() < 0.2, "{test:?}");
        let (same, test) = ratio(&side(100.0, 0.0), &side(100.0, 0.0), 0.95).expect("both are above 0");
        assert!(!same.excludes_one() && test.p == 1.0);
        assert_eq!(ratio(&side(0.0, 0.0), &side(1.0, 0.0), 0.95), None);
    }
}
