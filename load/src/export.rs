//! A run for other tools: HdrHistogram's logs and percentiles, and Prometheus's text.
//!
//! All latencies, none of them sampled: the log has the whole histograms, the text their counts below bounds.
//! Next: `outcome`, whose figures these are.

use crate::histogram;
use crate::outcome::{Latency, Outcome};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

/// Upper bounds of the buckets, seconds: those of Prometheus's clients, and finer ones below.
const BUCKETS: [f64; 17] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
    30.0,
];
/// Steps of the percentiles for each halving of what is left, as HdrHistogram's own tools have them.
const STEPS_PER_HALF: u32 = 5;
/// Microseconds in a millisecond: the unit of the percentiles, as in wrk2's.
const MILLISECOND: f64 = 1e3;

/// The latencies as text of HdrHistogram: an interval log (V2) with the whole run as one interval, once from when requests
/// were due, once from when they were sent (tag `service`) and once to the first byte (tag `first_byte`). Values are microseconds.
pub fn interval_log(outcome: &Outcome) -> String {
    let mut bytes = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let start = UNIX_EPOCH + Duration::from_millis(outcome.began_unix_milliseconds);
    // A Vec takes everything, and what a run writes fits the format.
    if let Ok(mut log) = IntervalLogWriterBuilder::new()
        .add_comment("millstream bench; latencies in microseconds")
        .with_start_time(start)
        .with_base_time(start)
        .with_max_value_divisor(1.0)
        .begin_log_with(&mut bytes, &mut serializer)
    {
        let length = Duration::try_from_secs_f64(outcome.seconds).unwrap_or_default();
        for (tag, latency) in [
            (None, &outcome.latency),
            (Some("service"), &outcome.service),
            (Some("first_byte"), &outcome.first_byte),
        ] {
            _ = log.write_histogram(&decoded(latency), Duration::ZERO, length, tag.and_then(Tag::new));
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The latency's percentiles as HdrHistogram's plotter and wrk2 have them (`.hgrm`), in milliseconds.
pub fn percentiles(outcome: &Outcome) -> String {
    let histogram = decoded(&outcome.latency);
    let mut text = "       Value     Percentile TotalCount 1/(1-Percentile)\n\n".to_owned();
    // Writing to a String cannot fail.
    for step in histogram.iter_quantiles(STEPS_PER_HALF) {
        let (value, quantile) = (step.value_iterated_to() as f64 / MILLISECOND, step.quantile_iterated_to());
        let count = histogram.count_between(0, step.value_iterated_to());
        _ = match quantile < 1.0 {
            true => {
                writeln!(text, "{value:>12.3} {quantile:>14.6} {count:>10} {:>14.2}", 1.0 / (1.0 - quantile))
            }
            false => writeln!(text, "{value:>12.3} {quantile:>14.6} {count:>10}"),
        };
    }
    let latency = &outcome.latency;
    _ = writeln!(
        text,
        "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]\n#[Max     = {:>12.3}, Total count    = {:>12}]\n#[Buckets = {:>12}, SubBuckets     = {:>12}]",
        latency.mean / MILLISECOND,
        latency.deviation / MILLISECOND,
        latency.max as f64 / MILLISECOND,
        histogram.len(),
        histogram.buckets(),
        2048
    );
    text
}

fn decoded(latency: &Latency) -> Histogram<u64> {
    // It was encoded by this program.
    histogram::decode(&latency.histogram).unwrap_or_else(|_| histogram::empty())
}

/// The figures in Prometheus's text format, version 0.0.4.
pub fn prometheus(outcome: &Outcome) -> String {
    let mut text = String::new();
    let counts = &outcome.counts;
    let statuses: Vec<(String, f64)> = counts
        .statuses
        .iter()
        .map(|(status, count)| (format!("{{code=\"{status}\"}}"), *count as f64))
        .collect();
    family(&mut text, "responses_total", "counter", "Whole answers by status.", &statuses);
    let errors: Vec<(String, f64)> = counts
        .errors
        .kinds()
        .iter()
        .map(|(kind, count)| (format!("{{kind=\"{}\"}}", kind.replace(' ', "_")), *count as f64))
        .collect();
    family(&mut text, "errors_total", "counter", "What went wrong, by kind.", &errors);
    for (name, kind, about, value) in [
        ("requests_total", "counter", "Requests that went out whole.", counts.requests as f64),
        ("received_bytes_total", "counter", "Bytes read, heads included.", counts.bytes_read as f64),
        ("sent_bytes_total", "counter", "Bytes written.", counts.bytes_written as f64),
        ("connections_total", "counter", "Connections opened.", counts.connections as f64),
        (
            "unfinished_requests",
            "gauge",
            "Requests due that had no answer at the end.",
            counts.unfinished as f64,
        ),
        ("run_seconds", "gauge", "How long was measured.", outcome.seconds),
        ("requests_per_second", "gauge", "Answers as expected per second.", outcome.rate()),
        ("error_ratio", "gauge", "The share of requests that ended in an error.", outcome.error_share()),
        (
            "generator_cpu_seconds_total",
            "counter",
            "CPU time of the generator.",
            outcome.generator.cpu_seconds,
        ),
    ] {
        family(&mut text, name, kind, about, &[(String::new(), value)]);
    }
    for (name, about, latency) in [
        (
            "request_duration_seconds",
            "From when a request was due (open loop) or sent to its last byte.",
            &outcome.latency,
        ),
        (
            "request_service_duration_seconds",
            "From when a request was sent to its last byte.",
            &outcome.service,
        ),
        (
            "request_first_byte_seconds",
            "From when a request was sent to the first byte.",
            &outcome.first_byte,
        ),
    ] {
        distribution(&mut text, name, about, latency);
    }
    text
}

fn family(text: &mut String, name: &str, kind: &str, about: &str, samples: &[(String, f64)]) {
    // Writing to a String cannot fail.
    _ = writeln!(text, "# HELP millstream_bench_{name} {about}\n# TYPE millstream_bench_{name} {kind}");
    for (labels, value) in samples {
        _ = writeln!(text, "millstream_bench_{name}{labels} {value}");
    }
}

fn distribution(text: &mut String, name: &str, about: &str, latency: &Latency) {
    let histogram = decoded(latency);
    let mut samples: Vec<(String, f64)> = BUCKETS
        .iter()
        .map(|bound| {
            (format!("_bucket{{le=\"{bound}\"}}"), histogram.count_between(0, (bound * 1e6) as u64) as f64)
        })
        .collect();
    let count = histogram.len() as f64;
    samples.push(("_bucket{le=\"+Inf\"}".to_owned(), count));
    samples.push(("_sum".to_owned(), latency.mean * count / 1e6));
    samples.push(("_count".to_owned(), count));
    family(text, name, "histogram", about, &samples);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    #[test]
    fn an_interval_log_is_read_back_with_every_latency() {
        let outcome = samples::open();
        let text = interval_log(&outcome);
        let mut tags = Vec::new();
        for entry in IntervalLogIterator::new(text.as_bytes()) {
            let LogEntry::Interval(interval) = entry.expect("a line of a log") else { continue };
            use base64::Engine as _;
            let bytes = base64::engine::general_purpose::STANDARD
                .decode(interval.encoded_histogram())
                .expect("Base64");
            let found: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).expect("V2");
            let tag = interval.tag().map(|tag| tag.as_str().to_owned());
            if tag.is_none() {
                assert_eq!(found, decoded(&outcome.latency));
            }
            tags.push(tag);
        }
        assert_eq!(tags, [None, Some("service".to_owned()), Some("first_byte".to_owned())]);
    }

    #[test]
    fn percentiles_end_with_all_requests_and_the_longest() {
        let outcome = samples::closed();
        let text = percentiles(&outcome);
        let last = text.lines().rfind(|line| !line.starts_with('#')).expect("there is one");
        let words: Vec<&str> = last.split_ascii_whitespace().collect();
        assert_eq!(words[1..], ["1.000000", &decoded(&outcome.latency).len().to_string()], "{text}");
        assert!(text.contains("#[Max     ="), "{text}");
    }

    #[test]
    fn prometheus_reads_counts_below_bounds_that_grow() {
        let outcome = samples::failing();
        let text = prometheus(&outcome);
        assert!(text.contains("millstream_bench_responses_total{code=\"502\"} 40\n"), "{text}");
        assert!(text.contains("millstream_bench_errors_total{kind=\"short_body\"} 4\n"), "{text}");
        let name = "millstream_bench_request_duration_seconds_bucket{le=";
        let buckets: Vec<f64> = text
            .lines()
            .filter(|line| line.starts_with(name))
            .filter_map(|line| line.rsplit(' ').next()?.parse().ok())
            .collect();
        assert_eq!(buckets.len(), BUCKETS.len() + 1);
        assert!(buckets.is_sorted() && buckets.last() == Some(&(decoded(&outcome.latency).len() as f64)));
        assert_eq!(text.matches("# TYPE millstream_bench_request_duration_seconds histogram").count(), 1);
    }
}
