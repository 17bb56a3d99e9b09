//! Log-linear histograms: 32 equal steps in every power of two, so a value is known to 3 % in a fixed 8 KiB.
//!
//! A [`Histogram`] is written by the one thread that owns it, with plain loads and stores; anybody may take a
//! [`HistogramSnapshot`] at any time, which may miss the value being recorded, no more.
//! Next: `metrics`, which keeps one per timing and thread.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};

/// Steps in a power of two. The relative error of a quantile is at most 1 / STEPS.
const STEPS: u64 = 32;
const STEP_BITS: u32 = STEPS.trailing_zeros();

/// Values are cut to this: in microseconds, 19 hours.
pub const LARGEST: u64 = (1 << 36) - 1;

/// Buckets: one per value below `STEPS`, then `STEPS` for each power of two up to [`LARGEST`].
const BUCKETS: usize = (STEPS + (36 - STEP_BITS as u64) * STEPS) as usize;

/// One thread's values.
#[derive(Debug)]
pub struct Histogram {
    buckets: Box<[AtomicU64; BUCKETS]>,
    sum: AtomicU64,
}

/// Values of several threads at one moment, summed.
#[derive(Debug, Clone)]
pub struct HistogramSnapshot {
    buckets: Vec<u64>,
    sum: u64,
}

/// The bucket of a value.
fn bucket_of(value: u64) -> usize {
    let value = value.min(LARGEST);
    if value < STEPS {
        return value as usize;
    }
    let shift = value.ilog2() - STEP_BITS;
    // The top bit of the shifted value is always set: it counts as the STEPS of the row before.
    (u64::from(shift) * STEPS + (value >> shift)) as usize
}

/// The largest value that falls into a bucket.
fn upper_bound(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return bucket;
    }
    let shift = bucket / STEPS - 1;
    ((bucket % STEPS + STEPS + 1) << shift) - 1
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { buckets: Box::new([const { AtomicU64::new(0) }; BUCKETS]), sum: AtomicU64::new(0) }
    }
}

impl Histogram {
    /// Adds a value. Only the owning thread may call it: two threads would lose counts.
    pub fn record(&self, value: u64) {
        let value = value.min(LARGEST);
        let count = &self.buckets[bucket_of(value)];
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.sum.store(self.sum.load(Ordering::Relaxed).wrapping_add(value), Ordering::Relaxed);
    }

    /// Adds the present values to a snapshot.
    pub fn add_to(&self, snapshot: &mut HistogramSnapshot) {
        for (total, count) in snapshot.buckets.iter_mut().zip(self.buckets.iter()) {
            *total += count.load(Ordering::Relaxed);
        }
        snapshot.sum = snapshot.sum.wrapping_add(self.sum.load(Ordering::Relaxed));
    }
}

impl Default for HistogramSnapshot {
    fn default() -> Self {
        HistogramSnapshot { buckets: vec![0; BUCKETS], sum: 0 }
    }
}

impl HistogramSnapshot {
    /// How many values.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Their sum, in the unit that was recorded.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The value below or at which the share `quantile` (0–1) of all values lies, at most 3 % above the true one;
    /// `None` without values.
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = ((quantile.clamp(0.0, 1.0) * count as f64).ceil() as u64).clamp(1, count);
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|&values| {
            seen += values;
            seen >= rank
        });
        bucket.map(upper_bound)
    }

    /// How many values lie at or below a bound; a bucket that the bound cuts through counts as above it.
    pub fn count_up_to(&self, bound: u64) -> u64 {
        let whole = self.buckets.iter().enumerate().take_while(|(bucket, _)| upper_bound(*bucket) <= bound);
        whole.map(|(_, count)| count).sum()
    }

    /// What was recorded between an earlier snapshot of the same histograms and this one.
    pub fn since(&self, earlier: &HistogramSnapshot) -> HistogramSnapshot {
        let pairs = self.buckets.iter().zip(&earlier.buckets);
        let buckets = pairs.map(|(now, then)| now.saturating_sub(*then)).collect();
        HistogramSnapshot { buckets, sum: self.sum.wrapping_sub(earlier.sum) }
    }
}
