//! What the climb was worth, in sentences: what was wrong, what was gained, how the others fared, and what the API says.
//!
//! Pure, out of the figures alone. The words for single steps are `verdict`'s; what limits at the top is said by `climb`,
//! which knows the evidence.

use super::result::{Climbed, Figures, Measure, wrong};
use crate::correctness::Keeps;
use crate::outcome::Errors;
use crate::peer::Party;
use crate::rank::median;
use crate::report::quantity;
use crate::step::Step;
use crate::verdict;

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

/// Microseconds that a delayed acknowledgement takes on Linux (its shortest is 40 ms), with what comes on top.
const DELAYED: std::ops::RangeInclusive<u64> = 38_000..=60_000;

/// All sentences, the most important first.
pub fn sentences(climbed: &Climbed) -> Vec<String> {
    let mut out: Vec<String> = breaks(climbed).into_iter().collect();
    out.extend(restless(climbed).or_else(|| shaky(climbed)));
    out.extend(withheld(climbed));
    out.extend(unanswered(climbed));
    out.extend(waits(climbed));
    let caching = &climbed.caching;
    let about = verdict::About {
        rounds: climbed.rounds,
        uncacheable: caching.why.as_deref(),
        advice: caching.advice.as_deref(),
    };
    let climb = verdict::climb(&steps(climbed), about);
    if caching.keeps == Keeps::No && !climb.iter().any(|words| words.contains("cannot be cached")) {
        out.push(caching.words.clone());
    }
    out.extend(climb);
    out.extend(multiplexed(climbed));
    out.extend(beside(climbed));
    if caching.keeps == Keeps::Silent && climbed.measures.iter().any(|measure| measure.step >= Step::Headers)
    {
        out.push(silent(climbed));
    }
    out
}

/// An API that fails under its load, alone: nothing that stands in front of it says more.
fn breaks(climbed: &Climbed) -> Option<String> {
    let alone = climbed.measure(Step::Alone, None)?;
    let figures = alone.figures.as_ref()?;
    let errors = figures.errors.total();
    let share = errors as f64 / (figures.answers + errors).max(1) as f64;
    if share < BREAKS && alone.wrong.is_none() {
        return None;
    }
    let kinds = told(&figures.errors);
    let what = match &alone.wrong {
        Some(why) if kinds.is_empty() => format!(
            "its answers differ from those that it gives to a single request: \
         {why}"
        ),
        _ => format!(
            "{} of the requests got no correct answer ({})",
            verdict::percent(share),
            kinds.join(", ")
        ),
    };
    let again = if figures.errors.body > 0 { " and after it" } else { "" };
    Some(format!(
        "The API breaks under this load, with nothing in front of it: on {} connections {what}, and it gives {} \
         correct answers per second. It answered the few single requests before the load{again} correctly. Look at that first; -c sets the number of connections.",
        climbed.connections,
        verdict::count(figures.rate.median)
    ))
}

/// What went wrong, in words.
fn told(errors: &Errors) -> Vec<String> {
    let others = [
        (errors.connect + errors.tls, "without a connection"),
        (errors.timeout, "without an answer in time"),
        (errors.closed, "closed before an answer"),
        (errors.refused + errors.reset, "whose stream the proxy reset"),
    ];
    let others = others.iter().filter(|(count, _)| *count > 0);
    let others = others.map(|(count, what)| format!("{} {what}", quantity::count(*count)));
    wrong(errors).into_iter().chain(others).collect()
}

/// Rounds of one and the same thing that have little in common.
fn restless(climbed: &Climbed) -> Option<String> {
    let counted = climbed.measures.iter().filter_map(Measure::counted).filter(|figures| figures.rounds > 1);
    let spreads: Vec<f64> = counted.filter_map(|figures| figures.rate.half()).collect();
    let middle = median(spreads);
    (middle > RESTLESS).then(|| {
        format!(
            "The rounds of a step typically differ by ±{}: this machine was busy with other things. Small \
             differences mean nothing here; measure again when it is quiet, or with more rounds (--rounds).",
            verdict::percent(middle)
        )
    })
}

/// What all factors are of differs much from round to round, though most steps do not.
fn shaky(climbed: &Climbed) -> Option<String> {
    let alone = climbed.measure(Step::Alone, None)?.counted()?;
    let half = alone.rate.half().filter(|half| alone.rounds > 1 && *half > RESTLESS)?;
    Some(format!(
        "The API alone differs by ±{} from round to round, and every factor is relative to it: more rounds \
         (--rounds) or longer ones (--duration) make the factors more certain.",
        verdict::percent(half)
    ))
}

/// Steps with wrong answers. Of the API alone more is said, and where it fails, what passes its answers on fails with it.
fn withheld(climbed: &Climbed) -> Vec<String> {
    let fails = climbed.measure(Step::Alone, None).is_some_and(|alone| alone.wrong.is_some());
    let wrong =
        climbed.measures.iter().filter(|measure| measure.step != Step::Alone && measure.wrong.is_some());
    let (passing, others): (Vec<&Measure>, Vec<&Measure>) =
        wrong.partition(|measure| fails && !measure.step.is_cached());
    let mut out = Vec::new();
    if !passing.is_empty() {
        let names: Vec<String> = passing.into_iter().map(named).collect();
        out.push(format!(
            "These steps are not counted, because they pass on the API's answers, errors included: {}.",
            names.join(", ")
        ));
    }
    let one = |measure: &Measure| {
        let why = measure.wrong.as_ref()?;
        Some(format!("{} is not counted: {why}.", named(measure)))
    };
    out.extend(others.into_iter().filter_map(one));
    out
}

/// Steps without a single answer.
fn unanswered(climbed: &Climbed) -> impl Iterator<Item = String> {
    let none = climbed.measures.iter().filter(|measure| measure.counted().is_some_and(|f| f.answers == 0));
    none.map(|measure| {
        let errors = measure.figures.as_ref().map(|figures| told(&figures.errors)).unwrap_or_default();
        let why = match errors.is_empty() {
            true => "all requests were still under way at the end".to_owned(),
            false => errors.join(", "),
        };
        format!(
            "{} gave no answer: {why}. Measure for longer (-d), or with fewer connections (-c).",
            named(measure)
        )
    })
}

/// An API that takes much longer under load than alone and has nothing to do meanwhile: the factors are those of a wait.
fn waits(climbed: &Climbed) -> Option<String> {
    let figures = climbed.measure(Step::Alone, None)?.counted()?;
    let (rate, once) = (figures.rate.median, climbed.alone_milliseconds / 1000.0);
    let at_once = rate * once;
    let cores = figures.cpu.origin.map(|origin| (origin + figures.cpu.generator) * rate / 1e6);
    let is_idle = match cores {
        Some(used) => at_once < IDLE && used < CORES_IDLE * f64::from(climbed.cores.max(1)),
        None => at_once < SURELY_IDLE,
    };
    if !is_idle || once <= 0.0 || (figures.p50 as f64) < WAITED * once * 1e6 {
        return None;
    }
    let why = if DELAYED.contains(&figures.p50) {
        "That is the time that Nagle's algorithm and a delayed acknowledgement take when head and body are written \
         one after the other on a reused connection: TCP_NODELAY, or one write for both, gains as much without any proxy"
    } else {
        "It waits for something that shows only under load: a lock, a limit, a pool that is too small"
    };
    Some(format!(
        "One request takes {}, but on {} connections half of the API's own answers take {} or more, although it \
         works on {} requests at once (Little's law) and nobody is out of CPU. {why}. The factors below measure mostly this wait.",
        verdict::duration(once),
        climbed.connections,
        verdict::duration(figures.p50 as f64 / 1e6),
        verdict::factor(at_once),
    ))
}

/// This program's steps, the API alone first, right or wrong. Other steps that are not counted have their reason elsewhere.
fn steps(climbed: &Climbed) -> Vec<verdict::ClimbedStep> {
    let alone =
        climbed.measure(Step::Alone, None).and_then(|measure| Some((measure, measure.figures.as_ref()?)));
    alone.into_iter().chain(counted(climbed, Party::Millstream)).map(climbed_step).collect()
}

fn climbed_step((measure, figures): (&Measure, &Figures)) -> verdict::ClimbedStep {
    verdict::ClimbedStep {
        name: measure.step.entry().title.to_owned(),
        rate: if measure.wrong.is_none() || measure.is_base() { figures.rate.median } else { 0.0 },
        low: figures.rate.least,
        high: figures.rate.most,
        origin_share: figures.origin_share(),
        reached: figures.reached.map(|reached| (reached, figures.seconds * f64::from(figures.rounds))),
        proxy_cpu: figures.cpu.proxy,
        time_wait: figures.time_wait,
        is_cached: measure.step.is_cached(),
        wrong: measure.wrong.is_some(),
        is_service: matches!(measure.step, Step::Log | Step::Tls | Step::Http2),
    }
}

/// What HTTP/2 is worth beside the same over TLS alone, to each party that did both.
fn multiplexed(climbed: &Climbed) -> Vec<String> {
    let of = |party: Party| {
        let at =
            |step: Step| counted(climbed, party).find(|(measure, f)| measure.step == step && f.answers > 0);
        let (without, with) = (at(Step::Tls)?, at(Step::Http2)?);
        let (before, after) = (climbed_step(without), climbed_step(with));
        let ((_, before_figures), (_, figures)) = (without, with);
        let than = format!("\"{}\"", before.name);
        let what = if after.is_apart_from(&before, climbed.rounds) {
            format!("{} times as many requests/s as {than}", verdict::factor(after.rate / before.rate))
        } else {
            let why = if climbed.rounds == 1 { "one round does not tell" } else { "the rounds overlap" };
            format!("neither clearly more nor clearly fewer requests/s than {than} ({why})")
        };
        let mut text = format!("HTTP/2 with {} gives {what}", party.title());
        if let (Some(were), Some(are)) = (before.proxy_cpu, after.proxy_cpu) {
            text += &format!(", for {are:.1} µs of the proxy's CPU per request instead of {were:.1}");
        }
        let (were, are) = (before_figures.cpu.generator, figures.cpu.generator);
        Some(format!(
            "{text}. The load itself took {are:.1} µs instead of {were:.1}: where both share cores, that is part of the difference."
        ))
    };
    Party::ALL.into_iter().filter_map(of).collect()
}

/// The others at the last step that all of them did.
fn beside(climbed: &Climbed) -> Vec<String> {
    let others = |party: &Party| *party != Party::Millstream && counted(climbed, *party).next().is_some();
    let of = |party: Party| -> Option<String> {
        let (measure, theirs) = counted(climbed, party)
            .filter(|(measure, _)| own(climbed, measure.step).is_some())
            .max_by(|one, other| one.1.rate.median.total_cmp(&other.1.rate.median))?;
        let ours = own(climbed, measure.step)?;
        let mut text = format!(
            "{} is fastest with \"{}\": {} requests/s, where Millstream gives {} ({})",
            party.title(),
            measure.step.entry().title,
            quantity::rate(theirs.rate.median),
            quantity::rate(ours.rate.median),
            quantity::factor(ours.rate.median / theirs.rate.median.max(1e-9))
        );
        if let (Some(ours), Some(theirs)) = (ours.cpu.proxy, theirs.cpu.proxy) {
            text += &format!(", {ours:.1} µs of CPU per request where {} takes {theirs:.1}", party.title());
        }
        Some(text + ".")
    };
    Party::ALL.into_iter().filter(others).filter_map(of).collect()
}

fn silent(climbed: &Climbed) -> String {
    let time = climbed.fallback.as_deref().unwrap_or(crate::step::MICRO);
    format!(
        "The API says nothing about caching, so \"{}\" and the steps after it fell back on {time} for answers with 200 \
         (proxy_cache_valid; --valid sets the time). With a Cache-Control of its own, such as \"public, \
         max-age=60\", the \
         API says for each page how old it may be.",
        Step::Headers.entry().title
    )
}

fn own(climbed: &Climbed, step: Step) -> Option<&Figures> {
    climbed.measure(step, Some(Party::Millstream)).and_then(Measure::counted)
}

fn counted(climbed: &Climbed, party: Party) -> impl Iterator<Item = (&Measure, &Figures)> {
    let of_party = climbed.measures.iter().filter(move |measure| measure.party == Some(party));
    of_party.filter_map(|measure| Some((measure, measure.counted()?)))
}

fn named(measure: &Measure) -> String {
    let title = measure.step.entry().title;
    match measure.party {
        Some(party) => format!("\"{title}\" with {}", party.name()),
        None => format!("\"{title}\""),
    }
}
