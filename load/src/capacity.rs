//! "Does a second API server double the throughput?": each server alone, then all behind the proxy, and what was to be
//! expected beside it.
//!
//! `measure` has the proxy's nginx.conf and runs everything, `sentence` says what came of it, `page` shows
//! it. Expected is the sum of what the servers give alone, unless the proxy's own ceiling is lower: what it passes on from
//! a server that answers at once. The load is a closed loop, and behind the proxy it has as many connections for each
//! server as that one had alone. Next: `measure`.

mod sentence;
mod page;
mod subject;
mod measure;
#[cfg(test)]
mod tests;

pub use measure::{Measured, configuration, measure};
pub use page::{ARTICLE, Published, page};
pub use sentence::{Gain, gain, sentence};
pub use subject::{Subject, sleeping};

use crate::report::json;
use crate::stop::CutShort;
use crate::verdict::{Once, Run, Verdict};
use std::path::PathBuf;
use std::time::Duration;

/// So many times the slowest's rate and more is another kind of server.
const UNEVEN: f64 = 1.5;
/// A connection for this share of the answers means that each is closed.
const CLOSES: f64 = 0.9;

/// Servers that can be asked about at once.
pub const SERVERS: usize = 16;

#[derive(Debug, Clone)]
pub struct Setting {
    pub connections: u32,
    pub threads: u32,
    pub duration: Duration,
    pub warm_up: Duration,
    /// How often each is measured; the median counts.
    pub rounds: u32,
    /// What the order within each round comes of.
    pub seed: u64,
    pub workers: String,
    pub fields: Vec<(String, String)>,
    pub public: bool,
    /// The program that is the proxy: `millstream`, or another with nginx's command line.
    pub proxy: PathBuf,
}

#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Capacity {
    /// Whether the servers are embedded and only sleep, so that nothing of it is about the user's.
    pub is_simulated: bool,
    pub urls: Vec<String>,
    pub cores: u32,
    pub workers: String,
    /// Where the user stopped it; `None`: it is whole.
    pub cut_short: Option<CutShort>,
    pub seed: u64,
    pub rows: Vec<CapacityRow>,
}

#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CapacityRow {
    /// What is different in it: `64 connections`, `200 ms`.
    pub name: String,
    pub connections: u32,
    /// The service time where the servers are embedded, seconds.
    #[serde(rename = "service_us", serialize_with = "json::maybe_seconds_as_us")]
    pub service_seconds: Option<f64>,
    pub alone: Vec<Alone>,
    /// What the proxy alone answers (`return 200`), requests per second.
    pub ceiling: f64,
    /// What it passes on from a server that answers at once, requests per second.
    pub passing: f64,
    pub together: Together,
    pub pool: Pool,
    /// The same load with fewer kept connections than it needs; `None` where it needs none to speak of.
    pub below: Option<Below>,
    pub verdict: Verdict,
    pub sentence: String,
}

#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Alone {
    pub url: String,
    /// Its figures under load: those of the round nearest to the median, at the median rate.
    pub run: Run,
    pub rounds: Rounds,
    pub once: Once,
    pub is_floor: bool,
}

#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct Rounds {
    pub rates: Vec<f64>,
    pub low: f64,
    pub high: f64,
    /// The median latency of the round nearest to the median, microseconds.
    #[serde(rename = "p50_us")]
    pub p50: u64,
    #[serde(rename = "p99_us")]
    pub p99: u64,
}

#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Together {
    pub run: Run,
    pub rounds: Rounds,
    pub once: Once,
    /// The share of this machine's cores that was busy, 0 to 1.
    pub machine_busy: f64,
    pub opened_per_second: f64,
    /// Connections to the servers that went into TIME_WAIT on this machine during one run, whoever had opened them, and when.
    pub time_wait: u64,
}

/// What happens with too few kept connections.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Below {
    pub keepalive: u32,
    pub rate: f64,
    pub opened_per_second: f64,
    pub time_wait: u64,
}

impl CapacityRow {
    pub fn sum(&self) -> f64 {
        self.alone.iter().map(|alone| alone.run.rate).sum()
    }

    /// The server with the lowest rate alone, and the one with the highest.
    pub fn ends(&self) -> Option<(&Alone, &Alone)> {
        let by_rate = |one: &&Alone, other: &&Alone| one.run.rate.total_cmp(&other.run.rate);
        self.alone.iter().min_by(by_rate).zip(self.alone.iter().max_by(by_rate))
    }

    pub fn slowest(&self) -> f64 {
        self.ends().map_or(0.0, |(slow, _)| slow.run.rate)
    }

    pub fn fastest(&self) -> f64 {
        self.ends().map_or(0.0, |(_, fast)| fast.run.rate)
    }

    /// Whether the servers differ so much, and by more than chance, that round robin, which gives each as many requests, goes at the
    /// slowest's pace.
    pub fn is_uneven(&self) -> bool {
        self.ends().is_some_and(|(slow, fast)| {
            let differ = || sentence::differ(&slow.rounds, &fast.rounds, self.alone.len());
            fast.run.rate > UNEVEN * slow.run.rate && differ()
        })
    }

    /// What the servers can give in turns: the sum, or the slowest's pace for each where they are uneven.
    pub fn in_turns(&self) -> f64 {
        if self.is_uneven() { self.slowest() * self.alone.len() as f64 } else { self.sum() }
    }

    /// That, or what the proxy can pass on where it is less.
    pub fn expected(&self) -> f64 {
        if self.passing > 0.0 { self.in_turns().min(self.passing) } else { self.in_turns() }
    }

    pub fn closes(&self) -> bool {
        self.together.run.rate > 0.0 && self.together.opened_per_second > CLOSES * self.together.run.rate
    }
}

// How many connections a proxy keeps to its API, by Little's law: requests per second times the time that each takes are so many
// requests on their way at once, each of which has a connection to itself (HTTP/1.1). `keepalive N` of an upstream bounds how many
// connections may be idle. In a lull all connections in use become idle, so a bound below that number closes some which the next
// requests open again. The bound is therefore never below what is in use, with room for peaks.

/// Room for peaks, as a share of what is in use on average.
const PEAKS: f64 = 0.3;

#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Pool {
    /// Requests at the API at once, on average: as many connections are in use.
    pub in_use: f64,
    /// The smallest `keepalive` to be set: what is in use, and room for peaks.
    pub keepalive: u64,
}

impl Pool {
    /// For so many requests per second that each take so many seconds at the API, of `most` at once. Nothing asked needs one connection.
    pub fn needed(rate: f64, response_seconds: f64, most: u32) -> Pool {
        let product = rate * response_seconds;
        let in_use = if product.is_finite() { product.clamp(0.0, most.into()) } else { 0.0 };
        Pool { in_use, keepalive: ((in_use * (1.0 + PEAKS)).ceil() as u64).max(1) }
    }
}
