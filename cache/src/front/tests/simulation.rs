//! Clients that ask for few keys, in random order, with fills that succeed, fail, stall, are cut, or turn out to be
//! uncacheable, and with purges of all kinds in between, under a clock of its own.
//!
//! Checked at every step: no two fills of a key at once unless the lock or a purge allows it, every answer whole and
//! the newest one, nothing given to anybody that was purged before it was asked for, every waiter woken in the end.

use super::*;
use crate::purges::{How, Purge, What};
use crate::tags::Tags;
use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

const KEYS: usize = 2;
const CLIENTS: usize = 8;
const AGE: u64 = 5;
const FAILURE: Failure = Failure { cause: StaleCause::Status(503), status: 503, upstream: 0 };

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

type Waiting = Pin<Box<dyn Future<Output = Woken>>>;

enum Client {
    Idle,
    Asking(FillPermit),
    Filling(Box<Fill>, u64, usize),
    Waiting(Waiting),
    Following(Follower, Vec<u8>),
}

struct Simulation {
    fronts: Vec<Front>,
    clients: Vec<(usize, Client, Arc<Flag>)>,
    conf: &'static ProxyCache,
    now: Now,
    random: u64,
    next_fill: u64,
    /// Per key: the newest finished fill.
    newest: HashMap<usize, u64>,
    finished: HashSet<u64>,
    /// Per client: since when its fill has not moved, and whether it was given while no one had to wait.
    moved: HashMap<usize, (Now, bool)>,
    uncacheable_until: HashMap<usize, Now>,
    purges: Vec<Target>,
    /// Per client: how many purges there were when its fill was granted, and when it asked.
    granted_at: HashMap<usize, usize>,
    asked_at: HashMap<usize, usize>,
    /// Per fill: how many purges there were when it was granted.
    filled_at: HashMap<u64, usize>,
    /// Per fill: when it was granted, in the store's own order.
    orders: HashMap<u64, u64>,
    /// Per key: the latest of those that were stored, though a purge may have applied to it since.
    latest: HashMap<usize, u64>,
    hits: usize,
    refused: usize,
    told: usize,
}

/// A fill's number is odd or even, which is its tag.
#[derive(Debug, Clone, Copy)]
enum Target {
    Key(usize),
    Prefix(usize),
    Tag(u64),
    All,
}

impl Target {
    fn goes_for(self, key: usize, fill: Option<u64>) -> bool {
        match self {
            Target::Key(named) | Target::Prefix(named) => named == key,
            Target::Tag(tag) => fill.is_some_and(|fill| fill % 2 == tag),
            Target::All => true,
        }
    }
}

fn pieces(fill: u64) -> Vec<Bytes> {
    (0..fill % 4 + 1).map(|piece| Bytes::from(format!("{fill}:{piece};"))).collect()
}

fn whole(fill: u64) -> Vec<u8> {
    pieces(fill).concat()
}

fn tag_of(fill: u64) -> &'static str {
    ["even", "odd"][fill as usize % 2]
}

fn fill_of(body: &[u8]) -> u64 {
    let text = std::str::from_utf8(body).expect("text");
    text.split(':').next().and_then(|number| number.parse().ok()).expect("a fill's number")
}

impl Simulation {
    fn new(seed: u64, conf: &'static ProxyCache) -> Simulation {
        let store = store(&zone(None));
        Simulation {
            fronts: (0..3).map(|_| Front::new(store.clone())).collect(),
            clients: (0..CLIENTS).map(|_| (0, Client::Idle, Arc::new(Flag(AtomicBool::new(true))))).collect(),
            conf,
            now: start(),
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            next_fill: 1,
            newest: HashMap::new(),
            finished: HashSet::new(),
            moved: HashMap::new(),
            uncacheable_until: HashMap::new(),
            purges: Vec::new(),
            granted_at: HashMap::new(),
            asked_at: HashMap::new(),
            filled_at: HashMap::new(),
            orders: HashMap::new(),
            latest: HashMap::new(),
            hits: 0,
            refused: 0,
            told: 0,
        }
    }

    fn pick(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 20) as usize % below
    }

    fn step(&mut self) {
        if self.pick(6) == 0 {
            // Whoever is woken runs before time goes on.
            let woken = |(_, client, flag): &(usize, Client, Arc<Flag>)| {
                matches!(client, Client::Waiting(_)) && flag.0.load(Ordering::SeqCst)
            };
            while let Some(index) = self.clients.iter().position(woken) {
                self.act(index, true);
            }
            self.now = later(self.now, self.pick(3) as u64);
        }
        if self.pick(60) == 0 {
            self.purge();
        }
        let client = self.pick(CLIENTS);
        self.act(client, true);
    }

    fn purge(&mut self) {
        let key = self.pick(KEYS);
        let (target, what) = match self.pick(8) {
            0 | 1 => (Target::Key(key), What::Key(format!("key {key}").into())),
            2 | 3 => (Target::Prefix(key), What::Prefix(format!("key {key}").into())),
            4..7 => (Target::Tag(key as u64), What::Tag(tag_of(key as u64).into())),
            _ => (Target::All, What::All),
        };
        let how = if self.pick(2) == 0 { How::Hard } else { How::Soft };
        ready(self.fronts[0].store().purge_at(Purge { what, how }, self.now)).expect("there is no disk");
        self.purges.push(target);
        // Nothing of it is fresh any more, be it gone or stale.
        self.newest.retain(|key, fill| !target.goes_for(*key, Some(*fill)));
    }

    fn is_purged(&self, key: usize, fill: Option<u64>, from: usize, to: usize) -> bool {
        from < to && self.purges[from..to].iter().any(|target| target.goes_for(key, fill))
    }

    /// With `may_fail` false every fill goes on and succeeds.
    fn act(&mut self, index: usize, may_fail: bool) {
        let (key, client, flag) = &mut self.clients[index];
        let (key, flag) = (*key, flag.clone());
        let client = std::mem::replace(client, Client::Idle);
        let next = match client {
            Client::Idle if may_fail => {
                self.clients[index].0 = self.pick(KEYS);
                self.ask(index)
            }
            Client::Idle => Client::Idle,
            Client::Asking(permit) => self.asking(index, key, permit, may_fail),
            Client::Filling(fill, number, at) => self.filling(index, key, *fill, number, at, may_fail),
            Client::Waiting(waiting) => self.waiting(index, waiting, &flag),
            Client::Following(follower, read) => self.following(index, follower, read, &flag),
        };
        self.clients[index].1 = next;
    }

    fn ask(&mut self, index: usize) -> Client {
        let key = self.clients[index].0;
        let front = self.pick(3);
        self.asked_at.insert(index, self.purges.len());
        let name = format!("key {key}");
        match self.fronts[front].lookup(name.as_bytes(), Fields::default(), self.conf, self.now) {
            Lookup::Fresh(hit) => {
                self.hits += 1;
                let fill = fill_of(body(&hit));
                assert_eq!(body(&hit), whole(fill), "only whole answers are stored");
                assert_eq!(Some(&fill), self.newest.get(&key), "the newest is the stored one");
                Client::Idle
            }
            Lookup::Stale(_, None)
            | Lookup::Scarce
            | Lookup::Ahead(..)
            | Lookup::Apart(_)
            | Lookup::OwnWrite(_) => {
                panic!("not configured")
            }
            Lookup::Disk(_) => panic!("there is no disk"),
            Lookup::Miss(permit) | Lookup::Stale(_, Some(permit)) => self.granted(index, permit),
            Lookup::Busy(waiter, _) => {
                let (conf, now) = (self.conf, self.now);
                self.clients[index].2.0.store(true, Ordering::SeqCst);
                Client::Waiting(Box::pin(waiter.wait(Fields::default(), conf, now)))
            }
        }
    }

    fn granted(&mut self, index: usize, permit: FillPermit) -> Client {
        let key = self.clients[index].0;
        let free = self.uncacheable_until.get(&key).is_some_and(|until| self.now.instant < until.instant);
        for (other, (at, client, _)) in self.clients.iter().enumerate() {
            let fill = match client {
                Client::Asking(_) => None,
                Client::Filling(_, number, _) => Some(*number),
                _ => continue,
            };
            let purged = self.is_purged(key, fill, self.granted_at[&other], self.purges.len());
            if other == index || *at != key || purged {
                continue;
            }
            let (moved, beside) = self.moved.get_mut(&other).expect("it was granted once");
            let idle = self.now.instant.duration_since(moved.instant);
            let overtaken = idle >= Duration::from_secs(AGE);
            assert!(free || *beside || overtaken, "two fills at once; the other idle for {idle:?}");
            // Once it has been overtaken it goes on beside the line.
            *beside |= overtaken;
        }
        self.moved.insert(index, (self.now, free));
        self.granted_at.insert(index, self.purges.len());
        Client::Asking(permit)
    }

    fn asking(&mut self, index: usize, key: usize, permit: FillPermit, may_fail: bool) -> Client {
        match if may_fail { self.pick(6) } else { 5 } {
            0 if self.pick(2) == 0 => Client::Idle, // the permit is dropped
            0 => {
                permit.failed(503, Some(FAILURE), self.now);
                // After a second failure in a row, that is; here it may have been the first.
                let until = later(self.now, 1);
                let known = self.uncacheable_until.entry(key).or_insert(until);
                if known.instant < until.instant {
                    *known = until;
                }
                Client::Idle
            }
            1 if self.pick(3) == 0 => {
                let since = permit.grant().since.expect("it was looked up");
                let took = self.now.instant.duration_since(since).as_secs();
                permit.uncacheable(None, self.now);
                // Whoever still asks does so beside any line that comes.
                for (other, (at, client, _)) in self.clients.iter().enumerate() {
                    if *at == key && matches!(client, Client::Asking(_)) {
                        self.moved.get_mut(&other).expect("it was granted once").1 = true;
                    }
                }
                let until = later(self.now, 10 + 16 * took);
                let known = self.uncacheable_until.entry(key).or_insert(until);
                if known.instant < until.instant {
                    *known = until;
                }
                Client::Idle
            }
            1 | 2 => Client::Asking(permit), // stalls
            _ => {
                let number = self.next_fill;
                self.next_fill += 1;
                let length = number.is_multiple_of(2).then(|| whole(number).len() as u64);
                let mut head = head(&[], length, 3, self.now);
                let tags = headers(&[("xkey", tag_of(number))]);
                head.tags = Tags::read(tags.view(), std::iter::empty()).expect("few tags");
                self.filled_at.insert(number, self.granted_at[&index]);
                self.orders.insert(number, permit.grant().order);
                self.moved.insert(index, (self.now, self.moved[&index].1));
                Client::Filling(Box::new(permit.begin(head, Fields::default(), self.now)), number, 0)
            }
        }
    }

    fn filling(
        &mut self,
        index: usize,
        key: usize,
        mut fill: Fill,
        number: u64,
        at: usize,
        may_fail: bool,
    ) -> Client {
        match if may_fail { self.pick(12) } else { 11 } {
            0 => return Client::Idle, // cut
            1 if number.is_multiple_of(2) && at < pieces(number).len() => {
                assert!(ready(fill.finish()).is_none(), "shorter than announced");
                return Client::Idle;
            }
            2 | 3 => return Client::Filling(Box::new(fill), number, at), // stalls
            _ => {}
        }
        if let Some(piece) = pieces(number).get(at) {
            fill.push(piece.clone());
            ready(fill.ready());
            self.moved.insert(index, (self.now, self.moved[&index].1));
            return Client::Filling(Box::new(fill), number, at + 1);
        }
        let stored = ready(fill.finish()).is_some();
        self.finished.insert(number);
        let (from, to) = (self.granted_at[&index], self.purges.len());
        let purged = self.is_purged(key, Some(number), from, to);
        // Two keys may share the mark that a purge of one leaves.
        let marked = self.purges[from..].iter().any(|target| matches!(target, Target::Key(_)));
        // A right that was passed on is as old as that, not as its being taken.
        let memory = &self.fronts[0].store().memory;
        let name = format!("key {key}");
        let marked = marked || memory.purged_at(memory.hash(name.as_bytes())) > self.orders[&number];
        // One that was asked for later may have come first.
        let latest = self.latest.entry(key).or_default();
        let older = *latest > self.orders[&number];
        assert!(
            stored != purged || !stored && (marked || older),
            "{number} of key {key}: stored {stored}, purged {purged}, order {}, there {latest}",
            self.orders[&number]
        );
        self.refused += usize::from(!stored);
        if stored {
            *latest = self.orders[&number].max(*latest);
            self.newest.insert(key, number);
            self.uncacheable_until.remove(&key);
        }
        Client::Idle
    }

    fn waiting(&mut self, index: usize, mut waiting: Waiting, flag: &Arc<Flag>) -> Client {
        if !flag.0.swap(false, Ordering::SeqCst) {
            return Client::Waiting(waiting);
        }
        let waker = Waker::from(flag.clone());
        match waiting.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => Client::Waiting(waiting),
            Poll::Ready(Woken::Fill(permit)) => self.granted(index, permit),
            Poll::Ready(Woken::Retry) => self.ask(index),
            Poll::Ready(Woken::Streaming(follower)) => {
                flag.0.store(true, Ordering::SeqCst);
                Client::Following(follower, Vec::new())
            }
            Poll::Ready(Woken::Failed(failure)) => {
                assert_eq!(failure, FAILURE);
                self.told += 1;
                Client::Idle
            }
            Poll::Ready(Woken::Timeout) => panic!("no real time passes"),
        }
    }

    fn following(
        &mut self,
        index: usize,
        mut follower: Follower,
        mut read: Vec<u8>,
        flag: &Arc<Flag>,
    ) -> Client {
        if !flag.0.swap(false, Ordering::SeqCst) {
            return Client::Following(follower, read);
        }
        let waker = Waker::from(flag.clone());
        let polled = std::pin::pin!(follower.next()).poll(&mut Context::from_waker(&waker));
        match polled {
            Poll::Pending => return Client::Following(follower, read),
            Poll::Ready(Some(Ok(piece))) => {
                read.extend_from_slice(&piece);
                let fill = fill_of(&read);
                assert!(whole(fill).starts_with(&read), "pieces of one answer, in order");
                let (from, to) = (self.filled_at[&fill], self.asked_at[&index]);
                let purged = self.is_purged(self.clients[index].0, Some(fill), from, to);
                assert!(!purged, "reads along with what was purged before it asked");
                flag.0.store(true, Ordering::SeqCst);
                return Client::Following(follower, read);
            }
            Poll::Ready(Some(Err(_))) => {}
            Poll::Ready(None) => {
                let fill = fill_of(&read);
                assert_eq!(read, whole(fill));
                assert!(self.finished.contains(&fill), "an end is only seen where the fill ended well");
            }
        }
        Client::Idle
    }

    fn is_quiet(&self) -> bool {
        self.clients.iter().all(|(_, client, _)| matches!(client, Client::Idle))
    }
}

#[test]
fn whatever_happens_nobody_is_lost_and_nothing_wrong_is_stored() {
    let runtime = runtime();
    let _guard = runtime.enter();
    let conf: &'static ProxyCache = Box::leak(Box::new(conf()));
    let (mut hits, mut refused, mut told) = (0, 0, 0);
    for seed in 0..4000 {
        let mut simulation = Simulation::new(seed, conf);
        for _ in 0..250 {
            simulation.step();
        }
        // From here on everything goes well: then everybody must come to an end.
        let mut rounds = 0;
        while !simulation.is_quiet() {
            (0..CLIENTS).for_each(|client| simulation.act(client, false));
            rounds += 1;
            assert!(rounds < 1000, "seed {seed}: somebody waits for ever");
        }
        hits += simulation.hits;
        refused += simulation.refused;
        told += simulation.told;
        let store = simulation.fronts[0].store().clone();
        (0..KEYS).for_each(|key| _ = store.invalidate(format!("key {key}").as_bytes()));
        assert_eq!(
            (store.stats().keys, store.stats().memory_bytes),
            (0, 0),
            "seed {seed}: something is left"
        );
    }
    assert!(hits > 10_000, "too few hits to mean anything: {hits}");
    assert!(refused > 1_000, "too few fills that a purge went for to mean anything: {refused}");
    assert!(told > 500, "too few who were told of two failures: {told}");
}
