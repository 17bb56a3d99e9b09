//! Who is out of CPU: what each party wanted of it and got, and who of several is in the way.
//!
//! Next: `judge`, which asks this first.

use super::{Evidence, Limit};
use crate::party::Spent;

/// From here on a party counts as one that wants a core all the time.
const FULL: f64 = 0.85;
/// By so much one must be fuller than another so that this alone tells which of them limits.
const MARGIN: f64 = 0.07;
/// Of what it wanted, so much a party must have got, for its wish to mean work: on a crowded machine one that does little
/// waits for long each time it wakes.
const RAN: f64 = 0.3;
/// In this share of the periods of its CPU limit a party must have used it up for that to be what it lacks.
const HELD_BACK: f64 = 0.5;
/// Below this share of requests that reach the API it cannot be what limits.
pub(super) const REACHED: f64 = 0.05;
/// From this share of stolen CPU on nobody's waiting says anything.
pub(super) const STOLEN: f64 = 0.15;

/// With the time that a hypervisor took from those that ran, as much for each second that they did as of the whole machine:
/// the scheduler's clock stands still meanwhile (Linux's paravirtual time accounting), so that who wants a core all the
/// time seems to want it for what is left. Where much was taken, it is not known from whom.
pub(super) fn with_stolen_time(evidence: &Evidence) -> Evidence {
    let ran = evidence.machine_busy - evidence.stolen;
    if evidence.stolen >= STOLEN || ran <= 0.0 {
        return evidence.clone();
    }
    let lost = evidence.stolen / ran;
    let made_up = |spent: Spent| Spent {
        wanted: (spent.wanted + lost * spent.busiest).min(1.0),
        wanted_cores: spent.wanted_cores + lost * cores_used(&spent),
        ..spent
    };
    Evidence {
        proxy: evidence.proxy.map(made_up),
        api: evidence.api.map(made_up),
        generator: evidence.generator.map(made_up),
        ..evidence.clone()
    }
}

/// The parties that can be seen.
pub(super) fn parties(evidence: &Evidence) -> impl Iterator<Item = (Limit, Spent)> {
    let all =
        [(Limit::Api, evidence.api), (Limit::Proxy, evidence.proxy), (Limit::Generator, evidence.generator)];
    all.into_iter().filter_map(|(limit, spent)| Some((limit, spent?)))
}

/// Cores that a party used on average; 0 where it was not watched for any time.
pub(super) fn cores_used(spent: &Spent) -> f64 {
    if spent.seconds > 0.0 { spent.cpu_seconds / spent.seconds } else { 0.0 }
}

/// Parties that want a core all the time.
pub(super) fn full(evidence: &Evidence) -> Vec<(Limit, Spent)> {
    parties(evidence)
        .filter(|(limit, _)| *limit != Limit::Api || evidence.origin_share >= REACHED)
        .filter(|(_, spent)| {
            is_held_back(spent)
                || fullness(spent, evidence.cores) >= FULL && is_working(spent, evidence.cores)
        })
        .collect()
}

/// 1: a thread wants a core all the time, or all threads together want all cores.
pub(super) fn fullness(spent: &Spent, cores: u32) -> f64 {
    spent.wanted.max(spent.wanted_cores / f64::from(cores.max(1))).min(1.0)
}

/// Whether a limit of its own leaves it no more.
pub(super) fn is_held_back(spent: &Spent) -> bool {
    spent.held_back >= HELD_BACK
}

pub(super) fn is_working(spent: &Spent, cores: u32) -> bool {
    let wanted = spent.wanted_cores.min(f64::from(cores.max(1)));
    wanted > 0.0 && cores_used(spent) >= RAN * wanted
}

/// Which of the full ones limits.
pub(super) fn fullest(evidence: &Evidence, full: &[(Limit, Spent)]) -> Option<Limit> {
    let held_back = full.iter().filter(|(_, spent)| is_held_back(spent));
    if let Some((limit, _)) =
        held_back.max_by(|(_, one), (_, other)| one.held_back.total_cmp(&other.held_back))
    {
        return Some(*limit);
    }
    let share = |spent: &Spent| fullness(spent, evidence.cores);
    let highest = full.iter().map(|(_, spent)| share(spent)).fold(0.0, f64::max);
    // Those that are about as full as the fullest have work all the time; the one that does most of it is in the way.
    let close = full.iter().filter(|(_, spent)| share(spent) > highest - MARGIN);
    close
        .max_by(|(_, one), (_, other)| one.cpu_seconds.total_cmp(&other.cpu_seconds))
        .map(|(limit, _)| *limit)
}

/// The share of the machine that none of the parties had; `None` where one of them cannot be seen.
pub(super) fn strangers_share(evidence: &Evidence) -> Option<f64> {
    let known: f64 = parties(evidence).map(|(_, spent)| cores_used(&spent)).sum();
    // Where a party cannot be seen, it is among the strangers; so is what stands behind an API that is asked straight.
    if evidence.generator.is_none() || evidence.proxy.or(evidence.api).is_none() {
        return None;
    }
    Some(evidence.machine_busy - known / f64::from(evidence.cores.max(1)))
}
