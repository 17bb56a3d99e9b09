//! Log-linear histograms: equal steps in every power of two, so a value is known to a fixed share of itself in fixed room.
//! With 32 steps that is 3 % in 8 KiB; with 8, of which there can be many, 12 % in 2 KiB.
//!
//! A [`Histogram`] is written by the one thread that owns it, with plain loads and stores; anybody may take a
//! [`HistogramSnapshot`] at any time, which may miss the value being recorded, no more.
//! Next: `metrics`, which keeps one per timing and thread.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};

/// Steps per power of two. The relative error of a quantile is at most one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steps {
    /// 32: for few histograms.
    Fine = 5,
    /// 8: for one histogram per location and peer.
    Coarse = 3,
}

const BITS: u32 = 36;

/// Larger values are capped: in microseconds, 19 hours.
pub const LARGEST: u64 = (1 << BITS) - 1;

impl Steps {
    const fn bits(self) -> u32 {
        self as u32
    }

    const fn count(self) -> u64 {
        1 << self.bits()
    }

    /// One per value below the number of steps, then that number for each power of two up to [`LARGEST`].
    const fn buckets(self) -> usize {
        (self.count() * (1 + (BITS - self.bits()) as u64)) as usize
    }

    const fn bucket_of(self, value: u64) -> usize {
        if value < self.count() {
            return value as usize;
        }
        let shift = value.ilog2() - self.bits();
        // The top bit of the shifted value is always set: it counts as the steps of the row before.
        (shift as u64 * self.count() + (value >> shift)) as usize
    }

    const fn upper_bound(self, bucket: usize) -> u64 {
        let (bucket, steps) = (bucket as u64, self.count());
        if bucket < steps {
            return bucket;
        }
        let shift = bucket / steps - 1;
        ((bucket % steps + steps + 1) << shift) - 1
    }
}

/// One thread's values.
#[derive(Debug)]
pub struct Histogram {
    steps: Steps,
    buckets: Box<[AtomicU64]>,
    sum: AtomicU64,
}

/// Sums over several threads at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramSnapshot {
    steps: Steps,
    buckets: Vec<u64>,
    sum: u64,
}

impl Histogram {
    pub fn new(steps: Steps) -> Self {
        let buckets = (0..steps.buckets()).map(|_| AtomicU64::new(0)).collect();
        Histogram { steps, buckets, sum: AtomicU64::new(0) }
    }

    /// Only the owning thread may call it: two threads would lose counts.
    #[inline]
    pub fn record(&self, value: u64) {
        let value = value.min(LARGEST);
        let count = &self.buckets[self.steps.bucket_of(value)];
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.sum.store(self.sum.load(Ordering::Relaxed).wrapping_add(value), Ordering::Relaxed);
    }

    /// The snapshot must have as many steps.
    pub fn add_to(&self, snapshot: &mut HistogramSnapshot) {
        debug_assert_eq!(self.steps, snapshot.steps);
        for (total, count) in snapshot.buckets.iter_mut().zip(self.buckets.iter()) {
            *total += count.load(Ordering::Relaxed);
        }
        snapshot.sum = snapshot.sum.wrapping_add(self.sum.load(Ordering::Relaxed));
    }
}

impl HistogramSnapshot {
    pub fn new(steps: Steps) -> Self {
        HistogramSnapshot { steps, buckets: vec![0; steps.buckets()], sum: 0 }
    }

    pub fn add(&mut self, other: &HistogramSnapshot) {
        debug_assert_eq!(self.steps, other.steps);
        for (total, count) in self.buckets.iter_mut().zip(&other.buckets) {
            *total += count;
        }
        self.sum = self.sum.wrapping_add(other.sum);
    }

    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// In the unit that was recorded.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The value below or at which the share `quantile` (0–1) of all values lies, at most a step above the
    /// true one; `None` without values.
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
        bucket.map(|bucket| self.steps.upper_bound(bucket))
    }

    /// A bucket that the bound divides counts as above it.
    pub fn count_up_to(&self, bound: u64) -> u64 {
        let whole = self
            .buckets
            .iter()
            .enumerate()
            .take_while(|(bucket, _)| self.steps.upper_bound(*bucket) <= bound);
        whole.map(|(_, count)| count).sum()
    }

    /// The difference to an earlier snapshot of the same histograms.
    pub fn since(&self, earlier: &HistogramSnapshot) -> HistogramSnapshot {
        let pairs = self.buckets.iter().zip(&earlier.buckets);
        let buckets = pairs.map(|(now, then)| now.saturating_sub(*then)).collect();
        HistogramSnapshot { steps: self.steps, buckets, sum: self.sum.wrapping_sub(earlier.sum) }
    }
}
