//! What the climb was worth, in sentences: what was wrong, what was gained, how the others fared, and what the API says.
//!
//! Pure, out of the figures alone. The words for single steps are `verdict`'s; what limits at the top is said by `climb`,
//! which knows the evidence.

use super::result::{Climbed, Figures, Measure};
use crate::correctness::Keeps;
use crate::peer::Party;
use crate::report::quantity;
use crate::step::Step;
use crate::verdict;

/// All sentences, the most important first.
pub fn sentences(climbed: &Climbed) -> Vec<String> {
    let mut out: Vec<String> = withheld(climbed).collect();
    let climb = verdict::climb(&steps(climbed), climbed.caching.why.as_deref());
    if climbed.caching.keeps == Keeps::No && !climb.iter().any(|words| words.contains("cannot be cached")) {
        out.push(climbed.caching.words.clone());
    }
    out.extend(climb);
    out.extend(beside(climbed));
    if climbed.caching.keeps == Keeps::Silent
        && climbed.measures.iter().any(|measure| measure.step >= Step::Headers)
    {
        out.push(silent(climbed));
    }
    out
}

/// Steps with wrong answers.
fn withheld(climbed: &Climbed) -> impl Iterator<Item = String> {
    climbed.measures.iter().filter_map(|measure| {
        let why = measure.wrong.as_ref()?;
        Some(format!("Not counted: {}: {why}.", named(measure)))
    })
}

/// This program's steps, the API alone first. Those that are not counted have their reason elsewhere.
fn steps(climbed: &Climbed) -> Vec<verdict::Climbed> {
    let alone = climbed.measure(Step::Alone, None).and_then(|measure| Some((measure, measure.counted()?)));
    let step = |(measure, figures): (&Measure, &Figures)| verdict::Climbed {
        name: measure.step.entry().title.to_owned(),
        rate: figures.rate.median,
        low: figures.rate.least,
        high: figures.rate.most,
        origin_share: figures.origin_share(),
        is_cached: measure.step.is_cached(),
        wrong: false,
        is_service: matches!(measure.step, Step::Log | Step::Tls),
    };
    alone.into_iter().chain(counted(climbed, Party::Millstream)).map(step).collect()
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
            "{} is fastest with \"{}\": {} requests/s; Millstream there: {} ({})",
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
         (proxy_cache_valid; --valid sets the time). With a Cache-Control of its own, such as \"public, max-age=60\", the \
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
