//! A snapshot as Prometheus reads it: its text format 0.0.4, or OpenMetrics 1.0 for who prefers that.
//!
//! Only what is counted; nothing is computed here that a query could compute. Next: `families`, what there is of each of many.

mod samples;
mod families;

pub(crate) use families::{Described, described as families};

use super::{Cause, CauseFamily, Counter, Gauge, LocationSnapshot, MetricLine, Snapshot, Timing};
use samples::{Kind, Samples};

/// How the figures are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposition {
    /// Prometheus's own text format.
    Text,
    /// OpenMetrics: families of counters have no `_total`, and the end is marked.
    OpenMetrics,
}

impl Exposition {
    /// What a client wants that sends this `Accept`: OpenMetrics where it is named and not refused.
    pub fn wanted(accept: &[u8]) -> Exposition {
        let wants = |one: &[u8]| {
            let mut parts = one.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
            let is_named =
                parts.next().is_some_and(|name| name.eq_ignore_ascii_case(b"application/openmetrics-text"));
            is_named && !parts.any(|part| matches!(part, b"q=0" | b"q=0.0" | b"q=0.00" | b"q=0.000"))
        };
        if accept.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).any(wants) {
            Exposition::OpenMetrics
        } else {
            Exposition::Text
        }
    }

    /// The `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Exposition::Text => "text/plain; version=0.0.4; charset=utf-8",
            Exposition::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

impl Snapshot {
    /// Every metric as text.
    pub fn exposed(&self, exposition: Exposition) -> String {
        let mut samples = Samples::new(exposition);
        for &counter in Counter::ALL {
            samples.family(counter.line().name, counter.line().doc, Kind::Counter);
            samples.value(counter.line().labels, self.counter(counter));
        }
        for &gauge in Gauge::ALL {
            samples.family(gauge.line().name, gauge.line().doc, Kind::Gauge);
            samples.value(gauge.line().labels, self.gauge(gauge));
        }
        for &timing in Timing::ALL {
            samples.family(timing.line().name, timing.line().doc, Kind::Histogram);
            samples.histogram(timing.line().labels, self.timing(timing));
        }
        families::all(&mut samples, self);
        causes(&mut samples, &self.locations);
        samples.end()
    }
}

/// The causes that came up, by location: a line for every pair would be a page of zeros.
fn causes(samples: &mut Samples, locations: &[LocationSnapshot]) {
    for family in [CauseFamily::Miss, CauseFamily::NotStored] {
        let MetricLine { name, doc, .. } = family.line();
        for location in locations {
            let label = samples::escape_label(&location.name);
            for (cause, of_cause) in Cause::ALL.iter().zip(&location.causes) {
                let (of, word) = cause.of();
                if of == family && of_cause.count > 0 {
                    samples.family(name, doc, Kind::Counter);
                    samples.value(&format!("location=\"{label}\",cause=\"{word}\""), of_cause.count);
                }
            }
        }
    }
}
