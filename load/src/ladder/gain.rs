//! What the climb was worth, in sentences: the answer first, then what each step brings, how the others fared, and what the API says.
//!
//! Pure, out of the figures alone. Whatever compares two steps asks `chance` first; of fewer rounds than that needs nothing is claimed.
//! What is wrong with a climb is `problems`'s to say; what limits at the top is said by `climb`, which knows the evidence.

use super::chance::{self, Best, FEWEST};
use super::problems;
use super::result::{Climbed, Figures, Measure};
use crate::correctness::Keeps;
use crate::peer::Party;
use crate::report::quantity::{Count, Number, Times};
use crate::step::{Fact, MICRO, Step};

/// A step must bring so many times the answers of the one before, else nobody would notice.
const WORTH: f64 = 1.1;
/// Where a step takes so many times less of something than the one before, it saves it.
const SAVES: f64 = 2.0;
/// Fewer requests to the API, and fewer sockets, are no number to compare with.
const ENOUGH_REQUESTS: u64 = 10;
const ENOUGH_SOCKETS: u64 = 100;
/// Where this share of requests still reaches the API, its answers were not cached.
const NOT_CACHED: f64 = 0.9;

pub fn sentences(climbed: &Climbed) -> Vec<String> {
    let climb = Climb::of(climbed);
    // What a cache would give to the wrong client is worth more than any factor, and no cached step is recommended for it.
    let mut out: Vec<String> =
        problems::breaks(climbed).into_iter().chain(climbed.personal.clone()).collect();
    out.extend(climb.not_cached());
    if climbed.personal.is_empty() || recommended(climbed).is_none() {
        out.push(climb.answer());
    }
    out.extend(problems::sentences(climbed));
    if climbed.rounds >= FEWEST {
        out.extend(climb.each());
        out.extend(Party::ALL.into_iter().filter_map(|party| multiplexed(climbed, party)));
        out.extend(Party::ALL.into_iter().skip(1).filter_map(|party| beside(climbed, party)));
    }
    if climbed.caching.keeps == Keeps::No && !out.iter().any(|words| words.contains("cannot be cached")) {
        out.push(climbed.caching.words.clone());
    }
    if falls_back(climbed) {
        let (title, time) = (Step::Headers.entry().title, climbed.fallback.as_deref().unwrap_or(MICRO));
        out.push(format!(
            "The API sends nothing about caching, so \"{title}\" and the steps after it fell back on {time} for responses with 200 \
            (proxy_cache_valid; --valid sets the time). With a Cache-Control such as \"max-age=60\", the API can set a lifetime for each page that \
            is the same for every client."
        ));
    }
    out
}

pub fn falls_back(climbed: &Climbed) -> bool {
    climbed.caching.keeps == Keeps::Silent && climbed.measures.iter().any(|one| one.step >= Step::Headers)
}

/// The step that this program is recommended with, where one is: cached, right, and among the best.
pub fn recommended(climbed: &Climbed) -> Option<Step> {
    let climb = Climb::of(climbed);
    let best = climb.best()?;
    let mut all = std::iter::once(best.step).chain(best.alike).map(|place| climb.steps[place].0.step);
    all.find(|step| step.has(Fact::Cache))
}

struct Climb<'a> {
    climbed: &'a Climbed,
    /// This program's steps that count, the API alone first.
    steps: Vec<(&'a Measure, &'a Figures)>,
    /// The place of what the best is compared with: where the user is, else the first step.
    base: usize,
    /// The base, and the steps that are an attempt at speed and that the user does not have.
    candidates: Vec<usize>,
}

impl<'a> Climb<'a> {
    fn of(climbed: &'a Climbed) -> Climb<'a> {
        let is_own = |party: Option<Party>| party.is_none_or(|party| party == Party::Millstream);
        let steps: Vec<_> = rated(climbed).filter(|(one, _)| is_own(one.party)).collect();
        let step = |place: &usize| steps[*place].0.step;
        let base = steps.iter().position(|(one, _)| Some(one.step) == climbed.here()).unwrap_or(0);
        let is_new = |step: Step| climbed.running.is_none() || step != Step::Alone && !climbed.has(step);
        let new = (0..steps.len()).filter(|place| *place == base || is_new(step(place)));
        let new: Vec<usize> = new.collect();
        let is_fast = |place: &usize| *place == base || !step(place).is_service();
        let fast: Vec<usize> = new.iter().copied().filter(is_fast).collect();
        Climb { climbed, base, candidates: if fast.len() > 1 { fast } else { new }, steps }
    }

    fn title(&self, place: usize) -> String {
        format!("\"{}\"", self.steps[place].0.step.entry().title)
    }

    fn rate(&self, place: usize) -> f64 {
        self.steps[place].1.rate.median
    }

    fn rates(&self) -> Vec<Vec<f64>> {
        self.steps.iter().map(|(_, figures)| figures.rates.clone()).collect()
    }

    /// The best beyond the base; `None`: nothing is, or nothing can be told.
    fn best(&self) -> Option<Best> {
        let kind = |place: &usize| (*place, self.steps[*place].0.step.has(Fact::Cache));
        let candidates: Vec<_> = self.candidates.iter().map(kind).collect();
        let best = chance::best(&self.rates(), &candidates).filter(|_| self.climbed.rounds >= FEWEST)?;
        let is_more = best.step != self.base && !best.alike.contains(&self.base);
        (is_more && self.rate(best.step) >= WORTH * self.rate(self.base)).then_some(best)
    }

    fn here(&self) -> String {
        let at = self.steps[self.base].0.step;
        if self.climbed.here() != Some(at) {
            return String::new();
        }
        let below = Step::ALL[1..at as usize].iter().filter(|step| !self.climbed.has(**step));
        let lacking: Vec<_> = below.map(|step| format!("\"{}\"", step.entry().title)).collect();
        let without = if lacking.is_empty() { "" } else { ", without " };
        format!(" You are here: {}{without}{}.", self.title(self.base), lacking.join(" and "))
    }

    fn answer(&self) -> String {
        if self.steps.is_empty() {
            return "No step gave a correct response, so there is nothing to compare.".to_owned();
        }
        let (rounds, candidates, base) = (self.climbed.rounds, &self.candidates, self.base);
        let (title, rate) = (self.title(base), Number(self.rate(base)));
        if self.steps.len() == 1 {
            return format!("Only {title} was measured: {rate} requests/s.");
        }
        if rounds < FEWEST {
            return format!(
                "Inconclusive: {rounds} of {FEWEST} necessary rounds measured (--rounds {FEWEST})."
            );
        }
        let here = self.here();
        if candidates.len() == 1 {
            return format!("No step beyond {title} was measured: it gives {rate} requests/s.{here}");
        }
        if let Some(best) = self.best() {
            let names = std::iter::once(&best.step).chain(&best.alike).map(|place| self.title(*place));
            let (names, most) = (names.collect::<Vec<_>>().join(" or "), self.rate(best.step));
            let alike = if best.alike.is_empty() { "" } else { " (alike by these rounds)" };
            let what = if self.steps[base].0.wrong.is_some() { "correct responses/s" } else { "requests/s" };
            let (most, times) = (Number(most), Times(most / self.rate(base)));
            return format!(
                "Use {names}{alike}: {most} requests/s, {times} times the {rate} {what} of {title}.{here}"
            );
        }
        let needed = chance::rounds_for_best(candidates.len());
        let top = candidates.iter().max_by(|one, other| self.rate(**one).total_cmp(&self.rate(**other)));
        let top = top.filter(|top| **top != base);
        let gave = top.map(|top| format!("; {} gave {}", self.title(*top), Number(self.rate(*top))));
        let gave = gave.unwrap_or_default();
        if rounds < needed && top.is_some() {
            return format!(
                "Inconclusive: {rounds} rounds of {} steps do not show which is best; {needed} do (--rounds {needed}). {title} gave {rate} \
                requests/s{gave}.",
                candidates.len()
            );
        }
        format!("No step gives clearly more than {title}: {rate} requests/s{gave}.{here}")
    }

    fn each(&self) -> Vec<String> {
        let (rates, mut kinds) = (self.rates(), KINDS.map(|opening| (opening, Vec::new())));
        for place in 1..self.steps.len() {
            let compared = chance::compare(&rates, place - 1, place);
            let (before, (measure, step)) = (self.steps[place - 1].1, self.steps[place]);
            let is_service = measure.step.is_service();
            let saved = if is_service { Vec::new() } else { saved(before, step) };
            let times = step.rate.median / before.rate.median;
            let is_loss = compared.is_apart() && times < 1.0 / WORTH;
            let is_little = compared.ratio.is_some_and(|ratio| ratio.high < WORTH);
            let is_of = [
                compared.is_apart() && times >= WORTH,
                !saved.is_empty(),
                is_little && !is_loss && !is_service,
                is_loss && !is_service,
                is_loss,
            ];
            let kind = is_of.into_iter().position(|is_it| is_it).unwrap_or(is_of.len());
            let saved: String = saved.iter().map(|what| format!("; {what}")).collect();
            let (title, times) = (self.title(place), Times(times));
            kinds[kind].1.push(format!("{title} ({times} times the step before{saved})"));
        }
        let told = kinds.into_iter().filter(|(_, steps)| !steps.is_empty());
        told.map(|(opening, steps)| format!("{opening}: {}.", steps.join(", "))).collect()
    }

    fn is_stored_wrong(&self) -> bool {
        self.climbed.measures.iter().any(|measure| measure.step.has(Fact::Cache) && measure.wrong.is_some())
    }

    /// Said plainly: what may not be cached gains nothing from any proxy.
    fn not_cached(&self) -> Option<String> {
        let cached = self.steps.iter().filter(|(measure, _)| measure.step.has(Fact::Cache));
        let shares: Option<Vec<f64>> = cached.map(|(_, figures)| figures.origin_share()).collect();
        shares?.into_iter().reduce(f64::min).filter(|least| *least >= NOT_CACHED)?;
        let caching = &self.climbed.caching;
        Some(match &caching.why {
            Some(why) => format!(
                "No proxy can make this faster: the API's responses cannot be cached as they are ({why}), and every request reached the API, even \
                with a cache. {}",
                caching.advice.as_deref().unwrap_or_default()
            ),
            // What was stored and given to the wrong client was stored, and what is personal is kept apart.
            None if self.is_stored_wrong() || !self.climbed.personal.is_empty() => return None,
            None => "Nothing was stored, although the API's header fields allow it: every request reached the API, even with a cache. Its responses \
            under load, or to a proxy, may differ: use a configuration of --print, and look at X-Cache-Status and \"millstream explain\"."
                .to_owned(),
        })
    }
}

/// How steps are sorted, in the order in which it is told: each is of the first kind that it belongs to, or else of the last.
const KINDS: [&str; 6] = [
    "Steps that give more",
    "Steps that save something",
    "Steps that are not worth it here, with a gain of less than a tenth",
    "Steps that cost more than they give",
    "Steps that have a price",
    "Inconclusive steps (increase --rounds or --duration)",
];

/// What a step takes less of than the one before: requests to the API, sockets, CPU. A log and TLS are there for other things.
fn saved(before: &Figures, step: &Figures) -> Vec<String> {
    let reached = before.reached.zip(step.reached).filter(|(were, _)| *were >= ENOUGH_REQUESTS);
    let requests = reached.and_then(|(were, are)| {
        let (once, now) = (were as f64 / before.whole_seconds(), are as f64 / step.whole_seconds());
        // Fewer of as many: a step that is slower asks less often without saving anything.
        let is_of_answers = once / before.rate.median >= SAVES * now / step.rate.median;
        match are {
            0 => Some("no client request reached the API".to_owned()),
            _ if is_of_answers && once >= SAVES * now => {
                Some(format!("{} times fewer requests reached the API", Times(once / now)))
            }
            _ => None,
        }
    });
    let sockets = before.time_wait.zip(step.time_wait);
    let sockets = sockets
        .filter(|(were, are)| *were >= ENOUGH_SOCKETS && *were as f64 >= SAVES * *are as f64)
        .map(|(were, are)| format!("{} sockets in TIME_WAIT instead of {}", Count(are), Count(were)));
    let cpu = before.cpu.proxy.zip(step.cpu.proxy).filter(|(were, are)| *were >= SAVES * are);
    let cpu =
        cpu.map(|(were, are)| format!("{are:.0} µs of the proxy's CPU per response instead of {were:.0}"));
    [requests, sockets, cpu].into_iter().flatten().collect()
}

fn multiplexed(climbed: &Climbed, party: Party) -> Option<String> {
    let at = |step: Step| rated(climbed).find(|(one, _)| (one.step, one.party) == (step, Some(party)));
    let (tls, http2) = (at(Step::Tls)?, at(Step::Http2)?);
    let than = Step::Tls.entry().title;
    let times = Times(http2.1.rate.median / tls.1.rate.median);
    let what = match are_apart(climbed, tls.0, http2.0) {
        true => format!("{times} times as many requests/s as \"{than}\""),
        false => format!("neither clearly more nor clearly fewer requests/s than \"{than}\""),
    };
    let (were, are) = (&tls.1.cpu, &http2.1.cpu);
    let cpu = were.proxy.zip(are.proxy);
    let cpu = cpu.map_or_else(String::new, |(were, are)| {
        format!(", for {are:.1} µs of the proxy's CPU per request instead of {were:.1}")
    });
    let (title, were, are) = (party.title(), were.generator, are.generator);
    Some(format!(
        "HTTP/2 with {title} gives {what}{cpu}. The load generator itself used {are:.1} µs instead of {were:.1}: if \
         both share cores, this is part of the difference."
    ))
}

fn beside(climbed: &Climbed, party: Party) -> Option<String> {
    let both = rated(climbed).filter(|(theirs, _)| theirs.party == Some(party)).filter_map(|theirs| {
        let ours = climbed.measure(theirs.0.step, Some(Party::Millstream))?;
        Some((theirs, (ours, ours.rated()?)))
    });
    let rate = |(_, figures): (&Measure, &Figures)| figures.rate.median;
    let (theirs, ours) = both.max_by(|one, other| rate(one.0).total_cmp(&rate(other.0)))?;
    let alike = match are_apart(climbed, theirs.0, ours.0) {
        true => format!("×{}", Times(rate(ours) / rate(theirs))),
        false => "alike by these rounds".to_owned(),
    };
    let (title, step) = (party.title(), theirs.0.step.entry().title);
    let cpu = ours.1.cpu.proxy.zip(theirs.1.cpu.proxy).map_or_else(String::new, |(ours, theirs)| {
        format!(", {ours:.1} µs of CPU per request compared with {theirs:.1} for {title}")
    });
    let [theirs, ours] = [theirs, ours].map(|one| Number(rate(one)));
    Some(format!(
        "{title} is fastest with \"{step}\": {theirs} requests/s, compared with {ours} for Millstream ({alike}){cpu}."
    ))
}

fn rated(climbed: &Climbed) -> impl Iterator<Item = (&Measure, &Figures)> {
    climbed.measures.iter().filter_map(|measure| Some((measure, measure.rated()?)))
}

/// Whether two measures differ by more than chance, with all others to tell the level of each round.
fn are_apart(climbed: &Climbed, first: &Measure, second: &Measure) -> bool {
    let place = |wanted: &Measure| rated(climbed).position(|(one, _)| std::ptr::eq(one, wanted));
    let rates: Vec<Vec<f64>> = rated(climbed).map(|(_, figures)| figures.rates.clone()).collect();
    let places = place(first).zip(place(second));
    places.is_some_and(|(first, second)| chance::compare(&rates, first, second).is_apart())
}
