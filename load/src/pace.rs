//! When each request of an open loop should start: pure, no clock.
//!
//! Moments are nanoseconds from the start of the run. Several threads each have a pace of their own; together they
//! make the whole: equal distances interleave, and independent Poisson streams add up to one. Next: `drive`.

#[cfg(test)]
mod tests;

use crate::plan::Arrivals;

/// From so many on requests are told of in so many parts: finer than the digits of a histogram.
const PARTS: u64 = 65_536;

/// The due moments of one stream of requests, in order.
#[derive(Debug, Clone)]
pub struct Pace {
    /// Nanoseconds between two requests, in the mean.
    step: f64,
    /// When the next one should start.
    due: f64,
    /// How many were before it.
    count: u64,
    /// When the first should start; equal distances are multiples from here, so that nothing adds up.
    first: f64,
    random: Option<Random>,
}

impl Pace {
    /// A stream with `rate` requests per second, above 0. `phase`, 0 to below 1, is the part of a step that passes
    /// before the first of equal distances; `seed` makes the others repeatable.
    pub fn new(rate: f64, arrivals: Arrivals, phase: f64, seed: u64) -> Pace {
        let step = 1e9 / rate;
        let mut pace = Pace { step, due: phase * step, count: 0, first: phase * step, random: None };
        if arrivals == Arrivals::Poisson {
            let mut random = Random(seed);
            pace.due = random.exponential() * step;
            pace.random = Some(random);
        }
        pace
    }

    /// When the next request should start, in nanoseconds.
    pub fn due(&self) -> u64 {
        self.due as u64
    }

    /// That request is taken.
    pub fn advance(&mut self) {
        self.count += 1;
        match &mut self.random {
            Some(random) => self.due += random.exponential() * self.step,
            None => self.due = self.first + self.count as f64 * self.step,
        }
    }

    /// Passes over what should start before this moment.
    pub fn skip_to(&mut self, moment: u64) {
        if self.due() >= moment {
            return;
        }
        match &mut self.random {
            // Arrivals without memory: how long the wait has been so far says nothing of the rest.
            Some(random) => self.due = moment as f64 + random.exponential() * self.step,
            None => {
                self.count += self.left_until(moment);
                self.due = self.first + self.count as f64 * self.step;
            }
        }
    }

    /// Tells of each request that should start before `end`, `most` of them at the most: when, and how many together. Each
    /// is told by itself unless they are very many; then parts of them are, each with the moment in its middle. Returns how
    /// many there were.
    pub fn each_until(&mut self, end: u64, most: u64, mut tell: impl FnMut(u64, u64)) -> u64 {
        let left = self.left_until(end).min(most);
        let mut told = 0;
        if left <= PARTS {
            while self.due() < end && told < most {
                tell(self.due(), 1);
                self.advance();
                told += 1;
            }
            return told;
        }
        let length = left as f64 * self.step / PARTS as f64;
        for part in 0..PARTS {
            let middle = self.due + (part as f64 + 0.5) * length;
            let until = (u128::from(left) * u128::from(part + 1) / u128::from(PARTS)) as u64;
            tell((middle as u64).min(end), until - told);
            told = until;
        }
        told
    }

    /// How many more should start before `end`: exact for equal distances, the mean for others.
    pub fn left_until(&self, end: u64) -> u64 {
        let left = end as f64 - self.due;
        if left <= 0.0 { 0 } else { (left / self.step).ceil() as u64 }
    }
}

/// Numbers that look random and repeat with their seed (SplitMix64: an odd step, then a mixing of the bits).
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// The next 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound that is far below 2^64.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    /// Puts values into an order by chance (Fisher and Yates 1938).
    pub(crate) fn shuffle<Value>(&mut self, values: &mut [Value]) {
        for place in (1..values.len()).rev() {
            values.swap(place, self.below(place as u64 + 1) as usize);
        }
    }

    /// Exponentially distributed with mean 1.
    fn exponential(&mut self) -> f64 {
        // 53 bits are what an f64 holds; never 0, whose logarithm is no number.
        let uniform = ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        -uniform.ln()
    }
}
