//! When each request of an open loop should start: pure, no clock.
//!
//! Moments are nanoseconds from the start of the run. Several threads each have a pace of their own; together they
//! make the whole: equal distances interleave, and independent Poisson streams add up to one. Next: `drive`.

#[cfg(test)]
mod tests;

use crate::plan::{Arrivals, RateStage};
use fastrand::Rng;
use std::sync::Arc;

/// From so many on requests are told of in so many parts: finer than the digits of a histogram.
const PARTS: u64 = 65_536;

#[derive(Debug, Clone)]
pub(crate) enum Growth {
    Rate(f64),
    Stages(Vec<Ramp>),
    /// Each where it is, nanoseconds from the start, in order.
    Moments(Arc<[u64]>),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Ramp {
    /// Nanoseconds from the start of the run.
    start: f64,
    length: f64,
    /// Requests before it.
    before: f64,
    /// Requests per nanosecond at its start, and by how much that grows in a nanosecond.
    rate: f64,
    growth: f64,
}

impl Ramp {
    /// Requests until so many nanoseconds after its start.
    fn requests(&self, time: f64) -> f64 {
        let time = time.min(self.length);
        self.before + self.rate * time + self.growth * time * time / 2.0
    }

    /// When so many requests are reached: `growth/2 t² + rate t = requests` solved without the difference of two large numbers.
    fn at(&self, requests: f64) -> f64 {
        let more = (requests - self.before).max(0.0);
        let root = (self.rate * self.rate + 2.0 * self.growth * more).max(0.0).sqrt();
        let time = if more == 0.0 { 0.0 } else { 2.0 * more / (self.rate + root) };
        self.start + time.min(self.length)
    }
}

impl Growth {
    /// The part `share`, above 0 to 1, of the requests of all stages.
    pub(crate) fn of(stages: &[RateStage], share: f64) -> Growth {
        let (mut start, mut before, mut rate) = (0.0, 0.0, 0.0);
        let mut ramps = Vec::new();
        for stage in stages {
            let (length, to) = (stage.duration.as_nanos() as f64, stage.rate * share / 1e9);
            if length > 0.0 {
                let ramp = Ramp { start, length, before, rate, growth: (to - rate) / length };
                before = ramp.requests(length);
                start += length;
                ramps.push(ramp);
            }
            rate = to;
        }
        Growth::Stages(ramps)
    }

    /// When the request with so many before it should start; never: infinite.
    fn at(&self, before: f64) -> f64 {
        match self {
            Growth::Rate(step) => before * step,
            Growth::Stages(ramps) => {
                let next = ramps.partition_point(|ramp| ramp.requests(ramp.length) <= before);
                ramps.get(next).map_or(f64::INFINITY, |ramp| ramp.at(before))
            }
            Growth::Moments(moments) => moments.get(before as usize).map_or(f64::INFINITY, |at| *at as f64),
        }
    }

    /// How many should have started before a moment, about.
    fn until(&self, moment: f64) -> f64 {
        match self {
            Growth::Rate(step) => moment / step,
            Growth::Stages(ramps) => {
                let place = ramps.partition_point(|ramp| ramp.start <= moment);
                place.checked_sub(1).map_or(0.0, |place| ramps[place].requests(moment - ramps[place].start))
            }
            Growth::Moments(moments) => moments.partition_point(|at| (*at as f64) < moment) as f64,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Pace {
    growth: Growth,
    /// Requests before the next one; not whole where it is shifted or random.
    before: f64,
    due: f64,
    random: Option<Rng>,
    /// Where the first stands; equal distances are multiples from here, so that nothing adds up.
    phase: f64,
    count: u64,
}

impl Pace {
    /// A stream that grows so. `phase`, 0 to below 1, is the part of a step that passes before the first of equal distances;
    /// `seed` makes the others repeatable.
    pub(crate) fn new(growth: Growth, arrivals: Arrivals, phase: f64, seed: u64) -> Pace {
        let random = (arrivals == Arrivals::Poisson).then(|| Rng::with_seed(seed));
        let mut pace = Pace { growth, before: 0.0, due: 0.0, random, phase, count: 0 };
        pace.move_to(0.0);
        pace
    }

    /// The next one stands behind `before` others. Random distances are exponential in what should have started, which is
    /// Poisson's process at every rate.
    fn move_to(&mut self, before: f64) {
        self.before = match &mut self.random {
            // Exponentially distributed with mean 1; never of 0, whose logarithm is no number.
            Some(random) => before - (1.0 - random.f64()).ln(),
            None => self.phase + self.count as f64,
        };
        self.due = self.growth.at(self.before);
    }

    pub fn due(&self) -> u64 {
        self.due as u64
    }

    pub fn advance(&mut self) {
        self.count += 1;
        self.move_to(self.before);
    }

    pub fn skip_to(&mut self, moment: u64) {
        if self.due() >= moment {
            return;
        }
        self.count += self.left_until(moment);
        // Arrivals without memory: how long the wait has been so far says nothing of the rest.
        self.move_to(self.growth.until(moment as f64));
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
        for part in 0..PARTS {
            let middle = self.growth.at(self.before + (part as f64 + 0.5) * left as f64 / PARTS as f64);
            let until = (u128::from(left) * u128::from(part + 1) / u128::from(PARTS)) as u64;
            tell((middle as u64).min(end), until - told);
            told = until;
        }
        told
    }

    /// How many more should start before `end`: exact for equal distances, the mean for others.
    pub fn left_until(&self, end: u64) -> u64 {
        if self.due >= end as f64 {
            return 0;
        }
        let mut left = (self.growth.until(end as f64) - self.before).ceil().max(1.0);
        if self.random.is_none() {
            // Dividing and multiplying may differ by a hair.
            while left > 1.0 && self.growth.at(self.before + left - 1.0) >= end as f64 {
                left -= 1.0;
            }
            while self.growth.at(self.before + left) < end as f64 {
                left += 1.0;
            }
        }
        left as u64
    }
}
