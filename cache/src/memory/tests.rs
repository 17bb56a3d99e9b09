//! The bound holds whatever comes, and what is used stays.

use crate::front::{Front, Lookup};
use crate::samples::{conf, fill, start, store, zone};
use bytes::Bytes;
use millstream_conf::model::CacheZone;
use millstream_wire::Fields;
use std::time::Duration;

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
            && let Some(permit) = store.claim_gzip(&hit.entry)
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
