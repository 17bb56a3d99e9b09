//! A world of endpoints whose truth is known, and the judge of what is recommended for them.
//!
//! Each response has a class, on which it depends besides time, and a version, which changes with time. A cache that gives
//! a response of one class to a request of another has leaked. `endpoint` has the kinds; `replay` judges.

#![allow(dead_code, unreachable_pub, reason = "the test and the example use different parts")]

pub mod endpoint;
pub mod replay;

use endpoint::{Asked, Client, Endpoint, Kind};
use fastrand::Rng;
use millstream_shadow::{Ending, Key, Limits, Report, Request, Sampled, Shadow};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Milliseconds since 1970 at which histories start.
pub const START: u64 = 1_750_000_000_000;

/// What happened at one endpoint: enough to replay it.
pub struct Event {
    pub at: u64,
    pub endpoint: usize,
    pub asked: Asked,
    pub class: u64,
    pub version: u64,
    pub status: u16,
    pub is_storable: bool,
}

pub struct History {
    pub endpoints: Vec<Endpoint>,
    pub events: Vec<Event>,
    pub report: Report,
    pub shadow: Shadow,
    /// Requests per second.
    pub rate: f64,
}

/// Random traffic of 40 clients to all kinds: `requests` for each on average.
pub fn history(seed: u64, kinds: &[Kind], requests: usize, budget: f64) -> History {
    let mut rng = Rng::with_seed(seed);
    let clients: Vec<Client> = (0..40).map(|number| Client::new(number, &mut rng)).collect();
    let mut endpoints: Vec<Endpoint> =
        kinds.iter().enumerate().map(|(number, kind)| Endpoint::new(*kind, number, &mut rng)).collect();
    let mut shadow = Shadow::new(Key::from_seed(seed), Limits::default());
    let mut events = Vec::new();
    let total = requests * kinds.len();
    // Requests of one endpoint per second: between one and eight.
    let rate = (1.0 + 7.0 * rng.f64()) * kinds.len() as f64;
    let mut pending: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut waiting: HashMap<usize, Box<Sampled>> = HashMap::new();
    let mut traffic = Traffic { now: START, rate, clients };
    for order in 0..total {
        let (asked, place) = traffic.next(&mut endpoints, &mut rng);
        let now = traffic.now;
        while pending.peek().is_some_and(|Reverse((end, _))| *end <= now) {
            let Some(Reverse((end, number))) = pending.pop() else { break };
            if let Some(sampled) = waiting.remove(&number) {
                shadow.ended(*sampled, Ending::Whole, end);
            }
        }
        let end = now + 4 + rng.u64(0..60);
        let reply = endpoints[place].respond(&asked, now + 2, &mut rng);
        let fields: Vec<(&[u8], &[u8])> =
            asked.fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        let request = Request {
            location: 0,
            method: asked.method.as_bytes(),
            is_tls: false,
            host: asked.host().as_bytes(),
            path: asked.path.as_bytes(),
            query: asked.query.as_deref().map(str::as_bytes),
            client: asked.address,
            certificate: asked.certificate.as_deref().map(str::as_bytes),
        };
        if let Some(mut sampled) = shadow.sent(&request, fields.iter().copied(), now) {
            let head = reply.fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
            sampled.response(reply.status, head, end);
            if sampled.is_stream() {
                // It never ends.
                shadow.streams(*sampled, end);
            } else {
                reply.body.chunks(97).for_each(|piece| sampled.piece(piece));
                waiting.insert(order, sampled);
                pending.push(Reverse((end, order)));
            }
        }
        events.push(Event {
            at: now,
            endpoint: place,
            asked,
            class: reply.class,
            version: reply.version,
            status: reply.status,
            is_storable: reply.is_storable,
        });
    }
    let report = Report::of(&shadow, "test", budget);
    History { endpoints, events, report, shadow, rate }
}

/// Requests of some clients to all endpoints, at random times.
pub struct Traffic {
    pub now: u64,
    /// Requests per second.
    pub rate: f64,
    pub clients: Vec<Client>,
}

impl Traffic {
    pub fn next(&mut self, endpoints: &mut [Endpoint], rng: &mut Rng) -> (Asked, usize) {
        self.now += (-(1.0 - rng.f64()).ln() / self.rate * 1_000.0) as u64;
        let sum: f64 = endpoints.iter().map(|endpoint| endpoint.weight).sum();
        let mut chosen = rng.f64() * sum;
        let place = endpoints.iter().position(|endpoint| {
            chosen -= endpoint.weight;
            chosen < 0.0
        });
        let place = place.unwrap_or(0);
        let one = (endpoints[place].kind == Kind::OneClient).then_some(7);
        let mut number = one.unwrap_or_else(|| skewed(rng, self.clients.len()));
        // While it is watched, only clients with a session come; each fourth client has none.
        let of_members = matches!(
            endpoints[place].kind,
            Kind::MembersArea | Kind::MembersDotted | Kind::StaffOrders | Kind::KeyedCatalog
        );
        if of_members && number % 4 == 3 {
            number -= 1;
        }
        (endpoints[place].ask(&self.clients[number], rng), place)
    }
}

/// Some clients and items are asked for more often than others.
pub fn skewed(rng: &mut Rng, count: usize) -> usize {
    let x = rng.f64();
    ((x * x * 0.7 + x * 0.3) * count as f64) as usize
}
