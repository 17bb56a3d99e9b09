//! What is to be loaded and how: plain data, complete before the first connection opens.
//!
//! Whoever asks (a command line, a step of the ladder, a test) builds a [`Plan`]; [`Plan::check`] is the only judge of
//! what makes sense. Nothing here reads a clock or opens anything. Next: `pace` (when a request should start), `drive`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The most connections of one run.
pub const CONNECTIONS: u32 = 100_000;
/// The most requests on their way on one connection.
pub const PIPELINE: u32 = 1_024;
/// The longest run.
pub const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// One run against one or several targets.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What is asked for, at least one.
    pub targets: Vec<Target>,
    /// In which order: places in `targets`, gone through again and again. Empty: each in turn.
    pub order: Vec<u32>,
    /// Connections held open at once, all threads together.
    pub connections: u32,
    /// Threads of the generator; never more than connections.
    pub threads: u32,
    /// What sets the pace.
    pub mode: Mode,
    /// How long is measured; `None`: until `requests` are done.
    pub duration: Option<Duration>,
    /// How many requests are measured at the most.
    pub requests: Option<u64>,
    /// Requests of this first stretch are sent and not counted.
    pub warm_up: Duration,
    /// Whether a connection is used again.
    pub keep_alive: bool,
    /// Requests on their way on one connection at once, at least 1.
    pub pipeline: u32,
    /// From the moment when a request is sent to its last byte; connecting has as long again.
    pub timeout: Duration,
    /// Whether a server's certificate must be one that the system trusts.
    pub verify: bool,
}

/// What sets the pace.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The next request follows the answer: the server sets the pace.
    Closed,
    /// Requests start when they should, whatever the server does; latency counts from there.
    Open {
        /// Requests per second, all threads together.
        rate: f64,
        /// How they are spread.
        arrivals: Arrivals,
    },
}

/// How the requests of an open loop are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// At equal distances.
    Constant,
    /// With exponential distances, as many independent clients would.
    Poisson,
}

/// One thing to ask for.
#[derive(Debug, Clone)]
pub struct Target {
    /// As the user wrote it, for reports.
    pub url: String,
    /// Where to connect; the first that answers is taken.
    pub addresses: Vec<SocketAddr>,
    /// The name for TLS; `None`: plain.
    pub tls: Option<String>,
    /// The whole request as it goes out, head and body.
    pub request: Arc<[u8]>,
    /// Whether the answer has no body whatever it announces (HEAD, RFC 9112 §6.3).
    pub is_head: bool,
    /// What every answer must be.
    pub expect: Expect,
}

/// What an answer must be, so as not to be counted as wrong.
#[derive(Debug, Clone, Default)]
pub struct Expect {
    /// Its status; `None`: any below 400.
    pub status: Option<u16>,
    /// Its body, after transfer coding, before content coding; `None`: any.
    pub body: Option<Arc<[u8]>>,
}

/// Why a plan makes no sense, in words for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError(pub String);

impl std::fmt::Display for PlanError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for PlanError {}
