//! Who fills and who waits, in every order in which threads may take the locks (`cargo xtask check loom`).
//!
//! Threads do what requests do, through the cache's public door. Loom tries the orders and fails where one leaves a thread
//! waiting for ever; what a thread sees is asserted in each. Preemptions are bounded, see [`explore`]. Time stands
//! still, so no deadline ever wakes anybody. The simulation in `front/tests` covers long histories; this, all short ones.

use bytes::Bytes;
use loom::future::block_on;
use loom::thread;
use millstream_cache::policy::{Lifetime, Revalidation};
use millstream_cache::{
    Failure, Fill, FillPermit, Follower, Front, Lookup, Now, StaleCause, Store, StoredHead, Waiter, Woken,
};
use millstream_conf::model::{CacheZone, ProxyCache, Template};
use millstream_wire::Fields;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

const KEY: &[u8] = b"key";
/// Preemptions in one order; nearly all locking errors need two. With a third thread the orders are many
/// more.
const TWO_THREADS: usize = 3;
const THREE_THREADS: usize = 2;

/// Tries every order of what `model` starts.
fn explore(preemptions: usize, model: impl Fn(World) + Send + Sync + 'static) {
    // Waiting sets deadlines, which belong to a runtime; none of them passes.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let _entered = runtime.enter();
    let now = Now::read();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || model(World::new(now)));
}

#[derive(Clone)]
struct World {
    store: Arc<Store>,
    conf: Arc<ProxyCache>,
    now: Now,
}

impl World {
    fn new(now: Now) -> World {
        // The smallest zone has one lock for all keys, so that which one is taken does not depend on chance.
        let zone = CacheZone { name: "zone".to_owned(), memory: 1, ..CacheZone::default() };
        let store = Store::open(&zone, None, Default::default()).expect("a zone in memory opens");
        let conf = Arc::new(ProxyCache { key: Template::literal("k"), lock: true, ..ProxyCache::default() });
        World { store, conf, now }
    }

    fn look_up(&self) -> Lookup {
        Front::new(self.store.clone()).lookup(KEY, Fields::default(), &self.conf, self.now)
    }

    fn permit(&self) -> FillPermit {
        match self.look_up() {
            Lookup::Miss(permit) => permit,
            other => panic!("the first is to fill: {other:?}"),
        }
    }

    fn waiter(&self) -> Waiter {
        match self.look_up() {
            Lookup::Busy(waiter, _) => waiter,
            other => panic!("somebody fills: {other:?}"),
        }
    }

    fn wait(&self, waiter: Waiter) -> Woken {
        block_on(waiter.wait(Fields::default(), &self.conf, self.now))
    }

    fn begin(&self, permit: FillPermit) -> Fill {
        let lifetime = Lifetime {
            fresh_until: i64::MAX,
            initial_age: Duration::ZERO,
            stale_while_revalidate: None,
            stale_if_error: None,
            revalidation: Revalidation::Free,
            vary: Default::default(),
            public: false,
            always_validate: false,
        };
        let head = StoredHead::new(200, Fields::default(), None, lifetime, self.now);
        permit.begin(head, Fields::default(), self.now)
    }

    fn fill(&self, permit: FillPermit) {
        let mut fill = self.begin(permit);
        fill.push(Bytes::from_static(b"one"));
        fill.push(Bytes::from_static(b"two"));
        block_on(fill.finish());
    }

    /// A request from look-up to end: what it got, having filled if that was its turn.
    fn request(&self) -> Vec<u8> {
        let mut lookup = self.look_up();
        for _ in 0..4 {
            let waiter = match lookup {
                Lookup::Fresh(hit) => return hit.body_in_memory().expect("it is small").to_vec(),
                Lookup::Miss(permit) => {
                    self.fill(permit);
                    return b"onetwo".to_vec();
                }
                Lookup::Busy(waiter, _) => waiter,
                other => panic!("{other:?}"),
            };
            match self.wait(waiter) {
                Woken::Fill(permit) => {
                    self.fill(permit);
                    return b"onetwo".to_vec();
                }
                Woken::Streaming(follower) => {
                    if let Some(body) = read(follower) {
                        return body;
                    }
                }
                Woken::Retry => {}
                Woken::Failed(failure) => panic!("{failure:?}"),
                Woken::Timeout => panic!("no time passes"),
            }
            lookup = self.look_up();
        }
        panic!("asked again and again");
    }

    /// No right is held any more and the next request may fill, or gets a response.
    fn assert_unlocked(&self) {
        assert!(matches!(self.look_up(), Lookup::Miss(_) | Lookup::Fresh(_)), "the key is locked");
    }
}

/// `None` if it broke off.
fn read(mut follower: Follower) -> Option<Vec<u8>> {
    block_on(async {
        let mut body = Vec::new();
        while let Some(piece) = follower.next().await {
            body.extend_from_slice(&piece.ok()?);
        }
        Some(body)
    })
}

/// Polls once, as a request does whose client then leaves.
fn begin_to_wait(world: &World, waiter: Waiter) {
    let wait = pin!(waiter.wait(Fields::default(), &world.conf, world.now));
    let _ = wait.poll(&mut Context::from_waker(Waker::noop()));
}

#[test]
fn a_permit_that_is_dropped_goes_to_whoever_asks_meanwhile() {
    explore(TWO_THREADS, |world| {
        let permit = world.permit();
        let other = world.clone();
        let asking = thread::spawn(move || assert_eq!(other.request(), b"onetwo"));
        drop(permit);
        asking.join().expect("it is answered");
        assert!(matches!(world.look_up(), Lookup::Fresh(_)));
    });
}

#[test]
fn a_waiter_that_leaves_while_it_is_told_passes_the_right_on() {
    explore(THREE_THREADS, |world| {
        let permit = world.permit();
        let (leaving, staying) = (world.waiter(), world.waiter());
        let (one, other) = (world.clone(), world.clone());
        let leaves = thread::spawn(move || begin_to_wait(&one, leaving));
        let stays = thread::spawn(move || match other.wait(staying) {
            Woken::Fill(permit) => other.fill(permit),
            outcome => panic!("{outcome:?}"),
        });
        drop(permit);
        leaves.join().expect("it left");
        stays.join().expect("it was told");
        assert!(matches!(world.look_up(), Lookup::Fresh(_)));
    });
}

#[test]
fn waiters_that_all_leave_leave_the_key_unlocked() {
    explore(THREE_THREADS, |world| {
        let permit = world.permit();
        let waiters = [world.waiter(), world.waiter()];
        let leaving = waiters.map(|waiter| {
            let world = world.clone();
            thread::spawn(move || begin_to_wait(&world, waiter))
        });
        drop(permit);
        let _ = leaving.map(|thread| thread.join().expect("it left"));
        world.assert_unlocked();
    });
}

#[test]
fn two_waiters_read_along_or_find_it_stored() {
    explore(THREE_THREADS, |world| {
        let permit = world.permit();
        let waiting = [world.waiter(), world.waiter()].map(|waiter| {
            let world = world.clone();
            thread::spawn(move || match world.wait(waiter) {
                Woken::Streaming(follower) => assert_eq!(read(follower).as_deref(), Some(&b"onetwo"[..])),
                outcome => panic!("{outcome:?}"),
            })
        });
        world.fill(permit);
        let _ = waiting.map(|thread| thread.join().expect("it has the answer"));
    });
}

#[test]
fn whoever_joins_while_the_answer_begins_has_all_of_it() {
    explore(TWO_THREADS, |world| {
        let permit = world.permit();
        let other = world.clone();
        let asking = thread::spawn(move || assert_eq!(other.request(), b"onetwo"));
        world.fill(permit);
        asking.join().expect("it has the answer");
    });
}

#[test]
fn a_fill_that_breaks_off_tells_its_readers_and_the_next_one_fills() {
    explore(TWO_THREADS, |world| {
        let permit = world.permit();
        let waiter = world.waiter();
        let other = world.clone();
        let asking = thread::spawn(move || match other.wait(waiter) {
            Woken::Streaming(follower) => assert_eq!(read(follower), None, "it is not whole"),
            Woken::Retry => {}
            outcome => panic!("{outcome:?}"),
        });
        let mut fill = world.begin(permit);
        fill.push(Bytes::from_static(b"one"));
        drop(fill);
        asking.join().expect("it knows");
        assert!(matches!(world.look_up(), Lookup::Miss(_)));
    });
}

#[test]
fn an_answer_that_cannot_be_stored_sends_waiters_on_their_own() {
    explore(THREE_THREADS, |world| {
        let permit = world.permit();
        let waiting = [world.waiter(), world.waiter()].map(|waiter| {
            let world = world.clone();
            thread::spawn(move || assert!(matches!(world.wait(waiter), Woken::Retry)))
        });
        permit.uncacheable(None, world.now);
        let _ = waiting.map(|thread| thread.join().expect("it goes on"));
        assert!(matches!(world.look_up(), Lookup::Miss(_)));
    });
}

#[test]
fn after_two_failures_every_waiter_is_told_and_the_key_is_unlocked() {
    let failure = Failure { cause: StaleCause::Timeout, status: 504, upstream: 0 };
    explore(THREE_THREADS, move |world| {
        let permit = world.permit();
        let waiting = [world.waiter(), world.waiter()].map(|waiter| {
            let world = world.clone();
            thread::spawn(move || match world.wait(waiter) {
                Woken::Fill(permit) => {
                    permit.failed(504, Some(failure), world.now);
                    true
                }
                Woken::Failed(told) => told != failure,
                outcome => panic!("{outcome:?}"),
            })
        });
        permit.failed(504, Some(failure), world.now);
        let tried = waiting.map(|thread| thread.join().expect("it knows"));
        assert_eq!(tried, [true, false], "one more tries, and the other is told");
        world.assert_unlocked();
    });
}

#[test]
fn a_fill_that_began_before_a_purge_is_not_stored() {
    explore(TWO_THREADS, |world| {
        let permit = world.permit();
        let other = world.clone();
        let purging = thread::spawn(move || other.store.invalidate(KEY));
        world.fill(permit);
        purging.join().expect("it ends");
        assert!(matches!(world.look_up(), Lookup::Miss(_)));
    });
}

#[test]
fn an_answer_that_is_only_passed_on_waits_for_its_slowest_reader() {
    explore(TWO_THREADS, |world| {
        // Larger than what is stored, so that it passes through a window.
        let length = world.store.largest_body() + 1;
        let mut fill = world.begin(world.permit());
        let follower = fill.follow().expect("nothing has come yet");
        let reading = thread::spawn(move || read(follower).map(|body| body.len() as u64));
        fill.push(Bytes::from(vec![0; length as usize]));
        block_on(fill.ready());
        fill.push(Bytes::from(vec![0; length as usize]));
        block_on(fill.ready());
        block_on(fill.finish());
        assert_eq!(reading.join().expect("it has read"), Some(2 * length));
    });
}
