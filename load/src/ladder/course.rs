//! In which order the steps are climbed, and for how long each is measured.
//!
//! Pure. Rounds go through all steps again and again, each in an order of its own by chance, so that neither what came before nor a machine
//! that slows down falls on the same step each time. The API alone is never the first: whatever is cold then would be the API's.

use super::chance::FEWEST;
use crate::party::SHORTEST;
use crate::peer::Party;
use crate::report::quantity::plural;
use crate::step::running::Running;
use crate::step::{self, Fact, Step};
use crate::target::{Ask, Permission};
use fastrand::Rng;
use std::path::PathBuf;
use std::time::Duration;

/// What is measured at once: a step, and who stands in front; `None`: nobody.
pub type Pair = (Step, Option<Party>);

pub fn pairs(steps: &[Step], parties: &[Party]) -> Vec<Pair> {
    let of_step = |&step: &Step| -> Vec<Pair> {
        match step {
            Step::Alone => vec![(step, None)],
            _ => parties.iter().map(|&party| (step, Some(party))).collect(),
        }
    };
    steps.iter().flat_map(of_step).collect()
}

/// Every measurement, in order, of the pairs that can be measured; the order within a round is by chance.
fn stops(pairs: &[Pair], rounds: u32, seed: u64) -> Vec<Pair> {
    let (mut random, mut order, mut stops) = (Rng::with_seed(seed), pairs.to_vec(), Vec::new());
    for _ in 0..rounds {
        random.shuffle(&mut order);
        if order.len() > 1 && order[0].0 == Step::Alone {
            let other = random.usize(1..order.len());
            order.swap(0, other);
        }
        stops.extend_from_slice(&order);
    }
    stops
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Around {
    /// Warming up, and single requests before it.
    pub before: Duration,
    /// What the API takes to empty the queue that an uncached step leaves behind.
    pub queue: Duration,
}

impl Around {
    fn seconds(&self, (step, party): Pair) -> f64 {
        let start = if party == Some(Party::Varnish) { START + VARNISH } else { START };
        let queue = if step.has(Fact::Cache) { Duration::ZERO } else { self.queue };
        start + (self.before + queue).as_secs_f64()
    }
}

/// Starting and ending a proxy (40 to 120 ms as measured on two cores).
const START: f64 = 0.12;

/// What Varnish takes besides: it compiles its configuration.
const VARNISH: f64 = 1.2;

/// A measurement is no longer than this unless asked for: more rounds tell more than longer ones, whose noise is mostly
/// that of the machine from one to the next.
const LONGEST: f64 = 3.0;

/// Shorter ones are taken only where fewer rounds do not fit either.
const USUAL: f64 = 0.5;

/// Where answers are kept for a second, a shorter one would see hits alone: warmed up a little before it begins, an answer
/// ends within it once, and once a second is what it costs.
const LIFETIME: f64 = 1.2;

/// How often each step is measured where nobody says: the first of these that fits. Six tell most, with five a best one can still be told
/// of all steps (`chance`), and fewer than four tell nothing.
const ROUNDS: [u32; 3] = [6, 5, FEWEST];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    pub usual: Duration,
    /// Of those whose answers are kept for a second.
    pub brief: Duration,
}

/// Whether a step keeps answers for a second and no longer, where `fallback` is the time for those that say nothing.
pub fn is_brief(step: Step, fallback: Option<&str>) -> bool {
    let is_second = |time: &str| step::seconds(time).is_some_and(|seconds| seconds <= 1);
    step.has(Fact::Cache) && (step.has(Fact::Micro) || fallback.is_some_and(is_second))
}

#[derive(Debug, Clone)]
pub struct Course {
    pub stops: Vec<Pair>,
    pub windows: Windows,
    /// How long the whole takes, about.
    pub whole: Duration,
    pub rounds: u32,
}

/// What the user asked for; the rest is chosen so that the whole stays within `limit` as far as the fewest and shortest allow.
#[derive(Debug, Clone, Copy)]
pub struct Wish {
    /// How often each step is measured; `None`: as often as fits into `limit`, four to six times.
    pub rounds: Option<u32>,
    /// How long each time; `None`: so long that the whole stays within `limit`.
    pub each: Option<Duration>,
    pub limit: Duration,
    pub seed: u64,
}

#[derive(Debug, Clone)]
pub struct Order {
    pub ask: Ask,
    pub may: Permission,
    pub steps: Vec<Step>,
    pub parties: Vec<(Party, PathBuf)>,
    pub wish: Wish,
    pub running: Option<Running>,
    /// Connections; `None`: by how slow the API is.
    pub connections: Option<u32>,
    /// For how long an answer is kept that says nothing, in the steps that go by the API's headers; `None`: as the
    /// microcache keeps it. In nginx's notation with one unit.
    pub fallback: Option<String>,
    /// Threads of this process that are the API, by the beginning of their names; `None`: it is another process.
    pub own_api: Option<&'static str>,
}

/// Lays the course out; `fallback` as in [`is_brief`].
pub fn lay_out(pairs: &[Pair], wish: Wish, around: Around, fallback: Option<&str>) -> Course {
    let of_rounds = |rounds: u32, shortest: f64| {
        let stops = stops(pairs, rounds, wish.seed);
        let overhead: f64 = stops.iter().map(|stop| around.seconds(*stop)).sum();
        let brief = stops.iter().filter(|(step, _)| is_brief(*step, fallback)).count() as f64;
        let (all, others) = (stops.len() as f64, stops.len() as f64 - brief);
        let fitting = || {
            let left = wish.limit.as_secs_f64() - overhead;
            let each = left / all.max(1.0);
            let usual = if each < LIFETIME { (left - brief * LIFETIME) / others.max(1.0) } else { each };
            // A twentieth of a second is as fine as anybody wants to read it.
            let rounded =
                |seconds: f64| Duration::from_millis(((seconds * 20.0 + 1e-9).floor() * 50.0) as u64);
            let usual = usual.clamp(shortest, LONGEST);
            Windows { usual: rounded(usual), brief: rounded(usual.max(LIFETIME)) }
        };
        let windows = wish.each.map_or_else(fitting, |each| Windows { usual: each, brief: each });
        let measured = windows.usual.mul_f64(others) + windows.brief.mul_f64(brief);
        Course { stops, windows, whole: Duration::from_secs_f64(overhead) + measured, rounds }
    };
    let usual = wish.rounds.map_or(ROUNDS.to_vec(), |rounds| vec![rounds]).into_iter();
    usual
        .map(|rounds| of_rounds(rounds, USUAL))
        .find(|course| course.whole <= wish.limit)
        .unwrap_or_else(|| of_rounds(wish.rounds.unwrap_or(FEWEST), SHORTEST.as_secs_f64()))
}

/// Connections where the user names none: what wrk's users take, and fewer in front of an API so slow that more would only
/// queue for longer than a measurement lasts.
pub fn connections(alone: Duration) -> u32 {
    // So many that the queue of a single worker is two seconds long; eight at the least, and fifty as most tools take.
    (2.0 / alone.as_secs_f64().max(1e-6)).clamp(8.0, 50.0) as u32
}

/// The most streams of one connection: about as many requests as a page sends at once.
const STREAMS: u32 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breadth {
    pub connections: u32,
    pub streams: u32,
}

/// As many requests at once in every step, and never more than the others have `connections`: over HTTP/2 they are streams
/// of a few. Every thread of the generator has a connection of its own where there are two streams for it.
pub fn breadth(step: Step, connections: u32, threads: u32) -> Breadth {
    if !step.has(Fact::Http2) {
        return Breadth { connections, streams: 1 };
    }
    let fewest = threads.min(connections / 2).max(1);
    let shared = connections.div_ceil(STREAMS).max(fewest);
    Breadth { connections: shared, streams: connections / shared }
}

/// What the requests at once of some steps are on, in words: `50 connections`, `50 connections (over HTTP/2: 5 connections with 10 streams
/// each)`.
pub fn told(connections: u32, threads: u32, steps: impl IntoIterator<Item = Step>) -> String {
    let plural = |number: u32, what: &str| plural(number.into(), what);
    let http2 = steps.into_iter().find(|step| step.has(Fact::Http2));
    let shared = http2.map_or_else(String::new, |step| {
        let Breadth { connections, streams } = breadth(step, connections, threads);
        let each = if connections == 1 { "" } else { " each" };
        let (connections, streams) = (plural(connections, "connection"), plural(streams, "stream"));
        format!(" (over HTTP/2: {connections} with {streams}{each})")
    });
    plural(connections, "connection") + &shared
}
