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

use crate::drive;
use crate::outcome::{Confirmed, Goal, KEPT_UP, Outcome, SearchOutcome, Tried};
use crate::plan::{Arrivals, Mode, Plan, PlanError, RATE};
use crate::probe;
use crate::progress::Progress;
use crate::report::quantity::{Number, Quantity, seconds};
use goal::Miss;
use search::search;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The most connections of the closed loop that the first guess comes from.
const GUESSING: u32 = 64;
/// Bytes of a body that are waited for between two trials.
const BODY: usize = 1 << 20;

/// A trial is as long as so many answers, so that its first half shows how long they take, and as two ticks of the slices.
const ANSWERS: f64 = 10.0;
const SHORTEST: f64 = 0.2;
/// A rate that is by this share too high must show.
const EXCESS: f64 = 0.1;

/// What a search has to tell while it goes on.
#[derive(Debug)]
pub enum SearchSight<'a> {
    /// A rate is tried now; none: a closed loop, for a first guess.
    Begins(Option<f64>),
    /// How that run stands.
    Goes(&'a Progress),
    /// It is over.
    Ended(&'a Tried),
}

/// Waits until a single request is answered, or for so long: a server that works in the order of arrival has done then what
/// the trial before left behind, which would otherwise be taken for the next one's own latency. Tells how long the answer took.
fn settle(plan: &Plan, patience: Duration) -> Duration {
    // Whatever it says, or does not, the trial will tell.
    let once = |places: &Vec<u32>| probe::once(&plan.targets[places[0] as usize], patience, BODY);
    plan.origins().iter().flat_map(once).map(|reply| reply.total).max().unwrap_or_default()
}

/// Refuses trials too short to tell whether a server keeps up with so many requests per second, each of which takes `alone`: see
/// [`Outcome::kept_up`].
fn check(plan: &Plan, goal: Goal, rate: f64, alone: Duration) -> Result<(), PlanError> {
    let single = alone.as_secs_f64();
    // Of n requests n × EXCESS wait at the end. A quarter of these looks like latency, and one of a hundred due may: the rest must
    // be more than what is allowed for by chance, √(n × EXCESS) for that quarter and `by_chance`, which is solved for √n.
    let (shows, by_chance) = (0.75 * EXCESS + KEPT_UP - 1.0, 2.0 * (rate * single).sqrt() + 1.0);
    let root = (EXCESS.sqrt() + (EXCESS + 4.0 * shows * by_chance).sqrt()) / (2.0 * shows);
    // As many as a percentile takes, see `Latency::tells`.
    let requests = (root * root).max(if goal.p99.is_some() { 100.0 } else { 0.0 });
    let least = SHORTEST.max(ANSWERS * single).max(requests / rate);
    let Some(duration) = plan.duration.filter(|duration| duration.as_secs_f64() < least) else {
        return Ok(());
    };
    let with = if rate < RATE { format!(" with {} requests/s", Number(rate)) } else { String::new() };
    let (duration, alone) = (Quantity::from(duration), Quantity::from(alone));
    let least = seconds((least * 10.0).ceil() / 10.0);
    Err(PlanError(format!(
        "-d {duration} is too short to tell whether the server keeps up{with} (a single request takes {alone}): write -d {least} \
         or more"
    )))
}

/// Searches: the outcome of the best trial, with what was found; none where the user stopped before there was one. Each trial is the
/// plan at one rate: its mode is replaced, its duration is that of a trial.
///
/// # Errors
/// The plan makes no sense, its trials are too short, nothing at all is answered, or no rate held.
pub fn run(
    plan: &Plan,
    arrivals: Arrivals,
    goal: Goal,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(SearchSight<'_>),
) -> Result<Option<Outcome>, PlanError> {
    let is_stopped = || stop.load(Ordering::Relaxed);
    let alone = settle(plan, plan.timeout);
    check(plan, goal, RATE, alone)?;
    watch(SearchSight::Begins(None));
    // In a closed loop all connections would be busy all the time.
    let connections = plan.connections.min(GUESSING.max(plan.origins().len() as u32));
    let threads = plan.threads.min(connections);
    let mut guess = Plan { mode: Mode::Closed, connections, threads, ..plan.clone() };
    guess.duration = plan.duration.map(|duration| duration / 2);
    let guessed = drive::run(&guess, stop, &mut |progress| watch(SearchSight::Goes(progress)))?;
    if guessed.rate() <= 0.0 && !is_stopped() {
        return Err(PlanError("nothing is answered as expected, at any rate".to_owned()));
    }
    let mut trials = Vec::new();
    // Of each rate the last trial that held, and those that did not.
    let (mut held, mut missed) = (Vec::<(f64, Outcome)>::new(), Vec::<(f64, Miss)>::new());
    let found = search(guessed.rate(), |rate, is_further| {
        // Whatever the user stopped says nothing.
        let go_on = || if is_stopped() { Err(None::<PlanError>) } else { Ok(()) };
        go_on()?;
        watch(SearchSight::Begins(Some(rate)));
        settle(plan, plan.timeout.min(plan.duration.unwrap_or(plan.timeout)));
        let trial = Plan { mode: Mode::Open { rate, arrivals }, ..plan.clone() };
        let outcome = drive::run(&trial, stop, &mut |progress| watch(SearchSight::Goes(progress)))?;
        go_on()?;
        let miss = goal.judge(&outcome);
        let (answered, p99, error_share) =
            (outcome.rate(), outcome.latency.percentile(99.0), outcome.error_share());
        let why = miss.as_ref().map(|miss| miss.why.clone());
        let tried = Tried { rate, answered, p99, error_share, is_further, miss: why };
        watch(SearchSight::Ended(&tried));
        trials.push(tried);
        if let Some(miss) = miss {
            check(plan, goal, rate, alone)?;
            missed.push((rate, miss));
            return Ok(false);
        }
        held.retain(|(other, _)| *other != rate);
        held.push((rate, outcome));
        Ok(true)
    });
    let (rate, confirmed) = match found {
        Ok(found) => found.unzip(),
        Err(None) => (None, None),
        Err(Some(error)) => return Err(error),
    };
    // The rate that is being confirmed has held, but is not above those that could not be.
    let is_best =
        |held: f64| rate.map_or_else(|| missed.iter().all(|(missed, _)| *missed > held), |rate| held == rate);
    let best = held.into_iter().filter(|(held, _)| is_best(*held)).max_by(|a, b| a.0.total_cmp(&b.0));
    let above = |rate: f64| best.as_ref().is_none_or(|(best, _)| rate > *best);
    let failed = missed.into_iter().filter(|(rate, _)| above(*rate)).min_by(|a, b| a.0.total_cmp(&b.0));
    match (best, failed) {
        (Some((rate, outcome)), failed) => {
            let found = conclusion(rate, confirmed, failed, is_stopped());
            Ok(Some(Outcome { search: Some(SearchOutcome { goal, found, confirmed, trials }), ..outcome }))
        }
        (None, Some((rate, Miss { why, .. }))) if !is_stopped() => {
            Err(PlanError(format!("no rate held, not even {} requests/s: {why}", Number(rate))))
        }
        (None, _) => Ok(None),
    }
}

/// What was found, how often it held, and what lies above.
fn conclusion(
    rate: f64,
    confirmed: Option<Confirmed>,
    failed: Option<(f64, Miss)>,
    is_stopped: bool,
) -> String {
    let rate = Number(rate);
    let Some(Confirmed { held, of }) = confirmed else {
        let why = if is_stopped { "the search was stopped" } else { "there are no more trials" };
        return format!("{rate} requests/s held once, which is not confirmed: {why}");
    };
    let at_least = if failed.as_ref().is_none_or(|(_, miss)| miss.is_generators) { "At least " } else { "" };
    let above = match failed {
        Some((above, miss)) => format!("; at {} {}", Number(above), miss.why),
        None => "; no trial above it failed".to_owned(),
    };
    format!("{at_least}{rate} requests/s hold, in {held} of {of} further trials{above}")
}
