//! What a route's evidence allows: the longest lifetime without a leak whose rate of stale hits is certainly within the budget.
//!
//! Before: `route`, `statistics`; next: `report`.

use crate::dimension::{Role, Sort};
use crate::names;
use crate::paths::FEWEST_CLIENTS;
use crate::plan::Plan;
use crate::route::Route;
use crate::simulation::{EXPLICIT, Entry, Evidence, LIFETIMES, Outcomes};
use crate::variance::{self, Explanation, Finding};
use std::collections::{BTreeMap, BTreeSet};

/// Hits that other clients would have got: a leak in one of a hundred responses is then among them.
const ENOUGH_SHARED: u64 = 1_000;

/// Clients without which no route is shared: if none of them gets something of its own, at most 15 % of all do.
pub(crate) const ENOUGH_CLIENTS: u32 = 20;

/// URLs with several clients that a folded route must have.
const ENOUGH_KEYS: u32 = 5;

/// Hits after which a rate of stale ones is known well enough to call it too high.
const ENOUGH_HITS: u64 = 200;

/// More requests than this are just many.
pub(crate) const MANY_REQUESTS: u64 = 100_000;

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
    /// Nearly all requests carry credentials, and too few without any came to prove that these change nothing.
    Credentials,
    /// Two clients got different responses at the same time, and nothing in their requests says why.
    Unexplained,
    Unlike,
    /// Most requests have a field that may matter, with a value that hardly any other client sends.
    Unusual,
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
    /// Whether they may be the reason only if the address is not.
    pub(crate) is_open: bool,
    pub(crate) plan: Plan,
}

/// Words that a location lists at most, and their bytes: an expression has at most 16 KiB.
const MOST_WORDS: usize = 400;
const MOST_BYTES_OF_WORDS: usize = 12 << 10;

/// Hits of a word from which on it is proved.
const ENOUGH_OF_A_WORD: u32 = 8;

/// What is known of a route's keys.
#[derive(Default)]
pub(crate) struct Keys<'e> {
    pub(crate) with_several_clients: u32,
    evidence: Evidence,
    entries: Vec<&'e Entry>,
}

impl<'e> Keys<'e> {
    pub(crate) fn add(&mut self, route: &Route, entry: &'e Entry) {
        if entry.generation != route.generation {
            return;
        }
        self.with_several_clients += u32::from(entry.has_several_clients());
        entry.add_doubts(&mut self.evidence);
        self.entries.push(entry);
    }

    /// The words of a route with {word} that are proved, the most frequent ones first: what several clients got hits of. One that
    /// no one or hardly anyone asked for may be something else, such as a page of the client's own.
    pub(crate) fn words(&self, lifetime: usize) -> Vec<&'e [u8]> {
        let is_proved = |entry: &&&Entry| {
            entry.clients() >= FEWEST_CLIENTS
                && entry.hits[lifetime] >= ENOUGH_OF_A_WORD
                && !entry.words.split(|byte| *byte == b'/').any(names::may_be_of_the_client)
        };
        let mut hits: BTreeMap<&[u8], u32> = BTreeMap::new();
        for entry in self.entries.iter().filter(is_proved) {
            *hits.entry(&entry.words).or_default() += entry.hits[lifetime];
        }
        let mut words: Vec<(u32, &[u8])> = hits.into_iter().map(|(words, hits)| (hits, words)).collect();
        words.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(other.1)));
        let mut bytes = 0;
        let fits = |(_, words): &(u32, &[u8])| {
            // A point takes two.
            bytes += 2 * words.len();
            bytes <= MOST_BYTES_OF_WORDS
        };
        words.into_iter().take(MOST_WORDS).take_while(fits).map(|(_, words)| words).collect()
    }

    /// Requests and hits of each key. `words`: those that are cached, if the route has {word}.
    pub(crate) fn ratios(&self, lifetime: usize, words: Option<&[&[u8]]>) -> Vec<(u32, u32)> {
        let words: Option<BTreeSet<&[u8]>> = words.map(|words| words.iter().copied().collect());
        let is_cached = |entry: &Entry| words.as_ref().is_none_or(|words| words.contains(&*entry.words));
        let hits = |entry: &Entry| if is_cached(entry) { entry.hits[lifetime] } else { 0 };
        self.entries.iter().map(|entry| (entry.requests, hits(entry))).collect()
    }
}

impl Verdict {
    pub(crate) fn of(
        route: &Route,
        keys: &Keys<'_>,
        is_folded: bool,
        is_of_words: bool,
        budget: f64,
    ) -> Verdict {
        let Explanation { findings, is_open } =
            variance::explain(&route.dimensions, &route.pairs, route.clients());
        let mut evidence = route.evidence;
        for (outcomes, doubts) in evidence.iter_mut().zip(&keys.evidence) {
            outcomes.stale += doubts.stale;
            outcomes.outdated += doubts.outdated;
            outcomes.stale_age += doubts.stale_age;
        }
        let found = findings.clone();
        let verdict = |reason, keep, outcomes| Verdict {
            reason,
            keep,
            outcomes,
            findings: found,
            is_open,
            plan: route.plan,
        };
        if let Some(reason) = forbidden(route, &findings, is_of_words) {
            return verdict(reason, None, Outcomes::default());
        }
        let enough_keys = if is_folded { ENOUGH_KEYS } else { 1 };
        let has_clients = route.keys_have_several_clients()
            && route.sharing_clients() >= ENOUGH_CLIENTS
            && keys.with_several_clients >= enough_keys;
        let candidates = candidates(route);
        let is_learned = route.lesson() == route.plan;
        for (lifetime, seconds) in candidates.iter().rev() {
            let outcomes = evidence[*lifetime];
            let mut all = outcomes;
            all.add(&route.earlier[*lifetime]);
            let is_safe = all.leaks == 0 && outcomes.shared >= ENOUGH_SHARED;
            let has_words = || !is_of_words || !keys.words(*lifetime).is_empty();
            // How old a response may be is the API's to say (RFC 9111 §4.2).
            let is_fresh =
                outcomes.bound().max(all.bound()) <= budget || *lifetime == EXPLICIT && route.is_declared();
            // What no response was seen to live through is not recommended, but by the API.
            let is_lived = *lifetime == EXPLICIT || all.outlived > 0;
            if is_safe && has_clients && is_learned && !is_open && has_words() && is_fresh && is_lived {
                return verdict(Reason::Keep, Some((*lifetime, *seconds)), outcomes);
            }
        }
        let (mut reason, outcomes) = insufficient(route, keys, &evidence, &candidates, budget);
        if let Reason::Needs { clients, .. } = &mut reason
            && is_open
        {
            *clients = 1.max(*clients);
        }
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
    let is_more_than = |part: u32, share: u32| u64::from(part) * u64::from(share) > u64::from(tally.counted);
    let identity = findings.iter().any(|finding| {
        let dimension = &route.dimensions.list[finding.dimension];
        dimension.sort != Sort::Argument && dimension.role(route.clients()) == Role::Identity
    });
    // Hardly any response is left that could be shared.
    let planned = route.planned - route.unusual;
    let is_all_bypassed = planned >= FEWEST_PLANNED && route.offered * 20 < planned;
    // A few clients cannot tell what most of them send.
    let has_clients = route.clients() >= ENOUGH_CLIENTS;
    let is_unusual = has_clients && route.planned >= FEWEST_PLANNED && route.unusual * 2 > route.planned;
    let blocked = variance::mask(findings) & route.lesson().blocked != 0;
    let is_guarded = is_all_bypassed && route.credentials.proof(&route.dimensions).differing != 0;
    // A configuration cannot pass on requests by a name that no variable has.
    let is_nameless = route.dimensions.mask(|dimension| {
        dimension.sort == Sort::Field && dimension.is_credential() && !dimension.has_variable()
    });
    match () {
        () if tally.streams > 0 => Some(Reason::Stream),
        () if tally.any_vary > 0 => Some(Reason::VariesByAnything),
        () if is_more_than(tally.with_cookie, 1_000) => Some(Reason::SetsCookie),
        () if route.leniency.has_secret() => Some(Reason::Secret),
        () if tally.forbidden > tally.good => Some(Reason::Forbidden),
        () if blocked || is_guarded || identity && is_all_bypassed => Some(Reason::Differs),
        () if is_all_bypassed && route.passed * 2 > planned => Some(Reason::Credentials),
        () if is_nameless != 0 => Some(Reason::Credentials),
        () if tally.good == 0 && tally.passed == 0 => Some(Reason::NoResponses),
        () if is_more_than(tally.hollow, 100) => Some(Reason::Hollow),
        () if route.confirmed > 0 => Some(Reason::Unexplained),
        () if is_of_words && tally.misfits > 0 => Some(Reason::Unlike),
        () if is_unusual => Some(Reason::Unusual),
        () => None,
    }
}

/// Why no lifetime was chosen: responses change too fast, or there is too little evidence.
fn insufficient(
    route: &Route,
    keys: &Keys<'_>,
    evidence: &Evidence,
    candidates: &[(usize, u32)],
    budget: f64,
) -> (Reason, Outcomes) {
    let of = |lifetime: usize| evidence[lifetime];
    let shortest =
        candidates.iter().map(|(lifetime, _)| of(*lifetime)).find(|outcomes| outcomes.hits >= ENOUGH_HITS);
    if let Some(shortest) = shortest.filter(|of| of.leaks > 0 || !route.is_declared()) {
        let wrong = shortest.stale + shortest.leaks;
        // If even a fifth of the budget more would not have been enough, more requests will not help.
        if shortest.hits >= ENOUGH_HITS && wrong as f64 > 3.0 + 1.5 * budget * shortest.hits as f64 {
            return (if shortest.leaks > 0 { Reason::Unexplained } else { Reason::Changes }, shortest);
        }
    }
    let wanted = (3.0 / budget).ceil().max(ENOUGH_SHARED as f64);
    let simulated: u64 = keys.entries.iter().map(|entry| u64::from(entry.requests)).sum();
    let sampled = route.requests as f64 / f64::from(route.tally.sampled.max(1));
    let missing = |outcomes: &Outcomes| {
        let per_hit = simulated.max(1) as f64 / outcomes.hits.max(1) as f64;
        // The bound falls as hits without a further change come.
        let bounded = outcomes.hits as f64 * outcomes.bound() / budget;
        let hits = (bounded.max(wanted * (1 + outcomes.stale) as f64) - outcomes.hits as f64).max(1.0);
        let unshared = match outcomes.shared {
            0 => 0.0,
            shared => ENOUGH_SHARED.saturating_sub(shared) as f64 * outcomes.hits as f64 / shared as f64,
        };
        let requests = (hits.max(unshared) * per_hit * sampled.max(1.0)).ceil();
        requests.min(MANY_REQUESTS as f64) as u64
    };
    let safe = candidates.iter().map(|(lifetime, _)| of(*lifetime)).filter(|outcomes| outcomes.leaks == 0);
    let best = safe.min_by_key(missing).unwrap_or_default();
    let requests = missing(&best);
    // Requests of one client for what is its own are no evidence for sharing.
    let other = u64::from(best.shared == 0 || !route.keys_have_several_clients());
    let clients = u64::from(ENOUGH_CLIENTS.saturating_sub(route.sharing_clients())).max(other);
    (Reason::Needs { requests, clients }, best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::hash::Key;
    use crate::simulation::SIMULATED;

    const BUDGET: f64 = 0.001;

    /// A route of which nothing is wrong, with 40 clients.
    fn route(clients: u32) -> (Route, Keys<'static>) {
        let (key, mut route) = (Key::from_seed(1), Route::new(0, 0));
        (0..clients).for_each(|client| route.count_client(&key, client + 1, client));
        (route.tally.sampled, route.tally.counted, route.tally.good) = (20_000, 20_000, 20_000);
        (0..clients).for_each(|client| route.share(&key, client * 2));
        (route.planned, route.offered) = (20_000, 20_000);
        route.evidence =
            [Outcomes { fills: 9_000, outlived: 90, hits: 19_000, shared: 15_000, ..Outcomes::default() };
                SIMULATED];
        (route, Keys { with_several_clients: 8, ..Keys::default() })
    }

    fn judged(change: impl FnOnce(&mut Route, &mut Keys<'static>)) -> (Option<u32>, Reason) {
        judged_as(40, false, change)
    }

    fn judged_as(
        clients: u32,
        is_of_words: bool,
        change: impl FnOnce(&mut Route, &mut Keys<'static>),
    ) -> (Option<u32>, Reason) {
        let (mut route, mut keys) = route(clients);
        change(&mut route, &mut keys);
        let verdict = Verdict::of(&route, &keys, true, is_of_words, BUDGET);
        (verdict.keep.map(|(_, seconds)| seconds), verdict.reason)
    }

    /// In the outcomes of lifetimes from a number on.
    fn each(route: &mut Route, from: usize, change: impl Fn(&mut Outcomes)) {
        route.evidence[from..].iter_mut().for_each(change);
    }

    #[test]
    fn one_leak_forbids_a_lifetime_and_one_at_the_shortest_all() {
        assert_eq!(judged(|_, _| {}), (Some(300), Reason::Keep));
        assert_eq!(judged(|route, _| each(route, 6, |of| of.leaks = 1)).0, Some(60));
        assert_eq!(judged(|route, _| each(route, 0, |of| of.leaks = 1)).0, None);
        assert_eq!(judged(|route, _| route.confirmed = 1), (None, Reason::Unexplained));
    }

    #[test]
    fn a_lifetime_has_no_more_stale_hits_than_the_budget_certainly_allows() {
        // 19 of 19,000 are the budget, and 10 might be 17 by chance.
        assert_eq!(judged(|route, _| each(route, 3, |of| of.stale = 10)).0, Some(300));
        assert_eq!(judged(|route, _| each(route, 3, |of| of.stale = 15)).0, Some(5));
        assert_eq!(judged(|route, _| each(route, 3, |of| (of.stale, of.outdated) = (10, 1))).0, Some(5));
        let early = |of: &mut Outcomes| (of.stale, of.outdated, of.fills) = (3, 1, 60);
        assert_eq!(
            judged(|route, _| each(route, 5, early)).0,
            Some(30),
            "three of a stored response's 300 hits"
        );
        assert_eq!(judged(|route, _| each(route, 0, |of| of.stale = 40)), (None, Reason::Changes));
        assert_eq!(
            judged(|_, keys| keys.evidence.iter_mut().for_each(|of| of.stale = 40)).0,
            None,
            "in doubt"
        );
    }

    #[test]
    fn a_lifetime_is_no_longer_than_what_a_response_has_lived_through() {
        assert_eq!(judged(|route, _| each(route, 4, |of| of.outlived = 0)).0, Some(10));
        assert_eq!(judged(|route, _| each(route, 4, |of| of.outlived = 1)).0, Some(300));
    }

    #[test]
    fn what_was_wrong_while_fewer_requests_shared_still_counts() {
        assert_eq!(judged(|route, _| route.earlier[6].leaks = 1).0, Some(60));
        let changed = |of: &mut Outcomes| (of.stale, of.outdated) = (40, 40);
        assert_eq!(judged(|route, _| route.earlier[3..].iter_mut().for_each(changed)).0, Some(5));
    }

    #[test]
    fn too_little_evidence_is_none() {
        let needs =
            |(keep, reason): (Option<u32>, Reason)| keep.is_none() && matches!(reason, Reason::Needs { .. });
        assert!(needs(judged(|route, _| each(route, 0, |of| of.shared = 999))));
        assert!(needs(judged(|_, keys| keys.with_several_clients = 4)));
        assert!(needs(judged_as(12, false, |_, _| {})));
        assert!(needs(judged_as(40, true, |_, _| {})), "no word was proved");
        assert_eq!(judged_as(40, true, |route, _| route.tally.misfits = 1).1, Reason::Unlike);
    }

    #[test]
    fn a_word_is_cached_if_several_clients_got_hits_and_it_is_not_about_the_client() {
        let entry = |words: &str, clients: u32, hits: u32| {
            let mut entry = Entry::new(0, words.as_bytes().into(), 0);
            (0..clients).for_each(|client| entry.keep(fixture::seen(0, client)));
            (entry.requests, entry.hits) = (hits + 5, [hits; SIMULATED]);
            entry
        };
        let entries = [
            entry("shoe", 9, 100),
            entry("hat", 5, 200),
            entry("rare", 9, ENOUGH_OF_A_WORD - 1),
            entry("of-one-client", FEWEST_CLIENTS - 1, 100),
            entry("account", 9, 100),
            entry("shop/my-orders", 9, 100),
        ];
        let (route, mut keys) = (Route::new(0, 0), Keys::default());
        entries.iter().for_each(|entry| keys.add(&route, entry));
        let words = keys.words(0);
        assert_eq!(words, [&b"hat"[..], b"shoe"]);
        let hits: u32 = keys.ratios(0, Some(&words)).iter().map(|(_, hits)| hits).sum();
        assert_eq!((hits, keys.ratios(0, None).len()), (300, 6), "the others are asked for and have no hits");
    }
}
