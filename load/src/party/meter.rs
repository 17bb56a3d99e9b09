//! What every party used and wanted over one run: looked at while the run goes on, because threads that have ended are
//! gone from /proc.

use super::account::{Account, Spent, Whose};
use super::sockets::time_wait_of_late;
use crate::drive;
use crate::machine::{Cores, opened};
use crate::outcome::Outcome;
use crate::plan::{Plan, PlanError};
use crate::progress::Progress;
use crate::stop::Stop;
use millstream_net::clock;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The names under which parties are watched whose verdict is to be found.
pub const API: &str = "api";
/// The proxy in front of it.
pub const PROXY: &str = "proxy";
/// What makes the load.
pub const GENERATOR: &str = "generator";

/// Looks that follow faster are left out: looking costs CPU itself.
const BETWEEN: Duration = Duration::from_millis(250);

/// The shortest run in which everybody is looked at twice.
pub const SHORTEST: Duration = Duration::from_millis(450);
/// What is said of one in which nobody was.
pub const TOO_SHORT: &str = "The run was too short to measure CPU use: use at least -d 2s.";

/// Before its end a run is looked at no more.
const MOMENT: Duration = Duration::from_millis(60);

#[derive(Debug)]
pub struct Meter {
    parties: Vec<(&'static str, Whose)>,
    glances: Vec<Glance>,
}

#[derive(Debug)]
struct Glance {
    at: Instant,
    accounts: Vec<Account>,
    cores: Cores,
    opened: u64,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metered {
    pub seconds: f64,
    pub parties: Vec<(&'static str, Spent)>,
    /// The share of the time that the machine's cores were busy, with whatever, 0 to 1.
    pub machine_busy: f64,
    /// The share that the hypervisor gave to other machines meanwhile (steal), 0 to 1; it is in `machine_busy`.
    pub stolen: f64,
    /// TCP connections that were begun from it per second, whoever began them.
    pub opened_per_second: f64,
}

/// A run under load, and what its parties used meanwhile.
#[derive(Debug)]
pub struct MeteredRun {
    pub outcome: Outcome,
    pub found: Metered,
    /// Connections to or from the given addresses that went into TIME_WAIT meanwhile.
    pub time_wait: u64,
}

impl MeteredRun {
    /// Carries a plan out under a meter; errors are those of [`drive::run`].
    pub fn of(
        plan: &Plan,
        parties: Vec<(&'static str, Whose)>,
        addresses: &[SocketAddr],
        stop: &Stop,
        watch: &mut dyn FnMut(&Progress),
    ) -> Result<MeteredRun, PlanError> {
        let mut meter = Meter::new(parties);
        let outcome = drive::run(plan, stop.flag(), &mut |progress| {
            watch(progress);
            meter.watch(progress);
        })?;
        let time_wait = time_wait_of_late(addresses, plan.warm_up.as_secs_f64() + outcome.seconds);
        Ok(MeteredRun { outcome, found: meter.found(), time_wait })
    }
}

/// Who is watched: the generator, the proxy by its process where there is one, and the API's processes where they can be seen.
pub fn watched(
    own_api: Option<&str>,
    proxy: Option<u32>,
    api: impl IntoIterator<Item = Whose>,
) -> Vec<(&'static str, Whose)> {
    let own = [(GENERATOR, Whose::generator(own_api))].into_iter();
    let proxy = proxy.map(|id| (PROXY, Whose::Tree(id)));
    own.chain(proxy).chain(api.into_iter().map(|api| (API, api))).collect()
}

impl Metered {
    /// What a party spent, or all of that name together; `None` where it was not watched.
    pub fn of(&self, name: &str) -> Option<Spent> {
        let all = self.parties.iter().filter(|(other, _)| *other == name);
        all.map(|(_, spent)| *spent).reduce(Spent::with)
    }
}

impl Meter {
    pub fn new(parties: Vec<(&'static str, Whose)>) -> Meter {
        Meter { parties, glances: Vec::new() }
    }

    /// Looks at all of them, unless it has just done so. The first look is where the measurement begins: call it once the
    /// load runs evenly, then as often as you like, the last time before the load's threads end. [`Meter::watch`] does so.
    pub fn look(&mut self) {
        let now = clock::now();
        if self.glances.last().is_some_and(|latest| now.duration_since(latest.at) < BETWEEN) {
            return;
        }
        self.glances.truncate(1);
        self.glances.push(Glance {
            at: now,
            accounts: self.parties.iter().map(|(_, whose)| Account::read(whose)).collect(),
            cores: Cores::read(),
            opened: opened(),
        });
    }

    /// Looks, if the run is being measured and goes on for a moment longer: what the load's threads used is gone with them.
    pub fn watch(&mut self, progress: &Progress) {
        let is_over = progress.of.is_some_and(|of| progress.elapsed + MOMENT >= of);
        if !progress.warming && !is_over {
            self.look();
        }
    }

    /// What was spent between the first look and the last; nothing where there were not two.
    pub fn found(&self) -> Metered {
        let [first, last] = self.glances.as_slice() else { return Metered::default() };
        let spent = last.accounts.iter().zip(&first.accounts).map(|(last, first)| last.since(first));
        let seconds = last.at.duration_since(first.at).as_secs_f64();
        let (machine_busy, stolen) = last.cores.since(first.cores);
        Metered {
            seconds,
            parties: self.parties.iter().map(|(name, _)| *name).zip(spent).collect(),
            machine_busy,
            stolen,
            opened_per_second: last.opened.saturating_sub(first.opened) as f64
                / seconds.max(f64::MIN_POSITIVE),
        }
    }
}
