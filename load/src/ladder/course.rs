//! In which order the steps are climbed, and for how long each is measured.
//!
//! Pure. Rounds go through all steps again and again, so that a machine that slows down on the way slows everybody down;
//! within a step the parties take turns at being first.

use crate::peer::Party;
use crate::step::Step;
use std::time::Duration;

/// One measurement to come: a place in the list of measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    /// Which round, 0 for the first.
    pub round: u32,
    /// Which step.
    pub step: Step,
    /// Who stands in front; `None`: nobody.
    pub party: Option<Party>,
}

/// Every step with everybody who is part of it, in the order of the table. The API alone stands in front of nobody.
pub fn pairs(steps: &[Step], parties: &[Party]) -> Vec<(Step, Option<Party>)> {
    let of_step = |&step: &Step| -> Vec<(Step, Option<Party>)> {
        match step {
            Step::Alone => vec![(step, None)],
            _ => parties.iter().map(|&party| (step, Some(party))).collect(),
        }
    };
    steps.iter().flat_map(of_step).collect()
}

/// Every measurement, in order, of the pairs that can be measured.
pub fn course(pairs: &[(Step, Option<Party>)], rounds: u32) -> Vec<Stop> {
    let mut stops = Vec::with_capacity(pairs.len() * rounds as usize);
    for round in 0..rounds {
        for of_step in pairs.chunk_by(|one, other| one.0 == other.0) {
            let first = round as usize % of_step.len();
            let turns = of_step.iter().cycle().skip(first).take(of_step.len());
            stops.extend(turns.map(|&(step, party)| Stop { round, step, party }));
        }
    }
    stops
}

/// What each measurement takes besides its own time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Around {
    /// Warming up, and single requests before it.
    pub before: Duration,
    /// What the API takes to empty the queue that an uncached step leaves behind.
    pub queue: Duration,
}

impl Around {
    fn seconds(&self, stop: &Stop) -> f64 {
        let start = if stop.party == Some(Party::Varnish) { START + VARNISH } else { START };
        let queue = if stop.step.is_cached() { 0.0 } else { self.queue.as_secs_f64() };
        start + self.before.as_secs_f64() + queue
    }
}

/// Starting and ending a proxy.
const START: f64 = 0.15;

/// What Varnish takes besides: it compiles its configuration.
const VARNISH: f64 = 1.2;

/// A measurement is no shorter than this, and no longer unless asked for.
const SHORTEST: f64 = 0.5;
const LONGEST: f64 = 3.0;

/// How long each measurement is, so that the whole stays within `limit` as far as the shortest allows.
pub fn measured(stops: &[Stop], limit: Duration, around: Around) -> Duration {
    let overhead: f64 = stops.iter().map(|stop| around.seconds(stop)).sum();
    let each = (limit.as_secs_f64() - overhead) / stops.len().max(1) as f64;
    // A tenth of a second is as fine as anybody wants to read it.
    Duration::from_millis(((each.clamp(SHORTEST, LONGEST) * 10.0).floor() * 100.0) as u64)
}

/// How long the whole takes, about.
pub fn whole(stops: &[Stop], each: Duration, around: Around) -> Duration {
    let overhead: f64 = stops.iter().map(|stop| around.seconds(stop)).sum();
    Duration::from_secs_f64(overhead + each.as_secs_f64() * stops.len() as f64)
}

/// Connections where the user names none: what wrk's users take, and fewer in front of an API so slow that more would only
/// queue for longer than a measurement lasts.
pub fn connections(alone: Duration) -> u32 {
    const USUAL: f64 = 50.0;
    const FEWEST: f64 = 8.0;
    // So many that the queue of a single worker is two seconds long.
    let queued = 2.0 / alone.as_secs_f64().max(1e-6);
    queued.clamp(FEWEST, USUAL) as u32
}
