//! Plain rows of measurements beside each other, which `ladder` and `capacity` fill.
//!
//! Knows nothing of how they were measured or of what they look like, but for the one text that stands at each. Next: `bars`
//! draws them, `steps` makes their page.

use super::quantity::{factor, rate};

/// What the page shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    /// One line: what was measured.
    pub title: String,
    /// A sentence on how.
    pub subtitle: String,
    /// What the reader must not overlook, such as that the origin is simulated.
    pub warnings: Vec<String>,
    /// What a row is.
    pub row: RowName,
    /// From the first to the last.
    pub rows: Vec<Row>,
    /// What it means, a paragraph each.
    pub verdict: Vec<String>,
    /// On the manner of measuring, a paragraph each.
    pub notes: Vec<String>,
}

/// What a row of a page is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RowName {
    /// A step of the ladder, each on top of the one before.
    #[default]
    Step,
    /// A case of its own.
    Case,
}

impl RowName {
    /// At the head of a column.
    pub(super) fn heading(self) -> &'static str {
        match self {
            RowName::Step => "Step",
            RowName::Case => "Case",
        }
    }

    /// Within a sentence.
    pub(super) fn word(self) -> &'static str {
        match self {
            RowName::Step => "step",
            RowName::Case => "case",
        }
    }
}

/// A step, or a case.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// A few words.
    pub name: String,
    /// One sentence: what is different in this step.
    pub what: String,
    /// Requests per second that were to be expected; drawn as a mark.
    pub expected: Option<f64>,
    /// One for each party, the product first.
    pub measures: Vec<MeasuredParty>,
}

/// What one party did in a step. Medians over the rounds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MeasuredParty {
    /// Who: `Millstream`, `nginx`.
    pub party: String,
    /// Requests per second.
    pub rate: f64,
    /// The lowest rate of the rounds.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// Times the first step; `None`: not to be told.
    pub factor: Option<f64>,
    /// The median latency, microseconds.
    pub p50: u64,
    /// Its 99th percentile, microseconds.
    pub p99: u64,
    /// Requests that reached the origin.
    pub origin_requests: Option<u64>,
    /// Bytes read.
    pub bytes: Option<u64>,
    /// Requests that came to nothing good.
    pub errors: u64,
    /// Why the answers are wrong and the figures do not count.
    pub wrong: Option<String>,
    /// Why the rate is only a floor.
    pub floor: Option<String>,
    /// Why the party cannot do this step; there are no figures then.
    pub cannot: Option<String>,
    /// CPU microseconds per answer that the proxy took.
    pub cpu_proxy: Option<f64>,
    /// The same of the origin.
    pub cpu_origin: Option<f64>,
    /// The same of the generator.
    pub cpu_generator: Option<f64>,
    /// Sockets in TIME_WAIT that were left behind.
    pub time_wait: Option<u64>,
}

impl MeasuredParty {
    /// Whether its rate may be drawn.
    pub(super) fn counts(&self) -> bool {
        self.wrong.is_none() && self.cannot.is_none()
    }

    /// What stands at the end of its bar.
    pub(super) fn told(&self) -> String {
        if self.cannot.is_some() {
            return "cannot".to_owned();
        }
        if self.wrong.is_some() {
            return "wrong answers".to_owned();
        }
        let at_least = if self.floor.is_some() { "≥ " } else { "" };
        let times = self.factor.map(|times| format!(" · {}", factor(times))).unwrap_or_default();
        format!("{at_least}{}/s{times}", rate(self.rate))
    }
}
