//! The front of the crate: what a proxy calls for each request and each response.
//!
//! Most requests end in [`Shadow::sent`], which finds their route, hashes their URL and allocates nothing. Of a sampled
//! one, the proxy holds a [`Sampled`], gives it the response as it passes, and brings it back. Before: `sample`, `route`; next:
//! `report`.

mod probe;

#[cfg(test)]
mod tests;

use crate::decoding::Decoders;
use crate::digest::BodyDigest;
use crate::hash::Key;
use crate::mark::Marks;
use crate::names;
use crate::paths::{Found, Paths};
use crate::plan::Plan;
use crate::request::{Request, arguments};
use crate::response::{Head, Storable};
use crate::route::Route;
use crate::sample::{Room, Sample};
use crate::seen::Seen;
use crate::simulation::Entry;
use crate::usual::Texts;
use probe::Pace;
use std::collections::VecDeque;

/// Routes that are known by themselves; the first one stands for all others.
pub const MOST_ROUTES: usize = 512;

/// The route for the rest.
pub(crate) const REST: u32 = 0;

/// Unsafe requests that are remembered as reasons of changes.
const MOST_UNSAFE: usize = 8;

/// What may be changed in tests.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Requests that are sampled in one second: at some 25 µs each, a fortieth of a core.
    pub sampled_per_second: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { sampled_per_second: 1_000 }
    }
}

pub struct Shadow {
    key: Key,
    limits: Limits,
    pub(crate) paths: Paths,
    pub(crate) routes: Vec<Route>,
    pub(crate) sample: Sample,
    pub(crate) texts: Texts,
    unsafe_requests: VecDeque<(u32, u64)>,
    decoders: Decoders,
    second: u64,
    sampled: u32,
    /// No probes without it.
    probes: Option<Pace>,
    pub(crate) requests: u64,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// How the response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Whole,
    Cut,
}

/// A sampled request while its response is on the way. It needs no access to [`Shadow`], and may be dropped.
pub struct Sampled {
    route: u32,
    generation: u32,
    is_unsafe: bool,
    url: u64,
    exact: u64,
    paths: [u64; 2],
    words: Box<[u8]>,
    values: Box<[u32]>,
    is_unusual: bool,
    sent: u64,
    key: Key,
    marks: Marks,
    head: Option<Head>,
    body: Option<BodyDigest>,
    decoders: Decoders,
    wants_probe: bool,
}

/// What a response belongs to.
struct SampledUrl {
    route: u32,
    generation: u32,
    url: u64,
    words: Box<[u8]>,
}

impl Sampled {
    /// The final head of the response. `now`: milliseconds since 1970.
    pub fn response<'f>(
        &mut self,
        status: u16,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])> + Clone,
        now: u64,
    ) {
        let head = Head::read(&self.key, &mut self.marks, status, fields, now);
        // A stream has no end, and what an unsafe method returns is not compared.
        if !self.is_unsafe && head.storable != Storable::Stream {
            let key = self.key.clone();
            self.body = BodyDigest::new(key, &head.content_type, head.coding, &self.decoders, now);
            // Without its body, a response is no evidence.
            if self.body.is_none() {
                return;
            }
        }
        self.head = Some(head);
    }

    /// Whether the head says that the body is a stream, which may never end: then [`Shadow::streams`] takes it.
    pub fn is_stream(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.storable == Storable::Stream)
    }

    /// A piece of the body, without transfer coding.
    pub fn piece(&mut self, piece: &[u8]) {
        if let Some(body) = &mut self.body {
            body.feed(piece);
        }
    }
}

impl Shadow {
    pub fn new(key: Key, limits: Limits) -> Shadow {
        Shadow {
            key,
            limits,
            paths: Paths::new(),
            routes: vec![Route::new(0, 0)],
            sample: Sample::new(),
            texts: Texts::default(),
            unsafe_requests: VecDeque::with_capacity(MOST_UNSAFE),
            decoders: Decoders::default(),
            second: 0,
            sampled: 0,
            probes: None,
            requests: 0,
            first: u64::MAX,
            last: 0,
        }
    }

    /// A request goes to the API. `None`: it is not sampled, and its response is of no interest. `now`: milliseconds since 1970.
    pub fn sent<'f>(
        &mut self,
        request: &Request<'_>,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])> + Clone,
        now: u64,
    ) -> Option<Box<Sampled>> {
        self.requests += 1;
        self.first = self.first.min(now);
        self.last = self.last.max(now);
        let client = self.key.bytes(&request.address());
        let found = {
            let routes = &self.routes;
            let form = |route: u32| routes.get(route as usize).and_then(|route| route.form);
            self.paths.find(&self.key, request.location, request.path, client, form)
        };
        let number = match found {
            Found::Route(route) => route,
            Found::Due(node) => self.add_route(request.location, node),
            Found::Rest => REST,
        };
        let route = &mut self.routes[number as usize];
        let is_unsafe = request.is_unsafe();
        if !is_unsafe {
            route.requests += 1;
        }
        if number == REST || !(is_unsafe || request.is_get()) {
            return None;
        }
        let url = route.plan.url(&self.key, &route.dimensions, request);
        if (url >> 32) as u32 > route.threshold {
            return None;
        }
        if !is_unsafe && !self.may_sample(now) {
            return None;
        }
        self.sampled(number, url, is_unsafe, request, fields, now)
    }

    fn may_sample(&mut self, now: u64) -> bool {
        if self.second != now / 1_000 {
            self.second = now / 1_000;
            self.sampled = 0;
        }
        self.sampled += 1;
        self.sampled <= self.limits.sampled_per_second
    }

    fn sampled<'f>(
        &mut self,
        number: u32,
        url: u64,
        is_unsafe: bool,
        request: &Request<'_>,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])> + Clone,
        now: u64,
    ) -> Option<Box<Sampled>> {
        let key = &self.key;
        let route = &mut self.routes[number as usize];
        let (mut values, mut is_unusual) = (Box::default(), false);
        if is_unsafe && route.plan.selected != 0 {
            // They choose which stored response is invalidated.
            values = route.dimensions.read(key, request, fields);
        } else if !is_unsafe {
            // A part is no response to its URL.
            if fields.clone().any(|(name, _)| name.eq_ignore_ascii_case(b"range")) {
                return None;
            }
            match self.sample.room(url) {
                Room::Yes => {}
                Room::NotYet => {
                    route.strangers = route.strangers.saturating_add(1);
                    return None;
                }
                Room::No => {
                    self.make_room();
                    return None;
                }
            }
            values = route.dimensions.read(key, request, fields.clone());
            let (client, _) = route.who(key, &values);
            is_unusual = route.is_unusual(key, &mut self.texts, fields, client);
        }
        let path = key.join(u64::from(request.location), request.path);
        let path = key.join(path, request.host);
        let plain = arguments(request.query)
            .filter(|(name, _)| !names::is_campaign(name))
            .fold(path, |sum, (name, value)| key.join(key.join(sum, name), value));
        let generation = route.generation;
        let wants_probe = !is_unsafe
            && !is_unusual
            && self.probes.as_mut().is_some_and(|pace| pace.take_if(now, || route.lacks_proof(&values)));
        let words = self.paths.words(route.node, request.path);
        let exact = Plan::default().url(key, &route.dimensions, request);
        Some(Box::new(Sampled {
            route: number,
            generation,
            is_unsafe,
            url,
            exact,
            paths: [path, plain],
            words,
            values,
            is_unusual,
            sent: now,
            key: key.clone(),
            marks: Marks::default(),
            head: None,
            body: None,
            decoders: self.decoders.clone(),
            wants_probe,
        }))
    }

    /// The response to a sampled request is a stream: it counts from its head on, and nothing more is of interest.
    /// `now`: milliseconds since 1970.
    pub fn streams(&mut self, sampled: Sampled, now: u64) {
        self.ended(sampled, Ending::Whole, now);
    }

    /// The response to a sampled request has ended. `now`: milliseconds since 1970.
    pub fn ended(&mut self, mut sampled: Sampled, ending: Ending, now: u64) {
        self.last = self.last.max(now);
        let Some(head) = sampled.head else { return };
        let number = sampled.route;
        if sampled.is_unsafe {
            if (200..400).contains(&head.status) {
                self.changed(number, sampled.url, &sampled.values, now);
            }
            return;
        }
        let route = &mut self.routes[number as usize];
        route.tally.sampled += 1;
        route.milliseconds += now.saturating_sub(sampled.sent);
        let (client, identity) = route.who(&self.key, &sampled.values);
        route.visit(&self.key, &mut sampled.values, client);
        route.count_client(&self.key, sampled.values.first().copied().unwrap_or(0), client);
        if head.status >= 500 || matches!(head.status, 304 | 206 | 408 | 425 | 429) {
            route.tally.errors += u32::from(head.status >= 500);
            return;
        }
        if ending == Ending::Cut && head.storable != Storable::Stream {
            route.tally.cut += 1;
            return;
        }
        let body = sampled.body.map(BodyDigest::finish).unwrap_or_default();
        let form = self.key.join(u64::from(body.form), &head.content_type);
        let is_passed = sampled.is_unusual || route.passes(&sampled.values);
        route.count(&head, is_passed, body.is_hollow, body.is_opaque, form);
        if head.storable == Storable::Stream {
            return;
        }
        route.vary(&self.key, &head.vary);
        let seen = Seen {
            sent: sampled.sent,
            at: now,
            meaning: head.with(&self.key, body.meaning),
            marks: sampled.marks.before(body.marks),
            values: sampled.values,
            url: sampled.exact,
            client,
            identity,
            explicit: head.explicit,
            is_storable: head.storable == Storable::Yes,
            is_unusual: sampled.is_unusual,
        };
        let place = SampledUrl {
            route: number,
            generation: sampled.generation,
            url: sampled.url,
            words: sampled.words,
        };
        self.observe(place, sampled.paths, seen);
    }

    fn observe(&mut self, place: SampledUrl, paths: [u64; 2], seen: Seen) {
        let SampledUrl { route: number, generation, url, words } = place;
        let key = &self.key;
        let route = &mut self.routes[number as usize];
        let (plan, is_new) = (route.plan, !self.sample.entries.contains_key(&url));
        {
            let earlier = self.sample.entries.get(&url).map_or(&[][..], |entry| &entry.seen);
            let others = self.sample.of_path(paths[0]).iter();
            let others = others.chain(self.sample.of_path(paths[1]).iter());
            route.compare(key, &seen, earlier, others);
        }
        paths.iter().for_each(|path| self.sample.keep_of_path(*path, &seen));
        if route.plan.ignored != plan.ignored {
            // The keys of this route are others now.
            route.keys = 0;
            self.sample.retain(|_, entry| entry.route != number);
            return;
        }
        if route.generation != generation {
            return;
        }
        route.keys += u32::from(is_new);
        let mut changed_since = None;
        self.sample.with(
            url,
            || Entry::new(number, words.clone(), generation),
            |entry| {
                if entry.route != number {
                    entry.adopt(number, words.clone(), generation);
                } else if entry.generation != generation {
                    entry.restart(generation);
                }
                let before = entry.last;
                if route.simulate(key, entry, url, &seen) {
                    changed_since = Some(before);
                }
                entry.keep(seen);
            },
        );
        if let Some(since) = changed_since {
            let mut hinted = [u32::MAX; MOST_UNSAFE];
            let causes = self.unsafe_requests.iter().filter(|(_, at)| *at > since);
            for (place, (cause, _)) in causes.enumerate() {
                if !hinted.contains(cause) {
                    hinted[place] = *cause;
                    route.hint(*cause);
                }
            }
        }
        if self.sample.is_full() {
            self.make_room();
        }
    }

    /// An unsafe request to a route has succeeded.
    fn changed(&mut self, route: u32, url: u64, values: &[u32], now: u64) {
        if self.sample.entries.contains_key(&url) {
            let key = self.routes[route as usize].plan.key(&self.key, url, values);
            self.sample.with(
                url,
                || Entry::new(route, Box::default(), 0),
                |entry| entry.invalidate(key, now),
            );
        }
        if self.unsafe_requests.len() == MOST_UNSAFE {
            self.unsafe_requests.pop_front();
        }
        self.unsafe_requests.push_back((route, now));
    }

    /// The route with the most keys samples half of them from now on.
    fn make_room(&mut self) {
        let largest = (1..self.routes.len()).max_by_key(|number| self.routes[*number].keys);
        let Some(largest) = largest else { return };
        let route = &mut self.routes[largest];
        route.threshold /= 2;
        route.strangers /= 2;
        let threshold = route.threshold;
        let mut left = 0;
        self.sample.retain(|url, entry| {
            let is_of_it = entry.route as usize == largest;
            let stays = !is_of_it || (url >> 32) as u32 <= threshold;
            left += u32::from(is_of_it && stays);
            stays
        });
        self.routes[largest].keys = left;
    }

    fn add_route(&mut self, location: u32, node: u32) -> u32 {
        let number = if self.routes.len() < MOST_ROUTES {
            self.routes.push(Route::new(location, node));
            self.routes.len() - 1
        } else {
            // One whose path was folded has no requests any more.
            let gone = (1..self.routes.len())
                .find(|number| self.paths.segments(self.routes[*number].node, *number as u32).is_none());
            let Some(gone) = gone else { return REST };
            self.sample.retain(|_, entry| entry.route as usize != gone);
            self.routes[gone] = Route::new(location, node);
            gone
        };
        self.paths.set_route(node, number as u32);
        number as u32
    }

    /// Memory for all that is known, in bytes.
    pub fn bytes(&self) -> usize {
        self.sample.bytes()
            + self.texts.bytes()
            + self.paths.bytes()
            + self.routes.iter().map(Route::bytes).sum::<usize>()
    }
}
