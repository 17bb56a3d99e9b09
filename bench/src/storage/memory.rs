//! `cargo xtask bench memory`: bytes per entry beyond its content, and the longest that one operation holds a thread.
//!
//! Content is the text of the key, the names and values of the fields, and the body. What the process grows by is its
//! anonymous memory in `/proc/self/status`. Pauses are counted in the thread's own time on a core, and of three rounds
//! the least counts: what the machine does to a thread differs from round to round, what the store does is the same.

use bytes::Bytes;
use millstream_cache::key::Parts;
use rustix::time::{ClockId, clock_gettime};

use millstream_tests::process::resident_bytes;

use super::zone::{Zone, headers};

const ENTRIES: u64 = 1_000_000;
const BODY: usize = 100;
const KEY: usize = 40;
const ROUNDS: usize = 3;

/// Fields with common names, which the product's table holds, and with names unknown to it.
pub(crate) const KINDS: &[(&str, &[(&str, &str)])] = &[("usual", USUAL), ("unknown", UNKNOWN)];
const USUAL: &[(&str, &str)] = &[
    ("Content-Type", "application/json"),
    ("Cache-Control", "public, max-age=60"),
    ("ETag", "\"5f0c8a71b2e4\""),
    ("Last-Modified", "Sat, 21 Nov 2026 10:00:00 GMT"),
    ("Server", "gunicorn"),
];
const UNKNOWN: &[(&str, &str)] = &[
    ("x-content-typ", "application/json"),
    ("x-cache-control", "public, max-age=60"),
    ("x-tag", "\"5f0c8a71b2e4\""),
    ("x-last-modified", "Sat, 21 Nov 2026 10:00:00 GMT"),
    ("x-server", "gunicorn"),
];

pub(crate) fn heading() -> String {
    format!(
        "{ENTRIES} entries: a key of {KEY} bytes from three variables, five fields, a body of {BODY} bytes; bytes per entry\n\
         | names of fields | content | process, beyond content | budget, beyond content | budget / process | longest store | longest look-up |\n\
         | --- | --- | --- | --- | --- | --- | --- |"
    )
}

/// False if there is no such kind.
pub fn measure(kind: &str) -> bool {
    let Some((_, lines)) = KINDS.iter().find(|(name, _)| *name == kind) else { return false };
    let headers = headers(lines);
    let fields: usize = lines.iter().map(|(name, value)| name.len() + value.len()).sum();
    let content = (KEY + fields + BODY) as f64;
    let body = Bytes::from(vec![b'b'; BODY]);
    let mut zone = Zone::open(1 << 30, 2 * ENTRIES);
    let mut key = Vec::with_capacity(2 * KEY);
    // Allocators and handles grow to their working size first.
    for number in 0..20_000 {
        write_key(u64::MAX - number, &mut key);
        zone.ask(&key, headers.view(), &body);
        zone.store.invalidate(&key);
    }
    let (before, counted) = (resident(), zone.store.stats().memory_bytes);
    let (mut process, mut budget) = (0, 0);
    let (mut store, mut look_up) = (f64::MAX, f64::MAX);
    for round in 0..ROUNDS {
        store = store.min(longest(0..ENTRIES, |number| {
            write_key(number, &mut key);
            assert!(!zone.ask(&key, headers.view(), &body));
        }));
        if round == 0 {
            (process, budget) = (resident() - before, zone.store.stats().memory_bytes - counted);
        }
        assert_eq!(zone.store.stats().keys, ENTRIES);
        look_up = look_up.min(longest(0..ENTRIES, |number| {
            write_key(number * 7919 % ENTRIES, &mut key);
            assert!(zone.ask(&key, headers.view(), &body));
        }));
        for number in 0..ENTRIES {
            write_key(number, &mut key);
            zone.store.invalidate(&key);
        }
        assert_eq!((zone.store.stats().keys, zone.store.stats().memory_bytes), (0, 0));
    }
    let beyond = |bytes: u64| bytes as f64 / ENTRIES as f64 - content;
    println!(
        "| {kind} | {content:.0} | {:.0} | {:.0} | {:.2} | {store:.0} µs | {look_up:.0} µs |",
        beyond(process),
        beyond(budget),
        budget as f64 / process as f64,
    );
    true
}

/// As long as keys of APIs, and different at the end: `$scheme$host$request_uri`.
fn write_key(number: u64, key: &mut Vec<u8>) {
    key.clear();
    let mut parts = Parts::default();
    for part in ["http", "api.example", &format!("/v1/{number:021}")] {
        let start = key.len();
        key.extend_from_slice(part.as_bytes());
        parts.note(start, key.len());
    }
    assert_eq!(key.len(), KEY);
    parts.close(key).expect("it is short");
}

/// The longest call, in microseconds of the thread's CPU.
fn longest(numbers: std::ops::Range<u64>, mut each: impl FnMut(u64)) -> f64 {
    let mut longest = 0;
    let mut last = thread_nanoseconds();
    for number in numbers {
        each(number);
        let now = thread_nanoseconds();
        longest = longest.max(now - last);
        last = now;
    }
    longest as f64 / 1000.0
}

fn thread_nanoseconds() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn resident() -> u64 {
    resident_bytes(std::process::id())
}
