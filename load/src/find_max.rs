//! The highest rate that holds: an open loop at one rate after the other, higher where it held, lower where it did not, and
//! at last the same rate again and again, to see that it holds.
//!
//! A rate holds where the server keeps up with it ([`crate::outcome::KEPT_UP`]), and latency and errors stay within the goal
//! (`goal`). What is unanswered at the end of a trial is not late as long as it is what the rate and the latency at the
//! beginning make (Little's law): the queue of a server that falls behind is longer. Which rate is next, `search` says; [`run`]
//! carries its trials out. Next: `drive`.

mod goal;
mod search;
#[cfg(test)]
mod tests;

pub use goal::{Goal, Miss};
pub use search::Search;

use crate::drive;
use crate::outcome::{Confirmed, Outcome, Tried};
use crate::plan::{Arrivals, Mode, Plan, PlanError};
use crate::probe;
use crate::progress::Progress;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most connections of the closed loop that the first guess comes from.
const GUESSING: u32 = 64;
/// Bytes of a body that are waited for between two trials.
const BODY: usize = 1 << 20;

/// One rate that was tried.
#[derive(Debug, Clone)]
pub struct Trial {
    /// Requests per second.
    pub rate: f64,
    /// Why it did not hold; none: it did.
    pub miss: Option<Miss>,
    /// Whether it was a further trial of a rate that had held.
    pub is_further: bool,
    /// Its figures.
    pub outcome: Outcome,
}

impl Trial {
    /// Its figures in short.
    fn told(&self) -> Tried {
        Tried {
            rate: self.rate,
            answered: self.outcome.rate(),
            p99: self.outcome.latency.percentile(99.0),
            error_share: self.outcome.error_share(),
            is_further: self.is_further,
            miss: self.miss.as_ref().map(Miss::to_string),
        }
    }
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

/// What a search came to.
#[derive(Debug, Clone)]
pub struct Found {
    /// The last trial that held at the rate that was found, or where none was confirmed at the highest that held; none: not even the lowest did.
    pub best: Option<Trial>,
    /// How often that rate held of its further trials; none: the search ended before it was confirmed.
    pub confirmed: Option<Confirmed>,
    /// The lowest rate above it that failed, and why; none: the search was stopped before one did.
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
    let mut tried = Vec::new();
    // Of each rate the last trial that held, and those that did not.
    let (mut held, mut missed) = (Vec::<Trial>::new(), Vec::new());
    if guessed.rate() <= 0.0 && !stop.load(Ordering::Relaxed) {
        return Err(PlanError("nothing is answered as expected, at any rate".to_owned()));
    }
    let mut search = Search::new(guessed.rate());
    while let Some(rate) = search.next().filter(|_| !stop.load(Ordering::Relaxed)) {
        watch(SearchSight::Begins(Some(rate)));
        settle(plan);
        let trial = Plan { mode: Mode::Open { rate, arrivals }, ..plan.clone() };
        let outcome = drive::run(&trial, stop, &mut |progress| watch(SearchSight::Goes(progress)))?;
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let is_further = search.is_confirming();
        let trial = Trial { rate, miss: goal.judge(&outcome), is_further, outcome };
        watch(SearchSight::Ended(&trial));
        search.tell(trial.miss.is_none());
        tried.push(trial.told());
        match &trial.miss {
            None => {
                held.retain(|other| other.rate != rate);
                held.push(trial);
            }
            Some(miss) => missed.push((rate, miss.clone())),
        }
    }
    let (rate, confirmed) = search.found().unzip();
    // The rate that is being confirmed has held, but is not above those that could not be.
    let best = match rate {
        Some(rate) => held.into_iter().find(|trial| trial.rate == rate),
        None => held
            .into_iter()
            .filter(|trial| !missed.iter().any(|(rate, _)| *rate <= trial.rate))
            .max_by(|a, b| a.rate.total_cmp(&b.rate)),
    };
    let above = |rate: f64| best.as_ref().is_none_or(|best| rate > best.rate);
    let failed = missed.into_iter().filter(|(rate, _)| above(*rate)).min_by(|a, b| a.0.total_cmp(&b.0));
    Ok(Found { best, confirmed, failed, tried })
}
