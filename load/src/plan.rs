//! What is to be loaded and how: plain data, complete before the first connection opens.
//!
//! Whoever asks (a command line, a step of the ladder, a test) builds a [`Plan`]; [`Plan::check`] is the only judge of
//! what makes sense. Nothing here reads a clock or opens anything. Next: `pace` (when a request should start), `drive`.

use crate::http2_request::Http2Request;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The most connections of one run.
pub const CONNECTIONS: u32 = 100_000;
/// The most connections of an open loop where nothing is said: what a rate takes, until a server has left so many waiting.
pub const OPEN_CONNECTIONS: u32 = 10_000;
/// The most requests on their way on one connection.
pub const PIPELINE: u32 = 1_024;
/// The most streams of one connection of HTTP/2.
pub const STREAMS: u32 = 1_000;
/// The most threads of one run.
pub const THREADS: u32 = 1_024;
/// The most requests per second that can be asked for.
pub const RATE: f64 = 100_000_000.0;
/// The shortest time that an answer can be given.
pub const SHORTEST_TIMEOUT: Duration = Duration::from_millis(1);
/// The longest run, and the longest warm-up.
pub const LONGEST: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub targets: Vec<Target>,
    /// In which order: places in `targets`, gone through again and again. Empty: each in turn. Each server's targets come in
    /// this order on its own connections; in a closed loop a faster server is asked more often.
    pub order: Vec<u32>,
    /// Connections held open at once, all threads together; in an open loop at the most.
    pub connections: u32,
    pub threads: u32,
    pub mode: Mode,
    /// How long is measured; `None`: until `requests` are done.
    pub duration: Option<Duration>,
    /// How many requests are measured at the most.
    pub requests: Option<u64>,
    /// What is answered (open loop: should have started) in this first stretch is not counted.
    pub warm_up: Duration,
    pub keep_alive: bool,
    /// Requests on their way on one connection at once, at least 1: pipelined, or as streams of HTTP/2.
    pub pipeline: u32,
    /// From the moment when a request is sent to its last byte; connecting has as long again.
    pub timeout: Duration,
    /// Open loop: when requests should start, where that is not at one rate; that of `mode` is then their mean.
    pub schedule: Option<Schedule>,
    /// Redirects of one request that are followed; 0: a redirect is an answer like any other.
    pub redirects: u32,
}

impl Plan {
    /// A closed loop against one target with wrk's habits for the rest: keep-alive, no pipelining, two seconds of
    /// patience, no warm-up.
    pub fn closed(target: Target, connections: u32, threads: u32, duration: Duration) -> Plan {
        Plan {
            targets: vec![target],
            connections,
            threads,
            duration: Some(duration),
            keep_alive: true,
            pipeline: 1,
            timeout: Duration::from_secs(2),
            ..Plan::default()
        }
    }

    /// Whether the plan makes sense. Errors: the first thing that makes none, with what to write instead.
    pub fn check(&self) -> Result<(), PlanError> {
        refuse(self.targets.is_empty(), "nothing to load: specify a URL")?;
        if let Some(target) = self.targets.iter().find(|target| target.addresses.is_empty()) {
            refuse(true, format!("{} has no address", target.url))?;
        }
        let is_mixed = self.targets.iter().any(|target| target.http2.is_some() != self.is_http2());
        refuse(is_mixed, "one run uses either HTTP/1.1 or HTTP/2")?;
        let (last, count) = (self.order.iter().max().map_or(0, |last| *last as usize), self.targets.len());
        refuse(last >= count, format!("the order contains target {last} of {count}"))?;
        self.check_sizes()?;
        let is_endless = self.duration.is_none() && self.requests.is_none();
        refuse(is_endless, "the run has no end: specify a duration or a number of requests")?;
        refuse(self.duration == Some(Duration::ZERO), "the duration must be above zero")?;
        refuse(self.duration > Some(LONGEST), "the duration must be at most one day")?;
        refuse(self.warm_up > LONGEST, "the warm-up must be at most one day")?;
        let is_patience = (SHORTEST_TIMEOUT..=LONGEST).contains(&self.timeout);
        refuse(!is_patience, "the timeout must be between 1ms and one day")?;
        if let Mode::Open { rate, .. } = self.mode {
            let is_possible = rate > 0.0 && rate <= RATE;
            let what = format!("the rate must be above 0 and at most {RATE} requests per second, not {rate}");
            refuse(!is_possible, what)?;
        }
        let is_out_of_turn = self.redirects > 0 && (self.pipeline > 1 || self.is_http2());
        refuse(is_out_of_turn, "redirects are followed only over HTTP/1.1 and without pipelining")?;
        self.check_schedule()
    }

    fn check_schedule(&self) -> Result<(), PlanError> {
        let Some(schedule) = &self.schedule else { return Ok(()) };
        refuse(self.mode == Mode::Closed, "a schedule needs an open loop")?;
        refuse(!self.warm_up.is_zero(), "a schedule has no warm-up: add a stage for it")?;
        match schedule {
            Schedule::Log { moments, .. } => {
                let is_whole = moments.len() == self.order.len();
                refuse(!is_whole, "a log needs a time for each request")
            }
            Schedule::Stages(stages) => {
                let are_possible = stages.iter().all(|stage| (0.0..=RATE).contains(&stage.rate));
                refuse(!are_possible, format!("the rate of a stage must be between 0 and {RATE}"))
            }
        }
    }

    pub fn is_http2(&self) -> bool {
        self.targets.first().is_some_and(|target| target.http2.is_some())
    }

    pub fn is_open(&self) -> bool {
        matches!(self.mode, Mode::Open { .. })
    }

    fn check_sizes(&self) -> Result<(), PlanError> {
        let Plan { connections, threads, pipeline, .. } = *self;
        let (kind, gerund, most) = match self.is_http2() {
            true => ("streams", "streams need", STREAMS),
            false => ("pipeline", "pipelining needs", PIPELINE),
        };
        for (what, value, most) in
            [("connections", connections, CONNECTIONS), ("threads", threads, THREADS), (kind, pipeline, most)]
        {
            refuse(value == 0, format!("{what}: must be at least 1"))?;
            refuse(value > most, format!("{what}: {value} is more than the maximum of {most}"))?;
        }
        for (needed, what) in [(threads, "threads"), (self.origins().len() as u32, "servers")] {
            let why = format!("{needed} {what} need at least as many connections, not {connections}");
            refuse(needed > connections, why)?;
        }
        let why = format!("{gerund} keep-alive, to send several requests on one connection");
        refuse(pipeline > 1 && !self.keep_alive, why)?;
        let Some(requests) = self.requests else { return Ok(()) };
        refuse(requests == 0, "requests: must be at least 1")?;
        let why = format!(
            "{requests} requests cannot keep {connections} connections busy: specify at most as many connections as \
             requests"
        );
        refuse(requests < u64::from(connections), why)
    }

    /// The servers that are talked to: for each the places of its targets that are ever asked for. A connection belongs
    /// to one of them.
    pub fn origins(&self) -> Vec<Vec<u32>> {
        let mut origins: Vec<Vec<u32>> = Vec::new();
        let mut is_asked_for = vec![self.order.is_empty(); self.targets.len()];
        self.order.iter().for_each(|place| is_asked_for[*place as usize] = true);
        for ((place, target), _) in (0u32..).zip(&self.targets).zip(is_asked_for).filter(|(_, is)| *is) {
            let same = origins.iter_mut().find(|places| {
                let first = &self.targets[places[0] as usize];
                first.addresses == target.addresses && first.tls == target.tls && first.way == target.way
            });
            match same {
                Some(places) => places.push(place),
                None => origins.push(vec![place]),
            }
        }
        origins
    }
}

fn refuse(is_wrong: bool, what: impl Into<String>) -> Result<(), PlanError> {
    if is_wrong { Err(PlanError(what.into())) } else { Ok(()) }
}

/// What sets the pace.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The next request follows the answer: the server sets the pace.
    #[default]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// At equal distances.
    Constant,
    /// With exponential distances, as many independent clients would.
    Poisson,
}

/// When the requests of an open loop should start, where that is not at one rate.
#[derive(Debug, Clone, PartialEq)]
pub enum Schedule {
    Stages(Vec<RateStage>),
    Log {
        /// When each of the plan's order should start, nanoseconds from the start, in order.
        moments: Arc<[u64]>,
        /// How many times as fast as in the log.
        speed: f64,
    },
}

/// A stretch over which the rate goes in a straight line from that of the stage before, at first from 0, to its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateStage {
    /// How long that takes; nothing: the rate jumps.
    pub duration: Duration,
    /// Requests per second at its end.
    pub rate: f64,
}

impl Schedule {
    pub fn duration(&self) -> Duration {
        match self {
            Schedule::Stages(stages) => stages.iter().map(|stage| stage.duration).sum(),
            // The last request is due before the end.
            Schedule::Log { moments, .. } => Duration::from_nanos(moments.last().map_or(0, |last| last + 1)),
        }
    }

    pub fn requests(&self) -> f64 {
        match self {
            Schedule::Stages(stages) => {
                let before = std::iter::once(0.0).chain(stages.iter().map(|stage| stage.rate));
                let means = before.zip(stages).map(|(before, stage)| (before + stage.rate) / 2.0);
                means.zip(stages).map(|(mean, stage)| mean * stage.duration.as_secs_f64()).sum()
            }
            Schedule::Log { moments, .. } => moments.len() as f64,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Way {
    /// By a socket in the file system, whatever the addresses are.
    pub unix_socket: Option<Arc<Path>>,
    /// Its certificate may be anybody's.
    pub insecure: bool,
}

#[derive(Debug, Clone)]
pub struct Target {
    pub url: String,
    /// Where to connect; the first that answers is taken.
    pub addresses: Vec<SocketAddr>,
    /// The name for TLS; `None`: plain.
    pub tls: Option<String>,
    pub way: Way,
    /// The whole request as it goes out, head and body.
    pub request: Arc<[u8]>,
    /// The same request as HTTP/2 sends it; `None`: HTTP/1.1 is spoken.
    pub http2: Option<Arc<Http2Request>>,
    /// Whether the answer has no body whatever it announces (HEAD, RFC 9112 §6.3).
    pub is_head: bool,
    pub expect: Expect,
}

#[derive(Debug, Clone, Default)]
pub struct Expect {
    /// Its status is one of these; none: any below 400, or one of `also`.
    pub statuses: Vec<u16>,
    /// Statuses from 400 on that this request is known to have.
    pub also: Vec<u16>,
    /// Its body, after transfer coding, before content coding; `None`: any.
    pub body: Option<Arc<[u8]>>,
}

impl Expect {
    #[inline]
    pub fn allows(&self, status: u16) -> bool {
        if self.statuses.is_empty() {
            status < 400 || self.also.contains(&status)
        } else {
            self.statuses.contains(&status)
        }
    }
}

/// Why there is no plan, or why it makes no sense, in words for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub String);

#[cfg(test)]
mod tests;
