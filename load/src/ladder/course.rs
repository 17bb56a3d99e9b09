//! In which order the steps are climbed, and for how long each is measured.
//!
//! Pure. Rounds go through all steps again and again, each in an order of its own by chance, so that neither what came before nor a machine
//! that slows down falls on the same step each time. The API alone is never the first: whatever is cold then would be the API's.

use super::chance::FEWEST;
use crate::peer::Party;
use crate::report::quantity;
use crate::step::{self, Step};
use fastrand::Rng;
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

/// Every measurement, in order, of the pairs that can be measured; the order within a round is by chance.
fn course(pairs: &[(Step, Option<Party>)], rounds: u32, seed: u64) -> Vec<Turn> {
    let (mut random, mut stops) = (Rng::with_seed(seed), Vec::with_capacity(pairs.len() * rounds as usize));
    let mut order = pairs.to_vec();
    for round in 0..rounds {
        random.shuffle(&mut order);
        if order.len() > 1 && order[0].0 == Step::Alone {
            let other = random.usize(1..order.len());
            order.swap(0, other);
        }
        stops.extend(order.iter().map(|&(step, party)| Turn { round, step, party }));
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

/// Starting and ending a proxy (40 to 120 ms as measured on two cores).
const START: f64 = 0.12;

/// What Varnish takes besides: it compiles its configuration.
const VARNISH: f64 = 1.2;

/// A measurement is no shorter than this, and no longer unless asked for: more rounds tell more than longer ones, whose noise is mostly
/// that of the machine from one to the next. Who used which CPU is looked at every 250 ms, and is to be seen twice.
const SHORTEST: f64 = 0.45;
const LONGEST: f64 = 3.0;

/// Shorter ones are taken only where fewer rounds do not fit either.
const USUAL: f64 = 0.5;

/// Where answers are kept for a second, a shorter one would see hits alone: warmed up a little before it begins, an answer
/// ends within it once, and once a second is what it costs.
const LIFETIME: f64 = 1.2;

/// How often each step is measured where nobody says: the first of these that fits. Six tell most, with five a best one can still be told
/// of all steps (`chance`), and fewer than four tell nothing.
const ROUNDS: [u32; 3] = [6, 5, FEWEST];

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

/// What the user asked for; the rest is chosen so that the whole stays within `limit` as far as the fewest and shortest allow.
#[derive(Debug, Clone, Copy)]
pub struct Wish {
    /// How often each step is measured; `None`: as often as fits into `limit`, four to six times.
    pub rounds: Option<u32>,
    /// How long each time; `None`: so long that the whole stays within `limit`.
    pub each: Option<Duration>,
    /// What the whole may take.
    pub limit: Duration,
    /// What the order comes of.
    pub seed: u64,
}

/// Lays the course out.
pub fn lay_out(
    pairs: &[(Step, Option<Party>)],
    wish: Wish,
    around: Around,
    is_brief: &dyn Fn(Step) -> bool,
) -> Course {
    let of_rounds = |(rounds, shortest): (u32, f64)| {
        let stops = course(pairs, rounds, wish.seed);
        let windows = || windows(&stops, wish.limit, shortest, around, is_brief);
        let windows = wish.each.map_or_else(windows, Windows::asked);
        let each = |stop: &Turn| around.seconds(stop) + windows.of(stop.step, is_brief).as_secs_f64();
        let whole = Duration::from_secs_f64(stops.iter().map(each).sum());
        Course { stops, windows, whole, rounds }
    };
    let least = wish.rounds.unwrap_or(FEWEST);
    let usual = wish.rounds.map_or(ROUNDS.to_vec(), |rounds| vec![rounds]);
    let usual = usual.into_iter().map(|rounds| of_rounds((rounds, USUAL)));
    usual
        .into_iter()
        .find(|course| course.whole <= wish.limit)
        .unwrap_or_else(|| of_rounds((least, SHORTEST)))
}

/// How long each measurement is.
fn windows(
    stops: &[Turn],
    limit: Duration,
    shortest: f64,
    around: Around,
    is_brief: &dyn Fn(Step) -> bool,
) -> Windows {
    let overhead: f64 = stops.iter().map(|stop| around.seconds(stop)).sum();
    let left = limit.as_secs_f64() - overhead;
    let brief = stops.iter().filter(|stop| is_brief(stop.step)).count() as f64;
    let others = stops.len() as f64 - brief;
    let all = left / stops.len().max(1) as f64;
    let usual = if all < LIFETIME { (left - brief * LIFETIME) / others.max(1.0) } else { all };
    // A twentieth of a second is as fine as anybody wants to read it.
    let rounded = |seconds: f64| Duration::from_millis(((seconds * 20.0 + 1e-9).floor() * 50.0) as u64);
    let usual = usual.clamp(shortest, LONGEST);
    Windows { usual: rounded(usual), brief: rounded(usual.max(LIFETIME)) }
}

/// Connections where the user names none: what wrk's users take, and fewer in front of an API so slow that more would only
/// queue for longer than a measurement lasts.
pub fn connections(alone: Duration) -> u32 {
    // So many that the queue of a single worker is two seconds long; eight at the least, and fifty as most tools take.
    (2.0 / alone.as_secs_f64().max(1e-6)).clamp(8.0, 50.0) as u32
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
