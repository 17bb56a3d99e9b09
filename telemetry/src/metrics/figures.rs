//! The walk over all that is counted: family after family, each with its samples, for whoever writes them down.
//!
//! There is one walk, and so one table, whatever is made of it: `prometheus` makes text, `millstream-traces`'s `figures` OTLP.
//! Next: `families`, what there is of each of many.

mod families;

pub(crate) use families::{Described, described as families};

use super::{Cause, CauseFamily, Counter, Gauge, LocationSnapshot, MetricLine, Snapshot, Timing};
use crate::histogram::HistogramSnapshot;
use std::borrow::Cow;

/// Upper bounds of the buckets shown, in microseconds, with their text in seconds. The histograms themselves
/// are finer; a bucket that a bound divides counts above it, which is 3 % of the bound at most.
pub const BOUNDS: [(u64, &str); 17] = [
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FamilyKind {
    Counter,
    Gauge,
    Histogram,
}

impl FamilyKind {
    pub fn name(self) -> &'static str {
        match self {
            FamilyKind::Counter => "counter",
            FamilyKind::Gauge => "gauge",
            FamilyKind::Histogram => "histogram",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    Count(u64),
    /// May be negative for a moment.
    Level(i64),
    /// Microseconds, written as seconds.
    Time(u64),
}

impl From<u64> for Figure {
    fn from(value: u64) -> Figure {
        Figure::Count(value)
    }
}

impl From<i64> for Figure {
    fn from(value: i64) -> Figure {
        Figure::Level(value)
    }
}

#[derive(Debug, Clone, Default)]
pub struct Labels<'l>(Vec<(&'static str, Cow<'l, str>)>);

impl<'l> Labels<'l> {
    fn one(name: &'static str, value: &'l str) -> Labels<'l> {
        Labels(vec![(name, Cow::Borrowed(value))])
    }

    /// A line of the table has at most one label.
    fn written(text: &'static str) -> Labels<'static> {
        let parts = text.split_once("=\"").map(|(name, value)| (name, value.trim_end_matches('"')));
        parts.map_or_else(Labels::default, |(name, value)| Labels::one(name, value))
    }

    fn and(&self, name: &'static str, value: &'l str) -> Labels<'l> {
        let mut more = self.clone();
        more.0.push((name, Cow::Borrowed(value)));
        more
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_ref()))
    }
}

pub trait FigureSink {
    /// Starts a family; the following samples belong to it.
    fn family(&mut self, name: &'static str, doc: &str, kind: FamilyKind);

    fn value(&mut self, labels: &Labels<'_>, figure: Figure);

    /// Times in microseconds.
    fn histogram(&mut self, labels: &Labels<'_>, values: &HistogramSnapshot);
}

/// Visits all samples of a family together.
struct FigureWalk<'w> {
    sink: &'w mut dyn FigureSink,
    family: &'static str,
}

impl FigureWalk<'_> {
    /// Unless it is the current one.
    fn family(&mut self, name: &'static str, doc: &str, kind: FamilyKind) {
        if self.family != name {
            self.family = name;
            self.sink.family(name, doc, kind);
        }
    }

    fn value(&mut self, labels: &Labels<'_>, value: impl Into<Figure>) {
        self.sink.value(labels, value.into());
    }

    fn time(&mut self, labels: &Labels<'_>, microseconds: u64) {
        self.sink.value(labels, Figure::Time(microseconds));
    }

    fn histogram(&mut self, labels: &Labels<'_>, values: &HistogramSnapshot) {
        self.sink.histogram(labels, values);
    }
}

impl Snapshot {
    pub fn walk(&self, sink: &mut dyn FigureSink) {
        let mut walk = FigureWalk { sink, family: "" };
        for &counter in Counter::ALL {
            let MetricLine { name, labels, doc } = *counter.line();
            walk.family(name, doc, FamilyKind::Counter);
            walk.value(&Labels::written(labels), self.counter(counter));
        }
        for &gauge in Gauge::ALL {
            let MetricLine { name, labels, doc } = *gauge.line();
            walk.family(name, doc, FamilyKind::Gauge);
            walk.value(&Labels::written(labels), self.gauge(gauge));
        }
        for &timing in Timing::ALL {
            let MetricLine { name, labels, doc } = *timing.line();
            walk.family(name, doc, FamilyKind::Histogram);
            walk.histogram(&Labels::written(labels), self.timing(timing));
        }
        families::all(&mut walk, self);
        causes(&mut walk, &self.locations);
    }
}

/// Only causes that occurred, by location: a sample for every pair would be a page of zeros.
fn causes(walk: &mut FigureWalk<'_>, locations: &[LocationSnapshot]) {
    for family in [CauseFamily::Miss, CauseFamily::NotStored] {
        let MetricLine { name, doc, .. } = family.line();
        for location in locations {
            let labels = Labels::one("location", &location.name);
            for (cause, of_cause) in Cause::ALL.iter().zip(&location.causes) {
                let (of, word) = cause.of();
                if of == family && of_cause.count > 0 {
                    walk.family(name, doc, FamilyKind::Counter);
                    walk.value(&labels.and("cause", word), of_cause.count);
                }
            }
        }
    }
}
