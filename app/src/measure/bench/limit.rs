//! What limits a closed loop: the CPU of the server, where it is on this machine, and of the generator while the load goes on,
//! beside the single request from before it.

use millstream_load::outcome::Outcome;
use millstream_load::party::{self, Meter, Whose};
use millstream_load::plan::{Mode, Plan};
use millstream_load::progress::Progress;
use millstream_load::verdict::{self, Evidence, Once, Run};
use millstream_net::cores;

/// What is said of a run that nobody could be watched in.
const TOO_SHORT: &str = "The run was too short to show what limits it; -d 2s is long enough.";
/// The names under which both are watched.
const SERVER: &str = "server";
const GENERATOR: &str = "generator";

/// Watches a load.
pub(super) struct Watch {
    meter: Meter,
    direct: Option<Once>,
    is_local: bool,
}

impl Watch {
    /// Watches one server under a closed loop, which took so long for a single request; `None` of an open one, whose pace
    /// nobody but the user sets, and of several, which limit each for itself.
    pub(super) fn of(plan: &Plan, direct: Option<Once>) -> Option<Watch> {
        let origins = plan.origins();
        let [places] = origins.as_slice() else { return None };
        if plan.mode != Mode::Closed {
            return None;
        }
        let target = &plan.targets[*places.first()? as usize];
        let address = *target.addresses.first()?;
        let mut parties = vec![(GENERATOR.to_owned(), Whose::Process(std::process::id()))];
        let listener = party::listener(address).filter(|listener| !listener.is_relay());
        parties.extend(listener.map(|listener| (SERVER.to_owned(), Whose::Tree(listener.id))));
        Some(Watch {
            meter: Meter::new(parties),
            direct,
            is_local: address.ip().is_loopback() || target.way.unix_socket.is_some(),
        })
    }

    /// Looks, now and then.
    pub(super) fn look(&mut self, progress: &Progress) {
        self.meter.watch(progress);
    }

    /// What limited it, in sentences; `None` of a run that answered nothing.
    pub(super) fn sentences(&self, outcome: &Outcome) -> Option<String> {
        let found = self.meter.found();
        if outcome.counts.answers == 0 {
            return None;
        }
        if found.seconds <= 0.0 {
            return Some(TOO_SHORT.to_owned());
        }
        let evidence = Evidence {
            top: Run::of(outcome),
            direct: self.direct,
            origin_share: 1.0,
            api: found.of(SERVER),
            generator: found.of(GENERATOR),
            floor: outcome.generator.limits.clone(),
            machine_busy: found.machine_busy,
            stolen: found.stolen,
            cores: u32::try_from(cores::usable()).unwrap_or(u32::MAX),
            is_here: self.is_local,
            link: if self.is_local { None } else { party::link_speed() },
            ..Evidence::default()
        };
        Some(verdict::judge(&evidence).text())
    }
}
