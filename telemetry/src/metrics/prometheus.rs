//! A snapshot as Prometheus text, exposition format 0.0.4.
//!
//! Only what is in the table, and each zone's lines; nothing is computed here that a query could compute.

use super::{
    CacheStatus, Cause, CauseFamily, Counter, Gauge, LocationSnapshot, MetricLine, Snapshot, Timing,
    ZoneSnapshot,
};
use crate::histogram::HistogramSnapshot;
use std::fmt::Write;

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

/// The media type of the text.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

impl Snapshot {
    /// The `Content-Type` of [`Snapshot::prometheus`].
    pub const PROMETHEUS_CONTENT_TYPE: &'static str = CONTENT_TYPE;

    /// Every metric as Prometheus text.
    pub fn prometheus(&self) -> String {
        let mut text = String::with_capacity(16 << 10);
        let mut family = "";
        for &counter in Counter::ALL {
            open_family(&mut text, &mut family, counter.line(), "counter");
            sample(&mut text, counter.line().name, counter.line().labels, self.counter(counter));
        }
        for &gauge in Gauge::ALL {
            open_family(&mut text, &mut family, gauge.line(), "gauge");
            sample(&mut text, gauge.line().name, gauge.line().labels, self.gauge(gauge));
        }
        for &timing in Timing::ALL {
            open_family(&mut text, &mut family, timing.line(), "histogram");
            histogram(&mut text, timing.line().name, self.timing(timing));
        }
        zones(&mut text, &self.zones);
        causes(&mut text, &self.locations);
        text
    }
}

/// Writes HELP and TYPE where a family begins; the table keeps its lines together.
fn open_family(text: &mut String, family: &mut &'static str, line: &MetricLine, kind: &str) {
    if *family != line.name {
        *family = line.name;
        head(text, line.name, line.doc, kind);
    }
}

fn head(text: &mut String, name: &str, doc: &str, kind: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "# HELP {name} {doc}\n# TYPE {name} {kind}");
}

fn sample(text: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let _ = match labels {
        "" => writeln!(text, "{name} {value}"),
        _ => writeln!(text, "{name}{{{labels}}} {value}"),
    };
}

fn histogram(text: &mut String, name: &str, values: &HistogramSnapshot) {
    for (bound, seconds) in BOUNDS {
        let _ = writeln!(text, "{name}_bucket{{le=\"{seconds}\"}} {}", values.count_up_to(bound));
    }
    let (count, sum) = (values.count(), values.sum());
    let _ = writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {count}");
    let _ = writeln!(text, "{name}_sum {}.{:06}\n{name}_count {count}", sum / 1_000_000, sum % 1_000_000);
}

/// The families of status zones: name, doc and the lines of one zone.
const ZONE_FAMILIES: [(&str, &str, ZoneLines); 5] = [
    ("millstream_zone_requests_total", "Requests finished, by `status_zone`.", |text, name, zone, label| {
        sample(text, name, label, zone.requests);
    }),
    (
        "millstream_zone_responses_total",
        "Answers sent, by `status_zone` and class of status.",
        |text, name, zone, label| {
            for (class, count) in (1..).zip(zone.responses) {
                sample(text, name, &format!("{label},class=\"{class}xx\""), count);
            }
        },
    ),
    (
        "millstream_zone_bytes_received_total",
        "Bytes received from clients, by `status_zone`.",
        |text, name, zone, label| {
            sample(text, name, label, zone.received);
        },
    ),
    (
        "millstream_zone_bytes_sent_total",
        "Bytes sent to clients, by `status_zone`.",
        |text, name, zone, label| {
            sample(text, name, label, zone.sent);
        },
    ),
    (
        "millstream_zone_cache_requests_total",
        "Requests to locations with a cache, by `status_zone` and `$upstream_cache_status`.",
        |text, name, zone, label| {
            for (status, count) in CacheStatus::ALL.iter().zip(zone.cache) {
                sample(text, name, &format!("{label},status=\"{}\"", status.name()), count);
            }
        },
    ),
];

/// Writes one zone's samples of one family.
type ZoneLines = fn(&mut String, &str, &ZoneSnapshot, &str);

fn zones(text: &mut String, zones: &[ZoneSnapshot]) {
    if zones.is_empty() {
        return;
    }
    for (name, doc, lines) in ZONE_FAMILIES {
        head(text, name, doc, "counter");
        for zone in zones {
            lines(text, name, zone, &format!("zone=\"{}\"", escape_label(&zone.name)));
        }
    }
}

/// The causes that came up, by location: a line for every pair would be a page of zeros.
fn causes(text: &mut String, locations: &[LocationSnapshot]) {
    if locations.is_empty() {
        return;
    }
    for family in [CauseFamily::Miss, CauseFamily::NotStored] {
        let MetricLine { name, doc, .. } = family.line();
        head(text, name, doc, "counter");
        for location in locations {
            let label = escape_label(&location.name);
            for (cause, of_cause) in Cause::ALL.iter().zip(&location.causes) {
                let (of, word) = cause.of();
                if of == family && of_cause.count > 0 {
                    sample(text, name, &format!("location=\"{label}\",cause=\"{word}\""), of_cause.count);
                }
            }
        }
    }
}

/// Label values escape backslash, quote and line feed, says the exposition format.
fn escape_label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The zone families for the manual: name and doc.
pub(crate) fn zone_families() -> impl Iterator<Item = (&'static str, &'static str)> {
    ZONE_FAMILIES.iter().map(|(name, doc, _)| (*name, *doc))
}
