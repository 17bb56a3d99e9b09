//! `cargo xtask bench eviction`: how many requests are answered from memory, beside other ways to evict.
//!
//! Ours is the store itself through its public door. The others are given the same bytes, and entries cost them what they
//! cost ours. The first half of a trace fills; the second is counted, without the requests of the scan, which nobody can
//! answer.

use bytes::Bytes;
use millstream_wire::Headers;

use super::policies::{Lru, Policy, S3Fifo, Sieve};
use super::traces::{Ask, mixed_length, zipf};
use super::zone::{Zone, headers};

const KEYS: u32 = 100_000;
const REQUESTS: usize = 2_000_000;
/// Percent of requests that belong to the scan, if there is one.
const SCAN: u32 = 30;
const LENGTH: usize = 1000;

type Length = fn(u32) -> usize;

pub fn measure() {
    println!(
        "Hit ratio in %: {KEYS} keys, {REQUESTS} requests, the second half counted; the scan is {SCAN} % of the requests"
    );
    println!("| bodies | trace | s | cache | ours | LRU | SIEVE, one queue | S3-FIFO |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for (bodies, length) in [("1,000 bytes", (|_| LENGTH) as Length), ("200 B to 20 KiB", mixed_length)] {
        for scan in [0, SCAN] {
            for exponent in [0.7, 0.9, 1.1] {
                let trace = zipf(KEYS, exponent, scan, REQUESTS);
                for percent in [1, 10] {
                    let name = if scan > 0 { "Zipf and scan" } else { "Zipf" };
                    let ratios = ratios(&trace, length, percent);
                    println!("| {bodies} | {name} | {exponent} | {percent} % | {ratios} |");
                }
            }
        }
    }
}

fn ratios(trace: &[Ask], length: Length, percent: u64) -> String {
    let costs = Costs::measure(length);
    let total: u64 = (0..KEYS).map(|key| costs.of(length(key))).sum();
    let most = total * percent / 100;
    let keys = trace.iter().map(|ask| ask.key).max().unwrap_or(0).max(KEYS) as usize + 1;
    let mut policies: [Box<dyn Policy>; 4] = [
        Box::new(Ours::new(length, most)),
        Box::new(Lru::new(keys, most)),
        Box::new(Sieve::new(keys, most)),
        Box::new(S3Fifo::new(keys, most)),
    ];
    let ratios = policies.each_mut().map(|policy| ratio(&mut **policy, trace, |key| costs.of(length(key))));
    ratios.map(|ratio| format!("{ratio:.1}")).join(" | ")
}

fn ratio(policy: &mut dyn Policy, trace: &[Ask], cost: impl Fn(u32) -> u64) -> f64 {
    let (mut hits, mut asked) = (0u32, 0u32);
    for (at, ask) in trace.iter().enumerate() {
        let hit = policy.ask(ask.key, cost(ask.key));
        if at >= trace.len() / 2 && !ask.scan {
            asked += 1;
            hits += u32::from(hit);
        }
    }
    f64::from(hits) / f64::from(asked.max(1)) * 100.0
}

struct Ours {
    zone: Zone,
    fields: Headers,
    body: Bytes,
    length: Length,
    key: Vec<u8>,
}

impl Ours {
    fn new(length: Length, most: u64) -> Ours {
        let body = Bytes::from(vec![b'b'; 32 * 1024]);
        Ours { zone: Zone::open(most, u64::from(u32::MAX)), fields: fields(), body, length, key: Vec::new() }
    }
}

impl Policy for Ours {
    fn ask(&mut self, key: u32, _: u64) -> bool {
        self.key.clear();
        self.key.extend_from_slice(format!("httpapi.example/{key:010}").as_bytes());
        let body = self.body.slice(..(self.length)(key));
        self.zone.ask(&self.key, self.fields.view(), &body)
    }
}

fn fields() -> Headers {
    headers(&[("Content-Type", "application/json"), ("Cache-Control", "max-age=60")])
}

/// Cost of an entry in the real store, by the length of its body.
struct Costs(Vec<(usize, u64)>);

impl Costs {
    fn measure(length: Length) -> Costs {
        let mut lengths: Vec<usize> = (0..KEYS).map(length).collect();
        lengths.sort_unstable();
        lengths.dedup();
        let mut ours = Ours::new(length, 1 << 30);
        let mut cost = |length: usize| {
            let before = ours.zone.store.stats().memory_bytes;
            let body = ours.body.slice(..length);
            ours.zone.ask(format!("httpapi.example/{length:010}").as_bytes(), ours.fields.view(), &body);
            ours.zone.store.stats().memory_bytes - before
        };
        Costs(lengths.into_iter().map(|length| (length, cost(length))).collect())
    }

    fn of(&self, length: usize) -> u64 {
        self.0.binary_search_by_key(&length, |&(length, _)| length).map_or(0, |at| self.0[at].1)
    }
}
