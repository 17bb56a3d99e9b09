//! The highest rate that holds: an open loop at one rate after the other, higher where it held, lower where it did not, and
//! at last the same rate again and again, to see that it holds.
//!
//! A rate holds where the server keeps up with it ([`crate::outcome::KEPT_UP`]), and latency and errors stay within the goal. What is unanswered at the end of a trial is not late as long as it is what the rate and a latency make that was not
//! overloaded (Little's law): the queue of a server that falls behind is longer. A trial that did not hold, and in which the
//! generator was late, says nothing and is done again, so often at the most that the search ends. Which rate is next, `search` says; [`run`]
//! carries its trials out. Next: `drive`.

mod search;
#[cfg(test)]
mod tests;

use crate::drive;
use crate::outcome::{Confirmed, Goal, KEPT_UP, Outcome, SearchOutcome, Tried};
use crate::plan::{Arrivals, Mode, Plan, PlanError, RATE};
use crate::probe;
use crate::progress::Progress;
use crate::report::quantity::{Count, Number, Quantity, Rate, Share, Time, plural, seconds};
use search::{MAY_FAIL, search};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The most connections of the closed loop that the first guess comes from.
const GUESSING: u32 = 64;
/// After so many trials in which the generator was late, this machine is too restless to tell.
const LATE: usize = 20;
/// After so many trials in a row without any answer it is asked whether the API is there at all.
const GONE: usize = 2;
/// Bytes of a body that are waited for between two trials.
const BODY: usize = 1 << 20;

/// A trial is as long as so many answers, so that its first half shows how long they take, and as two ticks of the slices.
const ANSWERS: f64 = 10.0;
const SHORTEST: f64 = 0.2;
/// A rate that is by this share too high must show.
const EXCESS: f64 = 0.1;

#[derive(Debug)]
pub enum SearchSight<'a> {
    /// A rate is tried now; none: a closed loop, for a first guess.
    Begins(Option<f64>),
    /// From this rate on trials take so long, as shorter ones could not tell.
    Lengthened(f64, Duration),
    Goes(&'a Progress),
    Ended(&'a Tried),
}

/// Waits until a single request is answered, or for so long: a server that works in the order of arrival has done then what
/// the trial before left behind, which would otherwise be taken for the next one's own latency. Tells how long the answer took.
fn settle(plan: &Plan, patience: Duration) -> Duration {
    // Whatever it says, or does not, the trial will tell.
    let once = |places: &Vec<u32>| probe::once(&plan.targets[places[0] as usize], patience, BODY);
    plan.origins().iter().flat_map(once).map(|reply| reply.total).max().unwrap_or_default()
}

/// The shortest trial, in seconds, that tells whether a server keeps up with so many requests per second, each of which takes
/// `alone`: see [`Outcome::kept_up`].
fn least(goal: Goal, rate: f64, alone: Duration) -> f64 {
    let single = alone.as_secs_f64();
    // Of n requests n × EXCESS wait at the end. A quarter of these looks like latency, and one of a hundred due may: the rest must
    // be more than what is allowed for by chance, √(n × EXCESS) for that quarter and `by_chance`, which is solved for √n.
    let (shows, by_chance) = (0.75 * EXCESS + KEPT_UP - 1.0, 2.0 * (rate * single).sqrt() + 1.0);
    let root = (EXCESS.sqrt() + (EXCESS + 4.0 * shows * by_chance).sqrt()) / (2.0 * shows);
    // As many as a percentile takes, see `Latency::tells`.
    let requests = (root * root).max(if goal.p99.is_some() { 100.0 } else { 0.0 });
    let least = SHORTEST.max(ANSWERS * single).max(requests / rate);
    (least * 10.0).ceil() / 10.0
}

fn check(plan: &Plan, goal: Goal, alone: Duration) -> Result<(), PlanError> {
    let least = least(goal, RATE, alone);
    let Some(duration) = plan.duration.filter(|duration| duration.as_secs_f64() < least) else {
        return Ok(());
    };
    let (duration, alone, least) = (Quantity::from(duration), Quantity::from(alone), seconds(least));
    Err(PlanError(format!(
        "-d {duration} is too short to show whether the server keeps up (a single request takes {alone}): write -d {least} or more"
    )))
}

struct Searching<'a> {
    /// Its duration is that of a trial.
    plan: Plan,
    arrivals: Arrivals,
    goal: Goal,
    stop: &'a AtomicBool,
    watch: &'a mut dyn FnMut(SearchSight<'_>),
    /// What a single request takes: the least that was seen.
    alone: Duration,
    trials: Vec<Tried>,
    /// Rates that held, each once, with its last trial that did.
    held: Vec<(f64, Outcome)>,
    /// So many trials in a row had no answer at all.
    unanswered: usize,
    /// From which trial on the API answered nothing, not even a single request.
    gone: Option<usize>,
}

impl Searching<'_> {
    fn go_on(&self) -> Result<(), Option<PlanError>> {
        if self.stop.load(Ordering::Relaxed) || late(&self.trials) >= LATE { Err(None) } else { Ok(()) }
    }

    fn drive(&mut self, plan: &Plan) -> Result<Outcome, PlanError> {
        let watch = &mut self.watch;
        drive::run(plan, self.stop, &mut |progress| watch(SearchSight::Goes(progress)))
    }

    fn guess(&mut self) -> Result<f64, PlanError> {
        (self.watch)(SearchSight::Begins(None));
        let plan = &self.plan;
        // In a closed loop all connections would be busy all the time.
        let connections = plan.connections.min(GUESSING.max(plan.origins().len() as u32));
        let threads = plan.threads.min(connections);
        let mut guess = Plan { mode: Mode::Closed, connections, threads, ..plan.clone() };
        guess.duration = plan.duration.map(|duration| duration / 2);
        let guessed = self.drive(&guess)?.rate();
        if guessed <= 0.0 && !self.stop.load(Ordering::Relaxed) {
            return Err(PlanError("no response was as expected, at any rate".to_owned()));
        }
        Ok(guessed)
    }

    fn trial(&mut self, rate: f64, is_further: bool) -> Result<Option<bool>, Option<PlanError>> {
        self.go_on()?;
        let least = Duration::from_secs_f64(least(self.goal, rate, self.alone));
        if self.plan.duration.is_some_and(|duration| duration < least) {
            self.plan.duration = Some(least);
            (self.watch)(SearchSight::Lengthened(rate, least));
        }
        (self.watch)(SearchSight::Begins(Some(rate)));
        let settled =
            settle(&self.plan, self.plan.timeout.min(self.plan.duration.unwrap_or(self.plan.timeout)));
        self.alone =
            [self.alone, settled].into_iter().filter(|time| !time.is_zero()).min().unwrap_or_default();
        let mode = Mode::Open { rate, arrivals: self.arrivals };
        let outcome = self.drive(&Plan { mode, ..self.plan.clone() })?;
        self.go_on()?;
        let tried = tried(self.goal, &outcome, calm(self.alone, &self.held, rate));
        let tried = Tried { rate, is_further, ..tried };
        (self.watch)(SearchSight::Ended(&tried));
        let holds = (!tried.is_late).then_some(tried.miss.is_none());
        self.trials.push(tried);
        self.unanswered = if outcome.counts.whole() == 0 { self.unanswered + 1 } else { 0 };
        // A server that is only flooded answers a single request.
        if self.unanswered >= GONE && settle(&self.plan, self.plan.timeout).is_zero() {
            self.gone = Some(self.trials.len() - self.unanswered);
            return Err(None);
        }
        if holds == Some(true) {
            self.held.retain(|(other, _)| *other != rate);
            self.held.push((rate, outcome));
        }
        Ok(holds)
    }

    fn ended(mut self, found: Option<(f64, Confirmed)>) -> Result<Option<Outcome>, PlanError> {
        let is_stopped = self.stop.load(Ordering::Relaxed);
        let ended = match self.gone.map(|from| self.trials[from].rate) {
            Some(rate) => format!("the API has not responded since {}", Rate(rate)),
            None if is_stopped => "the search was stopped".to_owned(),
            None => "all trials were used".to_owned(),
        };
        // Trials of an API that is gone say nothing about their rates.
        let told = &self.trials[..self.gone.unwrap_or(self.trials.len())];
        let (rate, confirmed) = found.unzip();
        let best = rate.or_else(|| likeliest(told, self.held.iter().map(|(rate, _)| *rate)));
        let place = self.held.iter().position(|(held, _)| Some(*held) == best);
        match place.map(|place| self.held.swap_remove(place)) {
            Some((rate, outcome)) => {
                let found = conclusion(rate, confirmed, told, &ended);
                let search = SearchOutcome { goal: self.goal, found, confirmed, trials: self.trials };
                Ok(Some(Outcome { search: Some(search), ..outcome }))
            }
            None if is_stopped => Ok(None),
            None if self.gone.is_some() => Err(PlanError(format!("{ended}, and no rate held before"))),
            None => Err(PlanError(nothing(told))),
        }
    }
}

/// Searches: the outcome of the best trial, with what was found; none where the user stopped before there was one. Each
/// trial is the plan at one rate: its mode is replaced, its duration is that of a trial, and longer where a low rate takes
/// that. Errors: the plan makes no sense, its trials are too short at any rate, nothing at all is answered, or no rate held.
pub fn run(
    plan: &Plan,
    arrivals: Arrivals,
    goal: Goal,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(SearchSight<'_>),
) -> Result<Option<Outcome>, PlanError> {
    let alone = settle(plan, plan.timeout);
    check(plan, goal, alone)?;
    let (plan, trials, held) = (plan.clone(), Vec::new(), Vec::new());
    let mut searching =
        Searching { plan, arrivals, goal, stop, watch, alone, trials, held, unanswered: 0, gone: None };
    let guess = searching.guess()?;
    let found = match search(guess, |rate, is_further| searching.trial(rate, is_further)) {
        Err(Some(error)) => return Err(error),
        found => found.unwrap_or_default(),
    };
    searching.ended(found)
}

/// The longest mean latency of a server that keeps up with a rate, seconds, as far as that is known: that of lower rates that held,
/// or of a single request. That of the trial itself is as long as its queue.
fn calm(alone: Duration, held: &[(f64, Outcome)], rate: f64) -> f64 {
    let lower = held.iter().filter(|(held, _)| *held < rate);
    lower.map(|(_, outcome)| outcome.latency.mean / 1e6).fold(alone.as_secs_f64(), f64::max)
}

fn tried(goal: Goal, outcome: &Outcome, calm: f64) -> Tried {
    // As a trial is at least so many answers long, no more than their part of what was due is on its way.
    let on_their_way = outcome.on_their_way(calm.min(outcome.seconds / ANSWERS));
    let miss = goal.judge(outcome, on_their_way);
    Tried {
        answered: outcome.rate(),
        p99: outcome.latency.percentile(99.0),
        error_share: outcome.error_share(),
        is_late: miss.as_ref().is_some_and(|miss| miss.is_generators),
        under_way: outcome.counts.unfinished,
        under_way_allowed: on_their_way as u64,
        miss: miss.map(|miss| miss.why),
        ..Tried::default()
    }
}

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

/// Of rates that held the highest that may still be confirmed, or where there is none such the lowest.
fn likeliest(trials: &[Tried], held: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let open = held.clone().filter(|rate| is_open(trials, *rate)).max_by(f64::total_cmp);
    open.or_else(|| held.min_by(f64::total_cmp))
}

fn too_late(trials: &[Tried]) -> Option<String> {
    let (late, all) = (late(trials), trials.len());
    let words =
        "which shows nothing about the server; use a quieter machine, or a separate one for the generator";
    (late >= LATE).then(|| format!("the generator was late in {late} of {all} trials, {words}"))
}

/// The lowest rate of trials that did not hold, the server's fault before the generator's.
fn lowest<'a>(trials: impl Iterator<Item = &'a Tried>) -> Option<&'a Tried> {
    let failed = trials.filter(|trial| trial.miss.is_some());
    failed.min_by(|a, b| a.rate.total_cmp(&b.rate).then(a.is_late.cmp(&b.is_late)))
}

fn nothing(trials: &[Tried]) -> String {
    let told = lowest(trials.iter().filter(|trial| !trial.is_late));
    let told = told.map(|trial| (Number(trial.rate), trial.miss.as_deref().unwrap_or_default()));
    let (rate, why) = told.unwrap_or((Number(0.0), "no rate was tried"));
    let late = too_late(trials).map(|late| format!("unknown: {late}"));
    late.unwrap_or_else(|| format!("no rate held, not even {rate} requests/s: {why}"))
}

fn conclusion(rate: f64, confirmed: Option<Confirmed>, trials: &[Tried], ended: &str) -> String {
    let told = Number(rate);
    let Some(Confirmed { held, of }) = confirmed else {
        let (held, of) = counted(trials, rate);
        let why = too_late(trials).unwrap_or_else(|| ended.to_owned());
        let of = plural(of as u64, "trial");
        return format!("{told} requests/s held in {held} of {of}, which is not confirmed: {why}");
    };
    let failed = lowest(trials.iter().filter(|trial| trial.rate > rate));
    let at_least = if failed.is_none_or(|trial| trial.is_late) { "At least " } else { "" };
    let above =
        failed.map_or("no trial above this rate failed".to_owned(), |Tried { rate, miss, .. }| {
            let (miss, (held, of)) = (miss.as_deref().unwrap_or_default(), counted(trials, *rate));
            match (Number(*rate), held) {
                (rate, 0) => format!("at {rate} {miss}"),
                (rate, _) => format!("{rate} held in {held} of {}: {miss}", plural(of as u64, "trial")),
            }
        });
    format!("{at_least}{told} requests/s hold, in {held} of {of} further trials; {above}")
}

/// Answers that are errors by so much more than the goal allows are the server's, however late the generator was.
const FAR: f64 = 0.1;
/// Fewer answers than this on a connection are few.
const FEW: u64 = 10;

#[derive(Debug, Clone, PartialEq)]
struct Miss {
    why: String,
    is_generators: bool,
}

impl fmt::Display for Goal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keeps_up = || "the server keeps up".to_owned();
        let p99 = self.p99.map_or_else(keeps_up, |p99| format!("p99 at most {}", Time(p99 as f64)));
        write!(out, "{p99}, at most {} errors", Share(self.errors))
    }
}

impl Goal {
    /// Whether an open loop held; its outcome says which rate it was. So many may be on their way at its end. What was
    /// answered was answered, however late it was sent; a miss is the generator's where its lateness may be the cause.
    fn judge(&self, outcome: &Outcome, on_their_way: f64) -> Option<Miss> {
        let (generator, counted) = (&outcome.generator, &outcome.counts.errors);
        let (errors, kept_up) = (outcome.error_share(), outcome.kept_up_but_for(on_their_way));
        // An answer that took longer than the whole trial came out of a queue.
        let trial = (outcome.seconds * 1e6) as u64;
        let (p99, limit) = (outcome.latency.percentile(99.0), self.p99.unwrap_or(u64::MAX).min(trial));
        // What the generator could not send is its own; so is a latency that is its own delay.
        let (why, is_its_own) = if outcome.due() == outcome.counts.unfinished {
            ("there was no response in time".to_owned(), false)
        } else if errors > self.errors {
            let kinds = counted.found().map(|(kind, count, _)| format!("{kind} {}", Count(count)));
            let kinds = kinds.collect::<Vec<_>>().join(", ");
            // A late generator sends several at once, which a server may refuse, and one without ports cannot connect.
            let far = errors - outcome.share(counted.connect) > self.errors + FAR;
            (format!("{} were errors ({kinds})", Share(errors)), !far && !generator.is_busy())
        } else if kept_up < KEPT_UP {
            (format!("only {} got a response in time", Share(kept_up)), true)
        } else if p99 > limit {
            let is_its_own = generator.is_busy() || p99.saturating_sub(generator.send_lag_p99) <= limit;
            (format!("p99 was {}", Time(p99 as f64)), is_its_own)
        } else {
            return None;
        };
        Some(match &generator.limits {
            Some(limits) if is_its_own => Miss { why: limits.clone(), is_generators: true },
            _ => Miss { why: why + &closings(outcome), is_generators: false },
        })
    }
}

/// A cause, where the server closed many connections that clients went on with: behind the first of each client one was opened for every
/// few answers.
fn closings(outcome: &Outcome) -> String {
    let (opened, clients) = (outcome.counts.connections, u64::from(outcome.connections));
    let more = opened.saturating_sub(clients);
    if !outcome.keep_alive || more < clients / 2 || more < outcome.counts.whole() / FEW || more == 0 {
        return String::new();
    }
    let [opened, clients] = [opened, clients].map(Count);
    format!(
        "; {opened} connections were opened for {clients}, because the server closes connections in use: check its \
         limits of connections (worker_connections) and of requests per connection"
    )
}
