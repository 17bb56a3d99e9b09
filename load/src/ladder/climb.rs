//! The climb itself: asks the API, puts up each step in turn, loads it, checks its answers, and gathers the rounds.
//!
//! Only here are things started. Every process that is started ends with the value that holds it, also where this is
//! stopped or panics. Next: `stand`, `measuring`, `result`.

use super::course::{self, Around, Course, Order, Pair, Windows};
use super::direct::{self, Known};
use super::measuring::Bench;
use super::result::{Climbed, Measure, Round, compare, figures, wrong};
use super::{gain, problems};
use crate::correctness::{How, Keeps, Telling};
use crate::http2_request::Http2Request;
use crate::party::Whose;
use crate::peer::Party;
use crate::progress::Live;
use crate::report::CLOSES;
use crate::report::quantity::{Quantity, plural};
use crate::step::{Fact, MICRO, Step};
use crate::stop::{CutShort, Stop};
use crate::target::resolve;
use crate::unmeasured::Unmeasured;
use crate::verdict::{self, Evidence, Once, Run};
use millstream_net::{clock, cores};
use std::time::Duration;

/// Each step warms up for so long at least: connections are open and what is cached is stored.
const WARM_UP: Duration = Duration::from_millis(100);

/// Seconds between the first look at the processes and the last, from which on what they waited for is told by more than a moment.
const LOOKED_AT: f64 = 0.5;

/// The least connections' worth of waiting that a request is given.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Climbs. Errors: the API is not there or answers with an error, this program cannot be started, or the user wanted to stop
/// before anything was measured; afterwards it is [`Climbed::cut_short`].
pub fn climb(order: &Order, stop: &Stop, live: &mut Live) -> Result<Climbed, Unmeasured> {
    let mut bench = begin(order, stop, live)?;
    let of = bench.course.stops.len();
    for (place, pair) in bench.course.stops.clone().into_iter().enumerate() {
        match turn(&mut bench, (place + 1, of), pair) {
            Err(Unmeasured::Stopped(_))
                if bench.climbed.measures.iter().any(|measure| !measure.rounds.is_empty()) =>
            {
                bench.climbed.cut_short = Some(CutShort { measured: place as u32, of: of as u32 });
                break;
            }
            ended => ended?,
        }
    }
    let Bench { mut climbed, known, .. } = bench;
    for measure in &mut climbed.measures {
        measure.figures = figures(&measure.rounds);
        if let Some(figures) = &measure.figures {
            let length = known.standard.wrong_length(figures.mean_body);
            measure.wrong = measure.wrong.take().or_else(|| wrong(&figures.errors)).or(length);
        }
    }
    compare(&mut climbed.measures);
    if climbed.cut_short.is_some() {
        // The last round is not everybody's.
        let rounds = climbed.measures.iter().filter_map(|measure| Some(measure.figures.as_ref()?.rounds));
        climbed.rounds = rounds.min().unwrap_or(0);
    }
    let unnamed =
        known.strangers.iter().filter_map(|(telling, _)| Some((telling, telling.unnamed(&known.own)?)));
    // Of an API that says nothing of caching, more is told apart than it names.
    let is_apart = |telling: &Telling| climbed.caching.keeps == Keeps::Silent && telling.is_kept_apart();
    let (apart, personal): (Vec<_>, Vec<_>) = unnamed.partition(|(telling, _)| is_apart(telling));
    let apart: Vec<String> = apart.iter().map(|(telling, _)| telling.kept_apart()).collect();
    climbed.personal = personal.into_iter().map(|(_, words)| words).collect();
    climbed.compared = known.standard.how;
    climbed.compared_words.clone_from(&known.standard.words);
    climbed.verdict = gain::sentences(&climbed);
    climbed.verdict.extend(limit(&climbed, &known));
    // Whom a cache might mix up comes before what it gains, but behind the answer.
    let first = climbed.verdict.len().min(1);
    climbed.verdict.splice(first..first, apart.into_iter().chain(known.notes.iter().cloned()));
    climbed.notes = notes(&climbed, &known);
    Ok(climbed)
}

fn begin<'a>(order: &'a Order, stop: &'a Stop, live: &'a mut Live) -> Result<Bench<'a>, Unmeasured> {
    let target = resolve(&order.ask, order.may)?;
    let known = direct::know(target, &order.ask, order.may, stop)?;
    live.say(&known.caching.words);
    let alone = known.alone();
    let connections = order.connections.unwrap_or_else(|| course::connections(alone));
    let parties: Vec<Party> = order.parties.iter().map(|(party, _)| *party).collect();
    let pairs = course::pairs(&order.steps, &parties).into_iter();
    let measures: Vec<Measure> = pairs.map(|pair| unmeasured(pair, &known)).collect();
    let able = measures.iter().filter(|measure| measure.cannot.is_none());
    let able: Vec<Pair> = able.map(|measure| (measure.step, measure.party)).collect();
    let is_silent = known.caching.keeps == Keeps::Silent;
    let fallback = is_silent.then(|| order.fallback.clone().unwrap_or_else(|| MICRO.to_owned()));
    let warm_up = (alone * 3 / 2).clamp(WARM_UP, Duration::from_secs(3));
    // As many as wait when an uncached step ends, two at a time.
    let around = Around { before: warm_up + Once::span(alone), queue: alone * connections / 2 };
    let course = course::lay_out(&able, order.wish, around, fallback.as_deref());
    let api = Whose::api(known.own.address, order.own_api);
    let climbed = Climbed {
        url: order.ask.url.clone(),
        is_simulated: order.own_api.is_some(),
        began_unix_milliseconds: u64::try_from(clock::wall().unix_milliseconds()).unwrap_or(0),
        rounds: course.rounds,
        seed: order.wish.seed,
        connections,
        threads: (cores::usable() as u32).clamp(1, 2).min(connections),
        cores: cores::usable() as u32,
        is_local: api.is_some() || known.own.address.ip().is_loopback(),
        alone_milliseconds: alone.as_secs_f64() * 1000.0,
        body_bytes: known.own.body.len() as u64,
        caching: known.caching.clone(),
        fallback,
        running: order.running.clone(),
        measures,
        ..Climbed::default()
    };
    let timeout = TIMEOUT.max(alone * connections * 2).min(direct::PATIENCE);
    live.say(&announced(&climbed, &course));
    let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()])
        .map_err(|error| format!("cannot create a certificate for the step over TLS: {error}"))?;
    Ok(Bench { order, stop, live, known, climbed, course, warm_up, timeout, certificate, api })
}

fn unmeasured((step, party): Pair, known: &Known) -> Measure {
    let can = party.map_or(Ok(None), |party| party.can(step, known.target.tls.is_some()));
    let http2 = step.has(Fact::Http2).then(|| Http2Request::of(&known.target.request, true).err()).flatten();
    let http2 =
        http2.map(|why| format!("is not measured: the request is not possible over HTTP/2, because {why}"));
    Measure {
        step,
        party,
        cannot: can.err().map(str::to_owned).or(http2),
        wrong: None,
        note: can.ok().flatten().map(str::to_owned),
        figures: None,
        rounds: Vec::new(),
    }
}

fn announced(climbed: &Climbed, course: &Course) -> String {
    let Windows { usual, brief } = course.windows;
    let [usual, brief, whole] = [usual, brief, course.whole].map(Quantity::from);
    let longer = match brief == usual {
        true => String::new(),
        false => format!(", or {brief} if responses are stored for a second"),
    };
    let steps = course.stops.iter().map(|(step, _)| *step);
    let (stops, connections) = (steps.len(), course::told(climbed.connections, climbed.threads, steps));
    format!(
        "{} of {usual}{longer}, on {connections}; about {whole} in all.",
        plural(stops as u64, "measurement")
    )
}

fn turn(bench: &mut Bench<'_>, (number, of): (usize, usize), pair: Pair) -> Result<(), Unmeasured> {
    let is_it = |measure: &Measure| (measure.step, measure.party) == pair && measure.cannot.is_none();
    let Some(at) = bench.climbed.measures.iter().position(is_it) else { return Ok(()) };
    let party = pair.1.map_or_else(String::new, |party| format!(", {}", party.name()));
    bench.live.label(&format!("{number} of {of}, {}{party}", pair.0.entry().title));
    let mut round = bench.measure(at)?;
    let is_off = bench.climbed.measures[at].wrong.is_some()
        || round.as_ref().is_some_and(|round| round.outcome.counts.errors.body > 0);
    // What looks wrong may be an API that has changed its mind, which it is then asked. One that has not breaks under load.
    if is_off && bench.known.standard.how == How::Body && bench.has_changed()? {
        direct::loosen(&mut bench.known, bench.stop)?;
        bench.live.say(&bench.known.standard.words);
        bench.climbed.measures[at].wrong = None;
        round = bench.measure(at)?;
    }
    bench.stop.go_on()?;
    let none = round.as_ref().filter(|round| pair.0 == Step::Alone && round.outcome.counts.answers == 0);
    if let Some(round) = none {
        return Err(Unmeasured::Because(format!(
            "the API alone gave no correct response on {} ({}), so there is nothing to compare with",
            plural(bench.climbed.connections.into(), "connection"),
            problems::told(&round.outcome.counts.errors)
        )));
    }
    bench.climbed.measures[at].rounds.extend(round);
    Ok(())
}

fn limit(climbed: &Climbed, known: &Known) -> Option<String> {
    let own = climbed.measures.iter().filter(|measure| measure.party == Some(Party::Millstream));
    let rated = own.filter_map(|measure| Some((measure, measure.counted()?)));
    let (measure, figures) = rated.max_by(|one, other| one.1.rate.median.total_cmp(&other.1.rate.median))?;
    let Round { outcome, found, through, .. } = measure.typical()?;
    if found.seconds < LOOKED_AT {
        return Some(
            "The runs were too short to show the bottleneck: use \"ladder --duration 1s\".".to_owned(),
        );
    }
    let alone = climbed.measure(Step::Alone, None).filter(|alone| alone.wrong.is_none());
    let evidence = Evidence {
        direct: Some(known.once),
        through: Once::of_several(through),
        alone: alone.and_then(Measure::typical).map(|round| Run::of(&round.outcome)),
        origin_share: figures.origin_share().unwrap_or(1.0),
        ..Evidence::of(outcome, found, climbed.is_local)
    };
    Some(format!("At \"{}\": {}", measure.step.entry().title, verdict::judge(&evidence).text()))
}

fn notes(climbed: &Climbed, known: &Known) -> Vec<String> {
    let has = |step: Step| climbed.measures.iter().any(|measure| measure.step == step);
    let alone = climbed.measure(Step::Alone, None).map_or(&[][..], |alone| &alone.rounds);
    let [micro, lock] = [Step::Microcache, Step::Lock].map(|step| step.entry().title);
    let closes = format!("{CLOSES}.");
    let aside = format!(
        "\"{micro}\" and \"{lock}\" ignore the API's own lifetime, to show the gain of storing responses for one \
         second."
    );
    let shared = format!(
        "API, proxy and load generator run on the same {} cores, so each has less CPU than on a separate machine.",
        climbed.cores
    );
    let all: [(bool, &str); 7] = [
        (alone.iter().any(|round| round.outcome.is_closed_on()), &closes),
        (
            !has(Step::Alone),
            "Without the step \"the API alone\", factors are relative to each party's own first step.",
        ),
        (
            climbed.rounds > 1,
            "The requests that reached the API are counted over all rounds: requests of clients, without background \
             refreshes of a proxy.",
        ),
        (true, &climbed.compared_words),
        // Of what cannot be kept, and of what had nothing to go by, the verdict speaks.
        (climbed.caching.keeps != Keeps::No && !gain::falls_back(climbed), &climbed.caching.words),
        (known.outlives_micro() && (has(Step::Microcache) || has(Step::Lock)), &aside),
        (climbed.is_local, &shared),
    ];
    let own =
        climbed.measures.iter().filter_map(|measure| measure.figures.as_ref().and(measure.note.clone()));
    let all = all.into_iter().filter(|(is_so, _)| *is_so).map(|(_, note)| note.to_owned());
    let mut notes = Vec::new();
    for note in floors(climbed).into_iter().chain(all).chain(own) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

fn floors(climbed: &Climbed) -> Option<String> {
    let floor =
        |measure: &Measure| Some((measure.step.entry().title, measure.figures.as_ref()?.floor.clone()?));
    let (mut titles, whys): (Vec<_>, Vec<_>) = climbed.measures.iter().filter_map(floor).unzip();
    titles.dedup();
    let (titles, why) = (titles.join(", "), whys.first()?);
    Some(format!("These figures are floors, because the generator was at its limit: {titles} ({why})."))
}
