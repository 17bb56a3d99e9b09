//! What the ladder comes to: figures per step and party, over rounds; the JSON of `millstream ladder` is this.
//!
//! Pure: rounds in, figures out. A step of which any answer was wrong keeps its figures and loses its factor: it is never
//! counted. Next: `gain` and `table`, which read it.

use super::course;
use crate::correctness::{Caching, How};
use crate::outcome::{Errors, Outcome};
use crate::party::Metered;
use crate::peer::Party;
use crate::rank::{self, Spread, median};
use crate::report::json;
use crate::report::quantity::{plural, seconds};
use crate::step::Step;
use crate::step::running::Running;
use crate::stop::CutShort;
use crate::verdict::Once;
use serde::Serialize;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Climbed {
    pub url: String,
    pub is_simulated: bool,
    pub began_unix_milliseconds: u64,
    /// How often each step was measured; the least, where it was cut short.
    pub rounds: u32,
    /// What the order within each round came of: the same seed gives the same order (`--seed`).
    pub seed: u64,
    pub cut_short: Option<CutShort>,
    pub connections: u32,
    pub threads: u32,
    pub cores: u32,
    pub is_local: bool,
    #[serde(rename = "alone_us", serialize_with = "json::milliseconds_as_us")]
    pub alone_milliseconds: f64,
    pub body_bytes: u64,
    pub compared: How,
    pub compared_words: String,
    pub caching: Caching,
    /// How long an answer was kept that says nothing, in the steps that go by the API's headers; `None`: it says so itself.
    pub fallback: Option<String>,
    /// What the user's own configuration has of the steps; `None`: it was not named.
    pub running: Option<Running>,
    /// Whose answers are others' too, and why they are not to be cached as they are, a sentence each.
    pub personal: Vec<String>,
    pub measures: Vec<Measure>,
    pub verdict: Vec<String>,
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measure {
    pub step: Step,
    /// Who stood in front; `None`: nobody.
    pub party: Option<Party>,
    pub cannot: Option<String>,
    /// Why it is not counted: an answer was wrong.
    pub wrong: Option<String>,
    pub note: Option<String>,
    pub figures: Option<Figures>,
    #[serde(skip)]
    pub rounds: Vec<Round>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Right answers per second.
    pub rate: Spread,
    pub rates: Vec<f64>,
    pub rounds: u32,
    /// Seconds of each measurement, median of the rounds.
    pub seconds: f64,
    pub connections: u32,
    /// Requests at once on each of them: more than one over HTTP/2 alone.
    pub streams: u32,
    /// How many times the first step's; `None`: one of the two is not counted.
    pub times: Option<f64>,
    /// The median latency, microseconds, median of the rounds.
    #[serde(rename = "p50_us")]
    pub p50: u64,
    #[serde(rename = "p99_us")]
    pub p99: u64,
    /// The median time to the first byte, microseconds, median of the rounds.
    #[serde(rename = "first_byte_p50_us")]
    pub first_byte_p50: u64,
    pub answers: u64,
    pub errors: Errors,
    pub bytes_read: u64,
    pub mean_body: f64,
    /// Requests that reached the API in all rounds; `None`: unknown.
    pub reached: Option<u64>,
    /// CPU microseconds per answer, median of the rounds.
    #[serde(rename = "cpu_per_answer_us")]
    pub cpu: Cpu,
    /// Sockets left in TIME_WAIT per round, median, on the generator's and the proxy's side; `None`: unknown.
    pub time_wait: Option<u64>,
    /// Why the rate is a floor and no result: the generator could do no more.
    pub floor: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Cpu {
    /// The proxy, all its processes; `None` without one.
    pub proxy: Option<f64>,
    /// The API, where it runs on this machine and its process may be seen.
    pub origin: Option<f64>,
    pub generator: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    pub outcome: Outcome,
    pub reached: Option<u64>,
    pub time_wait: u64,
    pub found: Metered,
    pub through: Vec<Once>,
}

impl Round {
    /// CPU seconds of a party meanwhile: the first look at it comes a little after the start and the last before the end.
    fn cpu_seconds(&self, party: &str) -> Option<f64> {
        let spent = self.found.of(party).filter(|spent| spent.seconds > 0.0)?;
        Some(spent.cpu_seconds / spent.seconds * self.outcome.seconds)
    }
}

/// Figures of all rounds of a step; `None` of none. The factor is set by [`compare`].
pub fn figures(rounds: &[Round]) -> Option<Figures> {
    let first = &rounds.first()?.outcome;
    let middle = |value: &dyn Fn(&Round) -> f64| median(rounds.iter().map(value).collect());
    let sum = |value: &dyn Fn(&Round) -> u64| rounds.iter().map(value).sum::<u64>();
    let whole = |round: &Round| round.outcome.counts.whole();
    let per_answer = |value: &dyn Fn(&Round) -> Option<f64>| {
        let each = |round: &Round| Some(value(round)? * 1e6 / whole(round).max(1) as f64);
        rounds.iter().map(each).collect::<Option<Vec<f64>>>().map(median)
    };
    let rates: Vec<f64> = rounds.iter().map(|round| round.outcome.rate()).collect();
    let mut errors = Errors::default();
    rounds.iter().for_each(|round| errors.add(&round.outcome.counts.errors));
    Some(Figures {
        rate: Spread::of(&rates),
        rates,
        rounds: rounds.len() as u32,
        seconds: middle(&|round| round.outcome.seconds),
        connections: first.connections,
        streams: first.pipeline,
        times: None,
        p50: middle(&|round| round.outcome.latency.percentile(50.0) as f64) as u64,
        p99: middle(&|round| round.outcome.latency.percentile(99.0) as f64) as u64,
        first_byte_p50: middle(&|round| round.outcome.first_byte.percentile(50.0) as f64) as u64,
        answers: sum(&|round| round.outcome.counts.answers),
        errors,
        bytes_read: sum(&|round| round.outcome.counts.bytes_read),
        mean_body: sum(&|round| round.outcome.counts.bytes_body) as f64 / sum(&whole).max(1) as f64,
        reached: rounds.iter().map(|round| round.reached).sum(),
        cpu: Cpu {
            proxy: per_answer(&|round| round.cpu_seconds("proxy")),
            origin: per_answer(&|round| round.cpu_seconds("api")),
            generator: per_answer(&|round| Some(round.outcome.generator.cpu_seconds)).unwrap_or(0.0),
        },
        time_wait: Some(middle(&|round| round.time_wait as f64) as u64),
        floor: rounds.iter().find_map(|round| round.outcome.generator.limits.clone()),
    })
}

pub fn wrong(errors: &Errors) -> Option<String> {
    let kinds = [
        (errors.body, "with a different body than the API's own"),
        (errors.status, "with a different status than the API's own"),
        (errors.short_body, "cut short"),
        (errors.malformed, "that are not HTTP"),
    ];
    let told = kinds.into_iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> =
        told.map(|(count, what)| format!("{} {what}", plural(count, "response"))).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// Sets every factor: times the API alone, or, where that was not measured, times the party's own first step. Right answers are what
/// the API alone is worth, also where it gave others beside them.
pub fn compare(measures: &mut [Measure]) {
    let rate = |measure: &Measure| measure.rated().map(|figures| figures.rate.median);
    let alone = measures.iter().find(|measure| measure.step == Step::Alone).map(rate);
    let able = measures.iter().filter(|measure| measure.cannot.is_none());
    let firsts: Vec<_> = able.map(|measure| (measure.party, rate(measure))).collect();
    for measure in measures {
        let first = || firsts.iter().find(|(party, _)| *party == measure.party)?.1;
        let base = alone.unwrap_or_else(first).filter(|base| *base > 0.0);
        let times = rate(measure).filter(|_| measure.wrong.is_none()).zip(base).map(|(own, base)| own / base);
        measure.figures.iter_mut().for_each(|figures| figures.times = times);
    }
}

impl Figures {
    pub fn whole_seconds(&self) -> f64 {
        (self.seconds * f64::from(self.rounds)).max(f64::MIN_POSITIVE)
    }

    /// Requests that reached the API, per answer; `None`: unknown.
    pub fn origin_share(&self) -> Option<f64> {
        let whole = self.answers + self.errors.total();
        self.reached.map(|reached| reached as f64 / whole.max(1) as f64)
    }
}

impl Measure {
    /// Its figures, where its right answers per second are something to compare with: it gave some, and no others, or, the API alone, others
    /// that are all known as wrong.
    pub fn rated(&self) -> Option<&Figures> {
        let figures = self.figures.as_ref().filter(|figures| figures.answers > 0)?;
        let is_known = self.party.is_none() && self.wrong == wrong(&figures.errors);
        (self.wrong.is_none() || is_known).then_some(figures)
    }

    /// The round that stands for it: the one nearest to the median.
    pub(super) fn typical(&self) -> Option<&Round> {
        let median = self.figures.as_ref()?.rate.median;
        rank::nearest(&self.rounds, median, |round| round.outcome.rate())
    }

    pub fn counted(&self) -> Option<&Figures> {
        self.figures.as_ref().filter(|_| self.wrong.is_none())
    }
}

/// What the JSON says of itself in its first field.
pub const JSON: json::Kind = "millstream.ladder/2";

impl Climbed {
    /// How often each step was measured and for how long: `3 rounds of 1.4s`, `2 rounds of 0.5s to 1.2s`.
    pub fn rounds_told(&self) -> String {
        let figures = || self.measures.iter().filter_map(|measure| measure.figures.as_ref());
        // A window ends some microseconds after its time.
        let span = |time: Option<f64>| seconds((time.unwrap_or(0.0) * 10.0).round() / 10.0).to_string();
        let least = span(figures().map(|figures| figures.seconds).min_by(f64::total_cmp));
        let most = span(figures().map(|figures| figures.seconds).max_by(f64::total_cmp));
        let to = if least == most { String::new() } else { format!(" to {most}") };
        format!("{} of {least}{to}", plural(self.rounds.into(), "round"))
    }

    pub fn connections_told(&self) -> String {
        let measured = self.measures.iter().filter(|measure| measure.figures.is_some());
        course::told(self.connections, self.threads, measured.map(|measure| measure.step))
    }

    pub fn here(&self) -> Option<Step> {
        self.running.as_ref().map(|running| running.at)
    }

    pub fn has(&self, step: Step) -> bool {
        self.running.as_ref().is_some_and(|running| running.has.contains(&step))
    }

    pub fn name(&self, measure: &Measure) -> String {
        let title = measure.step.entry().title;
        let mark = if self.here() == Some(measure.step) { "you are here" } else { "you have it" };
        let is_marked = measure.party == Some(Party::Millstream) && self.has(measure.step);
        if is_marked { format!("{title} ({mark})") } else { title.to_owned() }
    }

    pub fn measure(&self, step: Step, party: Option<Party>) -> Option<&Measure> {
        self.measures.iter().find(|measure| measure.step == step && measure.party == party)
    }
}
