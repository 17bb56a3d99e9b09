//! The climb itself: asks the API, puts up each step in turn, loads it, checks its answers, and gathers the rounds.
//!
//! Only here are things started. Every process that is started ends with the value that holds it, also where this is
//! stopped or panics. Next: `stand`, `measuring`, `result`.

use super::asking;
use super::course::{self, Around, Course, Turn, Windows, Wish};
use super::direct::{self, Known};
pub use super::measuring::Sight;
use super::measuring::{Bench, Seen};
use super::result::{Climbed, Measure, Round, compare, figures, wrong};
use super::stand::{Certificate, Programs};
use super::{trouble, worth};
use crate::correctness::{How, Keeps};
use crate::party::{self, Whose};
use crate::peer::{self, Party};
use crate::report::{CLOSES, quantity};
use crate::step::running::Running;
use crate::step::{MICRO, Step, StepSetting};
use crate::stop::{self, CutShort};
use crate::target::{Ask, Permission};
use crate::unmeasured::Unmeasured;
use crate::verdict::{self, Evidence, Once};
use millstream_net::{clock, cores};
use std::path::Path;
use std::time::Duration;

/// What is to be climbed.
#[derive(Debug, Clone)]
pub struct Order {
    /// The request, to the API itself.
    pub ask: Ask,
    /// Whether an address of the public internet may be loaded.
    pub may: Permission,
    /// The steps, in climbing order.
    pub steps: Vec<Step>,
    /// Who takes part.
    pub parties: Vec<Party>,
    /// How often, how long, and in which order.
    pub wish: Wish,
    /// What the user's own configuration has of the steps.
    pub running: Option<Running>,
    /// Connections; `None`: by how slow the API is.
    pub connections: Option<u32>,
    /// For how long an answer is kept that says nothing, in the steps that go by the API's headers; `None`: as the
    /// microcache keeps it. In nginx's notation with one unit.
    pub fallback: Option<String>,
    /// The programs of the parties.
    pub programs: Programs,
    /// Threads of this process that are the API, by the beginning of their names; `None`: it is another process.
    pub own_api: Option<&'static str>,
}

/// Each step warms up for so long at least: connections are open and what is cached is stored.
const WARM_UP: Duration = Duration::from_millis(100);

/// Seconds between the first look at the processes and the last, from which on what they waited for is told by more than a moment.
const LOOKED_AT: f64 = 0.5;

/// The least connections' worth of waiting that a request is given.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Climbs.
///
/// # Errors
/// The API is not there or answers with an error, this program cannot be started, or the user wanted to stop before anything
/// was measured; afterwards it is [`Climbed::cut_short`].
pub fn climb(
    order: &Order,
    stop: &stop::Stop,
    watch: &mut dyn FnMut(Sight<'_>),
) -> Result<Climbed, Unmeasured> {
    let began = clock::wall().unix_milliseconds();
    let mut known = direct::know(&order.ask, order.may, stop)?;
    asking::ask_as_strangers(&mut known, &order.ask, order.may, stop)?;
    watch(Sight::Said(&known.standard.words));
    watch(Sight::Said(&known.caching.words));
    let pairs = course::pairs(&order.steps, &order.parties);
    let mut measures = open(&pairs, order);
    let able: Vec<_> =
        measures.iter().filter(|measure| measure.cannot.is_none()).map(|m| (m.step, m.party)).collect();
    let (mut bench, course) = bench(order, known, &able, stop, watch)?;
    let mut taken = Taken { seen: measures.iter().map(|_| Vec::new()).collect(), whole: 0 };
    let cut_short = match rounds(&mut bench, &course.stops, &mut measures, &mut taken, watch) {
        Ok(()) => None,
        Err(Unmeasured::Stopped) if taken.seen.iter().any(|seen| !seen.is_empty()) => {
            Some(CutShort { measured: taken.whole, of: course.stops.len() as u32 })
        }
        Err(error) => return Err(error),
    };
    let seen = taken.seen;
    for (measure, seen) in measures.iter_mut().zip(&seen) {
        let rounds: Vec<Round> = seen.iter().map(|seen| seen.round.clone()).collect();
        measure.figures = figures(&rounds);
        if let Some(figures) = &measure.figures {
            let length = bench.known.standard.wrong_length(figures.mean_body);
            measure.wrong = measure.wrong.take().or_else(|| wrong(&figures.errors)).or(length);
        }
    }
    compare(&mut measures);
    // Where it was cut short, the last round is not everybody's.
    let least = seen.iter().map(Vec::len).filter(|count| *count > 0).min().unwrap_or(0) as u32;
    let rounds = if cut_short.is_some() { least } else { course.rounds };
    let mut climbed = plain(order, &bench, rounds, measures);
    climbed.cut_short = cut_short;
    climbed.began_unix_milliseconds = u64::try_from(began).unwrap_or(0);
    climbed.verdict = worth::sentences(&climbed);
    climbed.verdict.extend(limit(&climbed, &bench.known, &seen));
    climbed.notes = notes(&climbed, &bench.known, &seen);
    Ok(climbed)
}

/// What all measurements have in common, and the line that announces them.
fn bench<'a>(
    order: &Order,
    known: Known,
    pairs: &[(Step, Option<Party>)],
    stop: &'a stop::Stop,
    watch: &mut dyn FnMut(Sight<'_>),
) -> Result<(Bench<'a>, Course), Unmeasured> {
    let alone = known.alone();
    let connections = order.connections.unwrap_or_else(|| course::connections(alone));
    let warm_up = (alone * 3 / 2).clamp(WARM_UP, Duration::from_secs(3));
    // As many as wait when an uncached step ends, two at a time.
    let around = Around { before: warm_up + Once::span(alone), queue: alone * connections / 2 };
    let fallback = fallback(order, &known);
    let course =
        course::lay_out(pairs, order.wish, around, &|step| course::is_brief(step, fallback.as_deref()));
    let threads = (cores::usable() as u32).clamp(1, 2).min(connections);
    watch(Sight::Said(&announced(&course, connections, threads)));
    let bench = Bench {
        connections,
        threads,
        windows: course.windows,
        warm_up,
        timeout: TIMEOUT.max(alone * connections * 2).min(direct::PATIENCE),
        fallback,
        programs: order.programs.clone(),
        certificate: Certificate::new()?,
        api: whose_api(order, &known),
        generator: match order.own_api {
            Some(name) => Whose::OtherThreads(std::process::id(), name.to_owned()),
            None => Whose::Process(std::process::id()),
        },
        known,
        stop,
    };
    Ok((bench, course))
}

/// The result without its words.
fn plain(order: &Order, bench: &Bench<'_>, rounds: u32, measures: Vec<Measure>) -> Climbed {
    let known = &bench.known;
    Climbed {
        url: order.ask.url.clone(),
        is_simulated: order.own_api.is_some(),
        began_unix_milliseconds: 0,
        rounds,
        seed: order.wish.seed,
        cut_short: None,
        connections: bench.connections,
        threads: bench.threads,
        cores: cores::usable() as u32,
        is_local: bench.api.is_some() || known.address.ip().is_loopback(),
        alone_milliseconds: known.alone().as_secs_f64() * 1000.0,
        body_bytes: known.own.body.len() as u64,
        compared: known.standard.how,
        compared_words: known.standard.words.clone(),
        caching: known.caching.clone(),
        fallback: bench.fallback.clone(),
        running: order.running.clone(),
        personal: known.personal.clone(),
        measures,
        verdict: Vec::new(),
        notes: Vec::new(),
    }
}

/// What is about to begin.
fn announced(course: &Course, connections: u32, threads: u32) -> String {
    let Windows { usual, brief } = course.windows;
    let longer = match brief == usual {
        true => String::new(),
        false => format!(", of {} where answers are kept for a second", quantity::span(brief.as_secs_f64())),
    };
    let shared = course.stops.iter().find(|stop| stop.step.is_http2()).map_or_else(String::new, |stop| {
        format!(" (over HTTP/2: {})", course::breadth(stop.step, connections, threads).words())
    });
    format!(
        "{} measurements of {}{longer}, on {connections} connections{shared}; about {:.0} s in all.",
        course.stops.len(),
        quantity::span(usual.as_secs_f64()),
        course.whole.as_secs_f64()
    )
}

/// Every measure without its figures, and what cannot be measured.
fn open(pairs: &[(Step, Option<Party>)], order: &Order) -> Vec<Measure> {
    let setting =
        StepSetting { port: 0, origin: "127.0.0.1:0", fallback: None, workers: "auto", puts_aside: false };
    let measure = |&(step, party): &(Step, Option<Party>)| {
        let launch = party.map(|party| (party, peer::launch(party, step, &setting, Path::new("/"))));
        let cannot = match &launch {
            Some((party, _)) if order.programs.of(*party).is_none() => {
                Some("is not installed here".to_owned())
            }
            Some((_, Err(why))) => Some((*why).to_owned()),
            _ => None,
        };
        let note = launch.and_then(|(_, launch)| launch.ok()?.note.map(str::to_owned));
        Measure { step, party, cannot, wrong: None, note, figures: None }
    };
    pairs.iter().map(measure).collect()
}

/// Whose CPU is the API's; `None`: it is elsewhere, or may not be looked at.
fn whose_api(order: &Order, known: &Known) -> Option<Whose> {
    if let Some(name) = order.own_api {
        return Some(Whose::Threads(std::process::id(), name.to_owned()));
    }
    let listener = party::listener(known.address)?;
    (!listener.is_relay()).then_some(Whose::Tree(listener.id))
}

/// How long what says nothing is kept in the steps that go by the API's headers.
fn fallback(order: &Order, known: &Known) -> Option<String> {
    let is_silent = known.caching.keeps == Keeps::Silent;
    is_silent.then(|| order.fallback.clone().unwrap_or_else(|| MICRO.to_owned()))
}

/// What has been measured so far.
struct Taken {
    /// Beside each measure its rounds.
    seen: Vec<Vec<Seen>>,
    /// Whole measurements.
    whole: u32,
}

/// All rounds; what an error ends keeps what there is.
fn rounds(
    bench: &mut Bench<'_>,
    stops: &[Turn],
    measures: &mut [Measure],
    taken: &mut Taken,
    watch: &mut dyn FnMut(Sight<'_>),
) -> Result<(), Unmeasured> {
    for (place, stop) in stops.iter().enumerate() {
        let Some(at) = measures.iter().position(|m| m.step == stop.step && m.party == stop.party) else {
            continue;
        };
        if measures[at].cannot.is_some() {
            continue;
        }
        let what = match stop.party {
            Some(party) => format!("{}, {}", stop.step.entry().title, party.name()),
            None => stop.step.entry().title.to_owned(),
        };
        watch(Sight::Begins { number: place + 1, of: stops.len(), what: &what });
        let mut seen = bench.measure(stop, &mut measures[at], watch)?;
        let is_off = measures[at].wrong.is_some()
            || seen.as_ref().is_some_and(|seen| seen.round.outcome.counts.errors.body > 0);
        // What looks wrong may be an API that has changed its mind, which it is then asked. One that has not breaks under load.
        if is_off && bench.known.standard.how == How::Body && bench.has_changed()? {
            asking::loosen(&mut bench.known, bench.stop)?;
            watch(Sight::Said(&bench.known.standard.words));
            measures[at].wrong = None;
            seen = bench.measure(stop, &mut measures[at], watch)?;
        }
        if bench.stop.is_asked() {
            return Err(Unmeasured::Stopped);
        }
        if let Some(seen) = &seen
            && stop.step == Step::Alone
            && seen.round.outcome.counts.answers == 0
        {
            return Err(Unmeasured::Because(format!(
                "the API alone gave not one right answer on {} connections ({}), so there is nothing to compare with",
                bench.connections,
                trouble::told(&seen.round.outcome.counts.errors)
            )));
        }
        taken.seen[at].extend(seen);
        taken.whole += 1;
    }
    Ok(())
}

/// What limits at this program's best step.
fn limit(climbed: &Climbed, known: &Known, seen: &[Vec<Seen>]) -> Vec<String> {
    let of_own = |(measure, _): &(&Measure, &Vec<Seen>)| {
        measure.party == Some(Party::Millstream) && measure.counted().is_some()
    };
    let rate = |measure: &Measure| measure.counted().map_or(0.0, |figures| figures.rate.median);
    let best = climbed
        .measures
        .iter()
        .zip(seen)
        .filter(of_own)
        .max_by(|one, other| rate(one.0).total_cmp(&rate(other.0)));
    let Some((measure, rounds)) = best else { return Vec::new() };
    // The round nearest to the median stands for the step.
    let away = |seen: &&Seen| (seen.round.outcome.rate() - rate(measure)).abs();
    let Some(round) = rounds.iter().min_by(|one, other| away(one).total_cmp(&away(other))) else {
        return Vec::new();
    };
    if round.found.seconds < LOOKED_AT {
        return vec![
            "The runs were too short to tell what limits; \"ladder --duration 1s\" tells it.".to_owned(),
        ];
    }
    let alone = climbed.measure(Step::Alone, None).and_then(Measure::counted);
    let evidence = Evidence {
        top: verdict::Run::of(&round.round.outcome),
        fewer: None,
        direct: Once::of_several(&known.samples),
        through: Once::of_several(&round.through),
        api_rate: alone.map(|figures| figures.rate.median),
        origin_share: measure.counted().and_then(|figures| figures.origin_share()).unwrap_or(1.0),
        proxy: round.found.of("proxy"),
        api: round.found.of("api"),
        generator: round.found.of("generator"),
        floor: round.round.outcome.generator.limits.clone(),
        machine_busy: round.found.machine_busy,
        stolen: round.found.stolen,
        cores: climbed.cores,
        is_here: climbed.is_local,
        link: (!climbed.is_local).then(party::link_speed).flatten(),
    };
    vec![format!("At \"{}\": {}", measure.step.entry().title, verdict::judge(&evidence).text())]
}

/// What else is to be known.
fn notes(climbed: &Climbed, known: &Known, seen: &[Vec<Seen>]) -> Vec<String> {
    let mut notes = known.notes.clone();
    if climbed.is_simulated {
        notes.push(
            "The API was simulated by this program, on the same machine: these figures show the shape, and yours will \
             be others."
                .to_owned(),
        );
    }
    let alone = climbed.measures.iter().zip(seen).filter(|(measure, _)| measure.step == Step::Alone);
    if alone.flat_map(|(_, seen)| seen).any(|seen| seen.round.outcome.is_closed_on()) {
        notes.push(format!("{CLOSES}."));
    }
    if climbed.measures.iter().all(|measure| measure.step != Step::Alone) {
        notes.push("Without the API alone, times are those of each party's own first step here.".to_owned());
    }
    if climbed.rounds > 1 {
        notes.push(
            "What reached the API is counted over all rounds: requests of clients, without what a proxy fetches anew in the \
             background."
                .to_owned(),
        );
    }
    notes.push(climbed.compared_words.clone());
    // Of what cannot be kept the verdict speaks.
    if climbed.caching.keeps != Keeps::No {
        notes.push(climbed.caching.words.clone());
    }
    let has_micro =
        climbed.measures.iter().any(|measure| matches!(measure.step, Step::Microcache | Step::Lock));
    if known.outlives_micro() && has_micro {
        notes.push(format!(
            "\"{}\" and \"{}\" put the API's own lifetime aside, so that what a second brings can be seen.",
            Step::Microcache.entry().title,
            Step::Lock.entry().title
        ));
    }
    if climbed.is_local {
        notes.push(format!(
            "API, proxy and load share the {} cores of this machine: what one uses the others lack.",
            climbed.cores
        ));
    }
    let measured = climbed.measures.iter().filter(|measure| measure.figures.is_some());
    for note in measured.filter_map(|measure| measure.note.as_ref()) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    notes
}
