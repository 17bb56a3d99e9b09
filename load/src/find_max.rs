//! The highest rate that holds: an open loop at one rate after the other, higher where it held, lower where it did not, and
//! at last the same rate again and again, to see that it holds.
//!
//! A rate holds where the server keeps up with it ([`crate::outcome::KEPT_UP`]), and latency and errors stay within the goal
//! (`goal`). What is unanswered at the end of a trial is not late as long as it is what the rate and the latency at the
//! beginning make (Little's law): the queue of a server that falls behind is longer. A trial in which the generator was late says nothing
//! and is done again, so often at the most that the search ends. Which rate is next, `search` says; [`run`]
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
use crate::report::quantity::{Number, Quantity, plural, seconds};
use search::{MAY_FAIL, search};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The most connections of the closed loop that the first guess comes from.
const GUESSING: u32 = 64;
/// After so many trials in which the generator was late, this machine is too restless to tell.
const LATE: usize = 20;
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
    let (mut trials, mut held) = (Vec::<Tried>::new(), Vec::<(f64, Outcome)>::new());
    let found = search(guessed.rate(), |rate, is_further| {
        // Whatever the user stopped says nothing.
        let go_on = || if is_stopped() || late(&trials) >= LATE { Err(None::<PlanError>) } else { Ok(()) };
        go_on()?;
        watch(SearchSight::Begins(Some(rate)));
        settle(plan, plan.timeout.min(plan.duration.unwrap_or(plan.timeout)));
        let trial = Plan { mode: Mode::Open { rate, arrivals }, ..plan.clone() };
        let outcome = drive::run(&trial, stop, &mut |progress| watch(SearchSight::Goes(progress)))?;
        go_on()?;
        let tried = Tried { rate, is_further, ..tried(goal, &outcome) };
        watch(SearchSight::Ended(&tried));
        let holds = (!tried.is_late).then_some(tried.miss.is_none());
        trials.push(tried);
        match holds {
            Some(true) => {
                held.retain(|(other, _)| *other != rate);
                held.push((rate, outcome));
            }
            Some(false) => check(plan, goal, rate, alone)?,
            None => {}
        }
        Ok(holds)
    });
    let (rate, confirmed) = match found {
        Ok(found) => found.unzip(),
        Err(None) => (None, None),
        Err(Some(error)) => return Err(error),
    };
    // One that is being confirmed has held; one that could not be is none.
    let is_best = |held: f64| rate.map_or_else(|| is_open(&trials, held), |rate| held == rate);
    let best = held.into_iter().filter(|(held, _)| is_best(*held)).max_by(|a, b| a.0.total_cmp(&b.0));
    match best {
        Some((rate, outcome)) => {
            let found = conclusion(rate, confirmed, &trials, is_stopped());
            Ok(Some(Outcome { search: Some(SearchOutcome { goal, found, confirmed, trials }), ..outcome }))
        }
        None if is_stopped() => Ok(None),
        None => Err(PlanError(nothing(&trials))),
    }
}

/// What came of a trial.
fn tried(goal: Goal, outcome: &Outcome) -> Tried {
    let miss = goal.judge(outcome);
    Tried {
        rate: 0.0,
        answered: outcome.rate(),
        p99: outcome.latency.percentile(99.0),
        error_share: outcome.error_share(),
        is_further: false,
        is_late: miss.as_ref().is_some_and(|miss| miss.is_generators),
        under_way: outcome.counts.unfinished,
        under_way_allowed: outcome.on_their_way() as u64,
        miss: miss.map(|miss| miss.why),
    }
}

/// In how many trials the generator was late.
fn late(trials: &[Tried]) -> usize {
    trials.iter().filter(|trial| trial.is_late).count()
}

/// Of the trials of a rate that say something: how many held, and all.
fn counted(trials: &[Tried], rate: f64) -> (usize, usize) {
    let telling = || trials.iter().filter(|trial| trial.rate == rate && !trial.is_late);
    (telling().filter(|trial| trial.miss.is_none()).count(), telling().count())
}

/// Whether a rate that held may still be confirmed: neither it nor a lower one has failed too often.
fn is_open(trials: &[Tried], rate: f64) -> bool {
    let failed =
        |trial: &&Tried| trial.rate <= rate && trial.is_further && !trial.is_late && trial.miss.is_some();
    trials.iter().filter(failed).count() <= MAY_FAIL as usize
}

/// That the generator was late too often, and what would tell.
fn too_late(trials: &[Tried]) -> Option<String> {
    let (late, all) = (late(trials), trials.len());
    let words =
        "which say nothing about the server; a quieter machine tells, or one of its own for the generator";
    (late >= LATE).then(|| format!("the generator was late in {late} of {all} trials, {words}"))
}

/// The lowest rate of trials that did not hold, the server's fault before the generator's.
fn lowest<'a>(trials: impl Iterator<Item = &'a Tried>) -> Option<&'a Tried> {
    let failed = trials.filter(|trial| trial.miss.is_some());
    failed.min_by(|a, b| a.rate.total_cmp(&b.rate).then(a.is_late.cmp(&b.is_late)))
}

/// Why no rate is told.
fn nothing(trials: &[Tried]) -> String {
    let told = lowest(trials.iter().filter(|trial| !trial.is_late));
    let told = told.map(|trial| (Number(trial.rate), trial.miss.as_deref().unwrap_or_default()));
    let (rate, why) = told.unwrap_or((Number(0.0), "none was tried"));
    let late = too_late(trials).map(|late| format!("unknown: {late}"));
    late.unwrap_or_else(|| format!("no rate held, not even {rate} requests/s: {why}"))
}

/// What was found, how often it held, and what lies above.
fn conclusion(rate: f64, confirmed: Option<Confirmed>, trials: &[Tried], is_stopped: bool) -> String {
    let told = Number(rate);
    let Some(Confirmed { held, of }) = confirmed else {
        let (held, of) = counted(trials, rate);
        let ended = if is_stopped { "the search was stopped" } else { "there are no more trials" };
        let why = too_late(trials).unwrap_or_else(|| ended.to_owned());
        let of = plural(of as u64, "trial");
        return format!("{told} requests/s held in {held} of {of}, which is not confirmed: {why}");
    };
    let failed = lowest(trials.iter().filter(|trial| trial.rate > rate));
    let at_least = if failed.is_none_or(|trial| trial.is_late) { "At least " } else { "" };
    let above = failed.map_or("no trial above it failed".to_owned(), |Tried { rate, miss, .. }| {
        let (miss, (held, of)) = (miss.as_deref().unwrap_or_default(), counted(trials, *rate));
        match (Number(*rate), held) {
            (rate, 0) => format!("at {rate} {miss}"),
            (rate, _) => format!("{rate} held in {held} of {}: {miss}", plural(of as u64, "trial")),
        }
    });
    format!("{at_least}{told} requests/s hold, in {held} of {of} further trials; {above}")
}
