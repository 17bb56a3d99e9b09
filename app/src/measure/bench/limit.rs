//! What limits a closed loop: the CPU of the server, where it is on this machine, and of the generator while the load goes on,
//! beside the single request from before it.

use millstream_load::outcome::Outcome;
use millstream_load::party::{self, Meter, Whose};
use millstream_load::plan::{Mode, Plan, Schedule};
use millstream_load::progress::Progress;
use millstream_load::verdict::{self, Evidence, Once, delayed_ack};

pub(super) fn unwatched(plan: &Plan, outcome: &Outcome) -> String {
    let Mode::Open { .. } = plan.mode else {
        return "The bottleneck is reported only if one server is loaded, because each of several servers has its own.".to_owned();
    };
    let option = match plan.schedule {
        None => "--rate",
        Some(Schedule::Stages(_)) => "--stages",
        Some(Schedule::Log { .. }) => "--speed",
    };
    let kept = match outcome.not_reached() {
        None => format!("No limit was reached: the server kept up with the rate of {option}."),
        Some(_) => format!("The first line shows why the rate of {option} was not reached."),
    };
    format!("{kept} A run without {option} (a closed loop) shows the server's bottleneck.")
}

pub(super) struct Watch {
    meter: Meter,
    direct: Option<Once>,
    is_local: bool,
}

impl Watch {
    /// Only for one server under a closed loop; `None` otherwise, see [`unwatched`].
    pub(super) fn of(plan: &Plan, direct: Option<Once>) -> Option<Watch> {
        let origins = plan.origins();
        let [places] = origins.as_slice() else { return None };
        if plan.mode != Mode::Closed {
            return None;
        }
        let target = &plan.targets[*places.first()? as usize];
        let address = *target.addresses.first()?;
        let parties = party::watched(None, None, Whose::api(address, None));
        Some(Watch {
            meter: Meter::new(parties),
            direct,
            is_local: address.ip().is_loopback() || target.way.unix_socket.is_some(),
        })
    }

    pub(super) fn look(&mut self, progress: &Progress) {
        self.meter.watch(progress);
    }

    pub(super) fn sentences(&self, outcome: &Outcome) -> Option<String> {
        let found = self.meter.found();
        if outcome.counts.answers == 0 {
            return None;
        }
        if found.seconds <= 0.0 {
            return Some(party::TOO_SHORT.to_owned());
        }
        if let Some(changed) = verdict::midway(outcome) {
            return Some(changed);
        }
        let evidence = Evidence { direct: self.direct, ..Evidence::of(outcome, &found, self.is_local) };
        let late = self.direct.and_then(|once| delayed_ack(&evidence.top, &once));
        Some([verdict::judge(&evidence).text()].into_iter().chain(late).collect::<Vec<_>>().join(" "))
    }
}
