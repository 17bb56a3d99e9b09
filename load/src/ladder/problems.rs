//! What is wrong with a climb, in sentences: an API that breaks or waits, a machine that is busy, steps whose answers do not count.
//!
//! Pure, out of the figures alone. Next: `gain`, which says the rest.

use super::result::{Climbed, Measure, Round, wrong};
use crate::outcome::Errors;
use crate::rank::median;
use crate::report::quantity::{Count, Number, Share, Time, Times, numbered, plural, seconds};
use crate::step::{Fact, Step};
use crate::verdict::{Once, Run, delayed_ack};

/// From this share of failed requests on, an API is said to break under its load.
const BREAKS: f64 = 0.01;
/// From this half of a spread on, by the median of all steps, a machine is too restless for small differences.
const RESTLESS: f64 = 0.25;
/// An answer that takes so many times as long as a single one has waited.
const WAITED: f64 = 10.0;
/// Below so many requests at once that it works on, an API does nothing for most of the time.
const IDLE: f64 = 0.6;
/// The same where its CPU cannot be seen, and a share of the cores that still leaves some to everybody.
const SURELY_IDLE: f64 = 0.25;
const CORES_IDLE: f64 = 0.5;

pub(super) fn sentences(climbed: &Climbed) -> Vec<String> {
    let steps = withheld(climbed).into_iter().chain(climbed.measures.iter().filter_map(unanswered));
    restless(climbed).into_iter().chain(steps).chain(waits(climbed)).collect()
}

pub(super) fn breaks(climbed: &Climbed) -> Option<String> {
    let alone = climbed.measure(Step::Alone, None)?;
    let figures = alone.figures.as_ref()?;
    let errors = figures.errors.total();
    let share = errors as f64 / (figures.answers + errors).max(1) as f64;
    if share < BREAKS && alone.wrong.is_none() {
        return None;
    }
    let what = match &alone.wrong {
        Some(why) if errors == 0 => {
            format!("its responses differ from those to a single request: {why}")
        }
        _ => format!("{} of the requests got no correct response ({})", Share(share), told(&figures.errors)),
    };
    let (connections, rate) = (plural(climbed.connections.into(), "connection"), Number(figures.rate.median));
    let after = if figures.errors.body > 0 { " and after it" } else { "" };
    Some(format!(
        "The API breaks under this load, with nothing in front of it: on {connections} {what}, and it gives {rate} \
        correct responses per second. Its responses to the few single requests before the load{after} were correct. \
        Fix this first; -c sets the number of connections."
    ))
}

pub(super) fn told(errors: &Errors) -> String {
    let others = [
        (errors.connect + errors.tls, "without a connection"),
        (errors.timeout, "without a response in time"),
        (errors.closed, "closed before a response"),
        (errors.refused + errors.reset, "whose stream the proxy reset"),
    ];
    let others = others.into_iter().filter(|(count, _)| *count > 0);
    let others = others.map(|(count, what)| format!("{} {what}", Count(count)));
    let all: Vec<String> = wrong(errors).into_iter().chain(others).collect();
    if all.is_empty() { "all requests were still under way at the end".to_owned() } else { all.join(", ") }
}

/// Rounds of one and the same step that have little in common: of most steps, or of the API alone, which all factors are of.
fn restless(climbed: &Climbed) -> Option<String> {
    let half = |measure: &Measure| measure.counted().filter(|f| f.rounds > 1).and_then(|f| f.rate.half());
    let all = [
        (
            median(climbed.measures.iter().filter_map(half).collect()),
            "The rounds of a step typically differ",
            ": this machine was busy with other things. Measure again when it is quiet, or with more rounds (--rounds).",
        ),
        (
            climbed.measure(Step::Alone, None).and_then(half).unwrap_or(0.0),
            "The API alone differs",
            " from round to round, and every factor is relative to it: more rounds (--rounds) or longer ones (--duration) make the \
             factors more certain.",
        ),
    ];
    let (half, what, so) = all.into_iter().find(|(half, ..)| *half > RESTLESS)?;
    Some(format!("{what} by ±{}{so}", Share(half)))
}

/// Steps with wrong answers. Of the API alone more is said, and where it fails, what passes its answers on fails with it.
fn withheld(climbed: &Climbed) -> Vec<String> {
    let fails = climbed.measure(Step::Alone, None).is_some_and(|alone| alone.wrong.is_some());
    let (mut passing, mut others) = (Vec::new(), Vec::new());
    for measure in climbed.measures.iter().filter(|measure| measure.step != Step::Alone) {
        match &measure.wrong {
            Some(_) if fails && !measure.step.has(Fact::Cache) => passing.push(named(measure)),
            Some(why) => others.push(format!("{} is not counted: {why}.", named(measure))),
            None => {}
        }
    }
    let passing = (!passing.is_empty()).then(|| passing.join(", "));
    let passing = passing.map(|steps| {
        format!(
            "These steps are not counted, because they pass on the API's responses, including errors: {steps}."
        )
    });
    passing.into_iter().chain(others).collect()
}

fn unanswered(measure: &Measure) -> Option<String> {
    let why = told(&measure.counted().filter(|figures| figures.answers == 0)?.errors);
    let name = named(measure);
    Some(format!("{name} gave no response: {why}. Measure for longer (-d), or with fewer connections (-c)."))
}

/// An API that takes longer under load than alone and has nothing to do meanwhile: the factors are those of a wait.
fn waits(climbed: &Climbed) -> Option<String> {
    let alone = climbed.measure(Step::Alone, None)?;
    let figures = alone.counted()?;
    let (rate, once) = (figures.rate.median, climbed.alone_milliseconds / 1000.0);
    let late = |round: &Round| delayed_ack(&Run::of(&round.outcome), &Once { mean: once, ..Once::default() });
    if let Some(late) = alone.typical().and_then(late) {
        return Some(format!("{late} The factors below measure this wait too."));
    }
    let at_once = rate * once;
    let cores = figures.cpu.origin.map(|origin| (origin + figures.cpu.generator) * rate / 1e6);
    let is_idle = match cores {
        Some(used) => at_once < IDLE && used < CORES_IDLE * f64::from(climbed.cores.max(1)),
        None => at_once < SURELY_IDLE,
    };
    if !is_idle || once <= 0.0 || (figures.p50 as f64) < WAITED * once * 1e6 {
        return None;
    }
    let (once, most) = (seconds(once), Time(figures.p50 as f64));
    let (at_once, connections) =
        (numbered(Times(at_once), "request"), plural(climbed.connections.into(), "connection"));
    Some(format!(
        "One request takes {once}, but on {connections} half of the API's own responses take {most} or more, although it works on {at_once} at once \
        (Little's law) and no CPU is saturated. It waits for something that appears only under load: a lock, a limit, a pool that is too small. The \
        factors below measure mostly this wait."
    ))
}

fn named(measure: &Measure) -> String {
    let with = measure.party.map_or_else(String::new, |party| format!(" with {}", party.name()));
    format!("\"{}\"{with}", measure.step.entry().title)
}
