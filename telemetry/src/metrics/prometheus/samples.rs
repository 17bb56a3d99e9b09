//! Lines of the exposition formats: a family's head where it begins, then its samples.

use super::Exposition;
use crate::histogram::HistogramSnapshot;
use std::fmt::{Display, Write};

/// Upper bounds of the buckets shown, in microseconds, with their text in seconds. The histograms themselves are
/// finer; a bucket that a bound cuts through counts above it, which is 3 % of the bound at most.
const BOUNDS: [(u64, &str); 17] = [
    (50, "0.00005"),
    (100, "0.0001"),
    (250, "0.00025"),
    (500, "0.0005"),
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (500_000, "0.5"),
    (1_000_000, "1"),
    (2_500_000, "2.5"),
    (5_000_000, "5"),
    (10_000_000, "10"),
];

/// What a family is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// The text that is being written. Writing to a String cannot fail.
pub(super) struct Samples {
    text: String,
    exposition: Exposition,
    /// The family that the samples are of.
    family: &'static str,
}

impl Samples {
    pub(super) fn new(exposition: Exposition) -> Self {
        Samples { text: String::with_capacity(32 << 10), exposition, family: "" }
    }

    /// Begins a family, unless it is the one that is being written: all its samples stand together.
    pub(super) fn family(&mut self, name: &'static str, doc: &str, kind: Kind) {
        if self.family == name {
            return;
        }
        self.family = name;
        let shown = match self.exposition {
            Exposition::Text => name,
            Exposition::OpenMetrics => name.strip_suffix("_total").unwrap_or(name),
        };
        let _ = writeln!(self.text, "# HELP {shown} {doc}\n# TYPE {shown} {}", kind.name());
    }

    /// One value, with labels as they stand between the braces.
    pub(super) fn value(&mut self, labels: &str, value: impl Display) {
        let name = self.family;
        let _ = match labels {
            "" => writeln!(self.text, "{name} {value}"),
            _ => writeln!(self.text, "{name}{{{labels}}} {value}"),
        };
    }

    /// A time in microseconds, in seconds.
    pub(super) fn seconds(&mut self, labels: &str, microseconds: u64) {
        self.value(labels, Seconds(microseconds));
    }

    /// Times in microseconds, in seconds.
    pub(super) fn histogram(&mut self, labels: &str, values: &HistogramSnapshot) {
        let name = self.family;
        let comma = if labels.is_empty() { "" } else { "," };
        for (bound, seconds) in BOUNDS {
            let count = values.count_up_to(bound);
            let _ = writeln!(self.text, "{name}_bucket{{{labels}{comma}le=\"{seconds}\"}} {count}");
        }
        let (count, sum) = (values.count(), Seconds(values.sum()));
        let braced = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let _ = writeln!(self.text, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {count}");
        let _ = writeln!(self.text, "{name}_sum{braced} {sum}\n{name}_count{braced} {count}");
    }

    /// The whole text.
    pub(super) fn end(mut self) -> String {
        if self.exposition == Exposition::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

/// Microseconds, shown as seconds.
struct Seconds(u64);

impl Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// Label values escape backslash, quote and line feed, says the exposition format.
pub(super) fn escape_label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
