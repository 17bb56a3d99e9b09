//! What a run came to: the figures that every report, comparison and verdict reads.
//!
//! Plain data with serde; the JSON of `millstream bench` is this. Durations are seconds as `f64` unless a name says
//! otherwise; latencies are microseconds in the histogram. Nothing here measures. Next: `drive` makes it, `report` shows it.

mod http2;

pub use http2::Http2Outcome;

use crate::histogram;
use crate::plan::Mode;
use std::collections::BTreeMap;

/// The share of the requests due that must be answered in time: a server that falls behind does so by more with every second.
pub const KEPT_UP: f64 = 0.99;

/// The share of answers after each of which a connection had to be opened, for the server to be one that closes them.
const CLOSED_ON: f64 = 0.9;

/// By how much a percentile may be longer than it says and still be told as known.
const LITTLE: f64 = 1.05;

/// The percentiles that are told.
pub const PERCENTILES: [f64; 6] = [50.0, 75.0, 90.0, 99.0, 99.9, 99.99];

/// One run.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
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
    #[serde(default)]
    pub http2: Option<Http2Outcome>,
    /// Whether connections were used again.
    pub keep_alive: bool,
    /// Whether connections were TLS.
    pub tls: bool,
    /// When measuring began, milliseconds since 1970.
    pub began_unix_milliseconds: u64,
    /// How long the load went on before, in seconds; nothing of that was counted.
    #[serde(default)]
    pub warm_up: f64,
    /// How long was measured, after warming up.
    pub seconds: f64,
    /// Whether the user ended the run before its time: its figures are of the time until then.
    #[serde(default)]
    pub interrupted: bool,
    /// What was counted in that time.
    pub counts: Counts,
    /// What limited a closed loop, and how that is known, in sentences; `null` where it was not looked for.
    #[serde(default)]
    pub limit: Option<String>,
    /// From when a request should have started (open loop) or was sent (closed loop; without keep-alive: its connection
    /// was begun) to its last byte. A request that was given up after the timeout is in it with the time that it had waited,
    /// and so is in an open loop one that had no answer at the end: see `known_to`.
    pub latency: Latency,
    /// From when it was really sent: in an open loop, what a closed one would have said. Of answers only.
    pub service: Latency,
    /// From when it was really sent to the first byte of its answer, interim ones (RFC 9110 §15.2) not counted.
    pub first_byte: Latency,
    /// The search that this run was the best trial of (`--find-max`); `null` of a run by itself.
    #[serde(default)]
    pub search: Option<SearchOutcome>,
    /// Each URL apart, where there are several: those first that the most time was spent on.
    #[serde(default)]
    pub by_url: Vec<OfUrl>,
    /// The run in equal slices, in order.
    pub slices: Vec<Slice>,
    /// How the generator itself fared.
    pub generator: Generator,
}

/// A search for the highest rate that holds.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct SearchOutcome {
    /// The most that the 99th percentile of latency was allowed to be, microseconds; `null`: anything.
    pub p99: Option<u64>,
    /// The most that the share of errors was allowed to be, 0 to 1.
    pub errors: f64,
    /// What was found, in a sentence.
    pub found: String,
    /// Each rate that was tried, in order.
    pub trials: Vec<Tried>,
}

/// One rate that was tried.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Tried {
    /// Requests per second that were asked for.
    pub rate: f64,
    /// Answers as expected per second.
    pub answered: f64,
    /// The 99th percentile of latency, microseconds.
    pub p99: u64,
    /// The share of errors, 0 to 1.
    pub error_share: f64,
    /// Why it did not hold; `null`: it did.
    pub miss: Option<String>,
}

/// Counters of the measured time.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
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
    /// Closed loop: connections on which a request waited nearly all the measured time and had no answer at its end. Their
    /// wait is in no latency: the server took them and answers others.
    #[serde(default)]
    pub silent: u64,
    /// Requests that were sent again, because the server ended the connection with an answer before them (pipelining), or
    /// ended it without them (GOAWAY of HTTP/2).
    /// They are among `requests` each time that they went out.
    #[serde(default)]
    pub resent: u64,
    /// Answers by status, expected or not.
    pub statuses: BTreeMap<u16, u64>,
    /// What went wrong.
    pub errors: Errors,
    /// Open loop: whether a request was due for which no connection was left: all that the plan allows had one on their way,
    /// or had just failed.
    #[serde(default)]
    pub ran_out: bool,
    /// Open loop: requests that should have started in the measured time and had no answer at its end, sent or not. They
    /// are in the latency with the time that they had waited by then. Many of them mean that the server does not keep up.
    #[serde(default)]
    pub unfinished: u64,
}

/// What became of the requests for one URL, or of those for all that have no row of their own.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct OfUrl {
    /// The URL as the user wrote it; `null`: all others.
    pub url: Option<String>,
    /// Whole answers as expected.
    pub answers: u64,
    /// Requests that were sent and came to nothing good.
    pub errors: u64,
    /// Mean latency, microseconds: as the latency of the whole run, but of answers only.
    pub mean: f64,
    /// Its median.
    pub p50: u64,
    /// Its 99th percentile.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

impl Counts {
    /// Whole answers, expected or not.
    pub fn whole(&self) -> u64 {
        self.answers + self.errors.status + self.errors.body
    }
}

/// What went wrong, each kind apart. A request counts once.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct Errors {
    /// No connection: refused, unreachable, or not in time.
    pub connect: u64,
    /// TLS could not be agreed on.
    pub tls: u64,
    /// No whole answer in time; each is in the latency with the time that it was given.
    pub timeout: u64,
    /// The connection was closed or reset before an answer began.
    pub closed: u64,
    /// The body was shorter than announced.
    pub short_body: u64,
    /// What came is not HTTP.
    pub malformed: u64,
    /// HTTP/2: the server refused the stream before it did anything for it (REFUSED_STREAM), or connection after connection.
    #[serde(default)]
    pub refused: u64,
    /// HTTP/2: the server ended the stream for another reason (RST_STREAM).
    #[serde(default)]
    pub reset: u64,
    /// A whole answer with a status that was not expected.
    pub status: u64,
    /// A whole answer with a body that was not expected.
    pub body: u64,
}

impl Errors {
    /// Each kind with its count, in the order of a request's life.
    pub fn kinds(&self) -> [(&'static str, u64); 10] {
        [
            ("connect", self.connect),
            ("tls", self.tls),
            ("timeout", self.timeout),
            ("closed", self.closed),
            ("short body", self.short_body),
            ("malformed", self.malformed),
            ("refused", self.refused),
            ("reset", self.reset),
            ("status", self.status),
            ("body", self.body),
        ]
    }

    /// All kinds together.
    pub fn total(&self) -> u64 {
        self.connect
            + self.tls
            + self.timeout
            + self.closed
            + self.short_body
            + self.malformed
            + self.refused
            + self.reset
            + self.status
            + self.body
    }
}

/// A distribution of durations, in microseconds, three significant digits.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Latency {
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub deviation: f64,
    /// The least.
    pub min: u64,
    /// The most.
    pub max: u64,
    /// `[percent, microseconds]` for 50, 75, 90, 99, 99.9 and 99.99.
    pub percentiles: Vec<(f64, u64)>,
    /// Up to this percentile all is known: were the requests that had no answer in time, or when the run ended, never answered,
    /// it would be longer by a twentieth at the most. One above it is at least what it says. 100 where every request had its answer;
    /// below that the mean and the most are at least what they say, too.
    #[serde(default = "all")]
    pub known_to: f64,
    /// The whole histogram: HdrHistogram's V2 encoding, deflated, in Base64, as its other tools read it.
    pub histogram: String,
}

/// [`Latency::known_to`] where every request had its answer, as files have it that do not say.
fn all() -> f64 {
    100.0
}

/// The highest percentile of those told up to which all are known, see [`Latency::known_to`]; 0: none is.
fn known_to(histogram: &hdrhistogram::Histogram<u64>, unfinished: &hdrhistogram::Histogram<u64>) -> f64 {
    let mut answers = histogram.clone();
    if unfinished.is_empty() || answers.subtract(unfinished).is_err() {
        return all();
    }
    let is_known = |percent: f64| {
        let rank = (percent / 100.0 * histogram.len() as f64).ceil();
        let share = rank / answers.len() as f64;
        let least = histogram.value_at_percentile(percent) as f64;
        share <= 1.0 && answers.value_at_quantile(share) as f64 <= least * LITTLE
    };
    PERCENTILES.into_iter().take_while(|percent| is_known(*percent)).last().unwrap_or(0.0)
}

/// With so few digits behind the point that a text of it, read again, is the same number.
fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

impl Latency {
    /// What a histogram of microseconds comes to. An empty one is all zeros.
    pub fn of(histogram: &hdrhistogram::Histogram<u64>) -> Self {
        Self::with_unfinished(histogram, &histogram::empty())
    }

    /// The same where these of the histogram's durations are of requests that had no answer yet.
    pub fn with_unfinished(
        histogram: &hdrhistogram::Histogram<u64>,
        unfinished: &hdrhistogram::Histogram<u64>,
    ) -> Self {
        let is_empty = histogram.is_empty();
        let value = |percent: f64| {
            if is_empty { 0 } else { histogram.value_at_percentile(percent).min(histogram.max()) }
        };
        Latency {
            mean: if is_empty { 0.0 } else { thousandths(histogram.mean()) },
            deviation: if is_empty { 0.0 } else { thousandths(histogram.stdev()) },
            min: if is_empty { 0 } else { histogram.min() },
            max: histogram.max(),
            percentiles: PERCENTILES.iter().map(|&percent| (percent, value(percent))).collect(),
            known_to: known_to(histogram, unfinished),
            histogram: histogram::encode(histogram),
        }
    }

    /// Whether nothing was measured: its zeros are then no figures.
    pub fn is_empty(&self) -> bool {
        self.max == 0
    }

    /// Whether a percentile is a figure; else it is at least what it says. The most is the percentile 100.
    pub fn is_known(&self, percent: f64) -> bool {
        percent <= self.known_to
    }

    /// A percentile out of the list; 0 where it is not in it.
    pub fn percentile(&self, percent: f64) -> u64 {
        self.percentiles.iter().find(|(name, _)| (name - percent).abs() < 1e-9).map_or(0, |(_, value)| *value)
    }
}

/// A slice of the run.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct Slice {
    /// Where it begins, in seconds from the start of measuring.
    pub at: f64,
    /// How long it is.
    pub seconds: f64,
    /// Answers as expected.
    pub answers: u64,
    /// Everything else.
    pub errors: u64,
    /// The mean latency in it, microseconds. What had no answer at the end of the run is in the last slice's latencies.
    #[serde(default)]
    pub mean: f64,
    /// The median latency in it, microseconds.
    pub p50: u64,
    /// The 99th percentile, microseconds.
    pub p99: u64,
    /// The longest, microseconds.
    pub max: u64,
}

/// How the generator fared: whether its figure is a result, or only a floor.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Generator {
    /// CPU seconds of all its threads while measuring.
    pub cpu_seconds: f64,
    /// CPU microseconds per answer.
    pub cpu_per_answer: f64,
    /// The busiest thread's share of the time, 0 to 1.
    pub busiest_thread: f64,
    /// The share of the time that its keenest thread ran or waited for a core, 0 to 1.
    #[serde(default)]
    pub keenest_thread: f64,
    /// Open loop: how much later than it should a request started because the generator was late, microseconds at the
    /// 99th percentile. What waits for a free connection is the server's delay and not in it.
    pub send_lag_p99: u64,
    /// Cores that this process may use.
    pub cores: u32,
    /// The CPU share of the whole machine that was busy, 0 to 1.
    pub machine_busy: f64,
    /// Why the figure is a floor and no result; `None`: it is a result.
    pub limits: Option<String>,
}

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
        if self.seconds > 0.0 { self.counts.answers as f64 / self.seconds } else { 0.0 }
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

    /// Requests that came to an end, and in an open loop those that were due and did not.
    pub fn due(&self) -> u64 {
        self.counts.answers + self.counts.errors.total() + self.counts.unfinished
    }

    /// Open loop: the share of requests due that were not late at the end, 0 to 1. It is 1 in a closed one, where nothing is
    /// due; below [`KEPT_UP`] the server does not keep up.
    pub fn kept_up(&self) -> f64 {
        let late = (self.counts.unfinished as f64 - self.on_their_way()).max(0.0);
        if self.due() == 0 { 1.0 } else { 1.0 - late / self.due() as f64 }
    }

    /// How many requests may be on their way at the end without being late: the rate times the mean latency of the first
    /// half of the run (Little's law), when a server that falls behind had not yet done so by much. Their number is one of
    /// chance, at the most as that of Poisson's distribution; two standard deviations of it are allowed for, and one
    /// because requests are whole.
    fn on_their_way(&self) -> f64 {
        let first = self.slices.iter().filter(|slice| slice.at + slice.seconds <= self.seconds / 2.0);
        let (answers, time) = first.fold((0.0, 0.0), |(answers, time), slice| {
            (answers + slice.answers as f64, time + slice.answers as f64 * slice.mean)
        });
        let latency = if answers > 0.0 { time / answers / 1e6 } else { 0.0 };
        let rate = if self.seconds > 0.0 { self.due() as f64 / self.seconds } else { 0.0 };
        let mean = rate * latency;
        mean + 2.0 * mean.sqrt() + 1.0
    }

    fn share(&self, part: u64) -> f64 {
        let all = self.due();
        if all == 0 { 0.0 } else { part as f64 / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl Iterator<Item = u64>) -> hdrhistogram::Histogram<u64> {
        let mut histogram = histogram::empty();
        values.for_each(|value| histogram.saturating_record(value));
        histogram
    }

    #[test]
    fn a_percentile_is_known_where_what_had_no_answer_cannot_change_it_by_much() {
        let known_to = |answers: &hdrhistogram::Histogram<u64>, waiting: &hdrhistogram::Histogram<u64>| {
            let mut both = answers.clone();
            both.add(waiting).expect("both have the same bounds");
            Latency::with_unfinished(&both, waiting).known_to
        };
        let answers = of((1..=10_000).map(|number| 1_000 + number / 10));
        assert_eq!(known_to(&answers, &of([].into_iter())), 100.0);
        assert_eq!(known_to(&answers, &of([1].into_iter())), 99.99, "one on its way says nothing");
        // A stall at the end: what waits has waited for long, and only what lies above it is not known.
        assert_eq!(known_to(&answers, &of((1..=1_000).map(|number| 10_000 + number))), 90.0);
        // A queue that grows: as many wait as have waited, from nothing on.
        assert_eq!(known_to(&of((1..=1_000).map(|n| n * 100)), &of((1..=500).map(|n| n * 200))), 0.0);
        assert_eq!(known_to(&of([].into_iter()), &of([5].into_iter())), 0.0);
    }
}
