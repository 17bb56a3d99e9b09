//! Leaves of the `cache` crate: hashing a key, and a hit through a worker's own handles.
//!
//! The store is one in memory with a few entries, each with a handle of its own.

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use millstream_cache::key::Parts;
use millstream_cache::policy::{Lifetime, Revalidation};
use millstream_cache::{Front, Lookup, Now, Store, StoredHead};
use millstream_conf::model::{CacheZone, ProxyCache, Template};
use millstream_wire::Fields;

use crate::Leaf;

/// All leaves of this file.
pub const LEAVES: &[Leaf] = &[
    Leaf { name: "key", what: "make a cache key of three parts, 40 bytes of text, and hash it", run: key },
    Leaf { name: "lookup", what: "look a hot key of 40 bytes of text up, 64 of them in turn", run: lookup },
];

/// So few that every seed of the hash has a handle for each: a look-up that falls through is another piece of work.
const KEYS: usize = 64;

fn store() -> Arc<Store> {
    let zone = CacheZone {
        name: "leaf".to_owned(),
        span: Default::default(),
        path: None,
        levels: vec![],
        keys_size: 10 << 20,
        inactive: Duration::from_secs(600),
        max_size: None,
        min_free: 0,
        use_temp_path: false,
        memory: 64 << 20,
        ..CacheZone::default()
    };
    Store::open(&zone, None, Default::default()).expect("a zone in memory opens")
}

fn conf() -> ProxyCache {
    ProxyCache { key: Template::literal("k"), ..ProxyCache::default() }
}

/// Any moment: the profiler does not get past the first reading of the product's clock.
#[allow(clippy::disallowed_methods, reason = "any instant will do")]
fn now() -> Now {
    Now { unix_milliseconds: 1_795_255_200_000, instant: std::time::Instant::now() }
}

fn keys() -> Vec<Vec<u8>> {
    (0..KEYS).map(|number| made(Vec::new(), format!("/api/books/page/{number:06}").as_bytes())).collect()
}

/// The key of `$scheme$proxy_host$request_uri`, in the buffer.
fn made(mut buffer: Vec<u8>, uri: &[u8]) -> Vec<u8> {
    buffer.clear();
    let mut places = Parts::default();
    for part in [b"http".as_slice(), b"127.0.0.1:8000", uri] {
        let start = buffer.len();
        buffer.extend_from_slice(black_box(part));
        places.note(start, buffer.len());
    }
    assert_eq!(places.close(&mut buffer), Ok(()));
    buffer
}

fn fill(front: &mut Front, key: &[u8], conf: &ProxyCache, now: Now) {
    let Lookup::Miss(permit) = front.lookup(key, Fields::default(), conf, now) else { return };
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
    let head = StoredHead::new(200, Fields::default(), None, lifetime, now);
    let fill = permit.begin(head, Fields::default(), now);
    // A body in memory has nothing to wait for.
    let finished = pin!(fill.finish()).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(finished, Poll::Ready(Some(_))));
}

fn key(times: u64) {
    let (store, mut buffer) = (store(), Vec::with_capacity(256));
    for _ in 0..times {
        buffer = made(buffer, black_box(b"/api/books/page/000017"));
        black_box(store.hash(black_box(&buffer)));
    }
}

fn lookup(times: u64) {
    let (conf, now, keys) = (conf(), now(), keys());
    let mut front = Front::new(store());
    keys.iter().for_each(|key| fill(&mut front, key, &conf, now));
    // Once around puts every handle in its place.
    for at in 0..KEYS as u64 + times {
        let key = &keys[at as usize % KEYS];
        let found = front.lookup(black_box(key), Fields::default(), &conf, now);
        assert!(matches!(found, Lookup::Fresh(_)));
        black_box(&found);
    }
}
