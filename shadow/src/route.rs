//! All that is known of one route.
//!
//! Before: `paths`, `simulation`; next: `shadow`, which brings responses here, and `verdict`, which judges.

mod clients;

use crate::credentials::Credentials;
use crate::dimension::difference;
use crate::dimension::{Dimensions, Sort};
use crate::distinct::Distinct;
use crate::hash::Key;
use crate::leniency::Leniency;
use crate::pairs::Pairs;
use crate::plan::{Circumstances, Plan, present};
use crate::response::{Head, Storable};
use crate::seen::Seen;
use crate::selection::Selection;
use crate::simulation::{Entry, Evidence};
use crate::usual::Usual;
use crate::visits::Visits;

/// Pairs after which a plan is learned for the first time; then after half as many more each time.
const FIRST_LESSON: u32 = 64;

/// Requests of a route up to which a new dimension makes its pairs start anew.
const EARLY: u32 = 512;

/// Routes whose unsafe requests are remembered as reasons of changes.
const MOST_HINTS: usize = 4;

/// Sampled responses by what a cache may do with them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) sampled: u32,
    /// Responses of which the others are parts: those that the plan did not pass on.
    pub(crate) counted: u32,
    /// Those that the plan passed on, and that had a status that may be stored.
    pub(crate) passed: u32,
    pub(crate) good: u32,
    pub(crate) forbidden: u32,
    pub(crate) with_cookie: u32,
    pub(crate) streams: u32,
    pub(crate) any_vary: u32,
    pub(crate) hollow: u32,
    pub(crate) opaque: u32,
    pub(crate) errors: u32,
    pub(crate) cut: u32,
    pub(crate) public: u32,
    pub(crate) explicit: u32,
    pub(crate) misfits: u32,
}

pub(crate) struct Route {
    pub(crate) location: u32,
    pub(crate) node: u32,
    pub(crate) dimensions: Dimensions,
    pub(crate) pairs: Pairs,
    pub(crate) leniency: Leniency,
    pub(crate) credentials: Credentials,
    pub(crate) plan: Plan,
    /// Counts up when the evidence starts anew.
    pub(crate) generation: u32,
    pub(crate) evidence: Evidence,
    /// Of plans with which fewer requests shared by the same keys.
    pub(crate) earlier: Evidence,
    pub(crate) tally: Tally,
    pub(crate) requests: u64,
    pub(crate) milliseconds: u64,
    /// By address, and by address and credentials.
    addresses: Distinct<64>,
    clients: Distinct<64>,
    visits: Visits,
    /// Clients whose requests the plan does not pass on.
    sharing: Distinct<64>,
    /// Two clients saw different responses while nothing changed.
    pub(crate) confirmed: u32,
    pub(crate) changes: u32,
    /// Responses since the plan was made, and of these the good ones that it does not pass on.
    pub(crate) planned: u32,
    pub(crate) offered: u32,
    /// Responses that the plan passes on.
    pub(crate) passed: u32,
    /// Responses that it passes on because of an unusual field or value.
    pub(crate) unusual: u32,
    /// Responses that it may store.
    pub(crate) storing: u32,
    pub(crate) hints: Vec<(u32, u32)>,
    /// The shortest lifetime that the API gave.
    pub(crate) shortest: u32,
    pub(crate) selection: Selection,
    pub(crate) usual: Usual,
    vary: u64,
    /// Content type and members of the first response, and of the first one that is shared.
    pub(crate) form: Option<u64>,
    shared_form: Option<u64>,
    lesson: u32,
    /// Dimensions of which pairs know.
    known: usize,
    /// Keys whose hash is at most this are sampled.
    pub(crate) threshold: u32,
    /// Sampled requests for keys that were not yet known.
    pub(crate) strangers: u32,
    pub(crate) keys: u32,
}

impl Route {
    pub(crate) fn new(location: u32, node: u32) -> Route {
        let mut route = Route {
            location,
            node,
            dimensions: Dimensions::new(),
            pairs: Pairs::default(),
            leniency: Leniency::default(),
            credentials: Credentials::default(),
            plan: Plan::default(),
            generation: 0,
            evidence: Evidence::default(),
            earlier: Evidence::default(),
            tally: Tally::default(),
            requests: 0,
            milliseconds: 0,
            addresses: Distinct::new(),
            clients: Distinct::new(),
            visits: Visits::new(),
            sharing: Distinct::new(),
            confirmed: 0,
            changes: 0,
            planned: 0,
            offered: 0,
            passed: 0,
            unusual: 0,
            storing: 0,
            hints: Vec::new(),
            shortest: u32::MAX,
            selection: Selection::default(),
            usual: Usual::default(),
            vary: 0,
            form: None,
            shared_form: None,
            lesson: FIRST_LESSON,
            known: 0,
            threshold: u32::MAX,
            strangers: 0,
            keys: 0,
        };
        route.plan = Plan::first(&route.dimensions, &route.circumstances());
        route
    }

    fn circumstances(&self) -> Circumstances<'_> {
        Circumstances {
            leniency: &self.leniency,
            credentials: &self.credentials,
            clients: self.clients(),
            vary: self.vary,
        }
    }

    /// The plan that all pairs up to now suggest.
    pub(crate) fn lesson(&self) -> Plan {
        Plan::learn(&self.dimensions, &self.pairs, &self.circumstances())
    }

    /// Whether each response that may be stored says `public` and how long it is fresh.
    pub(crate) fn is_declared(&self) -> bool {
        let tally = &self.tally;
        tally.good > 0 && tally.public == tally.good && tally.explicit == tally.good
    }

    /// Counts a response. `is_passed`: its request was passed on, so that nothing of it is shared.
    pub(crate) fn count(
        &mut self,
        head: &Head,
        is_passed: bool,
        is_hollow: bool,
        is_opaque: bool,
        form: u64,
    ) {
        let tally = &mut self.tally;
        if head.storable != Storable::Status {
            self.form.get_or_insert(form);
        }
        if is_passed && head.storable != Storable::Stream {
            tally.passed += u32::from(head.storable != Storable::Status);
            return;
        }
        tally.counted += 1;
        match head.storable {
            Storable::Yes => tally.good += 1,
            Storable::Forbidden => tally.forbidden += 1,
            Storable::SetsCookie => tally.with_cookie += 1,
            Storable::Stream => tally.streams += 1,
            Storable::VariesByAnything => tally.any_vary += 1,
            Storable::Status => return,
        }
        tally.hollow += u32::from(is_hollow);
        tally.opaque += u32::from(is_opaque);
        tally.public += u32::from(head.is_public);
        if let Some(seconds) = head.explicit {
            tally.explicit += 1;
            self.shortest = self.shortest.min(seconds);
        }
        tally.misfits += u32::from(*self.shared_form.get_or_insert(form) != form);
    }

    /// Takes over what responses name in Vary.
    pub(crate) fn vary(&mut self, key: &Key, names: &[Box<[u8]>]) {
        let mut mask = self.vary;
        for name in names {
            if **name == *b"cookie" {
                mask |= self.dimensions.mask(|dimension| dimension.sort == Sort::Cookie);
            } else if let Some(number) = self.dimensions.field(key, name) {
                mask |= 1 << number;
            }
        }
        if mask != self.vary {
            self.vary = mask;
            self.learn();
        }
    }

    /// Compares a response with earlier ones to its URL, and with `others` to the same path.
    pub(crate) fn compare<'s>(
        &mut self,
        key: &Key,
        seen: &Seen,
        earlier: &[Seen],
        others: impl Iterator<Item = &'s Seen>,
    ) {
        if self.known < self.dimensions.list.len() {
            // Early pairs were compared without a name that is known by now.
            if self.dimensions.requests < EARLY {
                self.pairs.clear();
                self.lesson = FIRST_LESSON;
            }
            self.known = self.dimensions.list.len();
        }
        let incomparable = self.dimensions.incomparable();
        let version = self.leniency.version;
        let harmless = self.dimensions.without_identity();
        let is_identical = |of: &Seen| difference(&of.values, &seen.values) & !harmless == 0;
        let (plan, credentials) = (self.plan, self.dimensions.credentials);
        let is_open = |of: &Seen| !of.is_unusual && !plan.bypasses(credentials, &of.values);
        let latest = earlier.last();
        let identical = earlier.iter().rev().find(|of| is_identical(of));
        for of in
            latest.into_iter().chain(identical.filter(|of| latest.is_some_and(|latest| latest.at != of.at)))
        {
            let are_open = is_open(of) && is_open(seen);
            self.leniency.learn(of, seen, is_identical(of), are_open);
            self.add_pair(key, of, seen, incomparable);
        }
        let arguments = self.dimensions.arguments();
        for of in others.filter(|of| of.url != seen.url) {
            if difference(&of.values, &seen.values) & arguments != 0 {
                self.add_pair(key, of, seen, incomparable);
            }
        }
        if version != self.leniency.version {
            self.pairs.clear();
            self.credentials.clear();
            self.lesson = FIRST_LESSON;
            self.restart();
        }
        if self.pairs.total >= self.lesson {
            self.lesson = self.pairs.total + self.pairs.total / 2;
            self.learn();
        }
    }

    fn add_pair(&mut self, key: &Key, one: &Seen, other: &Seen, incomparable: u64) {
        // A name that one of them had got no dimension yet.
        if one.values.len() != other.values.len() || one.is_unusual || other.is_unusual {
            return;
        }
        let differs = self.leniency.meaning(key, one) != self.leniency.meaning(key, other);
        let dimensions = difference(&one.values, &other.values) & !incomparable;
        self.pairs.add(dimensions, one.age(other.at), differs);
    }

    fn learn(&mut self) {
        let plan = self.lesson();
        if plan != self.plan {
            self.adopt(plan);
        }
    }

    /// Whether other credentials are harmless now than before, and nothing else was learned.
    fn learn_of_credentials(&mut self) -> bool {
        let plan = self.lesson();
        let (harmless, open) = (plan.harmless, plan.open);
        let is_new = harmless != self.plan.harmless && plan == Plan { harmless, open, ..self.plan };
        if is_new {
            self.adopt(plan);
        }
        is_new
    }

    fn adopt(&mut self, plan: Plan) {
        let old = std::mem::replace(&mut self.plan, plan);
        let has_other_keys = plan.selected != old.selected || plan.ignored != old.ignored;
        // What was compared by other keys is to be forgotten.
        if has_other_keys {
            self.credentials.clear();
        } else if old.open & !plan.open != 0 {
            self.credentials.doubt();
        }
        // What was wrong for those that shared by the same keys is wrong for more.
        let (mut earlier, evidence, confirmed) = (self.earlier, self.evidence, self.confirmed);
        self.restart();
        if !has_other_keys && old.harmless & !plan.harmless == 0 {
            earlier.iter_mut().zip(&evidence).for_each(|(earlier, of)| earlier.add(of));
            (self.earlier, self.confirmed) = (earlier, confirmed);
        }
    }

    fn restart(&mut self) {
        self.earlier = Evidence::default();
        self.generation += 1;
        self.evidence = Evidence::default();
        self.confirmed = 0;
        self.planned = 0;
        self.offered = 0;
        self.passed = 0;
        self.unusual = 0;
        self.storing = 0;
        self.sharing = Distinct::new();
        self.strangers = 0;
        self.selection.clear();
    }

    /// Lets the simulated caches handle a response.
    pub(crate) fn simulate(&mut self, key: &Key, entry: &mut Entry, url: u64, seen: &Seen) -> bool {
        self.planned += 1;
        if seen.is_unusual {
            entry.requests += 1;
            self.unusual += 1;
            return false;
        }
        let (cache_key, meaning, has_learned) = self.compare_credentials(key, entry, url, seen);
        if has_learned {
            // Other requests are passed on from now on.
            return false;
        }
        if self.passes(&seen.values) {
            entry.requests += 1;
            self.passed += 1;
            return false;
        }
        let has_usual_key = self.selection.add(key, &self.plan, &seen.values, seen.client);
        if !has_usual_key && self.listed() != 0 {
            entry.requests += 1;
            self.unusual += 1;
            return false;
        }
        self.share(key, seen.client);
        self.offered += u32::from(seen.is_storable);
        let is_open = self.plan.stores(self.dimensions.credentials, &seen.values);
        self.storing += u32::from(is_open);
        let step = entry.simulate(cache_key, is_open, seen, meaning, &mut self.evidence);
        if step.is_leak {
            self.confirmed += 1;
            // What differs between clients may have a reason by now.
            self.lesson = self.lesson.min(self.pairs.total + FIRST_LESSON / 4);
        }
        self.changes += u32::from(step.is_change);
        step.is_change
    }

    /// Compares what requests with and without credentials got. Returns the key of the cache, the meaning of the response, and
    /// whether other requests are passed on from now on.
    pub(crate) fn compare_credentials(
        &mut self,
        key: &Key,
        entry: &mut Entry,
        url: u64,
        seen: &Seen,
    ) -> (u64, u64, bool) {
        let meaning = self.leniency.meaning(key, seen);
        let cache_key = self.plan.key(key, url, &seen.values);
        let carried = self.carried(&seen.values);
        let credentials = (carried, self.plan.open);
        entry.comparison.add(cache_key, credentials, seen, meaning, &mut self.credentials);
        (cache_key, meaning, self.credentials.is_due() && self.learn_of_credentials())
    }

    /// The credentials of a request, as bits.
    fn carried(&self, values: &[u32]) -> u64 {
        present(self.dimensions.credentials & !self.plan.selected, values)
    }

    /// Whether it is not known what the credentials of a request let through. Those in its URL cannot be left out.
    pub(crate) fn lacks_proof(&self, values: &[u32]) -> bool {
        let carried = self.carried(values);
        let of_url = self.dimensions.arguments();
        let can_be_left_out = carried & of_url == 0 && self.plan.selected & !of_url == 0;
        carried & !self.plan.harmless != 0 && can_be_left_out && self.credentials.lack(carried)
    }

    /// Whether the plan passes on a request.
    pub(crate) fn passes(&self, values: &[u32]) -> bool {
        self.plan.bypasses(self.dimensions.credentials, values)
    }

    /// A change followed an unsafe request to that route.
    pub(crate) fn hint(&mut self, route: u32) {
        if let Some((_, count)) = self.hints.iter_mut().find(|(of, _)| *of == route) {
            *count += 1;
        } else if self.hints.len() < MOST_HINTS {
            self.hints.push((route, 1));
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<Route>()
            + 64 * 8 * 2
            + Visits::bytes()
            + self.dimensions.bytes()
            + self.pairs.bytes()
            + self.credentials.bytes()
            + self.selection.bytes()
            + self.usual.bytes()
            + 1_600
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leak_is_remembered_when_more_requests_share_and_forgotten_with_other_keys() {
        let mut route = Route::new(0, 0);
        (route.confirmed, route.evidence[6].leaks) = (1, 2);
        let shared = Plan { harmless: 1 << 5, ..route.plan };
        route.adopt(shared);
        assert_eq!((route.confirmed, route.earlier[6].leaks, route.evidence[6].leaks), (1, 2, 0));
        route.adopt(Plan { selected: 1 << 6, ..shared });
        assert_eq!((route.confirmed, route.earlier[6].leaks), (0, 0));
    }
}
