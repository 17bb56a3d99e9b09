//! The highest rate that holds: an open loop at one rate after the other, higher where it held, lower where it did not.
//!
//! A rate holds where the server keeps up with it ([`KEPT_UP`]), and latency and errors stay within the goal. What is
//! unanswered at the end of a trial is not late as long as it is what the rate and the latency at the beginning make
//! (Little's law): the queue of a server that falls behind is longer. The search
//! ([`Search`]) is pure and knows neither clock nor server; [`run`] carries its trials out. Next: `drive`.

#[cfg(test)]
mod tests;

use crate::drive;
use crate::outcome::{KEPT_UP, Outcome, Tried};
use crate::plan::{Arrivals, Mode, Plan, PlanError};
use crate::probe;
use crate::progress::Progress;
use crate::report::quantity;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The search ends when the lowest rate that failed is so little above the highest that held.
const CLOSE: f64 = 1.02;
/// Trials at the most.
const TRIALS: u32 = 30;
/// The most connections of the closed loop that the first guess comes from.
const GUESSING: u32 = 64;
/// Bytes of a body that are waited for between two trials.
const BODY: usize = 1 << 20;
/// Below so much of the first guess nothing is looked for.
const LEAST: f64 = 0.001;

/// What must hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// The most that the 99th percentile of latency may be; none: anything.
    pub p99: Option<Duration>,
    /// The most that the share of errors may be, 0 to 1.
    pub errors: f64,
}

/// Why a rate did not hold.
#[derive(Debug, Clone, PartialEq)]
pub enum Miss {
    /// The server answered this share of what was due.
    FellBehind(f64),
    /// Latency, microseconds at the 99th percentile.
    Slow(u64),
    /// The share of errors; and where the generator sent a request in a hundred later than the next was due, so that several
    /// came at once, by how much, microseconds.
    Errors(f64, Option<u64>),
    /// The generator itself could not send so much, in its own words.
    Generator(String),
}

impl std::fmt::Display for Miss {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Miss::FellBehind(share) => {
                write!(out, "only {} were answered in time", quantity::percent(*share))
            }
            Miss::Slow(p99) => write!(out, "p99 was {}", quantity::duration(*p99 as f64)),
            Miss::Errors(share, None) => write!(out, "{} were errors", quantity::percent(*share)),
            Miss::Errors(share, Some(late)) => write!(
                out,
                "{} were errors (the generator sent one request in a hundred more than {} late, several at once: a server that \
                 refuses bunches may take more)",
                quantity::percent(*share),
                quantity::duration(*late as f64)
            ),
            Miss::Generator(why) => out.write_str(why),
        }
    }
}

impl Goal {
    /// The most that the 99th percentile of latency may be, microseconds; none: anything.
    pub fn p99_microseconds(&self) -> Option<u64> {
        self.p99.map(|limit| u64::try_from(limit.as_micros()).unwrap_or(u64::MAX))
    }

    /// Whether an open loop held; its outcome says which rate it was.
    pub fn judge(&self, outcome: &Outcome) -> Option<Miss> {
        let errors = outcome.error_share();
        let answered = outcome.due() - outcome.counts.unfinished;
        let kept_up = outcome.kept_up();
        let p99 = outcome.latency.percentile(99.0);
        let limit = self.p99_microseconds().unwrap_or(u64::MAX);
        let miss = if errors > self.errors || answered == 0 {
            Miss::Errors(if answered == 0 { 1.0 } else { errors }, bunched(outcome))
        } else if kept_up < KEPT_UP {
            Miss::FellBehind(kept_up)
        } else if p99 > limit {
            Miss::Slow(p99)
        } else {
            return None;
        };
        // What the generator could not send says nothing about the server; nor does a latency that is its own delay.
        let generator = &outcome.generator;
        let is_its_own = match miss {
            Miss::FellBehind(_) => true,
            Miss::Slow(p99) => generator.is_busy() || p99.saturating_sub(generator.send_lag_p99) <= limit,
            Miss::Errors(..) | Miss::Generator(_) => false,
        };
        match &generator.limits {
            Some(why) if is_its_own => Some(Miss::Generator(why.clone())),
            _ => Some(miss),
        }
    }
}

/// By how much the generator was late, where that is more than the time between two requests.
fn bunched(outcome: &Outcome) -> Option<u64> {
    let Mode::Open { rate, .. } = outcome.mode else { return None };
    let late = outcome.generator.send_lag_p99;
    (late as f64 * rate > 1e6).then_some(late)
}

/// Which rate is tried next: pure.
///
/// A stutter of the machine is no ceiling: a rate has failed when it failed twice, and the one that ends the search is
/// tried anew when the search has come close to it, for it may have been bad luck that everything since lies below.
#[derive(Debug, Clone)]
pub struct Search {
    /// The highest that held; 0: none yet.
    held: f64,
    /// Those that failed, the lowest last; all are above `held`.
    failed: Vec<f64>,
    next: f64,
    least: f64,
    trials: u32,
    /// Whether the rate that is tried has failed once already.
    is_second: bool,
    /// Whether the lowest that failed did so again with `held` close below it.
    is_over: bool,
}

impl Search {
    /// Begins a little below a guess, requests per second, above 0.
    pub fn new(guess: f64) -> Search {
        Search {
            held: 0.0,
            failed: Vec::new(),
            next: round(guess * 0.8),
            least: guess * LEAST,
            trials: 0,
            is_second: false,
            is_over: false,
        }
    }

    /// The rate to try; none: the search is over.
    pub fn next(&self) -> Option<f64> {
        (!self.is_over && self.trials < TRIALS && self.next >= self.least).then_some(self.next)
    }

    /// Whether that rate held.
    pub fn tell(&mut self, holds: bool) {
        self.trials += 1;
        let is_first = !self.is_second;
        self.is_second = !holds && is_first;
        if holds {
            self.held = self.next;
            self.failed.retain(|failed| *failed > self.held);
        } else if is_first {
            return;
        } else if self.failed.last() == Some(&self.next) {
            self.is_over = true;
        } else {
            self.failed.push(self.next);
        }
        self.next = match self.failed.last() {
            None => round(self.held * 1.25),
            Some(failed) if self.held == 0.0 => round(failed * 0.6),
            Some(failed) if failed / self.held <= CLOSE => *failed,
            Some(failed) => round((self.held * failed).sqrt()),
        };
    }

    /// The highest rate that held; none: not even the lowest did.
    pub fn found(&self) -> Option<f64> {
        (self.held > 0.0).then_some(self.held)
    }
}

/// Four digits: nobody asks for 8123.4567 requests a second.
fn round(rate: f64) -> f64 {
    let digits = 3 - rate.max(f64::MIN_POSITIVE).log10().floor() as i32;
    // Multiplied or divided by a whole number, so that what is printed is as short as it looks.
    let unit = 10f64.powi(digits.abs());
    if digits > 0 { (rate * unit).round() / unit } else { (rate / unit).round() * unit }
}

/// One rate that was tried.
#[derive(Debug, Clone)]
pub struct Trial {
    /// Requests per second.
    pub rate: f64,
    /// Why it did not hold; none: it did.
    pub miss: Option<Miss>,
    /// Its figures.
    pub outcome: Outcome,
}

/// What a search has to tell while it goes on.
#[derive(Debug)]
pub enum SearchSight<'a> {
    /// A rate is tried now; none: a closed loop, for a first guess.
    Begins(Option<f64>),
    /// How that run stands.
    Goes(&'a Progress),
    /// It is over.
    Ended(&'a Trial),
}

impl Trial {
    /// Its figures in short.
    fn told(&self) -> Tried {
        Tried {
            rate: self.rate,
            answered: self.outcome.rate(),
            p99: self.outcome.latency.percentile(99.0),
            error_share: self.outcome.error_share(),
            miss: self.miss.as_ref().map(Miss::to_string),
        }
    }
}

/// What a search came to.
#[derive(Debug, Clone)]
pub struct Found {
    /// The trial at the highest rate that held; none: not even the lowest did.
    pub best: Option<Trial>,
    /// The lowest rate that failed, and why; none: the search was stopped before one did.
    pub failed: Option<(f64, Miss)>,
    /// All that was tried, in order.
    pub tried: Vec<Tried>,
}

/// Waits until a single request is answered, or for the length of a trial: a server that works in the order of arrival has
/// done then what the trial before left behind, which would otherwise be taken for the next one's own latency.
fn settle(plan: &Plan) {
    let patience = plan.timeout.min(plan.duration.unwrap_or(plan.timeout));
    for places in plan.origins() {
        // Whatever it says, or does not, the trial will tell.
        _ = probe::once(&plan.targets[places[0] as usize], patience, BODY);
    }
}

/// Searches. Each trial is the plan at one rate: its mode is replaced, its duration is that of a trial.
///
/// # Errors
/// The plan makes no sense, or nothing at all is answered.
pub fn run(
    plan: &Plan,
    arrivals: Arrivals,
    goal: Goal,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(SearchSight<'_>),
) -> Result<Found, PlanError> {
    watch(SearchSight::Begins(None));
    // In a closed loop all connections would be busy all the time.
    let connections = plan.connections.min(GUESSING.max(plan.origins().len() as u32));
    let threads = plan.threads.min(connections);
    let mut guess = Plan { mode: Mode::Closed, connections, threads, ..plan.clone() };
    guess.duration = plan.duration.map(|duration| duration / 2);
    let guessed = drive::run(&guess, stop, &mut |progress| watch(SearchSight::Goes(progress)))?;
    let mut found = Found { best: None, failed: None, tried: Vec::new() };
    if stop.load(Ordering::Relaxed) {
        return Ok(found);
    }
    if guessed.rate() <= 0.0 {
        return Err(PlanError("nothing is answered as expected, at any rate".to_owned()));
    }
    let mut search = Search::new(guessed.rate());
    let mut missed = Vec::new();
    while let Some(rate) = search.next() {
        watch(SearchSight::Begins(Some(rate)));
        settle(plan);
        let trial = Plan { mode: Mode::Open { rate, arrivals }, ..plan.clone() };
        let outcome = drive::run(&trial, stop, &mut |progress| watch(SearchSight::Goes(progress)))?;
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let trial = Trial { rate, miss: goal.judge(&outcome), outcome };
        watch(SearchSight::Ended(&trial));
        search.tell(trial.miss.is_none());
        found.tried.push(trial.told());
        match &trial.miss {
            None => found.best = Some(trial),
            Some(miss) => missed.push((rate, miss.clone())),
        }
    }
    // A rate that failed once and then held has not failed.
    let held = found.best.as_ref().map_or(0.0, |best| best.rate);
    found.failed = missed.into_iter().filter(|(rate, _)| *rate > held).min_by(|a, b| a.0.total_cmp(&b.0));
    Ok(found)
}
