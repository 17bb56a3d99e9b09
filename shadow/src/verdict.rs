//! What a route's evidence allows: the longest lifetime without a leak whose rate of stale hits is certainly within the budget.
//!
//! Before: `route`, `statistics`; next: `report`.

use crate::dimension::{Role, Sort};
use crate::plan::Plan;
use crate::route::Route;
use crate::simulation::{EXPLICIT, Entry, Evidence, LIFETIMES, Outcomes};
use crate::statistics::upper_bound;
use crate::variance::{self, Finding};

/// Hits that other clients would have got: a leak in one of a hundred responses is then among them.
const ENOUGH_SHARED: u64 = 1_000;

/// Clients without which no route is shared: if none of them gets something of its own, at most 15 % of all do.
pub(crate) const ENOUGH_CLIENTS: u32 = 20;

/// URLs with several clients that a folded route must have.
const ENOUGH_KEYS: u32 = 5;

/// Hits after which a rate of stale ones is known well enough to call it too high.
const ENOUGH_HITS: u64 = 200;

/// Responses after which it is known that a plan leaves none to share.
const FEWEST_PLANNED: u32 = 100;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reason {
    Keep,
    NoResponses,
    Forbidden,
    SetsCookie,
    Stream,
    VariesByAnything,
    Secret,
    Hollow,
    Differs,
    /// Requests carry credentials, with which nothing is shared.
    Credentials,
    /// Two clients got different responses at the same time, and nothing in their requests says why.
    Unexplained,
    Unlike,
    Changes,
    Needs {
        requests: u64,
        clients: u64,
    },
}

pub(crate) struct Verdict {
    pub(crate) reason: Reason,
    /// The index of the simulated lifetime, and its seconds.
    pub(crate) keep: Option<(usize, u32)>,
    pub(crate) outcomes: Outcomes,
    pub(crate) findings: Vec<Finding>,
    pub(crate) plan: Plan,
}

/// What is known of a route's keys.
#[derive(Default)]
pub(crate) struct Keys {
    pub(crate) with_several_clients: u32,
    pub(crate) evidence: Evidence,
    /// Requests and hits of each key.
    pub(crate) requests: Vec<(u32, [u32; EXPLICIT + 1])>,
}

impl Keys {
    pub(crate) fn add(&mut self, route: &Route, entry: &Entry) {
        if entry.generation != route.generation {
            return;
        }
        self.with_several_clients += u32::from(entry.has_several_clients());
        entry.add_doubts(&mut self.evidence);
        self.requests.push((entry.requests, entry.hits));
    }
}

impl Verdict {
    pub(crate) fn of(route: &Route, keys: &Keys, is_folded: bool, is_of_words: bool, budget: f64) -> Verdict {
        let findings = variance::explain(&route.dimensions, &route.pairs, route.clients());
        let mut evidence = route.evidence;
        for (outcomes, doubts) in evidence.iter_mut().zip(&keys.evidence) {
            outcomes.stale += doubts.stale;
            outcomes.stale_age += doubts.stale_age;
        }
        let found = findings.clone();
        let verdict =
            |reason, keep, outcomes| Verdict { reason, keep, outcomes, findings: found, plan: route.plan };
        if let Some(reason) = forbidden(route, &findings, is_of_words) {
            return verdict(reason, None, Outcomes::default());
        }
        let enough_keys = if is_folded { ENOUGH_KEYS } else { 1 };
        let has_clients = route.has_several_clients_of_each_value()
            && route.clients() >= ENOUGH_CLIENTS
            && keys.with_several_clients >= enough_keys;
        let candidates = candidates(route);
        let is_learned = route.lesson() == route.plan;
        for (lifetime, seconds) in candidates.iter().rev() {
            let outcomes = evidence[*lifetime];
            let is_safe = outcomes.leaks == 0 && outcomes.shared >= ENOUGH_SHARED;
            if is_safe && has_clients && is_learned && upper_bound(outcomes.stale, outcomes.hits) <= budget {
                return verdict(Reason::Keep, Some((*lifetime, *seconds)), outcomes);
            }
        }
        let (reason, outcomes) = insufficient(route, keys, &evidence, &candidates, budget);
        verdict(reason, None, outcomes)
    }
}

/// Lifetimes that may be recommended, the longest last: never longer than what the API allows.
fn candidates(route: &Route) -> Vec<(usize, u32)> {
    let fixed = LIFETIMES.iter().copied().enumerate().filter(|(_, seconds)| *seconds < route.shortest);
    let explicit = (route.tally.explicit > 0).then_some((EXPLICIT, route.shortest));
    // What the API gives is only simulated for responses that have it.
    let explicit = explicit.filter(|_| route.tally.explicit == route.tally.good);
    fixed.chain(explicit).collect()
}

/// What forbids sharing whatever the simulation says.
fn forbidden(route: &Route, findings: &[Finding], is_of_words: bool) -> Option<Reason> {
    let tally = &route.tally;
    let is_more_than = |part: u32, share: u32| u64::from(part) * u64::from(share) > u64::from(tally.sampled);
    let identity = findings.iter().any(|finding| {
        let dimension = &route.dimensions.list[finding.dimension];
        dimension.sort != Sort::Argument && dimension.role(route.clients()) == Role::Identity
    });
    // Hardly any response is left that could be shared.
    let is_all_bypassed = route.planned >= FEWEST_PLANNED && route.offered * 20 < route.planned;
    let blocked = variance::mask(findings) & route.lesson().blocked != 0;
    match () {
        () if tally.streams > 0 => Some(Reason::Stream),
        () if tally.any_vary > 0 => Some(Reason::VariesByAnything),
        () if is_more_than(tally.with_cookie, 1_000) => Some(Reason::SetsCookie),
        () if route.leniency.has_secret() => Some(Reason::Secret),
        () if tally.forbidden > tally.good => Some(Reason::Forbidden),
        () if tally.good == 0 => Some(Reason::NoResponses),
        () if is_more_than(tally.hollow, 100) => Some(Reason::Hollow),
        () if blocked || identity && is_all_bypassed => Some(Reason::Differs),
        () if is_all_bypassed && route.plan.bypassed != 0 => Some(Reason::Credentials),
        () if route.confirmed > 0 => Some(Reason::Unexplained),
        () if is_of_words && tally.misfits > 0 => Some(Reason::Unlike),
        () => None,
    }
}

/// Why no lifetime was chosen: responses change too fast, or there is too little evidence.
fn insufficient(
    route: &Route,
    keys: &Keys,
    evidence: &Evidence,
    candidates: &[(usize, u32)],
    budget: f64,
) -> (Reason, Outcomes) {
    let of = |lifetime: usize| evidence[lifetime];
    let shortest =
        candidates.iter().map(|(lifetime, _)| of(*lifetime)).find(|outcomes| outcomes.hits >= ENOUGH_HITS);
    if let Some(shortest) = shortest {
        let wrong = shortest.stale + shortest.leaks;
        // If even a fifth of the budget more would not have been enough, more requests will not help.
        if shortest.hits >= ENOUGH_HITS && wrong as f64 > 3.0 + 1.5 * budget * shortest.hits as f64 {
            return (if shortest.leaks > 0 { Reason::Unexplained } else { Reason::Changes }, shortest);
        }
    }
    let wanted = (3.0 / budget).ceil().max(ENOUGH_SHARED as f64);
    let best = candidates.iter().map(|(lifetime, _)| of(*lifetime)).filter(|outcomes| outcomes.leaks == 0);
    let best =
        best.max_by_key(|outcomes| outcomes.hits.saturating_sub(outcomes.stale * 1_000)).unwrap_or_default();
    let simulated: u64 = keys.requests.iter().map(|(requests, _)| u64::from(*requests)).sum();
    let per_hit = (simulated.max(1) as f64 / best.hits.max(1) as f64).clamp(1.0, 1_000.0);
    let sampled = route.requests as f64 / f64::from(route.tally.sampled.max(1));
    let missing = (wanted * (1 + best.stale) as f64 - best.hits as f64).max(1.0);
    let unshared = match best.shared {
        0 => 0.0,
        shared => ENOUGH_SHARED.saturating_sub(shared) as f64 * best.hits as f64 / shared as f64,
    };
    let requests = (missing.max(unshared) * per_hit * sampled.clamp(1.0, 1_000.0)).ceil() as u64;
    // Requests of one client for what is its own are no evidence for sharing.
    let other = u64::from(best.shared == 0 || !route.has_several_clients_of_each_value());
    let clients = u64::from(ENOUGH_CLIENTS.saturating_sub(route.clients())).max(other);
    (Reason::Needs { requests, clients }, best)
}
