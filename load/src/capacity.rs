//! "Does a second API server double the throughput?": each server alone, then all behind the proxy, and what was to be
//! expected beside it.
//!
//! `configuration` is the proxy's nginx.conf, `measure` runs everything, `sentence` says what came of it, `page` shows
//! it. Expected is the sum of what the servers give alone, unless the proxy's own ceiling is lower: what it passes on from
//! a server that answers at once. The load is a closed loop, and behind the proxy it has as many connections for each
//! server as that one had alone. Next: `measure`.

mod configuration;
mod article;
mod sentence;
mod page;
mod subject;
mod measure;
#[cfg(test)]
mod tests;

pub use article::{ARTICLE, Published};
pub use configuration::configuration;
pub use measure::{Measured, measure};
pub use page::page;
pub use sentence::{Gain, gain, sentence};
pub use subject::{Subject, sleeping};

use crate::report::json;
use crate::sizing::Pool;
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

/// How it is measured.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Connections for each server.
    pub connections: u32,
    /// The generator's threads.
    pub threads: u32,
    /// How long each run is measured.
    pub duration: Duration,
    /// How long each run warms up before.
    pub warm_up: Duration,
    /// How often each is measured; the median counts.
    pub rounds: u32,
    /// What the order within each round comes of.
    pub seed: u64,
    /// `worker_processes` of the proxy.
    pub workers: String,
    /// Fields that each request carries.
    pub fields: Vec<(String, String)>,
    /// Whether servers on the public internet may be loaded.
    pub public: bool,
    /// The program that is the proxy: `millstream`, or another with nginx's command line.
    pub proxy: PathBuf,
}

/// The whole table.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Capacity {
    /// Whether the servers are embedded and only sleep, so that nothing of it is about the user's.
    pub is_simulated: bool,
    /// What was asked for, as the user wrote it.
    pub urls: Vec<String>,
    /// Cores of this machine.
    pub cores: u32,
    /// `worker_processes` of the proxy.
    pub workers: String,
    /// Where the user stopped it; `None`: it is whole.
    pub cut_short: Option<CutShort>,
    /// What the order within each round came of.
    pub seed: u64,
    /// A row for each number of connections, or each service time.
    pub rows: Vec<CapacityRow>,
}

#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CapacityRow {
    /// What is different in it: `64 connections`, `200 ms`.
    pub name: String,
    /// Connections for each server.
    pub connections: u32,
    /// The service time where the servers are embedded, seconds.
    #[serde(rename = "service_us", serialize_with = "json::maybe_seconds_as_us")]
    pub service_seconds: Option<f64>,
    /// Each server alone.
    pub alone: Vec<Alone>,
    /// What the proxy alone answers (`return 200`), requests per second.
    pub ceiling: f64,
    /// What it passes on from a server that answers at once, requests per second.
    pub passing: f64,
    /// All servers behind the proxy.
    pub together: Together,
    /// The connections that this load needs.
    pub pool: Pool,
    /// The same load with fewer kept connections than it needs; `None` where it needs none to speak of.
    pub below: Option<Below>,
    /// What limits, and how that is known.
    pub verdict: Verdict,
    /// What the further servers brought, in one sentence.
    pub sentence: String,
}

/// A server alone.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Alone {
    /// Its URL.
    pub url: String,
    /// Its figures under load: those of the round nearest to the median, at the median rate.
    pub run: Run,
    /// Over all rounds.
    pub rounds: Rounds,
    /// A single request.
    pub once: Once,
    /// Whether the generator was what limited it, so that it can do more.
    pub is_floor: bool,
}

/// What the rounds say beside their median.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct Rounds {
    /// The rate of each, in order.
    pub rates: Vec<f64>,
    /// The lowest of them.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// The median latency of the round nearest to the median, microseconds.
    #[serde(rename = "p50_us")]
    pub p50: u64,
    /// Its 99th percentile.
    #[serde(rename = "p99_us")]
    pub p99: u64,
}

#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Together {
    /// Their figures under load: those of the round nearest to the median, at the median rate.
    pub run: Run,
    /// Over all rounds.
    pub rounds: Rounds,
    /// A single request through the proxy.
    pub once: Once,
    /// The share of this machine's cores that was busy, 0 to 1.
    pub machine_busy: f64,
    /// Connections to the servers that the proxy opened per second.
    pub opened_per_second: f64,
    /// Connections to the servers that went into TIME_WAIT on this machine during one run, whoever had opened them, and when.
    pub time_wait: u64,
}

/// What happens with too few kept connections.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Below {
    /// `keepalive` of the upstream, for each worker.
    pub keepalive: u32,
    /// Answers per second.
    pub rate: f64,
    /// Connections to the servers that the proxy opened per second.
    pub opened_per_second: f64,
    /// Connections to the servers that went into TIME_WAIT on this machine during one run, whoever had opened them, and when.
    pub time_wait: u64,
}

impl CapacityRow {
    /// What the servers give alone, added up.
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

    /// Whether the servers close their connections, so that the proxy opens one for nearly every request.
    pub fn closes(&self) -> bool {
        self.together.run.rate > 0.0 && self.together.opened_per_second > CLOSES * self.together.run.rate
    }
}
