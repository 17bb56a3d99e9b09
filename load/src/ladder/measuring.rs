//! One measurement: a step put up, looked at once, loaded, and asked as strangers would.

use super::course::{Course, Order, Windows, breadth, is_brief};
use super::direct::Known;
use super::result::{Climbed, Round};
use super::stand::Stand;
use crate::correctness::{changed, mixed_up, stream};
use crate::http2_request::Http2Request;
use crate::party::{MeteredRun, Whose, watched};
use crate::peer::{Party, Reached};
use crate::plan::{Plan, Target, Way};
use crate::probe::{Reply, once_unless};
use crate::progress::{Live, Progress};
use crate::step::{Fact, SecureOrigin, Step, StepSetting};
use crate::stop::Stop;
use crate::stream::absolute_authorities;
use crate::target::Url;
use crate::unmeasured::Unmeasured;
use crate::verdict::Once;
use rcgen::{CertifiedKey, KeyPair};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How often the API is asked whether the queue of the step before is gone.
const SETTLING: usize = 3;

/// How often it is asked whether its body is another one now: it may be one of two.
const AGAIN: usize = 5;

/// The share of answers that the API gives itself where none is kept, but for those on their way at the beginning and end.
const PASSED_ON: f64 = 0.9;

/// Letters shown of why a peer did not start, from the start and from the end: what it said may be pages long, and the
/// reason stands first or last.
const SHOWN: (usize, usize) = (100, 200);

pub(super) struct Bench<'a> {
    pub order: &'a Order,
    pub stop: &'a Stop,
    pub live: &'a mut Live,
    pub known: Known,
    pub climbed: Climbed,
    pub course: Course,
    pub warm_up: Duration,
    pub timeout: Duration,
    pub certificate: CertifiedKey<KeyPair>,
    /// Whose CPU is the API's; `None`: it is elsewhere, or may not be looked at.
    pub api: Option<Whose>,
}

fn shortened(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let (start, end) = SHOWN;
    if letters.len() <= start + end {
        return text.to_owned();
    }
    let part = |letters: &[char]| letters.iter().collect::<String>();
    format!("{} … {}", part(&letters[..start]), part(&letters[letters.len() - end..]))
}

impl Bench<'_> {
    /// Measures once more what is at a place among the measures; `None` where the party cannot do it after all, which the measure then says.
    pub(super) fn measure(&mut self, at: usize) -> Result<Option<Round>, Unmeasured> {
        self.settle()?;
        let measure = &self.climbed.measures[at];
        let (step, mut wrong) = (measure.step, measure.wrong.clone());
        let Some(party) = self.order.parties.iter().find(|(party, _)| Some(*party) == measure.party) else {
            return self.load(step, self.known.target.clone(), None).map(Some);
        };
        let url = Url::parse(&self.climbed.url).map_err(str::to_owned)?;
        let authorities = self.known.target.tls.as_ref().map(|_| absolute_authorities()).transpose()?;
        let secure = authorities.as_deref().map(|authorities| SecureOrigin {
            name: &url.host,
            host: &url.authority,
            authorities,
        });
        let setting = StepSetting {
            port: 0,
            origin: &self.known.own.address.to_string(),
            secure,
            fallback: self.climbed.fallback.as_deref(),
            puts_aside: self.known.outlives_micro(),
        };
        let stand = match Stand::put_up(party, step, &setting, &self.certificate, self.stop) {
            // Without this program there is no ladder; without a peer there is one without it.
            Err(why) if party.0 != Party::Millstream && !matches!(why, Unmeasured::Stopped(_)) => {
                self.climbed.measures[at].cannot =
                    Some(format!("(not started: {})", shortened(&why.to_string())));
                return Ok(None);
            }
            stand => stand?,
        };
        let target = self.through(&self.known.target, step, stand.address);
        let mut through = Vec::new();
        while !Once::are_enough(&through) {
            match once_unless(self.stop, &target, self.timeout)? {
                Ok(given) => {
                    through.push(Once::of(&given));
                    wrong = if wrong.is_none() { self.other_page(&given)? } else { wrong };
                }
                Err(error) => {
                    wrong = Some(format!("it does not respond: {error}"));
                    break;
                }
            }
        }
        let round = Round { through, ..self.load(step, target, Some(&stand))? };
        let measure = &self.climbed.measures[at];
        if wrong.is_none() && step.has(Fact::Cache) && measure.rounds.is_empty() {
            let kept = self.kept_stream(&round);
            wrong = if kept.is_none() { self.as_strangers(&stand, step)? } else { kept };
        }
        self.climbed.measures[at].wrong = wrong;
        Ok(Some(round))
    }

    fn through(&self, target: &Target, step: Step, proxy: SocketAddr) -> Target {
        // Whether it is one of HTTP/2 was found out before.
        let http2 = Http2Request::of(&target.request, true).ok().filter(|_| step.has(Fact::Http2));
        Target {
            addresses: vec![proxy],
            tls: step.has(Fact::Tls).then(|| "localhost".to_owned()),
            // The proxy's certificate was made for it just now.
            way: Way { insecure: true, ..Way::default() },
            http2: http2.map(Arc::new),
            ..target.clone()
        }
    }

    /// Why a single answer is not the API's; the load looks at the statuses and bodies of all others.
    fn other_page(&self, given: &Reply) -> Result<Option<String>, Unmeasured> {
        let Known { target, own, again, standard, .. } = &self.known;
        let wrong = standard.wrong_page(own, given);
        let Some(field) = changed([own, again], given).filter(|_| wrong.is_none()) else { return Ok(wrong) };
        // A time that is in it changes by itself, which the API is asked about.
        let now = once_unless(self.stop, target, self.timeout)?;
        let is_steady = now.is_ok_and(|now| changed([own, again], &now).is_none());
        Ok(is_steady.then(|| format!("its {field} differs from the API's")))
    }

    /// Why it is wrong that not every answer came from the API: of a stream each client is to have his own.
    fn kept_stream(&self, round: &Round) -> Option<String> {
        let kind = stream(&self.known.own)?;
        let is_kept = round.reached? < (round.outcome.counts.answers as f64 * PASSED_ON) as u64;
        is_kept
            .then(|| format!("it stores a stream ({kind}): later clients get the data sent to earlier ones"))
    }

    /// Asks as each stranger whom the API answers differently, and as the user just before; why what came is wrong.
    fn as_strangers(&self, stand: &Stand, step: Step) -> Result<Option<String>, Unmeasured> {
        let Known { target, standard, strangers, .. } = &self.known;
        let once = |target: &Target| {
            once_unless(self.stop, &self.through(target, step, stand.address), self.timeout)
        };
        for (telling, stranger) in strangers {
            let meanwhile = once(target)?.ok();
            let wrong = match once(stranger)? {
                Ok(given) => mixed_up(standard.how, meanwhile.as_ref(), telling, &given),
                Err(error) => {
                    Some(format!("a request with another {} got no response: {error}", telling.field))
                }
            };
            if wrong.is_some() {
                return Ok(wrong);
            }
        }
        Ok(None)
    }

    /// Whether the API gives another body than before, if only now and then, also when nobody else asks any more. Errors:
    /// [`Unmeasured::Stopped`].
    pub(super) fn has_changed(&self) -> Result<bool, Unmeasured> {
        self.settle()?;
        let Known { target, own, .. } = &self.known;
        for _ in 0..AGAIN {
            let now = once_unless(self.stop, target, self.timeout)?;
            if now.is_ok_and(|now| now.status == own.status && now.body != own.body) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Waits until the API has answered whom the step before left waiting: a request of its own stands behind them.
    fn settle(&self) -> Result<(), Unmeasured> {
        let quick = self.known.alone() * 3 + Duration::from_millis(20);
        for _ in 0..SETTLING {
            let told = once_unless(self.stop, &self.known.target, self.timeout)?;
            if !told.is_ok_and(|answer| answer.total >= quick) {
                break;
            }
        }
        Ok(())
    }

    fn load(&mut self, step: Step, target: Target, stand: Option<&Stand>) -> Result<Round, Unmeasured> {
        let Climbed { connections, threads, fallback, .. } = &self.climbed;
        let breadth = breadth(step, *connections, *threads);
        let Windows { usual, brief } = self.course.windows;
        let window = if is_brief(step, fallback.as_deref()) { brief } else { usual };
        let target = Target { expect: self.known.standard.expect.clone(), ..target };
        let plan = Plan {
            pipeline: breadth.streams,
            warm_up: self.warm_up,
            timeout: self.timeout,
            ..Plan::closed(target, breadth.connections, (*threads).min(breadth.connections), window)
        };
        let parties = watched(self.order.own_api, stand.map(Stand::id), self.api.clone());
        let addresses: Vec<_> =
            [self.known.own.address].into_iter().chain(stand.map(|stand| stand.address)).collect();
        let mut reached_before = None;
        let mut watch = |progress: &Progress| {
            if !progress.warming {
                reached_before = reached_before.or_else(|| stand.and_then(Stand::reached));
            }
            self.live.show(progress);
        };
        let run = MeteredRun::of(&plan, parties, &addresses, self.stop, &mut watch)?;
        let MeteredRun { outcome, found, time_wait } = run;
        let reached = match stand {
            // What it fetches while it answers with what is stale is in no log.
            Some(Stand { counts: Some(Reached::Lines(_)), .. }) if self.known.revalidates() => None,
            Some(stand) if stand.counts.is_some() => {
                stand.reached().zip(reached_before).map(|(after, before)| after.saturating_sub(before))
            }
            // What nobody keeps is asked for every time.
            _ => Some(outcome.counts.answers + outcome.counts.errors.total()),
        };
        Ok(Round { outcome, reached, time_wait, found, through: Vec::new() })
    }
}
