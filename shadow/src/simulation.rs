//! One URL that is sampled: its latest responses, and what a cache with each lifetime would have stored of it.
//!
//! Each would-be hit is compared with the response that the API gave: equal, stale, or a leak. A difference to what another
//! client got is a leak if the older meaning comes back, and a change otherwise. Before: `plan`, `leniency`; next: `route`.

use crate::credentials::Comparison;
use crate::seen::Seen;
use crate::statistics::clustered_bound;

/// Lifetimes in seconds that are simulated; the last one is what the API gives.
pub(crate) const LIFETIMES: [u32; 7] = [1, 2, 5, 10, 30, 60, 300];
pub(crate) const EXPLICIT: usize = LIFETIMES.len();
pub(crate) const SIMULATED: usize = LIFETIMES.len() + 1;

/// Milliseconds within which a meaning that is back was never gone.
const SOON: u64 = 10_000;

/// Keys of the cache for one URL; requests with others are not simulated.
const MOST_VARIANTS: usize = 24;

/// Responses that are kept of one URL.
pub(crate) const MOST_SEEN: usize = 4;

/// Different clients of a URL from which on its hits count as evidence for sharing.
const FEWEST_CLIENTS: u32 = 4;

/// What would have been for one lifetime.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Outcomes {
    /// Responses that were stored.
    pub(crate) fills: u64,
    /// Those of them that took the place of one that had lived through its lifetime.
    pub(crate) outlived: u64,
    pub(crate) hits: u64,
    /// Of these, to another client than the stored response was made for, of a URL with several clients.
    pub(crate) shared: u64,
    pub(crate) stale: u64,
    /// Stored responses that these were: hits of one are not independent.
    pub(crate) outdated: u64,
    /// The sum of their ages in milliseconds.
    pub(crate) stale_age: u64,
    pub(crate) leaks: u64,
}

impl Outcomes {
    pub(crate) fn add(&mut self, other: &Outcomes) {
        self.fills += other.fills;
        self.outlived += other.outlived;
        self.hits += other.hits;
        self.shared += other.shared;
        self.stale += other.stale;
        self.outdated += other.outdated;
        self.stale_age += other.stale_age;
        self.leaks += other.leaks;
    }

    /// The upper end of a 95 % interval for the rate of stale hits.
    pub(crate) fn bound(&self) -> f64 {
        clustered_bound(self.stale, self.outdated, self.hits, self.fills)
    }
}

pub(crate) type Evidence = [Outcomes; SIMULATED];

#[derive(Debug, Clone, Copy, Default)]
struct Stored {
    at: u64,
    until: u64,
    meaning: u64,
    client: u32,
    identity: u32,
    is_outdated: bool,
}

/// A difference between clients that is a change or a leak.
#[derive(Debug, Clone, Copy, Default)]
struct Doubt {
    old: u64,
    new: u64,
    identity: u32,
    hits: [u16; SIMULATED],
    /// Whether a stored response is outdated that was not before.
    outdated: [bool; SIMULATED],
    age: u64,
    at: u64,
}

impl Doubt {
    fn add_as_stale(&self, evidence: &mut Evidence) {
        for ((outcomes, hits), is_outdated) in evidence.iter_mut().zip(self.hits).zip(self.outdated) {
            outcomes.stale += u64::from(hits);
            outcomes.outdated += u64::from(is_outdated);
            outcomes.stale_age += u64::from(hits) * self.age;
        }
    }
}

/// A cache for one key.
#[derive(Default)]
struct Variant {
    key: u64,
    stored: [Stored; SIMULATED],
    doubt: Option<Doubt>,
    /// The same if all requests stored what they get: those that do not store are compared with each other as well.
    of_all: Option<Box<Variant>>,
}

pub(crate) struct Entry {
    pub(crate) route: u32,
    /// What stands for {word} in its path.
    pub(crate) words: Box<[u8]>,
    pub(crate) generation: u32,
    pub(crate) seen: Vec<Seen>,
    pub(crate) comparison: Comparison,
    variants: Vec<Variant>,
    /// Bits of clients.
    clients: u64,
    pub(crate) requests: u32,
    pub(crate) hits: [u32; SIMULATED],
    /// The key that was invalidated last, and when.
    invalidated: (u64, u64),
    pub(crate) last: u64,
}

/// What one response did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Step {
    /// Whether the response replaced an older meaning.
    pub(crate) is_change: bool,
    /// Whether a leak was found.
    pub(crate) is_leak: bool,
}

impl Entry {
    pub(crate) fn new(route: u32, words: Box<[u8]>, generation: u32) -> Entry {
        Entry {
            route,
            words,
            generation,
            seen: Vec::new(),
            comparison: Comparison::default(),
            variants: Vec::new(),
            clients: 0,
            requests: 0,
            hits: [0; SIMULATED],
            invalidated: (0, 0),
            last: 0,
        }
    }

    /// The plan changed: what was simulated was another cache.
    pub(crate) fn restart(&mut self, generation: u32) {
        self.generation = generation;
        self.comparison.clear();
        self.variants.clear();
        self.requests = 0;
        self.hits = [0; SIMULATED];
    }

    /// Its path belongs to another route now, since words were folded. What was seen stays true.
    pub(crate) fn adopt(&mut self, route: u32, words: Box<[u8]>, generation: u32) {
        self.route = route;
        self.words = words;
        self.restart(generation);
    }

    /// A successful request with an unsafe method invalidates what is stored for its key (RFC 9111 §4.4). What other clients have
    /// other keys for stays, as in the real cache.
    pub(crate) fn invalidate(&mut self, key: u64, now: u64) {
        self.invalidated = (key, now);
        self.variants.retain(|variant| variant.key != key);
    }

    pub(crate) fn keep(&mut self, seen: Seen) {
        if self.seen.len() == MOST_SEEN {
            self.seen.remove(0);
        }
        self.last = seen.at;
        let is_of_another_sort = self.seen.last().is_some_and(|last| last.client % 2 != seen.client % 2);
        if is_of_another_sort {
            self.clients = 0;
        }
        self.clients |= 1 << (seen.client / 2 % 64);
        self.seen.push(seen);
    }

    pub(crate) fn has_several_clients(&self) -> bool {
        self.clients() >= FEWEST_CLIENTS
    }

    /// Different clients, at the least.
    pub(crate) fn clients(&self) -> u32 {
        self.clients.count_ones()
    }

    /// Lets each simulated cache handle the request with this response. `key`: that of the cache; `is_open`: whether what this request
    /// gets may be stored.
    pub(crate) fn simulate(
        &mut self,
        key: u64,
        is_open: bool,
        seen: &Seen,
        meaning: u64,
        evidence: &mut Evidence,
    ) -> Step {
        self.requests += 1;
        let is_shared = self.has_several_clients();
        let at = match self.variants.iter().position(|variant| variant.key == key) {
            Some(at) => at,
            None if self.variants.len() == MOST_VARIANTS => {
                // Neither a hit nor a miss.
                self.requests -= 1;
                return Step::default();
            }
            None => {
                self.variants.push(Variant { key, ..Variant::default() });
                self.variants.len() - 1
            }
        };
        let variant = &mut self.variants[at];
        let may_store = seen.is_storable && (self.invalidated.0 != key || seen.sent >= self.invalidated.1);
        let mut step = variant.pass(
            seen,
            meaning,
            may_store && is_open,
            |lifetime, stored, outcomes| {
                self.hits[lifetime] += 1;
                outcomes.hits += 1;
                outcomes.shared += u64::from(is_shared && stored.client != seen.client);
            },
            evidence,
        );
        if !is_open || variant.of_all.is_some() {
            let (mut all, of_all) = (Evidence::default(), variant.of_all.get_or_insert_default());
            step.is_leak |= of_all.pass(seen, meaning, may_store, |_, _, _| {}, &mut all).is_leak;
            evidence.iter_mut().zip(all).for_each(|(outcomes, of)| outcomes.leaks += of.leaks);
        }
        step
    }

    pub(crate) fn bytes(&self) -> usize {
        let seen: usize = self.seen.iter().map(Seen::bytes).sum();
        let of_keys = self.comparison.bytes()
            + self.variants.capacity() * size_of::<Variant>()
            + self.variants.iter().filter(|of| of.of_all.is_some()).count() * size_of::<Variant>();
        size_of::<Entry>() + 48 + self.words.len() + seen + of_keys
    }
}

impl Variant {
    /// Handles a request with this response. `hit`: what is counted for each hit, by its lifetime.
    fn pass(
        &mut self,
        seen: &Seen,
        meaning: u64,
        may_store: bool,
        mut hit: impl FnMut(usize, &Stored, &mut Outcomes),
        evidence: &mut Evidence,
    ) -> Step {
        let mut step = self.settle(seen, meaning, evidence);
        for (lifetime, outcomes) in evidence.iter_mut().enumerate() {
            let stored = self.stored[lifetime];
            // Clients that were counted in another way cannot be compared: it is stored again.
            if stored.until > seen.sent && stored.client % 2 == seen.client % 2 {
                hit(lifetime, &stored, outcomes);
                // A response that was on its way while the stored one arrived may be the older one.
                if stored.meaning != meaning && seen.sent >= stored.at {
                    step.is_change = true;
                    self.is_wrong(lifetime, stored, seen, meaning, outcomes);
                }
                continue;
            }
            let seconds = LIFETIMES.get(lifetime).copied().or(seen.explicit);
            if let Some(seconds) = seconds.filter(|_| may_store) {
                self.stored[lifetime] = Stored {
                    at: seen.at,
                    until: seen.at + u64::from(seconds) * 1_000,
                    meaning,
                    client: seen.client,
                    identity: seen.identity,
                    is_outdated: false,
                };
                outcomes.fills += 1;
                outcomes.outlived += u64::from((1..=seen.sent).contains(&stored.until));
            }
        }
        step
    }

    fn is_wrong(
        &mut self,
        lifetime: usize,
        stored: Stored,
        seen: &Seen,
        meaning: u64,
        outcomes: &mut Outcomes,
    ) {
        let age = seen.at.saturating_sub(stored.at);
        // If it is a leak after all, that counts instead.
        self.stored[lifetime].is_outdated = true;
        if stored.identity == seen.identity {
            outcomes.stale += 1;
            outcomes.outdated += u64::from(!stored.is_outdated);
            outcomes.stale_age += age;
            return;
        }
        let doubt = self.doubt.get_or_insert(Doubt {
            old: stored.meaning,
            new: meaning,
            identity: seen.identity,
            hits: [0; SIMULATED],
            outdated: [false; SIMULATED],
            age,
            at: seen.at,
        });
        doubt.hits[lifetime] = doubt.hits[lifetime].saturating_add(1);
        doubt.outdated[lifetime] |= !stored.is_outdated;
    }

    /// The next client decides what the difference between two was: a leak if the older meaning is back.
    fn settle(&mut self, seen: &Seen, meaning: u64, evidence: &mut Evidence) -> Step {
        let Some(doubt) = self.doubt else { return Step::default() };
        if doubt.new == meaning && doubt.identity == seen.identity || seen.sent < doubt.at {
            return Step::default();
        }
        self.doubt = None;
        let is_back = doubt.old == meaning;
        match is_back {
            true => evidence.iter_mut().zip(doubt.hits).for_each(|(of, hits)| of.leaks += u64::from(hits)),
            false => doubt.add_as_stale(evidence),
        }
        Step { is_change: !is_back, is_leak: is_back && seen.at.saturating_sub(doubt.at) + doubt.age <= SOON }
    }

    /// Hits of which it is not known whether they were stale or leaks.
    fn in_doubt(&self) -> Option<&Doubt> {
        self.doubt.as_ref()
    }
}

impl Entry {
    /// What no later response has settled counts as stale.
    pub(crate) fn add_doubts(&self, evidence: &mut Evidence) {
        self.variants.iter().filter_map(Variant::in_doubt).for_each(|doubt| doubt.add_as_stale(evidence));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    const SIXTY: usize = 5;

    fn seen(second: u64, client: u32) -> Seen {
        Seen { at: second * 1_000 + 5, ..fixture::seen(second * 1_000, client) }
    }

    /// The outcomes with a lifetime of 60 seconds, and whether a leak was found at once.
    fn outcomes(responses: &[(u64, u32, u64)]) -> (Outcomes, bool) {
        let (mut entry, mut evidence) = (Entry::new(1, Box::default(), 0), Evidence::default());
        let mut is_leak = false;
        for (second, client, meaning) in responses {
            is_leak |= entry.simulate(7, true, &seen(*second, *client), *meaning, &mut evidence).is_leak;
        }
        entry.add_doubts(&mut evidence);
        (evidence[SIXTY], is_leak)
    }

    #[test]
    fn what_comes_back_was_another_clients_and_what_does_not_has_changed() {
        let (back, at_once) = outcomes(&[(100, 1, 7), (102, 2, 8), (104, 3, 7)]);
        assert!((back.hits, back.leaks, back.stale) == (2, 1, 0) && at_once, "{back:?}");
        let (late, at_once) = outcomes(&[(100, 1, 7), (115, 2, 8), (130, 3, 7)]);
        assert!((late.leaks, late.stale) == (1, 0) && !at_once, "a leak, if nothing more is known: {late:?}");
        let (changed, _) = outcomes(&[(100, 1, 7), (115, 2, 8), (130, 3, 8)]);
        assert_eq!((changed.leaks, changed.stale, changed.outdated, changed.fills), (0, 2, 1, 1));
        let (often, _) = outcomes(&[(100, 1, 7), (110, 1, 8), (120, 1, 8), (130, 1, 8)]);
        assert_eq!((often.stale, often.outdated), (3, 1), "one stored response was outdated for three hits");
        let (own, _) = outcomes(&[(100, 1, 7), (115, 1, 8), (130, 1, 7)]);
        assert_eq!((own.leaks, own.stale), (0, 1), "one client alone tells of no leak");
        let (open, _) = outcomes(&[(100, 1, 7), (115, 2, 8)]);
        assert_eq!((open.leaks, open.stale), (0, 1), "what nothing has settled is stale");
    }

    #[test]
    fn a_leak_between_clients_whose_responses_are_not_stored_is_found() {
        let (mut entry, mut evidence) = (Entry::new(1, Box::default(), 0), Evidence::default());
        let mut is_leak = false;
        for (second, client, meaning) in [(100, 1, 7), (102, 2, 8), (104, 1, 7)] {
            is_leak |= entry.simulate(7, false, &seen(second, client), meaning, &mut evidence).is_leak;
        }
        assert!(is_leak && (evidence[SIXTY].hits, evidence[SIXTY].leaks) == (0, 1));
    }

    #[test]
    fn what_is_not_open_is_served_but_not_stored() {
        let (mut entry, mut evidence) = (Entry::new(1, Box::default(), 0), Evidence::default());
        for (second, is_open) in [(100, false), (101, false), (102, true), (103, false), (104, true)] {
            entry.simulate(7, is_open, &seen(second, 1), 7, &mut evidence);
        }
        assert_eq!(evidence[SIXTY].hits, 2);
    }

    #[test]
    fn a_url_that_became_part_of_another_route_starts_anew_there() {
        let (mut entry, mut evidence) = (Entry::new(1, Box::default(), 3), Evidence::default());
        for second in 0..5 {
            entry.simulate(7, true, &seen(100 + second, 1), 7, &mut evidence);
        }
        entry.adopt(2, b"shoe".as_slice().into(), 3);
        assert_eq!((entry.route, entry.requests, entry.hits[SIXTY]), (2, 0, 0));
        entry.simulate(7, true, &seen(110, 1), 7, &mut evidence);
        assert_eq!((entry.requests, entry.hits[SIXTY]), (1, 0), "nothing is stored");
    }
}
