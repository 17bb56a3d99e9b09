//! What is known of each party and of the way, as shares of the time: typed, and without any decision on who limits.
//!
//! Two laws are behind it. A party whose threads all sleep has no request to work on, so a share of the time in which it is
//! at work bounds the requests that are with it. And what a single request takes, times the requests per second, is how
//! many are worked on at once (Little's law), however many are on their way.

use super::{Evidence, Limit, Run};
use crate::outcome::ALWAYS;
use crate::party::{API, GENERATOR, PROXY};

/// Where something has more than this of the time, or of the cores, nothing else can have as much.
pub(super) const MOST: f64 = 0.5;

/// A larger gain is as good as one without an end, which it is where the others cost nothing.
const MOST_GAIN: f64 = 1e3;

/// A party that could be looked at. Shares are of the time that this machine had, without what its host gave to others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watched {
    pub(super) who: Limit,
    /// Cores that it used.
    pub(super) used: f64,
    /// The share in which its busiest thread ran.
    pub(super) ran: f64,
    /// The largest share in which one of its threads waited for a core.
    pub(super) waited: f64,
    /// The share in which its keenest thread was at work: it ran, or waited for a core.
    pub(super) at_work: f64,
    /// Of the cores that it may use, the share that all its threads together wanted; 0 where cores were left over.
    pub(super) wanted: f64,
    /// The share of the periods of a CPU limit in which it was held back; `None`: no limit is known.
    pub(super) held_back: Option<f64>,
}

impl Watched {
    pub(super) fn is_held_back(&self) -> bool {
        self.held_back.is_some_and(|share| share > MOST)
    }

    pub(super) fn is_saturated(&self) -> bool {
        self.is_held_back() || self.at_work >= ALWAYS || self.wanted >= ALWAYS
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Facts<'a> {
    pub(super) evidence: &'a Evidence,
    /// `None`: not on this machine, or it may not be looked at.
    pub(super) api: Option<Watched>,
    /// `None`: there is none.
    pub(super) proxy: Option<Watched>,
    /// `None`: not known.
    pub(super) generator: Option<Watched>,
    /// Cores that none of the parties used; `None` where one of them cannot be seen and may be among these.
    pub(super) strangers: Option<f64>,
    /// Of the time that this machine was busy, the share that its host gave to other machines.
    pub(super) stolen: f64,
}

impl Facts<'_> {
    pub(super) fn of(evidence: &Evidence) -> Facts<'_> {
        let found = &evidence.found;
        let busy = found.machine_busy;
        let stolen = if busy > 0.0 { (found.stolen / busy).clamp(0.0, 1.0) } else { 0.0 };
        let cores = f64::from(evidence.cores.max(1));
        // The scheduler's clock stands still while a host takes a core away (Linux's paravirtual time accounting): who never
        // sleeps then has less than the whole time.
        let had = (1.0 - stolen).max(f64::MIN_POSITIVE);
        let seen = |who, name: &str| {
            let spent = found.of(name).filter(|spent| spent.seconds > 0.0)?;
            let may_use = f64::from(spent.may_use.unwrap_or(evidence.cores)).clamp(1.0, cores);
            let used = spent.cpu_seconds / spent.seconds;
            // Many threads that wake together wait for each other, and still nobody lacks a core where cores idle.
            let is_short_of_cores = busy >= ALWAYS || used >= ALWAYS * may_use;
            let share = |share: f64| (share / had).min(1.0);
            Some(Watched {
                who,
                used,
                ran: share(spent.busiest),
                waited: share(spent.waited),
                at_work: share(spent.wanted),
                wanted: if is_short_of_cores { share(spent.wanted_cores / may_use) } else { 0.0 },
                held_back: spent.held_back,
            })
        };
        let api = seen(Limit::Api, API);
        let proxy = seen(Limit::Proxy, PROXY);
        let generator = seen(Limit::Generator, GENERATOR);
        let all = [api, proxy, generator];
        let known: f64 = all.iter().flatten().map(|seen| seen.used).sum();
        // An API elsewhere uses nothing of this machine; one that is here and unseen may be all that the strangers are.
        let is_complete = generator.is_some() && (api.is_some() || !evidence.is_here);
        let strangers = is_complete.then(|| ((busy - found.stolen) * cores - known).max(0.0));
        Facts { evidence, api, proxy, generator, strangers, stolen }
    }

    pub(super) fn parties(&self) -> impl Iterator<Item = Watched> {
        [self.api, self.proxy, self.generator].into_iter().flatten()
    }

    pub(super) fn cores(&self) -> f64 {
        f64::from(self.evidence.cores.max(1))
    }

    pub(super) fn strangers_share(&self) -> Option<f64> {
        Some(self.strangers? / self.cores())
    }

    /// Whether so many answers needed the API that it can be what they wait for: without it the others would at most be a
    /// tenth faster (see [`ALWAYS`]).
    pub(super) fn asks_api(&self) -> bool {
        self.evidence.origin_share >= 1.0 - ALWAYS
    }

    /// Whether a party waited for a core for longer than it ran, and most of the time or of what it was at work, while
    /// strangers used more than it did: what it would do without them is not known.
    pub(super) fn is_starved(&self, party: &Watched) -> bool {
        party.waited > party.ran.max(1.0 - ALWAYS) && self.strangers.is_some_and(|used| used > party.used)
    }

    /// How many times more answers there could be at the most if a party cost nothing, less one: until the threads of another
    /// run all the time, or the cores that are left to the parties do (the utilisation law, X ≤ 1 ÷ D, for each of them).
    pub(super) fn gain_without(&self, party: &Watched) -> f64 {
        let others = || self.parties().filter(|other| other.who != party.who);
        let shared =
            (self.cores() - self.strangers.unwrap_or(0.0)) / others().map(|other| other.used).sum::<f64>();
        let own = |other: Watched| if other.is_held_back() { 1.0 } else { 1.0 / other.ran };
        (others().map(own).fold(shared, f64::min) - 1.0).clamp(0.0, MOST_GAIN)
    }

    /// A part of the mean time of a request, 0 to 1.
    fn of_latency(&self, seconds: f64) -> f64 {
        let latency = self.evidence.top.latency;
        if latency > 0.0 { (seconds / latency).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The share of a request's time that is one round trip to the API; `None`: not known.
    pub(super) fn round_trip(&self) -> Option<f64> {
        if self.evidence.is_here {
            return Some(0.0);
        }
        Some(self.of_latency(self.evidence.direct?.connect))
    }

    /// The share of a request's time that the proxy adds where nobody else asks, and so without waiting for a core; `None`:
    /// not known.
    pub(super) fn added(&self) -> Option<f64> {
        let (direct, through) = (self.evidence.direct?, self.evidence.through?);
        Some(self.of_latency(through.least - direct.least - direct.connect))
    }

    /// The share of a request's time that can only be spent in the API: what is left when everybody else has had all of the
    /// time in which he was at work. Of whom nothing is known may have had all of it.
    pub(super) fn in_api(&self) -> f64 {
        let with = |party: Option<Watched>| party.map_or(1.0, |seen| seen.at_work);
        let is_proxied = self.proxy.is_some() || self.evidence.through.is_some();
        let proxy = if is_proxied { with(self.proxy) + self.added().unwrap_or(0.0) } else { 0.0 };
        let way = self.round_trip().unwrap_or(1.0);
        (1.0 - with(self.generator) - proxy - way).max(0.0)
    }

    /// How the API does without anybody in front of it; where that was not measured, what is judged.
    pub(super) fn api_alone(&self) -> &Run {
        self.evidence.alone.as_ref().unwrap_or(&self.evidence.top)
    }

    /// Requests that the API works on at once, by Little's law out of what single ones take; `None`: not known.
    pub(super) fn worked_on(&self) -> Option<f64> {
        Some(self.evidence.top.rate * self.evidence.origin_share.min(1.0) * self.evidence.direct?.mean)
    }
}
