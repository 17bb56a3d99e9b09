//! `cargo xtask bench memory`: bytes per entry beyond its content, and the longest that one operation holds a thread.
//!
//! Content is the text of the key, the names and values of the fields, and the body. What the process grows by comes from
//! `/proc/self/status`; pauses are counted in the thread's own time on a core, so that a busy machine does not show.

use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};

use millstream_tests::process::resident_bytes;

use super::zone::{Zone, headers};

const ENTRIES: u64 = 1_000_000;
const BODY: usize = 100;
const KEY: usize = 40;

/// Fields as many answers have them: names that the product's table has, and none of them.
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

/// Prints a table, one line for each kind of fields.
pub fn measure() {
    println!("{ENTRIES} entries: a key of {KEY} bytes, five fields, a body of {BODY} bytes");
    println!(
        "| fields | content | process, beyond | budget, beyond | budget / process | longest store | longest look-up | back after removal |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for (name, lines) in [("usual names", USUAL), ("unknown names", UNKNOWN)] {
        println!("{}", row(name, lines));
    }
}

fn row(name: &str, lines: &[(&str, &str)]) -> String {
    let headers = headers(lines);
    let body = Bytes::from(vec![b'b'; BODY]);
    let fields: usize = lines.iter().map(|(name, value)| name.len() + value.len()).sum();
    let content = (KEY + fields + BODY) as f64;
    let mut zone = Zone::open(4 << 30, 2 * ENTRIES);
    let mut key = Vec::with_capacity(KEY);
    // Allocators and handles grow to their working size first.
    for number in 0..20_000 {
        write_key(u64::MAX - number, &mut key);
        zone.ask(&key, headers.view(), &body);
        zone.store.invalidate(&key);
    }
    let (before, counted) = (resident(), zone.store.stats().memory_bytes);
    let store = longest(0..ENTRIES, |number| {
        write_key(number, &mut key);
        assert!(!zone.ask(&key, headers.view(), &body));
    });
    let (process, budget) = (resident() - before, zone.store.stats().memory_bytes - counted);
    assert_eq!(zone.store.stats().keys, ENTRIES);
    let look_up = longest(0..ENTRIES, |number| {
        write_key(number * 7919 % ENTRIES, &mut key);
        assert!(zone.ask(&key, headers.view(), &body));
    });
    for number in 0..ENTRIES {
        write_key(number, &mut key);
        zone.store.invalidate(&key);
    }
    assert_eq!((zone.store.stats().keys, zone.store.stats().memory_bytes), (0, 0));
    let beyond = |bytes: u64| bytes as f64 / ENTRIES as f64 - content;
    format!(
        "| {name} | {content:.0} | {:.0} | {:.0} | {:.2} | {store:.0} µs | {look_up:.0} µs | {:.0} % |",
        beyond(process),
        beyond(budget),
        budget as f64 / process as f64,
        100.0 - resident().saturating_sub(before) as f64 / process as f64 * 100.0,
    )
}

/// As long as keys of APIs are, with what differs at the end.
fn write_key(number: u64, key: &mut Vec<u8>) {
    key.clear();
    key.extend_from_slice(format!("httpapi.example/v1/{number:021}").as_bytes());
    debug_assert_eq!(key.len(), KEY);
}

/// The longest of many, in microseconds of the thread's own time.
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
