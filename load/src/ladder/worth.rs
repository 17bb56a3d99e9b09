//! What the climb was worth, in sentences: the answer first, then what each step brings, how the others fared, and what the API says.
//!
//! Pure, out of the figures alone. Whatever compares two steps asks `chance` first; of fewer rounds than that needs nothing is claimed.
//! What is wrong with a climb is `trouble`'s to say; what limits at the top is said by `climb`, which knows the evidence.

use super::chance::{self, Best, Compared, FEWEST};
use super::result::{Climbed, Figures, Measure};
use super::trouble;
use crate::correctness::Keeps;
use crate::peer::Party;
use crate::report::quantity;
use crate::step::{MICRO, Step};
use crate::verdict::{count, factor};

/// A step must bring so many times the answers of the one before, else nobody would notice.
const WORTH: f64 = 1.1;
/// Where a step takes so many times less of something than the one before, it saves it.
const SAVES: f64 = 2.0;
/// Fewer requests to the API, and fewer sockets, are no number to compare with.
const ENOUGH_REQUESTS: u64 = 10;
const ENOUGH_SOCKETS: u64 = 100;
/// Where this share of requests still reaches the API, its answers were not cached.
const NOT_CACHED: f64 = 0.9;

/// All sentences, the answer first.
pub fn sentences(climbed: &Climbed) -> Vec<String> {
    let climb = Climb::of(climbed);
    let mut out: Vec<String> = trouble::breaks(climbed).into_iter().collect();
    out.extend(climb.not_cached(climbed));
    out.push(climb.answer(climbed));
    out.extend(climbed.personal.iter().cloned());
    out.extend(trouble::sentences(climbed));
    if climb.rounds >= FEWEST {
        out.extend(climb.each());
        out.extend(multiplexed(climbed));
        out.extend(beside(climbed));
    }
    if climbed.caching.keeps == Keeps::No && !out.iter().any(|words| words.contains("cannot be cached")) {
        out.push(climbed.caching.words.clone());
    }
    let follows_headers = climbed.measures.iter().any(|measure| measure.step >= Step::Headers);
    out.extend((climbed.caching.keeps == Keeps::Silent && follows_headers).then(|| silent(climbed)));
    out
}

/// The step that this program is recommended with, where one is: cached, right, and among the best.
pub fn recommended(climbed: &Climbed) -> Option<Step> {
    let climb = Climb::of(climbed);
    let best = climb.best(climbed)?;
    let is_cached = |place: &usize| climb.steps[*place].0.step.is_cached();
    let all = std::iter::once(best.step).chain(best.alike);
    all.into_iter().find(is_cached).map(|place| climb.steps[place].0.step)
}

/// This program's steps that count, the API alone first.
struct Climb<'a> {
    steps: Vec<(&'a Measure, &'a Figures)>,
    /// Beside each its rates, round by round.
    rates: Vec<Vec<f64>>,
    rounds: u32,
}

impl<'a> Climb<'a> {
    fn of(climbed: &'a Climbed) -> Climb<'a> {
        let alone = climbed.measure(Step::Alone, None).filter(|alone| alone.is_base());
        let alone = alone.and_then(|measure| Some((measure, measure.figures.as_ref()?)));
        let own = counted(climbed, Party::Millstream).filter(|(_, figures)| figures.answers > 0);
        let steps: Vec<_> = alone.into_iter().chain(own).collect();
        let rates = steps.iter().map(|(_, figures)| figures.rates.clone()).collect();
        Climb { steps, rates, rounds: climbed.rounds }
    }

    fn title(&self, place: usize) -> String {
        format!("\"{}\"", self.steps[place].0.step.entry().title)
    }

    fn rate(&self, place: usize) -> f64 {
        self.steps[place].1.rate.median
    }

    /// What the best is compared with: where the user is, else the first step.
    fn base(&self, climbed: &Climbed) -> usize {
        let is_here = |(measure, _): &(&Measure, &Figures)| Some(measure.step) == climbed.here();
        self.steps.iter().position(is_here).unwrap_or(0)
    }

    /// The base, and the steps that are an attempt at speed and that the user does not have.
    fn candidates(&self, climbed: &Climbed) -> Vec<usize> {
        let base = self.base(climbed);
        let is_new = |place: &usize| {
            let step = self.steps[*place].0.step;
            *place == base || climbed.running.is_none() || (step != Step::Alone && !climbed.has(step))
        };
        let new: Vec<usize> = (0..self.steps.len()).filter(is_new).collect();
        let is_fast = |place: &&usize| **place == base || !self.steps[**place].0.step.is_service();
        let fast: Vec<usize> = new.iter().filter(is_fast).copied().collect();
        if fast.len() > 1 { fast } else { new }
    }

    /// The best beyond the base; `None`: nothing is, or nothing can be told.
    fn best(&self, climbed: &Climbed) -> Option<Best> {
        if self.rounds < FEWEST || self.steps.is_empty() {
            return None;
        }
        let base = self.base(climbed);
        let kind = |place: usize| (place, self.steps[place].0.step.is_cached());
        let candidates: Vec<_> = self.candidates(climbed).into_iter().map(kind).collect();
        let best = chance::best(&self.rates, &candidates)?;
        let is_more = best.step != base && !best.alike.contains(&base);
        (is_more && self.rate(best.step) >= WORTH * self.rate(base)).then_some(best)
    }

    /// What to do, and what it brings.
    fn answer(&self, climbed: &Climbed) -> String {
        if self.steps.is_empty() {
            return "No step gave a correct answer, so there is nothing to compare.".to_owned();
        }
        let (base, candidates) = (self.base(climbed), self.candidates(climbed));
        let (title, rate) = (self.title(base), count(self.rate(base)));
        if self.steps.len() == 1 {
            return format!("Only {title} was measured: {rate} requests/s.");
        }
        if self.rounds < FEWEST {
            return format!(
                "Too few rounds to tell which step is faster: {} measured, {FEWEST} are needed (--rounds {FEWEST}).",
                self.rounds
            );
        }
        let here = if climbed.here().is_some() { "You are here: " } else { "" };
        if candidates.len() == 1 {
            return format!("{here}{title}, {rate} requests/s. No step beyond it was measured.");
        }
        if let Some(best) = self.best(climbed) {
            let mut names = vec![self.title(best.step)];
            names.extend(best.alike.iter().map(|place| self.title(*place)));
            let alike = if best.alike.is_empty() { "" } else { " (alike by these rounds)" };
            let right = if self.steps[base].0.wrong.is_some() { "right answers/s" } else { "requests/s" };
            return format!(
                "Use {}{alike}: {} requests/s, {} times the {rate} {right} of {title}.{}",
                names.join(" or "),
                count(self.rate(best.step)),
                factor(self.rate(best.step) / self.rate(base)),
                if here.is_empty() { String::new() } else { format!(" {here}{title}.") }
            );
        }
        let needed = chance::rounds_for_best(candidates.len());
        let top =
            candidates.iter().copied().max_by(|one, other| self.rate(*one).total_cmp(&self.rate(*other)));
        let top = top.filter(|top| *top != base);
        let found = top
            .map_or_else(String::new, |top| format!("; {} gave {}", self.title(top), count(self.rate(top))));
        if self.rounds < needed && top.is_some() {
            return format!(
                "{} rounds of {} steps do not tell which is best; {needed} do (--rounds {needed}). {title} gave {rate} requests/s{found}.",
                self.rounds,
                candidates.len()
            );
        }
        format!("{here}No step gives clearly more than {title}: {rate} requests/s{found}.")
    }

    /// What each step brings over the one before, sorted into sentences.
    fn each(&self) -> Vec<String> {
        let mut kinds = KINDS.map(|opening| (opening, Vec::new()));
        for place in 1..self.steps.len() {
            let compared = chance::compare(&self.rates, place - 1, place);
            let times = self.rate(place) / self.rate(place - 1);
            let (before, step) = (self.steps[place - 1], self.steps[place]);
            let saved = saved(before, step);
            let kind = kind(&compared, times, step.0.step.is_service(), !saved.is_empty());
            let told: String = saved.iter().map(|what| format!("; {what}")).collect();
            kinds[kind].1.push(format!(
                "{} ({} times the step before{told})",
                self.title(place),
                factor(times)
            ));
        }
        let told = kinds.into_iter().filter(|(_, steps)| !steps.is_empty());
        told.map(|(opening, steps)| format!("{opening}: {}.", steps.join(", "))).collect()
    }

    /// Said plainly: what may not be cached gains nothing from any proxy.
    fn not_cached(&self, climbed: &Climbed) -> Option<String> {
        let cached = self.steps.iter().filter(|(measure, _)| measure.step.is_cached());
        let mut shares = cached.map(|(_, figures)| figures.origin_share()).peekable();
        shares.peek()?;
        if !shares.all(|share| share.is_some_and(|share| share >= NOT_CACHED)) {
            return None;
        }
        let (why, advice) = (climbed.caching.why.as_ref(), climbed.caching.advice.as_deref().unwrap_or(""));
        Some(match why {
            Some(why) => format!(
                "No proxy can make this faster: the API's answers cannot be cached as they are ({why}), and every request reached \
                 the API, even with a cache. {advice}"
            ),
            None => "Nothing was stored, although the API's header fields allow it: every request reached the API, even with a \
                     cache. What it answers under load, or to a proxy, may say otherwise: in front of a configuration that --print \
                     gives, X-Cache-Status and \"millstream explain\" tell."
                .to_owned(),
        })
    }
}

/// How steps are sorted, in the order in which it is told.
const KINDS: [&str; 6] = [
    "Steps that give more",
    "Steps that save something",
    "Steps that are not worth it here, for they bring less than a tenth",
    "Steps that cost more than they give",
    "Steps that have a price",
    "Steps of which these rounds do not tell (--rounds and --duration make it clearer)",
];

fn kind(compared: &Compared, times: f64, is_service: bool, saves: bool) -> usize {
    let is_apart = compared.is_apart();
    let brings_little = compared.ratio.is_some_and(|ratio| ratio.high < WORTH);
    match () {
        () if is_apart && times >= WORTH => 0,
        () if saves => 1,
        () if is_apart && times < 1.0 / WORTH => {
            if is_service {
                4
            } else {
                3
            }
        }
        () if brings_little && !is_service => 2,
        () => 5,
    }
}

/// What a step takes less of than the one before: requests to the API, sockets, CPU. A log and TLS are there for other things.
fn saved((_, before): (&Measure, &Figures), (measure, step): (&Measure, &Figures)) -> Vec<String> {
    let mut saved = Vec::new();
    if measure.step.is_service() {
        return saved;
    }
    if let (Some(were), Some(are)) = (before.reached, step.reached)
        && were >= ENOUGH_REQUESTS
    {
        let (once, now) = (were as f64 / before.whole_seconds(), are as f64 / step.whole_seconds());
        // Fewer of as many: a step that is slower asks less often without saving anything.
        let is_of_answers = once / before.rate.median >= SAVES * now / step.rate.median;
        if are == 0 {
            saved.push("no request of a client reached the API".to_owned());
        } else if is_of_answers && once >= SAVES * now {
            saved.push(format!("{} times fewer requests reached the API", factor(once / now)));
        }
    }
    if let (Some(were), Some(are)) = (before.time_wait, step.time_wait)
        && were >= ENOUGH_SOCKETS
        && were as f64 >= SAVES * are as f64
    {
        saved.push(format!(
            "{} sockets in TIME_WAIT instead of {}",
            quantity::count(are),
            quantity::count(were)
        ));
    }
    if let (Some(were), Some(are)) = (before.cpu.proxy, step.cpu.proxy)
        && were >= SAVES * are
    {
        saved.push(format!("{are:.0} µs of the proxy's CPU per answer instead of {were:.0}"));
    }
    saved
}

/// What HTTP/2 is worth beside the same over TLS alone, to each party that did both.
fn multiplexed(climbed: &Climbed) -> Vec<String> {
    let of = |party: Party| {
        let at =
            |step: Step| counted(climbed, party).find(|(measure, f)| measure.step == step && f.answers > 0);
        let ((_, tls), (_, http2)) = (at(Step::Tls)?, at(Step::Http2)?);
        let than = Step::Tls.entry().title;
        let what = match two(climbed, (Step::Tls, party), (Step::Http2, party)).is_apart() {
            true => format!(
                "{} times as many requests/s as \"{than}\"",
                factor(http2.rate.median / tls.rate.median)
            ),
            false => format!("neither clearly more nor clearly fewer requests/s than \"{than}\""),
        };
        let cpu = match (tls.cpu.proxy, http2.cpu.proxy) {
            (Some(were), Some(are)) => {
                format!(", for {are:.1} µs of the proxy's CPU per request instead of {were:.1}")
            }
            _ => String::new(),
        };
        let (were, are) = (tls.cpu.generator, http2.cpu.generator);
        Some(format!(
            "HTTP/2 with {} gives {what}{cpu}. The load itself took {are:.1} µs instead of {were:.1}: where both share cores, that is \
             part of the difference.",
            party.title()
        ))
    };
    Party::ALL.into_iter().filter_map(of).collect()
}

/// The others, each at its fastest step that this program did too.
fn beside(climbed: &Climbed) -> Vec<String> {
    let own = |step: Step| climbed.measure(step, Some(Party::Millstream)).and_then(Measure::counted);
    let of = |party: Party| -> Option<String> {
        let both = counted(climbed, party)
            .filter_map(|(measure, theirs)| Some((measure.step, theirs, own(measure.step)?)));
        let (step, theirs, ours) =
            both.max_by(|one, other| one.1.rate.median.total_cmp(&other.1.rate.median))?;
        let alike = match two(climbed, (step, party), (step, Party::Millstream)).is_apart() {
            true => quantity::factor(ours.rate.median / theirs.rate.median.max(1e-9)),
            false => "alike by these rounds".to_owned(),
        };
        let cpu = match (ours.cpu.proxy, theirs.cpu.proxy) {
            (Some(ours), Some(theirs)) => {
                format!(", {ours:.1} µs of CPU per request where {} takes {theirs:.1}", party.title())
            }
            _ => String::new(),
        };
        Some(format!(
            "{} is fastest with \"{}\": {} requests/s, where Millstream gives {} ({alike}){cpu}.",
            party.title(),
            step.entry().title,
            quantity::rate(theirs.rate.median),
            quantity::rate(ours.rate.median),
        ))
    };
    Party::ALL[1..].iter().copied().filter_map(of).collect()
}

/// Two measures beside each other, with all others to tell the level of each round.
fn two(climbed: &Climbed, first: (Step, Party), second: (Step, Party)) -> Compared {
    let counted = climbed.measures.iter().filter_map(|measure| Some((measure, measure.counted()?)));
    let counted: Vec<_> = counted.filter(|(_, figures)| figures.answers > 0).collect();
    let place = |(step, party)| counted.iter().position(|(m, _)| m.step == step && m.party == Some(party));
    let rates: Vec<Vec<f64>> = counted.iter().map(|(_, figures)| figures.rates.clone()).collect();
    match (place(first), place(second)) {
        (Some(first), Some(second)) => chance::compare(&rates, first, second),
        _ => Compared { ratio: None, p: 1.0 },
    }
}

fn silent(climbed: &Climbed) -> String {
    format!(
        "The API says nothing about caching, so \"{}\" and the steps after it fell back on {} for answers with 200 \
         (proxy_cache_valid; --valid sets the time). With a Cache-Control of its own, such as \"public, max-age=60\", the API says \
         for each page how old it may be.",
        Step::Headers.entry().title,
        climbed.fallback.as_deref().unwrap_or(MICRO)
    )
}

fn counted(climbed: &Climbed, party: Party) -> impl Iterator<Item = (&Measure, &Figures)> {
    let of_party = climbed.measures.iter().filter(move |measure| measure.party == Some(party));
    of_party.filter_map(|measure| Some((measure, measure.counted()?)))
}
