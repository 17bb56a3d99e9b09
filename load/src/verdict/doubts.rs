//! What weakens the figures behind a verdict, in words.

use super::fullness::{REACHED, cores_used, strangers_share};
use super::wording::{count, duration, percent};
use super::{Evidence, Limit};
use crate::party::Spent;

/// By so much rate times latency may be less than the connections.
const LITTLE: f64 = 0.15;

/// Why the verdict may be wrong, or the figures low; `full` are the parties that want a core all the time.
pub(super) fn doubts(evidence: &Evidence, limit: Limit, full: &[(Limit, Spent)]) -> Vec<String> {
    let mut doubts = Vec::new();
    let run = &evidence.top;
    if run.error_share > 0.01 {
        doubts.push(format!(
            "{} of the requests failed, so the figures do not describe a healthy system.",
            percent(run.error_share)
        ));
    }
    let in_flight = run.rate * run.latency;
    let connections = f64::from(run.connections);
    if run.error_share <= 0.01 && in_flight < (1.0 - LITTLE) * connections {
        doubts.push(format!(
            "{} per second times {} is {} requests at once (Little's law), but there was room for {}: the \
             generator did not keep them busy.",
            count(run.rate),
            duration(run.latency),
            count(in_flight),
            run.connections
        ));
    }
    if limit != Limit::Others {
        doubts.extend(strangers(evidence));
    }
    let generator_share = evidence.generator.filter(|spent| spent.seconds > 0.0);
    if limit != Limit::Generator
        && !full.is_empty()
        && evidence.machine_busy > 0.9
        && let Some(spent) = generator_share
    {
        let share = cores_used(&spent) / f64::from(evidence.cores.max(1));
        if share > 0.1 {
            doubts.push(format!(
                "The machine was full, and the generator used {} of it: the figure would be higher with the \
                 generator on another machine.",
                percent(share)
            ));
        }
    }
    if evidence.api.is_none() && evidence.origin_share >= REACHED && limit != Limit::Generator {
        doubts.push("The API's CPU use cannot be seen from here.".to_owned());
    }
    doubts
}

/// Others on this machine that took a good part of it.
fn strangers(evidence: &Evidence) -> Option<String> {
    let share = strangers_share(evidence)?;
    (share > 0.2).then(|| {
        format!(
            "Other processes used {} of this machine meanwhile, {}.",
            percent(share),
            match evidence.proxy {
                Some(_) => "which may have lowered the figures",
                None => "for this server or at its expense",
            }
        )
    })
}
