//! The bound holds whatever comes, and what is used stays.

use crate::Now;
use crate::fill::Fill;
use crate::front::{Front, Lookup};
use crate::permit::{self, FillPermit};
use crate::progress::Follower;
use crate::samples::{begin, conf, fill, headers, ready, start, store, zone};
use crate::store::CodingPermit;
use bytes::Bytes;
use millstream_conf::model::{CacheZone, ProxyCache};
use millstream_wire::{Coding, Fields};
use proptest::prelude::*;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

mod variants;

fn small(memory: u64, keys_size: u64) -> CacheZone {
    CacheZone { memory, keys_size, ..zone(None) }
}

fn is_hit(front: &mut Front, key: &str) -> bool {
    matches!(front.lookup(key.as_bytes(), Fields::default(), &conf(), start()), Lookup::Fresh(_))
}

#[test]
fn the_bound_on_bytes_is_never_passed() {
    let store = store(&small(1 << 20, 10 << 20));
    let mut front = Front::new(store.clone());
    for number in 0..3000u32 {
        let body = vec![7; (number as usize * 7919) % 20_000];
        fill(&mut front, format!("key {number}").as_bytes(), &body, start());
        let stats = store.stats();
        assert!(stats.memory_bytes <= stats.memory_limit, "{stats:?}");
    }
    let stats = store.stats();
    assert!(stats.evictions > 1000 && stats.memory_bytes > (1 << 20) / 2, "{stats:?}");
}

#[test]
fn the_bound_on_keys_is_never_passed_and_misses_count() {
    let store = store(&small(1 << 20, 128 * 50));
    let mut front = Front::new(store.clone());
    for number in 0..500u32 {
        drop(front.lookup(format!("key {number}").as_bytes(), Fields::default(), &conf(), start()));
        assert!(store.stats().keys <= 50);
    }
}

#[test]
fn everything_that_is_counted_is_given_back() {
    let store = store(&small(1 << 20, 10 << 20));
    let mut front = Front::new(store.clone());
    for number in 0..200u32 {
        let key = format!("key {}", number % 20);
        fill_again(&mut front, &key, number as usize * 10);
        if let Lookup::Fresh(hit) = front.lookup(key.as_bytes(), Fields::default(), &conf(), start())
            && let Some(permit) = CodingPermit::claim(&store, &hit.entry, Coding::ALL[number as usize % 3])
        {
            assert!(permit.set(Bytes::from(vec![1; 50])));
        }
        if number % 3 == 0 {
            store.invalidate(key.as_bytes());
        }
    }
    for number in 0..20 {
        store.invalidate(format!("key {number}").as_bytes());
    }
    let stats = store.stats();
    assert_eq!((stats.keys, stats.memory_bytes), (0, 0));
}

fn fill_again(front: &mut Front, key: &str, length: usize) {
    front.store().clone().invalidate(key.as_bytes());
    fill(front, key.as_bytes(), &vec![1; length], start());
}

#[test]
fn a_scan_does_not_push_out_what_is_used() {
    let store = store(&small(4 << 20, 100 << 20));
    let mut front = Front::new(store);
    let hot: Vec<String> = (0..200).map(|number| format!("hot {number}")).collect();
    for key in &hot {
        fill(&mut front, key.as_bytes(), &[1; 1000], start());
        assert!(is_hit(&mut front, key));
    }
    for number in 0..20_000 {
        fill(&mut front, format!("scan {number}").as_bytes(), &[1; 1000], start());
        // A hot key is asked for once while some 4,000 others pass, a whole round of the hand.
        is_hit_or_refilled(&mut front, &hot[number % 200]);
    }
    let kept = hot.iter().filter(|key| is_hit(&mut front, key)).count();
    assert!(kept >= 190, "{kept} of 200");
}

fn is_hit_or_refilled(front: &mut Front, key: &str) {
    if !is_hit(front, key) {
        fill(front, key.as_bytes(), &[1; 1000], start());
    }
}

#[test]
fn what_is_unused_for_too_long_goes_and_what_is_used_stays() {
    let store = store(&small(4 << 20, 100 << 20));
    let mut front = Front::new(store.clone());
    let mut now = start();
    for key in ["used", "unused"] {
        fill(&mut front, key.as_bytes(), b"body", now);
    }
    for _ in 0..5 {
        now = now.after(Duration::from_secs(300));
        assert!(!matches!(front.lookup(b"used", Fields::default(), &conf(), now), Lookup::Miss(_)));
        store.maintain(now);
    }
    assert_eq!(store.stats().keys, 1);
}

#[test]
fn the_round_of_a_second_is_done_whichever_worker_is_left_to_do_it() {
    let store = store(&small(4 << 20, 100 << 20));
    let mut front = Front::new(store.clone());
    let mut now = start();
    fill(&mut front, b"unused", b"body", now);
    // Two workers, then one, then another: nobody's number matters.
    for callers in [2, 1, 3] {
        now = now.after(Duration::from_secs(1));
        (0..callers).for_each(|_| store.maintain_when_due(now));
    }
    assert_eq!(store.stats().keys, 1, "it is not unused for long");
    now = now.after(Duration::from_secs(3600));
    store.maintain_when_due(now);
    for _ in 0..8 {
        now = now.after(Duration::from_secs(1));
        store.maintain_when_due(now);
    }
    assert_eq!(store.stats().keys, 0);
    let rounds = |now: Now| (0..5).filter(|_| store.is_round_due(now)).count();
    assert_eq!(rounds(now.after(Duration::from_millis(100))), 0, "a second has not passed");
    assert_eq!(rounds(now.after(Duration::from_secs(1))), 1, "one of five does it");
    assert_eq!(rounds(start()), 1, "a clock that was set back puts nothing off");
}

#[test]
fn threads_that_fill_at_once_stay_within_the_bound() {
    let store = store(&small(1 << 20, 10 << 20));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = store.clone();
            scope.spawn(move || {
                let mut front = Front::new(store.clone());
                for number in 0..500 {
                    fill(&mut front, format!("{thread} {number}").as_bytes(), &[1; 5000], start());
                    assert!(store.stats().memory_bytes <= 1 << 20);
                }
            });
        }
    });
}

#[derive(Default)]
struct Held {
    permits: Vec<FillPermit>,
    fills: Vec<Fill>,
    waiters: Vec<permit::Waiter>,
    followers: Vec<Follower>,
}

#[derive(Debug, Clone)]
enum Step {
    Ask { key: u8, variant: u8 },
    Begin { varies: bool, variant: u8 },
    Push { length: usize },
    Finish,
    Uncacheable,
    GiveBack,
    Abort,
    Leave,
    Code { key: u8, coding: Coding },
    Purge { key: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..20u8, 0..4u8).prop_map(|(key, variant)| Step::Ask { key, variant }),
        3 => (any::<bool>(), 0..4u8).prop_map(|(varies, variant)| Step::Begin { varies, variant }),
        4 => (0..200_000usize).prop_map(|length| Step::Push { length }),
        3 => Just(Step::Finish),
        1 => Just(Step::Uncacheable),
        1 => Just(Step::GiveBack),
        1 => Just(Step::Abort),
        1 => Just(Step::Leave),
        1 => (0..20u8, 0..3usize).prop_map(|(key, coding)| Step::Code { key, coding: Coding::ALL[coding] }),
        1 => (0..20u8).prop_map(|key| Step::Purge { key }),
    ]
}

fn take(front: &mut Front, held: &mut Held, conf: &ProxyCache, step: Step) {
    let name = |key: u8| format!("key {key}").into_bytes();
    let request = |variant: u8| headers(&[("X-A", &"v".repeat(variant as usize * 50))]);
    match step {
        Step::Ask { key, variant } => {
            match front.lookup(&name(key), request(variant).view(), conf, start()) {
                Lookup::Miss(permit) | Lookup::Stale(_, Some(permit)) => held.permits.push(permit),
                Lookup::Busy(waiter, _) => held.waiters.push(waiter),
                _ => {}
            }
        }
        Step::Begin { varies, variant } => {
            let Some(permit) = held.permits.pop() else { return };
            let lines: &[(&str, &str)] = if varies { &[("Vary", "X-A"), ("Cache-Tag", "a b")] } else { &[] };
            let fill = begin(permit, lines, request(variant).view(), start());
            held.followers.extend(fill.follow());
            held.fills.push(fill);
        }
        Step::Push { length } => {
            let Some(mut fill) = held.fills.pop() else { return };
            fill.push(Bytes::from(vec![1; length]));
            let polled = pin!(fill.ready()).poll(&mut Context::from_waker(Waker::noop()));
            // One that is only passed on waits for its readers, who never come: its request gives up.
            if polled.is_ready() {
                held.fills.insert(0, fill);
            }
        }
        Step::Finish => _ = held.fills.pop().map(|fill| ready(fill.finish())),
        Step::Uncacheable => _ = held.permits.pop().map(|permit| permit.uncacheable(None, start())),
        Step::GiveBack => drop(held.permits.pop()),
        Step::Abort => drop(held.fills.pop()),
        Step::Leave => drop((held.waiters.pop(), held.followers.pop())),
        Step::Code { key, coding } => {
            let found = front.lookup(&name(key), Fields::default(), conf, start());
            if let Lookup::Fresh(hit) = found
                && let Some(permit) = CodingPermit::claim(front.store(), &hit.entry, coding)
            {
                permit.set(Bytes::from(vec![1; 5000]));
            }
        }
        Step::Purge { key } => _ = front.store().clone().invalidate(&name(key)),
    }
}

proptest! {
    #[test]
    fn the_count_never_passes_the_bound_and_returns_to_nothing(steps in proptest::collection::vec(step(), 0..300)) {
        let store = store(&small(1 << 20, 10 << 20));
        let (mut front, conf, mut held) = (Front::new(store.clone()), conf(), Held::default());
        for step in steps {
            take(&mut front, &mut held, &conf, step);
            let stats = store.stats();
            prop_assert!(stats.memory_bytes <= stats.memory_limit, "{:?}", stats);
            prop_assert!(stats.filling_bytes <= stats.memory_limit / 2, "{:?}", stats);
        }
        drop(held);
        (0..20).for_each(|key| _ = store.invalidate(format!("key {key}").as_bytes()));
        let stats = store.stats();
        prop_assert_eq!((stats.keys, stats.memory_bytes, stats.filling_bytes), (0, 0, 0));
    }
}

#[test]
fn a_flood_of_slow_answers_is_bounded_and_leaves_what_is_stored() {
    let store = store(&small(1 << 20, 10 << 20));
    let mut front = Front::new(store.clone());
    for number in 0..100 {
        fill(&mut front, format!("stored {number}").as_bytes(), &[1; 2000], start());
        assert!(is_hit(&mut front, &format!("stored {number}")));
    }
    let mut slow: Vec<Fill> = Vec::new();
    for number in 0..500 {
        let key = format!("slow {number}");
        let Lookup::Miss(permit) = front.lookup(key.as_bytes(), Fields::default(), &conf(), start()) else {
            continue;
        };
        let mut fill = begin(permit, &[], Fields::default(), start());
        fill.push(Bytes::from(vec![1; 10_000]));
        ready(fill.ready());
        slow.push(fill);
    }
    let stats = store.stats();
    assert!(stats.filling_bytes <= 512 << 10 && stats.filling_bytes > 400 << 10, "{stats:?}");
    assert!(slow.iter().any(|fill| !fill.is_storing()), "the others are only passed on");
    assert!((0..100).filter(|number| is_hit(&mut front, &format!("stored {number}"))).count() >= 90);
    drop(slow);
    assert_eq!(store.stats().filling_bytes, 0);
}
