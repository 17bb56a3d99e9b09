//! One measurement: a step put up, looked at once, loaded, and asked as strangers would.

use super::course::{Turn, Windows, breadth, is_brief};
use super::direct::{self, Known};
use super::result::{Measure, Round};
use super::stand::{Certificate, Programs, Stand, StandError};
use crate::correctness::{Direct, How, changed, mixed_up, stream};
use crate::drive;
use crate::http2_request::Http2Request;
use crate::party::{API, GENERATOR, Meter, Metered, PROXY, Whose, time_wait_of_late};
use crate::peer::Party;
use crate::plan::{Plan, Target, Way};
use crate::probe::{self, ProbeError};
use crate::progress::Progress;
use crate::step::{Step, StepSetting};
use crate::stop;
use crate::unmeasured::Unmeasured;
use crate::verdict::Once;
use std::sync::Arc;
use std::time::Duration;

/// How often the API is asked whether the queue of the step before is gone.
const SETTLING: usize = 3;

/// The share of answers that the API gives itself where none is kept, but for those on their way at the beginning and end.
const PASSED_ON: f64 = 0.9;

/// What is going on, for who watches.
#[derive(Debug)]
pub enum Sight<'a> {
    /// A line that stays.
    Said(&'a str),
    /// A measurement begins: which of how many, and what.
    Begins {
        /// The first is 1.
        number: usize,
        /// How many there are.
        of: usize,
        /// Step and party.
        what: &'a str,
    },
    /// How it goes.
    Goes(&'a Progress),
}

/// Letters shown of why a peer did not start, from the start and from the end: what it said may be pages long, and the
/// reason stands first or last.
const SHOWN: (usize, usize) = (100, 200);

/// What all measurements have in common.
pub(super) struct Bench<'a> {
    pub connections: u32,
    pub threads: u32,
    pub windows: Windows,
    pub warm_up: Duration,
    pub timeout: Duration,
    pub fallback: Option<String>,
    pub programs: Programs,
    pub certificate: Certificate,
    pub api: Option<Whose>,
    pub generator: Whose,
    pub known: Known,
    pub stop: &'a stop::Stop,
}

/// What came of one.
#[derive(Debug)]
pub(super) struct Seen {
    pub round: Round,
    pub found: Metered,
    /// Single requests through the proxy, timed.
    pub through: Vec<Once>,
}

/// A long text without its middle.
fn shortened(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let (start, end) = SHOWN;
    if letters.len() <= start + end {
        return text.to_owned();
    }
    let part = |letters: &[char]| letters.iter().collect::<String>();
    format!("{} … {}", part(&letters[..start]), part(&letters[letters.len() - end..]))
}

/// The request as clients of a step send it; an error is why they cannot.
fn of_step(target: &Target, step: Step) -> Result<Target, &'static str> {
    let http2 = match step.is_http2() {
        true => Some(Arc::new(Http2Request::of(&target.request, step.is_tls())?)),
        false => None,
    };
    // The proxy's certificate was made for it just now.
    let way = Way { insecure: true, ..Way::default() };
    Ok(Target { tls: step.is_tls().then(|| "localhost".to_owned()), way, http2, ..target.clone() })
}

impl Bench<'_> {
    /// Measures a step; `None` where the party cannot do it after all, which the measure then says.
    pub(super) fn measure(
        &mut self,
        stop: &Turn,
        measure: &mut Measure,
        watch: &mut dyn FnMut(Sight<'_>),
    ) -> Result<Option<Seen>, Unmeasured> {
        self.settle()?;
        let Some(party) = stop.party else {
            let target = self.known.target.clone();
            return self.load(stop.step, &target, None, watch).map(Some);
        };
        let origin = self.known.address.to_string();
        let setting = StepSetting {
            port: 0,
            origin: &origin,
            fallback: self.fallback.as_deref(),
            workers: "auto",
            puts_aside: self.known.outlives_micro(),
        };
        let target = match of_step(&self.known.target, stop.step) {
            Ok(target) => target,
            Err(why) => {
                measure.cannot = Some(format!("is not asked: the request is none of HTTP/2, because {why}"));
                return Ok(None);
            }
        };
        let (programs, certificate) = (&self.programs, &self.certificate);
        let stand = match Stand::put_up(party, stop.step, &setting, programs, certificate, self.stop) {
            Ok(stand) => stand,
            Err(StandError::Stopped) => return Err(Unmeasured::Stopped),
            // Without this program there is no ladder; without a peer there is one without it.
            Err(StandError::Failed(why)) if party == Party::Millstream => return Err(why.into()),
            Err(StandError::Cannot(why)) => {
                measure.cannot = Some(why);
                return Ok(None);
            }
            Err(StandError::Failed(why)) => {
                measure.cannot = Some(format!("(not started: {})", shortened(&why)));
                return Ok(None);
            }
        };
        let target = self.through(&stand, target);
        let mut through = Vec::new();
        while !Once::are_enough(&through) {
            match probe::once_unless(self.stop, &target, self.timeout, direct::LARGEST) {
                Ok(answer) => {
                    through.push(Once::of(&answer));
                    let given = direct::seen(answer);
                    if measure.wrong.is_none() {
                        measure.wrong = self.other_page(&given)?;
                    }
                }
                Err(ProbeError::Stopped) => return Err(Unmeasured::Stopped),
                Err(error) => {
                    measure.wrong = Some(format!("it gives no answer: {error}"));
                    break;
                }
            }
        }
        let mut seen = self.load(stop.step, &target, Some(&stand), watch)?;
        seen.through = through;
        if stop.step.is_cached() && stop.round == 0 && measure.wrong.is_none() {
            measure.wrong = self.kept_stream(&seen.round);
        }
        if stop.step.is_cached() && stop.round == 0 && measure.wrong.is_none() {
            measure.wrong = self.as_strangers(&stand, stop.step)?;
        }
        Ok(Some(seen))
    }

    /// The same request to a proxy.
    fn through(&self, stand: &Stand, target: Target) -> Target {
        Target { addresses: vec![stand.address], expect: self.known.standard.expect.clone(), ..target }
    }

    /// Why a single answer is not the API's; the load looks at the statuses and bodies of all others.
    fn other_page(&self, given: &Direct) -> Result<Option<String>, Unmeasured> {
        let Known { own, again, standard, .. } = &self.known;
        if standard.how == How::Body && given.body != own.body && given.status == own.status {
            let (theirs, ours) = (given.body.len(), own.body.len());
            return Ok(Some(format!(
                "it gives another body than the API's own ({theirs} bytes instead of {ours})"
            )));
        }
        if !standard.expect.allows(given.status) {
            return Ok(Some(format!("it answers {} where the API answers {}", given.status, own.status)));
        }
        let Some(field) = changed([own, again], given) else { return Ok(None) };
        // A time that is in it changes by itself, which the API is asked about.
        let now = self.known.once_more(self.timeout, self.stop)?.map(direct::seen);
        let is_steady = now.is_some_and(|now| changed([own, again], &now).is_none());
        Ok(is_steady.then(|| format!("it gives another {field} than the API's own")))
    }

    /// Why it is wrong that not every answer came from the API: of a stream each client is to have his own.
    fn kept_stream(&self, round: &Round) -> Option<String> {
        let kind = stream(&self.known.own)?;
        let is_kept = round.reached? < (round.outcome.counts.answers as f64 * PASSED_ON) as u64;
        is_kept
            .then(|| format!("it keeps a stream ({kind}): who comes later gets what others were told before"))
    }

    /// Asks as each stranger whom the API answers differently, and as the user just before; why what came is wrong.
    fn as_strangers(&self, stand: &Stand, step: Step) -> Result<Option<String>, Unmeasured> {
        let known = &self.known;
        let once = |target: &Target| {
            let target = match of_step(target, step) {
                Ok(target) => self.through(stand, target),
                Err(why) => return Ok(Err(why.to_owned())),
            };
            match probe::once_unless(self.stop, &target, self.timeout, direct::LARGEST) {
                Err(ProbeError::Stopped) => Err(Unmeasured::Stopped),
                told => Ok(told.map(direct::seen).map_err(|error| error.to_string())),
            }
        };
        for (telling, target) in &known.strangers {
            let meanwhile = once(&known.target)?.ok();
            let wrong = match once(target)? {
                Ok(given) => mixed_up(&known.standard, &known.own, meanwhile.as_ref(), telling, &given),
                Err(error) => {
                    Some(format!("a request with another {} got no answer: {error}", telling.stranger.field))
                }
            };
            if wrong.is_some() {
                return Ok(wrong);
            }
        }
        Ok(None)
    }

    /// Whether the API gives another body than before, also when nobody else asks any more.
    ///
    /// # Errors
    /// [`Unmeasured::Stopped`].
    pub(super) fn has_changed(&self) -> Result<bool, Unmeasured> {
        self.settle()?;
        self.known.has_changed(self.timeout, self.stop)
    }

    /// Waits until the API has answered whom the step before left waiting: a request of its own stands behind them.
    fn settle(&self) -> Result<(), Unmeasured> {
        let quick = self.known.alone() * 3 + Duration::from_millis(20);
        for _ in 0..SETTLING {
            if self.known.once_more(self.timeout, self.stop)?.is_none_or(|answer| answer.total < quick) {
                break;
            }
        }
        Ok(())
    }

    fn load(
        &self,
        step: Step,
        target: &Target,
        stand: Option<&Stand>,
        watch: &mut dyn FnMut(Sight<'_>),
    ) -> Result<Seen, Unmeasured> {
        let target = Target { expect: self.known.standard.expect.clone(), ..target.clone() };
        let breadth = breadth(step, self.connections, self.threads);
        let plan = Plan {
            pipeline: breadth.streams,
            warm_up: self.warm_up,
            timeout: self.timeout,
            ..Plan::closed(
                target,
                breadth.connections,
                self.threads.min(breadth.connections),
                self.windows.of(step, &|step| is_brief(step, self.fallback.as_deref())),
            )
        };
        let mut parties = vec![(GENERATOR, self.generator.clone())];
        parties.extend(stand.map(|stand| (PROXY, Whose::Tree(stand.id()))));
        parties.extend(self.api.clone().map(|api| (API, api)));
        let mut meter = Meter::new(parties);
        let mut reached_before = None;
        let outcome = drive::run(&plan, self.stop.flag(), &mut |progress| {
            if !progress.warming {
                reached_before = reached_before.or_else(|| stand.and_then(Stand::reached));
                meter.watch(progress);
            }
            watch(Sight::Goes(progress));
        })
        .map_err(|error| error.to_string())?;
        let reached = match stand {
            // What it fetches while it answers with what is stale is in no log.
            Some(stand) if stand.logs() && step.is_cached() && self.known.revalidates() => None,
            Some(stand) if !stand.passes_all() => {
                stand.reached().zip(reached_before).map(|(after, before)| after.saturating_sub(before))
            }
            // What nobody keeps is asked for every time.
            _ => Some(outcome.counts.answers + outcome.counts.errors.total()),
        };
        let found = meter.found();
        // The meter's first look comes a little after the start and its last before the end.
        let whole = |name: &str| {
            let spent = found.of(name).filter(|spent| spent.seconds > 0.0)?;
            Some(spent.cpu_seconds / spent.seconds * outcome.seconds)
        };
        let mut addresses = vec![self.known.address];
        addresses.extend(stand.map(|stand| stand.address));
        let round = Round {
            reached,
            proxy_seconds: whole(PROXY),
            origin_seconds: whole(API),
            time_wait: Some(time_wait_of_late(&addresses, self.warm_up.as_secs_f64() + outcome.seconds)),
            outcome,
        };
        Ok(Seen { round, found, through: Vec::new() })
    }
}
