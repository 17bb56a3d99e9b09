//! What a run came to: the figures that every report, comparison and verdict reads.
//!
//! Plain data with serde; the JSON of `millstream bench` is this, in which the name of each time has its unit: latencies are
//! microseconds (`_us`), lengths of a run seconds. Nothing here measures. Next: `drive` makes it, `report` shows it.

mod demand;
mod errors;
mod latency;

pub use demand::{Cause, Judged, Kept, NotReached, ScheduleOutcome, StageOutcome};
pub use errors::{Errors, Failure};
pub(crate) use latency::percentile;
pub use latency::{Latency, PERCENTILES, Percentiles};

use crate::plan::Mode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The share of the requests due that must be answered in time: a server that falls behind does so by more with every second.
pub const KEPT_UP: f64 = 0.99;

/// The share of answers after each of which a connection had to be opened, for the server to be one that closes them.
const CLOSED_ON: f64 = 0.9;

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcome {
    /// What was asked for, as the user wrote it.
    pub urls: Vec<String>,
    /// What set the pace.
    pub mode: Mode,
    /// Connections held at once; in an open loop at the most, as they are opened when a request is due.
    pub connections: u32,
    /// Threads of the generator.
    pub threads: u32,
    /// Requests on their way on one connection at once: pipelined, or as streams of HTTP/2.
    pub pipeline: u32,
    /// What is to be said of HTTP/2; `null`: HTTP/1.1 was spoken.
    pub http2: Option<Http2Outcome>,
    /// Whether connections were used again.
    pub keep_alive: bool,
    /// Whether connections were TLS.
    pub tls: bool,
    /// When measuring began, milliseconds since 1970.
    pub began_unix_milliseconds: u64,
    /// How long the load went on before, in seconds; nothing of that was counted.
    #[serde(default, rename = "warm_up_seconds")]
    pub warm_up: f64,
    /// How long was measured, after warming up.
    pub seconds: f64,
    /// Whether the user ended the run before its time: its figures are of the time until then.
    #[serde(default)]
    pub interrupted: bool,
    /// What was counted in that time.
    pub counts: Counts,
    /// What limited a closed loop, and how that is known, in sentences, or why that is not told; `null` where it was not looked for.
    pub limit: Option<String>,
    /// From when a request should have started (open loop) or was sent (closed loop; without keep-alive: its connection
    /// was begun) to its last byte. A request that was given up after the timeout is in it with the time that it had waited,
    /// and so is one that is `unfinished`: see `known_to`.
    pub latency: Latency,
    /// From when it was really sent: in an open loop, what a closed one would have said. Of answers only.
    pub service: Latency,
    /// From when it was really sent to the first byte of its answer, interim ones (RFC 9110 §15.2) not counted.
    pub first_byte: Latency,
    /// When requests were due, where that was not at one rate; `null`: it was, or nothing was due.
    pub schedule: Option<ScheduleOutcome>,
    /// Bounds that were to be kept (`--fail`), and what became of them.
    #[serde(default)]
    pub thresholds: Vec<Judged>,
    /// The search that this run was the best trial of (`--find-max`); `null` of a run by itself.
    pub search: Option<SearchOutcome>,
    /// Each URL apart, where there are several: those first that the most time was spent on.
    #[serde(default)]
    pub by_url: Vec<OfUrl>,
    /// The run in equal slices, in order.
    pub slices: Vec<Slice>,
    /// How the generator itself fared.
    pub generator: Generator,
}

/// What must hold at a rate that is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Goal {
    /// The most that the 99th percentile of latency was allowed to be, microseconds; `null`: anything.
    #[serde(rename = "p99_us")]
    pub p99: Option<u64>,
    /// The most that the share of errors was allowed to be, 0 to 1.
    pub errors: f64,
}

/// A search for the highest rate that holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchOutcome {
    /// What had to hold.
    #[serde(flatten)]
    pub goal: Goal,
    /// What was found, in a sentence.
    pub found: String,
    /// How often the rate held of its further trials; `null`: the search ended before they were done.
    pub confirmed: Option<Confirmed>,
    /// Each rate that was tried, in order.
    pub trials: Vec<Tried>,
}

/// Further trials of a rate that had held. The trial that a search ends with was chosen because it held, so it counts for nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Confirmed {
    /// So many held.
    pub held: u32,
    /// Of so many.
    pub of: u32,
}

/// One rate that was tried.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tried {
    /// Requests per second that were asked for.
    pub rate: f64,
    /// Answers as expected per second.
    pub answered: f64,
    /// The 99th percentile of latency, microseconds.
    #[serde(rename = "p99_us")]
    pub p99: u64,
    /// The share of errors, 0 to 1.
    pub error_share: f64,
    /// Whether it was a further trial of a rate that had held.
    #[serde(default)]
    pub is_further: bool,
    /// Whether the generator was late, so that the trial says nothing about its rate; `miss` is then how.
    #[serde(default)]
    pub is_late: bool,
    /// Requests that had no answer at its end.
    #[serde(default)]
    pub under_way: u64,
    /// So many of them are allowed for, as the rate and the latency make them: they are not late.
    #[serde(default)]
    pub under_way_allowed: u64,
    /// Why it did not hold; `null`: it did.
    pub miss: Option<String>,
}

/// Counters of the measured time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    /// Requests that went out whole. In a closed loop those that were on their way when measuring began are among them, as
    /// their answers are.
    pub requests: u64,
    /// Whole answers as expected.
    pub answers: u64,
    /// Bytes read, heads included.
    pub bytes_read: u64,
    /// Bytes of bodies.
    pub bytes_body: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Connections opened in this time; those of the warm-up are not counted.
    pub connections: u64,
    /// Connections that were closed because more came on them than had been asked for: a body longer than announced, a
    /// second answer, a farewell such as 408.
    #[serde(default)]
    pub surplus: u64,
    /// Closed loop: connections that never had an answer and on which a request waited nearly all the measured time. Their
    /// wait is in no latency: the server took them and answers others.
    #[serde(default)]
    pub silent: u64,
    /// Requests that were sent again, because the server ended the connection with an answer before them (pipelining), or
    /// ended it without them (GOAWAY of HTTP/2).
    /// They are among `requests` each time that they went out.
    #[serde(default)]
    pub resent: u64,
    /// Redirects, followed or one too many. Each was a request of its own, and its answer is among `statuses`; the latency is that of
    /// the whole way.
    #[serde(default)]
    pub redirects: u64,
    /// Answers by status, expected or not.
    pub statuses: BTreeMap<u16, u64>,
    /// What went wrong.
    pub errors: Errors,
    /// Open loop: whether a request was due for which no connection was left: all that the plan allows had one on their way,
    /// or had just failed.
    #[serde(default)]
    pub ran_out: bool,
    /// Requests without an answer at the end; they are in the latency with the time that they had waited by then. Open loop: all that
    /// should have started in the measured time, sent or not; many of them mean that the server does not keep up. Closed loop: those
    /// that had waited for longer than any answer took.
    #[serde(default)]
    pub unfinished: u64,
}

/// What became of the requests for one URL, or of those for all that have no row of their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfUrl {
    /// The URL as the user wrote it; `null`: all others.
    pub url: Option<String>,
    /// How many URLs that is; 0 in reports that do not say.
    #[serde(default)]
    pub urls: usize,
    /// Whole answers as expected.
    pub answers: u64,
    /// Requests that were sent and came to nothing good.
    pub errors: u64,
    /// Mean latency, microseconds: as the latency of the whole run, but of answers only.
    #[serde(rename = "mean_us")]
    pub mean: f64,
    /// Its median.
    #[serde(rename = "p50_us")]
    pub p50: u64,
    /// Its 99th percentile.
    #[serde(rename = "p99_us")]
    pub p99: u64,
    /// The longest.
    #[serde(rename = "max_us")]
    pub max: u64,
}

impl Counts {
    /// Whole answers, expected or not.
    pub fn whole(&self) -> u64 {
        self.answers + self.errors.status + self.errors.body
    }
}

/// A slice of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Slice {
    /// Where it begins, in seconds from the start of measuring.
    #[serde(rename = "at_seconds")]
    pub at: f64,
    /// How long it is.
    pub seconds: f64,
    /// Answers as expected.
    pub answers: u64,
    /// Everything else.
    pub errors: u64,
    /// The mean latency in it, microseconds. What had no answer at the end of the run is in the last slice's latencies.
    #[serde(default, rename = "mean_us")]
    pub mean: f64,
    /// The median latency in it, microseconds.
    #[serde(rename = "p50_us")]
    pub p50: u64,
    /// The 99th percentile, microseconds.
    #[serde(rename = "p99_us")]
    pub p99: u64,
    /// The longest, microseconds.
    #[serde(rename = "max_us")]
    pub max: u64,
}

/// How the generator fared: whether its figure is a result, or only a floor.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Generator {
    /// CPU seconds of all its threads while measuring.
    pub cpu_seconds: f64,
    /// CPU microseconds per answer.
    #[serde(rename = "cpu_per_answer_us")]
    pub cpu_per_answer: f64,
    /// The busiest thread's share of the time, 0 to 1.
    pub busiest_thread: f64,
    /// The share of the time that its keenest thread ran or waited for a core, 0 to 1.
    #[serde(default)]
    pub keenest_thread: f64,
    /// Open loop: how much later than it should a request started because the generator was late, microseconds at the
    /// 99th percentile. What waits for a free connection is the server's delay and not in it.
    #[serde(rename = "send_lag_p99_us")]
    pub send_lag_p99: u64,
    /// Cores that this process may use.
    pub cores: u32,
    /// The CPU share of the whole machine that was busy, 0 to 1.
    pub machine_busy: f64,
    /// Why the figure is a floor and no result; `None`: it is a result.
    pub limits: Option<String>,
}

/// A run of fewer seconds does not show who used which CPU: the kernel counts in hundredths.
pub(crate) const SHORTEST: f64 = 0.1;
/// From this share of the time on, whoever is at work counts as at work all the time. The utilisation law (X ≤ 1 ÷ D) is the
/// reason: if all others were infinitely fast, such a party would still give at most a tenth more answers, and less than a
/// tenth is no gain worth naming.
pub const ALWAYS: f64 = 0.9;

impl Generator {
    /// Whether it had hardly any time left: with more threads, more of a core, or a cheaper request, it could send more.
    pub fn is_busy(&self) -> bool {
        self.keenest_thread.max(self.busiest_thread) >= ALWAYS
    }
}

impl Outcome {
    /// Whether the server closes its connections though they might be used again, so that nearly every request opened one.
    pub fn is_closed_on(&self) -> bool {
        let answers = self.counts.whole();
        self.keep_alive
            && answers > u64::from(self.connections)
            && self.counts.surplus < self.counts.connections / 2
            && self.counts.connections as f64 >= CLOSED_ON * answers as f64
    }

    /// Answers as expected per second.
    pub fn rate(&self) -> f64 {
        self.per_second(self.counts.answers)
    }

    /// So many in all per second; 0 for a run without a duration.
    pub fn per_second(&self, number: u64) -> f64 {
        if self.seconds > 0.0 { number as f64 / self.seconds } else { 0.0 }
    }

    /// The share of requests that ended in an error, 0 to 1; in an open loop of all that were due.
    pub fn error_share(&self) -> f64 {
        self.share(self.counts.errors.total())
    }

    /// The share of requests that came to nothing good, 0 to 1: errors, and in an open loop what was due and had no answer
    /// at the end.
    pub fn lost_share(&self) -> f64 {
        self.share(self.counts.errors.total() + self.counts.unfinished)
    }

    /// Requests that came to an end, and those that are `unfinished`.
    pub fn due(&self) -> u64 {
        self.counts.answers + self.counts.errors.total() + self.counts.unfinished
    }

    /// Open loop: the share of requests due that were not late at the end, 0 to 1. It is 1 in a closed one, where nothing is
    /// due; below [`KEPT_UP`] the server does not keep up.
    pub fn kept_up(&self) -> f64 {
        self.kept_up_but_for(self.on_their_way(f64::INFINITY))
    }

    /// The same where so many of them are not late.
    pub(crate) fn kept_up_but_for(&self, on_their_way: f64) -> f64 {
        let late = (self.counts.unfinished as f64 - on_their_way).max(0.0);
        if self.due() == 0 || self.mode == Mode::Closed { 1.0 } else { 1.0 - late / self.due() as f64 }
    }

    /// How many requests may be on their way at the end without being late: the rate then times the mean latency of the first
    /// half of the run (Little's law), when a server that falls behind had not yet done so by much. Their number is one of
    /// chance, at the most as that of Poisson's distribution; two standard deviations of it are allowed for, and one
    /// because requests are whole. A mean above `longest`, in seconds, is taken for that: it is the work of a queue.
    pub(crate) fn on_their_way(&self, longest: f64) -> f64 {
        let first = self.slices.iter().filter(|slice| slice.at + slice.seconds <= self.seconds / 2.0);
        let (answers, time) = first.fold((0.0, 0.0), |(answers, time), slice| {
            (answers + slice.answers as f64, time + slice.answers as f64 * slice.mean)
        });
        let latency = if answers > 0.0 { (time / answers / 1e6).min(longest) } else { 0.0 };
        let mut rate = self.per_second(self.due());
        if let Some(ScheduleOutcome::Stages(stages)) = &self.schedule {
            rate = stages.last().map_or(rate, |stage| rate.max(stage.rate));
        }
        let mean = rate * latency;
        mean + 2.0 * mean.sqrt() + 1.0
    }

    pub(crate) fn share(&self, part: u64) -> f64 {
        let all = self.due();
        if all == 0 { 0.0 } else { part as f64 / all as f64 }
    }
}

/// A run over HTTP/2.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Http2Outcome {
    /// Streams of one connection that the server allows at once (SETTINGS_MAX_CONCURRENT_STREAMS), the least that was said;
    /// `null`: as many as were asked for, or more.
    pub allowed: Option<u32>,
    /// Connections that the server wanted to end (GOAWAY).
    pub going_away: u64,
    /// Streams that the server ended (RST_STREAM), by the name of its reason.
    pub resets: BTreeMap<String, u64>,
    /// The first rule that the server broke, to stand behind "the server sent "; `null`: none.
    pub broken: Option<String>,
}

impl Http2Outcome {
    /// Adds what another thread has to say.
    pub fn add(&mut self, other: &Http2Outcome) {
        self.allowed = self.allowed.into_iter().chain(other.allowed).min();
        self.going_away += other.going_away;
        for (name, count) in &other.resets {
            *self.resets.entry(name.clone()).or_default() += count;
        }
        self.broken = self.broken.take().or_else(|| other.broken.clone());
    }
}
