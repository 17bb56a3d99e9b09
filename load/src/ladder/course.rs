//! In which order the steps are climbed, and for how long each is measured.
//!
//! Pure. Rounds go through all steps again and again, so that a machine that slows down on the way slows everybody down;
//! within a step the parties take turns at being first.

use crate::peer::Party;
use crate::report::quantity;
use crate::step::{self, Step};
use std::time::Duration;

/// One measurement to come: a place in the list of measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
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
fn course(pairs: &[(Step, Option<Party>)], rounds: u32) -> Vec<Turn> {
    let mut stops = Vec::with_capacity(pairs.len() * rounds as usize);
    for round in 0..rounds {
        for of_step in pairs.chunk_by(|one, other| one.0 == other.0) {
            let first = round as usize % of_step.len();
            let turns = of_step.iter().cycle().skip(first).take(of_step.len());
            stops.extend(turns.map(|&(step, party)| Turn { round, step, party }));
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
    fn seconds(&self, stop: &Turn) -> f64 {
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

/// Where answers are kept for a second, a shorter one would see hits alone: warmed up a little before it begins, an answer
/// ends within it once, and once a second is what it costs.
const LIFETIME: f64 = 1.2;

/// How often each step is measured where nobody says: the first of these that fits.
const ROUNDS: [u32; 2] = [3, 2];

/// How long measurements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// Of most steps.
    pub usual: Duration,
    /// Of those whose answers are kept for a second.
    pub brief: Duration,
}

impl Windows {
    /// All as long as the user asked.
    pub fn asked(each: Duration) -> Windows {
        Windows { usual: each, brief: each }
    }

    /// That of a step; `is_brief` says of which answers are kept for a second.
    pub fn of(&self, step: Step, is_brief: &dyn Fn(Step) -> bool) -> Duration {
        if is_brief(step) { self.brief } else { self.usual }
    }
}

/// Whether a step keeps answers for a second and no longer, where `fallback` is the time for those that say nothing.
pub fn is_brief(step: Step, fallback: Option<&str>) -> bool {
    let seconds = |text: &str| step::seconds(text).is_some_and(|seconds| seconds <= 1);
    let cache = step.features().and_then(|features| features.cache);
    cache.is_some_and(|cache| cache.micro || fallback.is_some_and(seconds))
}

/// Everything to be measured, and for how long each.
#[derive(Debug, Clone)]
pub struct Course {
    /// In order.
    pub stops: Vec<Turn>,
    /// How long.
    pub windows: Windows,
    /// How long the whole takes, about.
    pub whole: Duration,
    /// How often each step is measured.
    pub rounds: u32,
}

/// What the user asked for; the rest is chosen so that the whole stays within `limit` as far as the shortest allows.
#[derive(Debug, Clone, Copy)]
pub struct Wish {
    /// How often each step is measured.
    pub rounds: Option<u32>,
    /// How long each time.
    pub each: Option<Duration>,
    /// What the whole may take.
    pub limit: Duration,
}

/// Lays the course out.
pub fn lay_out(
    pairs: &[(Step, Option<Party>)],
    wish: Wish,
    around: Around,
    is_brief: &dyn Fn(Step) -> bool,
) -> Course {
    let of_rounds = |rounds: u32| {
        let stops = course(pairs, rounds);
        let windows = wish.each.map_or_else(|| windows(&stops, wish.limit, around, is_brief), Windows::asked);
        let whole = stops
            .iter()
            .map(|stop| around.seconds(stop) + windows.of(stop.step, is_brief).as_secs_f64())
            .sum();
        Course { stops, windows, whole: Duration::from_secs_f64(whole), rounds }
    };
    let rounds = wish.rounds.map_or(ROUNDS.to_vec(), |rounds| vec![rounds]);
    let mut courses = rounds.into_iter().map(of_rounds).peekable();
    while let Some(course) = courses.next() {
        if course.whole <= wish.limit || courses.peek().is_none() {
            return course;
        }
    }
    of_rounds(1)
}

/// How long each measurement is.
fn windows(stops: &[Turn], limit: Duration, around: Around, is_brief: &dyn Fn(Step) -> bool) -> Windows {
    let overhead: f64 = stops.iter().map(|stop| around.seconds(stop)).sum();
    let left = limit.as_secs_f64() - overhead;
    let brief = stops.iter().filter(|stop| is_brief(stop.step)).count() as f64;
    let others = stops.len() as f64 - brief;
    let all = left / stops.len().max(1) as f64;
    let usual = if all < LIFETIME { (left - brief * LIFETIME) / others.max(1.0) } else { all };
    // A tenth of a second is as fine as anybody wants to read it.
    let rounded = |seconds: f64| Duration::from_millis(((seconds * 10.0).floor() * 100.0) as u64);
    let usual = usual.clamp(SHORTEST, LONGEST);
    Windows { usual: rounded(usual), brief: rounded(usual.max(LIFETIME)) }
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

/// The most streams of one connection: about as many requests as a page sends at once.
const STREAMS: u32 = 10;

/// How a step's requests at once are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breadth {
    /// Connections.
    pub connections: u32,
    /// Requests on each at once.
    pub streams: u32,
}

/// As many requests at once in every step, and never more than the others have `connections`: over HTTP/2 they are streams
/// of a few. Every thread of the generator has a connection of its own where there are two streams for it.
pub fn breadth(step: Step, connections: u32, threads: u32) -> Breadth {
    if !step.is_http2() {
        return Breadth { connections, streams: 1 };
    }
    let fewest = threads.min(connections / 2).max(1);
    let shared = connections.div_ceil(STREAMS).max(fewest);
    Breadth { connections: shared, streams: connections / shared }
}

impl Breadth {
    /// In words: `5 connections with 10 streams each`.
    pub fn words(self) -> String {
        let count = |number: u32, what: &str| {
            let s = if number == 1 { "" } else { "s" };
            format!("{} {what}{s}", quantity::count(u64::from(number)))
        };
        let each = if self.connections == 1 { "" } else { " each" };
        format!("{} with {}{each}", count(self.connections, "connection"), count(self.streams, "stream"))
    }
}
