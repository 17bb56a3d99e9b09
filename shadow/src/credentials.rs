//! What requests with credentials got, compared with what requests without any got for the same key.
//!
//! What a credential lets through is shared only if it made no difference: a page for members only is the same for all of
//! them, so comparing clients with each other would not show that it is guarded. A difference counts once the response without
//! a credential is the same before and after it, so that a change is none. Requests that carry nothing but what is open (`plan`)
//! count as those without any. Before: `dimension`, `seen`; next: `plan`.

use crate::dimension::Dimensions;
use crate::seen::Seen;

/// Equal pairs, and clients among them, after which a credential makes no difference.
pub(crate) const ENOUGH: u32 = 100;
pub(crate) const ENOUGH_CLIENTS: u32 = 8;

/// A credential is the reason for differences, and what came with it is not, if at least this share of its pairs differ, for so many
/// clients. Otherwise what one client gets may only seem to follow what it has besides its session.
const CLEAR_RATE: f64 = 0.3;
const CLEAR_CLIENTS: u32 = 4;

/// A credential that fewer than one in so many requests carry is not worth a proof.
const RARE: u32 = 20;

/// New pairs after which it is looked for what they prove.
const LESSON: u32 = 32;

/// Sets of credentials that are counted.
const MOST_SETS: usize = 64;

/// Of one URL: keys whose responses without credentials are kept, and responses that wait for the next one.
const MOST_KEYS: usize = 8;
const MOST_WAITING: usize = 4;

/// Requests that carried the same credentials, and no others.
#[derive(Debug, Clone, Copy, Default)]
struct Set {
    carried: u64,
    equal: u32,
    differing: u32,
    /// Bits of clients with equal pairs, and with others.
    clients: u64,
    differing_clients: u64,
}

#[derive(Default)]
pub(crate) struct Credentials {
    sets: Vec<Set>,
    /// There were more sets than are counted: nothing is proved.
    is_full: bool,
    /// Pairs since the last lesson.
    fresh: u32,
}

/// What was found of the credentials of a route, as bits of dimensions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Proof {
    /// Requests with these got what requests without any credential got.
    pub(crate) harmless: u64,
    /// With these they got something else.
    pub(crate) differing: u64,
}

impl Credentials {
    pub(crate) fn clear(&mut self) {
        *self = Credentials::default();
    }

    /// What was taken for open is not: pairs with it prove nothing, but what differed stays.
    pub(crate) fn doubt(&mut self) {
        self.sets.iter_mut().for_each(|set| (set.equal, set.clients) = (0, 0));
    }

    fn add(&mut self, carried: u64, client: u32, differs: bool) {
        let at = match self.sets.iter().position(|set| set.carried == carried) {
            Some(at) => at,
            None if self.sets.len() == MOST_SETS => {
                let rarest = (0..MOST_SETS)
                    .filter(|at| self.sets[*at].differing == 0)
                    .min_by_key(|at| self.sets[*at].equal);
                let Some(rarest) = rarest else {
                    self.is_full = true;
                    return;
                };
                self.sets[rarest] = Set { carried, ..Set::default() };
                rarest
            }
            None => {
                self.sets.push(Set { carried, ..Set::default() });
                self.sets.len() - 1
            }
        };
        let set = &mut self.sets[at];
        self.fresh += if differs { LESSON } else { 1 };
        if differs {
            set.differing = set.differing.saturating_add(1);
            set.differing_clients |= 1 << (client / 2 % 64);
        } else {
            set.equal = set.equal.saturating_add(1);
            set.clients |= 1 << (client / 2 % 64);
        }
    }

    /// Whether more pairs of requests with these would show something.
    pub(crate) fn lack(&self, carried: u64) -> bool {
        let known = self.sets.iter().find(|set| set.carried == carried);
        !self.is_full
            && known.is_none_or(|set| {
                set.differing == 0 && (set.equal < ENOUGH || set.clients.count_ones() < ENOUGH_CLIENTS)
            })
    }

    /// Whether there are so many new pairs, or a difference, that something may be learned.
    pub(crate) fn is_due(&mut self) -> bool {
        let is_due = self.fresh >= LESSON;
        if is_due {
            self.fresh = 0;
        }
        is_due
    }

    /// Of the credentials that came together with a difference, the one that it follows most closely is its reason; then those
    /// without it are looked at alone.
    pub(crate) fn proof(&self, dimensions: &Dimensions) -> Proof {
        let mut proof = Proof::default();
        let mut doubtful = 0;
        while let Some((reason, rate)) = self.reason(dimensions, proof.differing) {
            let of_it = |set: &&Set| set.carried & proof.differing == 0 && set.carried & (1 << reason) != 0;
            let differing = || self.sets.iter().filter(of_it).filter(|set| set.differing > 0);
            let clients = differing().fold(0, |clients, set| clients | set.differing_clients);
            if rate < CLEAR_RATE || clients.count_ones() < CLEAR_CLIENTS {
                doubtful |= differing().fold(0, |carried, set| carried | set.carried);
            }
            proof.differing |= 1 << reason;
        }
        if self.is_full {
            return proof;
        }
        for (number, dimension) in dimensions.list.iter().enumerate() {
            let bit = 1 << number;
            if doubtful & bit != 0 {
                continue;
            }
            let (mut equal, mut clients) = (0_u32, 0_u64);
            for set in self.sets.iter().filter(|set| set.carried & proof.differing == 0) {
                if set.carried & bit != 0 {
                    equal = equal.saturating_add(set.equal);
                    clients |= set.clients;
                }
            }
            let is_proved = equal >= ENOUGH && clients.count_ones() >= ENOUGH_CLIENTS;
            let is_worth_it = dimension.present.saturating_mul(RARE) >= dimensions.requests;
            if is_proved && is_worth_it && dimension.has_name() {
                proof.harmless |= bit;
            }
        }
        proof
    }

    /// Also the share of its pairs that differ.
    fn reason(&self, dimensions: &Dimensions, known: u64) -> Option<(usize, f64)> {
        let rate = |number: usize| {
            let (mut equal, mut differing) = (0_u64, 0_u64);
            let with = |set: &&Set| set.carried & known == 0 && set.carried & (1 << number) != 0;
            for set in self.sets.iter().filter(with) {
                equal += u64::from(set.equal);
                differing += u64::from(set.differing);
            }
            (differing > 0).then(|| differing as f64 / (equal + differing) as f64)
        };
        let rank = |number: usize| dimensions.list[number].rank();
        let rates = (0..dimensions.list.len()).filter_map(|number| Some((number, rate(number)?)));
        rates.min_by(|one, other| other.1.total_cmp(&one.1).then_with(|| rank(one.0).cmp(&rank(other.0))))
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<Credentials>() + self.sets.capacity() * size_of::<Set>()
    }
}

/// A response to a request with credentials that was not what the latest one without got.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    carried: u64,
    meaning: u64,
    client: u32,
    is_storable: bool,
}

/// The latest response without credentials for one key.
struct Without {
    key: u64,
    meaning: u64,
    at: u64,
    is_storable: bool,
    /// Whether it carried none at all, rather than open ones.
    is_bare: bool,
    waiting: Vec<Waiting>,
    /// When the latest one that waits has ended.
    latest: u64,
}

/// The responses for one URL that are compared.
#[derive(Default)]
pub(crate) struct Comparison {
    list: Vec<Without>,
}

impl Comparison {
    pub(crate) fn clear(&mut self) {
        self.list.clear();
    }

    pub(crate) fn bytes(&self) -> usize {
        let waiting: usize = self.list.iter().map(|of| of.waiting.capacity() * size_of::<Waiting>()).sum();
        self.list.capacity() * size_of::<Without>() + waiting
    }

    /// `key`: that of the cache. `carried`: the credentials of the request; `open`: those that may be part of one without any.
    pub(crate) fn add(
        &mut self,
        key: u64,
        (carried, open): (u64, u64),
        seen: &Seen,
        meaning: u64,
        credentials: &mut Credentials,
    ) {
        // What a request without credentials got for another key is as public.
        let is_public = |of: &Without| of.is_bare && of.is_storable && of.meaning == meaning;
        let is_known_to_all = carried != 0 && seen.is_storable && self.list.iter().any(is_public);
        let known = self.list.iter_mut().find(|of| of.key == key);
        let is_open = carried & !open == 0 && known.as_ref().is_none_or(|of| !of.is_bare);
        if is_known_to_all {
            credentials.add(carried, seen.client, false);
            return;
        }
        if carried != 0 && !is_open {
            let Some(of) = known else { return };
            let response = Waiting { carried, meaning, client: seen.client, is_storable: seen.is_storable };
            // Only what may be stored is shared, so other responses prove nothing.
            if of.meaning == meaning && of.is_storable == seen.is_storable {
                if seen.is_storable {
                    credentials.add(carried, seen.client, false);
                }
            } else if seen.sent >= of.at && of.waiting.len() < MOST_WAITING {
                of.waiting.push(response);
                of.latest = of.latest.max(seen.at);
            }
            return;
        }
        let is_bare = carried == 0;
        let (meaning, at, is_storable) = (meaning, seen.at, seen.is_storable);
        let Some(of) = known else {
            if self.list.len() < MOST_KEYS {
                let waiting = Vec::new();
                self.list.push(Without { key, meaning, at, is_storable, is_bare, waiting, latest: 0 });
            }
            return;
        };
        // Requests that overlap say nothing about the order of a change.
        if seen.sent < of.latest {
            return;
        }
        let is_unchanged = of.meaning == meaning && of.is_storable == is_storable;
        for waiting in of.waiting.drain(..) {
            if is_unchanged {
                credentials.add(waiting.carried, waiting.client, true);
            } else if waiting.meaning == meaning && waiting.is_storable && is_storable {
                credentials.add(waiting.carried, waiting.client, false);
            }
        }
        (of.meaning, of.at, of.is_storable, of.latest) = (meaning, at, is_storable, 0);
        of.is_bare |= is_bare;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, request};
    use crate::hash::Key;

    const SESSION: &str = "session=a";

    /// Requests of a client with those cookies, and the meaning of the response; zero may not be stored.
    type Step = (u32, &'static str, u64);

    /// What is proved harmless and what differing, by labels, if cookies of `open` count as none.
    fn proof(open: &str, steps: impl Iterator<Item = Step>) -> (Vec<String>, Vec<String>) {
        let (key, mut dimensions) = (Key::from_seed(1), Dimensions::new());
        let (mut comparison, mut credentials) = (Comparison::default(), Credentials::default());
        for name in [b"session", b"premium"] {
            let cookie = [name, &b"=1"[..]].concat();
            for _ in 0..2 {
                dimensions.read(&key, &request(None, 1), std::iter::once((&b"cookie"[..], &cookie[..])));
            }
        }
        let open =
            dimensions.mask(|of| *of.name == *open.as_bytes() && of.sort == crate::dimension::Sort::Cookie);
        for (time, (client, cookies, meaning)) in steps.enumerate() {
            let fields = (!cookies.is_empty()).then_some((&b"cookie"[..], cookies.as_bytes()));
            let values = dimensions.read(&key, &request(None, client as u8), fields.into_iter());
            let carried = crate::plan::present(dimensions.credentials, &values);
            let seen =
                crate::seen::Seen { is_storable: meaning != 0, ..fixture::seen(time as u64 * 10, client) };
            comparison.add(7, (carried, open), &seen, meaning, &mut credentials);
        }
        let proof = credentials.proof(&dimensions);
        let labels =
            |mask: u64| crate::plan::bits(mask).map(|number| dimensions.list[number].label()).collect();
        (labels(proof.harmless), labels(proof.differing))
    }

    /// One request without credentials, then `pairs` with them, of so many clients.
    fn members(pairs: u32, clients: u32) -> impl Iterator<Item = Step> {
        std::iter::once((90, "", 5)).chain((0..pairs).map(move |pair| (pair % clients, SESSION, 5)))
    }

    #[test]
    fn a_credential_is_harmless_after_enough_equal_pairs_of_enough_clients() {
        let session = vec!["cookie session".to_owned()];
        assert_eq!(proof("", members(ENOUGH, ENOUGH_CLIENTS)).0, session);
        assert!(proof("", members(ENOUGH - 1, ENOUGH_CLIENTS)).0.is_empty());
        assert!(proof("", members(ENOUGH * 9, ENOUGH_CLIENTS - 1)).0.is_empty());
    }

    #[test]
    fn what_only_members_asked_for_proves_nothing() {
        assert_eq!(proof("", members(500, 20).skip(1)), (vec![], vec![]));
        // What a request without credentials got may not be stored.
        let refused = std::iter::once((90, "", 0)).chain(members(500, 20).skip(1));
        assert!(proof("", refused).0.is_empty());
        let all_refused = std::iter::once((90, "", 0)).chain((0..500).map(|pair| (pair % 20, SESSION, 0)));
        assert!(proof("", all_refused).0.is_empty());
    }

    #[test]
    fn one_difference_to_what_was_the_same_before_and_after_it_is_enough() {
        let other = [(90, "", 5), (3, SESSION, 6), (90, "", 5)];
        assert_eq!(proof("", members(900, 20).chain(other)).1, ["cookie session"]);
        let change = [(90, "", 5), (3, SESSION, 6), (90, "", 6)];
        assert!(proof("", members(900, 20).chain(change)).1.is_empty(), "it had changed");
    }

    #[test]
    fn what_one_client_has_besides_its_session_is_not_taken_for_the_reason() {
        const BOTH: &str = "premium=1; session=a";
        let with_others = |clients: u32| {
            let of_others = (0..10 * clients).flat_map(move |at| [(30 + at % clients, BOTH, 6), (90, "", 5)]);
            proof("", members(900, 20).chain(std::iter::once((90, "", 5))).chain(of_others))
        };
        assert_eq!(with_others(1), (vec![], vec!["cookie premium".to_owned()]));
        assert_eq!(with_others(8).0, ["cookie session"], "those who have it all get something else");
    }

    #[test]
    fn what_is_open_counts_as_no_credential_until_a_request_without_any_comes() {
        let steps = || {
            let of_members = (0..200).map(|pair| (pair % 20, "premium=1; session=a", 5));
            std::iter::once((90, "premium=1", 5)).chain(of_members)
        };
        assert!(proof("", steps()).0.is_empty());
        assert_eq!(proof("premium", steps()).0, ["cookie session", "cookie premium"]);
        let refused = [(91, "", 6), (90, "premium=1", 5), (91, "", 6)];
        assert!(proof("premium", steps().chain(refused)).1.contains(&"cookie premium".to_owned()));
    }
}
