//! What limits, and how that is known: a pure function of measured figures, for `ladder` and `capacity`.
//!
//! Four may be the limit: the API, the proxy, the network between them, and the generator itself, which other tools never
//! name. On a crowded machine it may be none of them, which is then said. Who wants a core all the time is known from the
//! scheduler (`party::Spent`); where nobody does, the time went to waiting, and when the first byte came tells for what.
//! Nothing is measured here, and nothing is believed that the figures do not say: what weakens them is a doubt, in words.
//! Next: `verdict/once` is the single request beside the load, `verdict/judge` decides (by who is out of CPU, `verdict/fullness`, and with its `verdict/doubts`), `verdict/climb` has the ladder's
//! words.

mod wording;
mod once;
mod fullness;
mod doubts;
mod judge;
mod climb;
#[cfg(test)]
mod tests;

pub use climb::{About, ClimbedStep, climb};
pub use judge::judge;
pub use once::Once;
pub use wording::{count, duration, factor, percent, volume};

use crate::outcome::Outcome;
use crate::party::Spent;
use crate::plan::Mode;

/// Who may be the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The API: its CPU, its workers, or what it waits for.
    Api,
    /// The proxy.
    Proxy,
    /// The way between proxy and API: its bandwidth, or its length.
    Network,
    /// What makes the load: the figure is a floor.
    Generator,
    /// Nobody of these: other processes, or other machines of the same host, have the cores.
    Others,
}

impl Limit {
    /// The sentence that a verdict begins with.
    pub fn sentence(self) -> &'static str {
        match self {
            Limit::Api => "The API is the limit.",
            Limit::Proxy => "The proxy is the limit.",
            Limit::Network => "The network to the API is the limit.",
            Limit::Generator => {
                "The load generator is the limit: the figure is a floor, not what the servers can do."
            }
            Limit::Others => {
                "Other processes on this machine are the limit: the figure is a floor, not what the servers can do."
            }
        }
    }
}

/// Figures of one run under load.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Run {
    /// Requests on their way at once.
    pub connections: u32,
    /// Right answers per second.
    pub rate: f64,
    /// Mean time from sending a request to its last byte, seconds.
    pub latency: f64,
    /// Mean time from sending a request to its first byte, seconds.
    pub first_byte: f64,
    /// Bytes read per second.
    pub bytes_per_second: f64,
    /// Requests that came to nothing good, 0 to 1.
    pub error_share: f64,
}

impl Run {
    /// Those of an outcome. Pipelined requests are on their way at once too.
    pub fn of(outcome: &Outcome) -> Run {
        let seconds = outcome.seconds.max(f64::MIN_POSITIVE);
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
            bytes_per_second: outcome.counts.bytes_read as f64 / seconds,
            error_share: outcome.error_share(),
        }
    }
}

/// What a verdict rests on. What is not known is `None`, and weakens it.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Evidence {
    /// The run that is judged, through the proxy.
    pub top: Run,
    /// The same with fewer connections, half of them or less.
    pub fewer: Option<Run>,
    /// One request at a time, straight to the API.
    pub direct: Option<Once>,
    /// One request at a time, through the proxy.
    pub through: Option<Once>,
    /// Answers per second of the API alone (of all together, where there are several) at as many connections.
    pub api_rate: Option<f64>,
    /// Requests that reached the API, per answer: 1 where nothing is cached.
    pub origin_share: f64,
    /// The proxy, while the judged run went on.
    pub proxy: Option<Spent>,
    /// The API, or all of them together; `None` where it is not on this machine or may not be looked at.
    pub api: Option<Spent>,
    /// The generator.
    pub generator: Option<Spent>,
    /// The share of the machine's cores that was busy with whatever, 0 to 1.
    pub machine_busy: f64,
    /// The share of them that the hypervisor gave to other machines, 0 to 1.
    #[serde(default)]
    pub stolen: f64,
    /// Cores of this machine.
    pub cores: u32,
    /// Whether the API is on this machine, so that no way to it is long.
    pub is_here: bool,
    /// Bytes per second that the way to the API can carry; `None`: unknown, or never left this machine.
    pub link: Option<f64>,
}

/// What limits, and how that is known.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Verdict {
    /// Who.
    pub limit: Limit,
    /// How that is known, a sentence each, the weightiest first.
    pub why: Vec<String>,
    /// What makes it less certain, a sentence each.
    pub doubts: Vec<String>,
}

impl Verdict {
    /// All of it as one paragraph.
    pub fn text(&self) -> String {
        let sentences = std::iter::once(self.limit.sentence()).chain(self.why.iter().map(String::as_str));
        sentences.chain(self.doubts.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
    }
}
