//! Figures as OTLP has them: `ExportMetricsServiceRequest`s, none larger than a collector takes.
//!
//! Names, labels and bounds are those of `/metrics`, because the walk is the same. Sums and histograms are cumulative since the process
//! started counting. Before: `millstream-telemetry`'s `metrics/figures`, the walk; `message`, spans; next: `exporter`.

use crate::message::{about, key_value, scope, text};
use crate::otlp::{
    CUMULATIVE, Data, ExportMetricsServiceRequest, Gauge, Histogram, HistogramDataPoint, KeyValue, Metric,
    Number, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
};
use millstream_conf::model::OtelResource;
use millstream_telemetry::histogram::HistogramSnapshot;
use millstream_telemetry::metrics::{BOUNDS, FamilyKind, Figure, FigureSink, Labels};
use prost::Message;

/// Bytes of samples in one message, about: a collector takes 4 MiB unless it is told otherwise.
const MOST_BYTES: usize = 1 << 20;
/// Microseconds in a second.
const SECOND: f64 = 1e6;

/// Messages that are being made.
pub(crate) struct FigureMessages<'r> {
    resource: &'r OtelResource,
    /// Since when is counted, and until when: in nanoseconds since 1970.
    since: u64,
    until: u64,
    /// The family that the samples are of, without any.
    family: Metric,
    metrics: Vec<Metric>,
    /// Bytes of samples in `metrics`.
    size: usize,
    done: Vec<Vec<u8>>,
}

impl<'r> FigureMessages<'r> {
    /// None yet.
    pub(crate) fn new(resource: &'r OtelResource, (since, until): (u64, u64)) -> FigureMessages<'r> {
        let (family, metrics) = (Metric::default(), Vec::new());
        FigureMessages { resource, since, until, family, metrics, size: 0, done: Vec::new() }
    }

    /// All of them.
    pub(crate) fn end(mut self) -> Vec<Vec<u8>> {
        self.cut();
        self.done
    }

    /// Where samples of the family go, of which one more takes so many bytes.
    fn room(&mut self, bytes: usize) -> Option<&mut Data> {
        if self.size + bytes > MOST_BYTES {
            self.cut();
        }
        self.size += bytes;
        if self.metrics.last().is_none_or(|last| last.name != self.family.name) {
            self.size += self.family.encoded_len();
            self.metrics.push(self.family.clone());
        }
        self.metrics.last_mut()?.data.as_mut()
    }

    /// What there is becomes a message.
    fn cut(&mut self) {
        if self.metrics.is_empty() {
            return;
        }
        self.size = 0;
        let scoped = ScopeMetrics { scope: Some(scope()), metrics: std::mem::take(&mut self.metrics) };
        let of_resource =
            ResourceMetrics { resource: Some(about(self.resource)), scope_metrics: vec![scoped] };
        let request = ExportMetricsServiceRequest { resource_metrics: vec![of_resource] };
        self.done.push(request.encode_to_vec());
    }
}

impl FigureSink for FigureMessages<'_> {
    fn family(&mut self, name: &'static str, doc: &str, kind: FamilyKind) {
        let data = match kind {
            FamilyKind::Counter => {
                Data::Sum(Sum { aggregation_temporality: CUMULATIVE, is_monotonic: true, ..Sum::default() })
            }
            FamilyKind::Gauge => Data::Gauge(Gauge::default()),
            FamilyKind::Histogram => {
                Data::Histogram(Histogram { aggregation_temporality: CUMULATIVE, ..Histogram::default() })
            }
        };
        self.family =
            Metric { name: name.into(), description: doc.into(), unit: unit(name).into(), data: Some(data) };
    }

    fn value(&mut self, labels: &Labels<'_>, figure: Figure) {
        let value = match figure {
            Figure::Count(count) => Number::AsInt(count.cast_signed()),
            Figure::Level(level) => Number::AsInt(level),
            Figure::Time(microseconds) => Number::AsDouble(microseconds as f64 / SECOND),
        };
        let point = NumberDataPoint {
            attributes: attributes(labels),
            start_time_unix_nano: self.since,
            time_unix_nano: self.until,
            value: Some(value),
        };
        match self.room(point.encoded_len()) {
            Some(Data::Sum(sum)) => sum.data_points.push(point),
            // A gauge is of a moment, and began with nothing.
            Some(Data::Gauge(gauge)) => {
                gauge.data_points.push(NumberDataPoint { start_time_unix_nano: 0, ..point });
            }
            _ => {}
        }
    }

    fn histogram(&mut self, labels: &Labels<'_>, values: &HistogramSnapshot) {
        let count = values.count();
        let mut below = 0;
        let mut bucket_counts = Vec::with_capacity(BOUNDS.len() + 1);
        for up_to in BOUNDS.iter().map(|(bound, _)| values.count_up_to(*bound)).chain([count]) {
            bucket_counts.push(up_to - below);
            below = up_to;
        }
        let point = HistogramDataPoint {
            attributes: attributes(labels),
            start_time_unix_nano: self.since,
            time_unix_nano: self.until,
            count,
            sum: Some(values.sum() as f64 / SECOND),
            bucket_counts,
            explicit_bounds: BOUNDS.iter().map(|(bound, _)| *bound as f64 / SECOND).collect(),
        };
        if let Some(Data::Histogram(histogram)) = self.room(point.encoded_len()) {
            histogram.data_points.push(point);
        }
    }
}

fn attributes(labels: &Labels<'_>) -> Vec<KeyValue> {
    labels.iter().map(|(name, value)| key_value(name.into(), text(value.into()))).collect()
}

/// The unit of a family in UCUM's words, which its name tells.
fn unit(name: &str) -> &'static str {
    match name {
        _ if name.contains("_seconds") => "s",
        _ if name.contains("_bytes") => "By",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
