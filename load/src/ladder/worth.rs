//! What the climb was worth, in sentences: what each step gained, which gained nothing, and what the API does not allow.
//!
//! Pure, out of the figures alone; what limits at the top is `verdict`'s to say. A difference that is within the rounds'
//! own spread is called none.

use super::result::{Climbed, Figures, Measure};
use crate::correctness::Keeps;
use crate::peer::Party;
use crate::report::quantity;
use crate::step::Step;

/// A step that is faster by less than this is not called a gain, whatever the spread.
const GAIN: f64 = 1.05;

/// A step that nobody waits for: its factor counts where it is a loss no greater than this.
const LOSS: f64 = 0.95;

/// All sentences, the most important first.
pub fn sentences(climbed: &Climbed) -> Vec<String> {
    let mut out = Vec::new();
    out.extend(withheld(climbed));
    if climbed.caching.keeps == Keeps::No {
        out.push(climbed.caching.words.clone());
    }
    let own = climbed.measures.iter().any(|measure| measure.party == Some(Party::Millstream));
    if own {
        out.extend(top(climbed));
        out.extend(gains(climbed));
        out.extend(idle(climbed));
    }
    out.extend(beside(climbed));
    if climbed.caching.keeps == Keeps::Silent {
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

/// The best step, and how much of the load still reached the API.
fn top(climbed: &Climbed) -> Option<String> {
    let (measure, figures, times) = counted(climbed, Party::Millstream)
        .filter_map(|(measure, figures)| Some((measure, figures, figures.times?)))
        .max_by(|one, other| one.2.total_cmp(&other.2))?;
    let mut text = format!(
        "The most is {} times {}, with \"{}\": {} requests/s.",
        plain(times),
        if climbed.measure(Step::Alone, None).is_some() { "the API alone" } else { "the first step" },
        measure.step.entry().title,
        quantity::rate(figures.rate.median)
    );
    if let Some(reached) = figures.reached.filter(|_| measure.step.is_cached()) {
        text += &format!(
            " Of {} requests {} reached the API.",
            quantity::count(figures.answers + figures.errors.total()),
            quantity::count(reached)
        );
    }
    Some(text)
}

/// Each step that was faster than the one before, beyond the spread of the rounds.
fn gains(climbed: &Climbed) -> Option<String> {
    let told: Vec<String> = climbs(climbed)
        .filter(|climb| climb.factor >= GAIN && climb.is_beyond_spread)
        .map(|climb| format!("{} {}", climb.title, quantity::factor(climb.factor)))
        .collect();
    (!told.is_empty()).then(|| format!("Gained by each step over the one before: {}.", told.join(", ")))
}

/// Steps that are not worth it here.
fn idle(climbed: &Climbed) -> Option<String> {
    let (mut idle, mut losing) = (Vec::new(), Vec::new());
    for climb in climbs(climbed) {
        let told = format!("{} {}", climb.title, quantity::factor(climb.factor));
        match climb.factor {
            factor if factor <= LOSS && climb.is_beyond_spread => losing.push(told),
            factor if factor >= GAIN && climb.is_beyond_spread => {}
            _ => idle.push(told),
        }
    }
    let mut text = String::new();
    if !idle.is_empty() {
        text += &format!("Not worth it for speed here: {}.", idle.join(", "));
    }
    if !losing.is_empty() {
        let space = if text.is_empty() { "" } else { " " };
        text += &format!("{space}Costs something: {}.", losing.join(", "));
    }
    (!text.is_empty()).then_some(text)
}

/// A step against the one before it.
struct Climb {
    title: &'static str,
    factor: f64,
    /// Whether the rounds of the two do not overlap.
    is_beyond_spread: bool,
}

fn climbs(climbed: &Climbed) -> impl Iterator<Item = Climb> {
    let alone = climbed.measure(Step::Alone, None).and_then(|measure| Some((measure, measure.counted()?)));
    let all: Vec<(&Measure, &Figures)> =
        alone.into_iter().chain(counted(climbed, Party::Millstream)).collect();
    let climbs: Vec<Climb> = all
        .windows(2)
        .map(|two| {
            let ((_, lower), (upper_measure, upper)) = (two[0], two[1]);
            let (low, high) = (lower.rate, upper.rate);
            Climb {
                title: upper_measure.step.entry().title,
                factor: if low.median > 0.0 { high.median / low.median } else { 1.0 },
                is_beyond_spread: high.least > low.most || high.most < low.least,
            }
        })
        .collect();
    climbs.into_iter()
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
            party.name(),
            measure.step.entry().title,
            quantity::rate(theirs.rate.median),
            quantity::rate(ours.rate.median),
            quantity::factor(ours.rate.median / theirs.rate.median.max(1e-9))
        );
        if let (Some(ours), Some(theirs)) = (ours.cpu.proxy, theirs.cpu.proxy) {
            text += &format!(", {ours:.1} µs of CPU per request where {} takes {theirs:.1}", party.name());
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

/// A factor as a number in a sentence.
fn plain(times: f64) -> String {
    quantity::factor(times).trim_start_matches('×').to_owned()
}
