//! A purge by tag among a million entries in memory, and the look-ups of another thread before, during and after it.
//! `purge [ENTRIES]`
//!
//! Fills a zone, has a thread look keys without the tag up all the time, purges, and checks afterwards every key that
//! had the tag and a sample of the others. Exits with 1 where something purged is still answered or anything else is
//! not. The same purge in a zone with files tells what the journal takes.

use std::future::Future;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use millstream_cache::policy::{Lifetime, Revalidation};
use millstream_cache::{Front, How, Lookup, Now, Purge, Store, StoredHead, Tags, What};
use millstream_conf::model::{CacheZone, ProxyCache, Template};
use millstream_wire::{Fields, Headers};

const ENTRIES: usize = 1_000_000;
const TAGGED: usize = 1_000;
const TAG: &str = "sale";
/// Sampling time before and after the purge.
const STRETCH: Duration = Duration::from_secs(1);
const PHASES: [&str; 3] = ["before", "during", "after"];

#[derive(Default)]
struct Seen {
    nanoseconds: Vec<u32>,
    misses: u64,
}

fn main() -> ExitCode {
    let entries = std::env::args().nth(1).and_then(|number| number.parse().ok()).unwrap_or(ENTRIES);
    match measure(entries.max(10 * TAGGED)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn measure(entries: usize) -> Result<(), String> {
    let store = open(zone(entries, None))?;
    let every = entries / TAGGED;
    let began = Instant::now();
    let mut front = Front::new(store.clone());
    for number in 0..entries {
        fill(&mut front, number, number % every == 0)?;
    }
    let stats = store.stats();
    println!(
        "{entries} entries, {TAGGED} of them tagged: {} MiB, {} bytes each, filled in {:.1} s",
        stats.memory_bytes >> 20,
        stats.memory_bytes / stats.keys.max(1),
        began.elapsed().as_secs_f64(),
    );
    let (phase, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (taken, applied, seen) = std::thread::scope(|scope| {
        let sampler = scope.spawn(|| sample(&store, entries, every, &phase, &done));
        std::thread::sleep(STRETCH);
        phase.store(1, Ordering::Relaxed);
        let began = Instant::now();
        purge(&store);
        let taken = began.elapsed();
        let left = (0..entries).step_by(every).filter(|&number| is_hit(&mut front, number)).count();
        let applied = began.elapsed();
        phase.store(2, Ordering::Relaxed);
        std::thread::sleep(STRETCH);
        done.store(true, Ordering::Relaxed);
        let seen = sampler.join().map_err(|_| "the sampling thread panicked".to_owned());
        if left > 0 {
            (Err(format!("{left} purged entries are answered")), applied, seen)
        } else {
            (Ok(taken), applied, seen)
        }
    });
    println!("purge by tag, in force after:            {:>10.1} µs", microseconds(taken?));
    println!("all {TAGGED} tagged keys asked for, gone:      {:>10.1} µs", microseconds(applied));
    println!("purge by tag, on the disk after:         {:>10.1} µs", microseconds(journaled()?));
    println!("look-ups of {} other keys by another thread:", entries - TAGGED);
    let mut missed = 0;
    for (name, seen) in PHASES.iter().zip(seen?) {
        missed += seen.misses;
        println!("  {name:<7}{}", line(seen));
    }
    let sample: Vec<usize> = (0..entries).step_by(97).filter(|number| number % every != 0).collect();
    let lost = sample.iter().filter(|&&number| !is_hit(&mut front, number)).count();
    println!("others still there: {} of {}", sample.len() - lost, sample.len());
    if lost > 0 || missed > 0 { Err(format!("{lost} lost, {missed} missed")) } else { Ok(()) }
}

/// Looks up keys without the tag, in an order that defeats the processor's caches.
fn sample(
    store: &Arc<Store>,
    entries: usize,
    every: usize,
    phase: &AtomicUsize,
    done: &AtomicBool,
) -> [Seen; 3] {
    let mut front = Front::new(store.clone());
    let mut seen: [Seen; 3] = Default::default();
    let mut random: u64 = 0x2545_f491_4f6c_dd1d;
    while !done.load(Ordering::Relaxed) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let number = (random >> 20) as usize % entries;
        if number.is_multiple_of(every) {
            continue;
        }
        let seen = &mut seen[phase.load(Ordering::Relaxed)];
        let began = Instant::now();
        let hit = is_hit(&mut front, number);
        seen.nanoseconds.push(u32::try_from(began.elapsed().as_nanos()).unwrap_or(u32::MAX));
        seen.misses += u64::from(!hit);
    }
    seen
}

fn line(mut seen: Seen) -> String {
    seen.nanoseconds.sort_unstable();
    let count = seen.nanoseconds.len();
    let at = |share: f64| {
        let index = (count as f64 * share) as usize;
        f64::from(seen.nanoseconds.get(index.min(count.saturating_sub(1))).copied().unwrap_or(0)) / 1000.0
    };
    let hits = 100.0 * (count as u64 - seen.misses) as f64 / (count as f64).max(1.0);
    format!(
        "{count:>9} look-ups, {hits:.3} % hits, p50 {:.2} µs, p99 {:.2} µs, p99.9 {:.2} µs",
        at(0.5),
        at(0.99),
        at(0.999)
    )
}

/// How long the same purge takes with a journal.
fn journaled() -> Result<Duration, String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let store = open(zone(1000, Some(directory.path())))?;
    // The first one makes the file.
    purge(&store);
    let began = Instant::now();
    purge(&store);
    Ok(began.elapsed())
}

/// Outside a runtime the call returns once the journal is written.
fn purge(store: &Arc<Store>) {
    let done = ready(store.purge(Purge { what: What::Tag(TAG.into()), how: How::Hard }));
    assert!(done.is_some_and(|done| done.is_ok()), "the purge was not written");
}

fn zone(entries: usize, path: Option<&std::path::Path>) -> CacheZone {
    CacheZone {
        name: "bench".to_owned(),
        path: path.map(Into::into),
        keys_size: entries as u64 * 256,
        memory: entries as u64 * 1024 + (64 << 20),
        ..CacheZone::default()
    }
}

fn open(zone: CacheZone) -> Result<Arc<Store>, String> {
    Store::open(&zone, None, Default::default()).map_err(|error| error.to_string())
}

fn key(number: usize) -> Vec<u8> {
    format!("httpshop.example/api/articles/{number:08}").into_bytes()
}

fn conf() -> ProxyCache {
    ProxyCache { key: Template::literal("k"), ..ProxyCache::default() }
}

fn fill(front: &mut Front, number: usize, tagged: bool) -> Result<(), String> {
    let now = Now::read();
    let Lookup::Miss(permit) = front.lookup(&key(number), Fields::default(), &conf(), now) else {
        return Err(format!("entry {number} is there already, or there is no room"));
    };
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
    let mut headers = Headers::new();
    headers.push(b"Content-Type", b"application/json");
    if tagged {
        headers.push(b"Surrogate-Key", TAG.as_bytes());
    }
    let mut head = StoredHead::new(200, headers.view(), None, lifetime, now);
    head.tags = Tags::read(headers.view(), std::iter::empty()).unwrap_or_default();
    let mut filling = permit.begin(head, Fields::default(), now);
    filling.push(Bytes::from_static(b"{\"name\":\"something small\",\"price\":\"12.90\",\"left\":3}"));
    match ready(filling.finish()) {
        Some(Some(_)) => Ok(()),
        _ => Err(format!("entry {number} was not stored")),
    }
}

fn is_hit(front: &mut Front, number: usize) -> bool {
    matches!(front.lookup(&key(number), Fields::default(), &conf(), Now::read()), Lookup::Fresh(_))
}

/// Polls a future that never waits.
fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

fn microseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
