//! What limits, and how that is known: a pure function of measured facts, for `bench`, `ladder` and `capacity`.
//!
//! Four may be the limit: the API, the proxy, the way between them, and the generator itself, which other tools never name.
//! A name is given where the facts show it and exclude the others; everything else is unknown, with the reason and what would
//! tell. Nothing is measured here. Next: `verdict/once` is the single request beside the load, `verdict/facts` what is known of
//! each party and of the way, `verdict/judge` the three rules, `verdict/midway` a run
//! that has no single limit.

mod once;
mod facts;
mod judge;
mod midway;
#[cfg(test)]
mod tests;

pub use judge::judge;
pub use midway::midway;
pub use once::Once;

use crate::outcome::Outcome;
use crate::party::{self, Metered};
use crate::plan::Mode;
use crate::report::json;
use crate::report::quantity::seconds;
use millstream_net::cores;
use std::ops::RangeInclusive;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The API: its CPU, its workers, its locks, or what it waits for.
    Api,
    Proxy,
    /// The way between proxy and API: its bandwidth, or its length.
    Network,
    /// What makes the load: the figure is a floor.
    Generator,
    /// The facts do not show it: the first sentence of [`Verdict::why`] is the reason, the second what would tell.
    Unknown,
}

impl Limit {
    /// The party within a sentence, and the sentence that a verdict on it begins with; where it is unknown, the reason goes on with it.
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            Limit::Api => ("API", "The API is the limit."),
            Limit::Proxy => ("proxy", "The proxy is the limit."),
            Limit::Network => ("network", "The network to the API is the limit."),
            Limit::Generator => (
                "load generator",
                "The load generator is the limit: the figure is a floor, not what the servers can do.",
            ),
            Limit::Unknown => ("?", "Unknown:"),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Run {
    pub connections: u32,
    /// Right answers per second.
    pub rate: f64,
    /// Mean time from sending a request to its last byte, seconds.
    #[serde(rename = "latency_us", serialize_with = "json::seconds_as_us")]
    pub latency: f64,
    /// Mean time from sending a request to its first byte, seconds: what waits its turn waits here.
    #[serde(rename = "first_byte_us", serialize_with = "json::seconds_as_us")]
    pub first_byte: f64,
    /// Bytes read per second.
    pub bytes_per_second: f64,
    /// Requests that came to nothing good, 0 to 1.
    pub error_share: f64,
}

impl Run {
    /// Those of an outcome. Pipelined requests are on their way at once too.
    pub fn of(outcome: &Outcome) -> Run {
        // What was never answered is no part of what the others waited for.
        let silent = u32::try_from(outcome.counts.silent).unwrap_or(u32::MAX);
        let served = outcome.connections.saturating_sub(silent).max(1);
        // In an open loop the other counts from when a request should have started, which says nothing of the server.
        let latency = if outcome.mode == Mode::Closed { &outcome.latency } else { &outcome.service };
        let allowed = outcome.http2.as_ref().and_then(|http2| http2.allowed).unwrap_or(u32::MAX);
        Run {
            connections: served.saturating_mul(outcome.pipeline.min(allowed).max(1)),
            rate: outcome.rate(),
            latency: latency.mean / 1e6,
            first_byte: outcome.first_byte.mean / 1e6,
            bytes_per_second: outcome.per_second(outcome.counts.bytes_read),
            error_share: outcome.error_share(),
        }
    }
}

/// The facts that a verdict rests on. What is `None` is not known, and nothing is concluded from it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    /// The run that is judged, through the proxy where there is one.
    pub top: Run,
    /// One request at a time, straight to the API.
    pub direct: Option<Once>,
    /// One request at a time, through the proxy; `None`: there is no proxy, or it was not asked.
    pub through: Option<Once>,
    /// The API alone on as many connections (of several, all together); `None`: the judged run is that, or there is none.
    pub alone: Option<Run>,
    /// Requests that reached the API, per answer: 1 where nothing is cached.
    pub origin_share: f64,
    /// What the machine and the parties used and wanted while the judged run went on, by [`party::API`] and the names beside it.
    pub found: Metered,
    /// Why the generator's figure is a floor ([`crate::outcome::Generator::limits`]): there alone it is decided whether it
    /// had any time left.
    pub floor: Option<String>,
    pub cores: u32,
    /// Whether the API is on this machine, so that no way to it is long.
    pub is_here: bool,
    /// Bytes per second that the way to the API can carry; `None`: unknown, or never left this machine.
    pub link: Option<f64>,
}

impl Evidence {
    /// What one run showed, its parties watched under [`party::API`] and the names beside it; single requests and what the API gives alone
    /// are left to be added.
    pub fn of(outcome: &Outcome, found: &Metered, is_here: bool) -> Evidence {
        Evidence {
            top: Run::of(outcome),
            origin_share: 1.0,
            found: found.clone(),
            floor: outcome.generator.limits.clone(),
            cores: u32::try_from(cores::usable()).unwrap_or(u32::MAX),
            is_here,
            link: if is_here { None } else { party::link_speed() },
            ..Evidence::default()
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Verdict {
    pub limit: Limit,
    /// How that is known, a sentence each, the weightiest first.
    pub why: Vec<String>,
    pub doubts: Vec<String>,
}

impl Verdict {
    pub fn text(&self) -> String {
        let others = self.why.iter().chain(&self.doubts).map(String::as_str);
        [self.limit.words().1].into_iter().chain(others).collect::<Vec<_>>().join(" ")
    }
}

// Answers whose rest comes late: the two ends of a connection wait for each other, and nobody works. Nagle's algorithm (RFC 896)
// holds a small packet back until the one before it is acknowledged; the other end delays that acknowledgement (RFC 9293
// §3.8.6.3), Linux by 40 ms at the least (`TCP_DELACK_MIN`). A server that writes head and body one after the other meets both, on
// connections that are kept: on a new one Linux acknowledges the first packets at once.

/// Seconds by which it is late in the mean: two of three answers by the 40 ms, or all of them by what comes on top.
const LATE: RangeInclusive<f64> = 0.027..=0.060;

/// What is to be said of an API that was asked straight, where its answers are such; once is a single request on a new connection.
pub fn delayed_ack(run: &Run, once: &Once) -> Option<String> {
    let (rest, more) = (run.latency - run.first_byte, run.latency - once.mean);
    (LATE.contains(&rest) && more >= *LATE.start()).then(|| {
        format!(
            "The rest of the API's responses arrives {} after their first byte, though no CPU is at work. That is the time of Nagle's algorithm and \
            a delayed acknowledgement when head and body are written one after the other on a reused connection: TCP_NODELAY, or one write for both, \
            saves it without any proxy.",
            seconds(rest)
        )
    })
}
