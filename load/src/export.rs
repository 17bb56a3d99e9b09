//! A run for other tools: HdrHistogram's logs and percentiles, and Prometheus's text.
//!
//! All latencies, none of them sampled: the log has the whole histograms, the text their counts below bounds.
//! Next: `outcome`, whose figures these are.

use crate::histogram;
use crate::outcome::{Latency, Outcome};
use std::time::Duration;

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
    let start = outcome.began_unix_milliseconds as f64 / 1e3;
    let length = Duration::try_from_secs_f64(outcome.seconds).unwrap_or_default().as_secs_f64();
    let line = |(tag, latency): (&str, &Latency)| {
        let histogram = latency.decoded();
        let (most, text) = (histogram.max() as f64, histogram::encode(&histogram));
        format!("{tag}0.000,{length:.3},{most:.3},{text}\n")
    };
    let lines = [
        ("", &outcome.latency),
        ("Tag=service,", &outcome.service),
        ("Tag=first_byte,", &outcome.first_byte),
    ];
    format!(
        "#millstream bench; latencies in microseconds\n#[StartTime: {start:.3} (seconds since epoch)]\n#[BaseTime: \
         {start:.3} (seconds since epoch)]\n{}",
        lines.map(line).concat()
    )
}

/// The latency's percentiles as HdrHistogram's plotter and wrk2 have them (`.hgrm`), in milliseconds.
pub fn percentiles(outcome: &Outcome) -> String {
    let (latency, histogram) = (&outcome.latency, outcome.latency.decoded());
    let mut text = "       Value     Percentile TotalCount 1/(1-Percentile)\n\n".to_owned();
    text.extend(histogram.iter_quantiles(STEPS_PER_HALF).map(|step| {
        let (value, quantile) = (step.value_iterated_to() as f64 / MILLISECOND, step.quantile_iterated_to());
        let count = histogram.count_between(0, step.value_iterated_to());
        let last = if quantile < 1.0 { format!(" {:>14.2}", 1.0 / (1.0 - quantile)) } else { String::new() };
        format!("{value:>12.3} {quantile:>14.6} {count:>10}{last}\n")
    }));
    let [mean, deviation, most] =
        [latency.mean, latency.deviation, latency.max as f64].map(|microseconds| microseconds / MILLISECOND);
    text + &format!(
        "#[Mean    = {mean:>12.3}, StdDeviation   = {deviation:>12.3}]\n#[Max     = {most:>12.3}, Total count    = \
         {:>12}]\n#[Buckets = {:>12}, SubBuckets     = {:>12}]\n",
        histogram.len(),
        histogram.buckets(),
        2048
    )
}

/// The figures in Prometheus's text format, version 0.0.4.
pub fn prometheus(outcome: &Outcome) -> String {
    let counts = &outcome.counts;
    let statuses = counts.statuses.iter();
    let statuses = statuses.map(|(status, count)| (format!("{{code=\"{status}\"}}"), *count as f64));
    let errors = counts.errors.kinds().into_iter();
    let errors =
        errors.map(|(kind, count, _)| (format!("{{kind=\"{}\"}}", kind.replace(' ', "_")), count as f64));
    let figures = [
        ("requests_total", "Requests sent completely.", counts.requests as f64),
        ("received_bytes_total", "Bytes read, including headers.", counts.bytes_read as f64),
        ("sent_bytes_total", "Bytes written.", counts.bytes_written as f64),
        ("connections_total", "Connections opened.", counts.connections as f64),
        (
            "unfinished_requests",
            "Requests that were due but had no response at the end.",
            counts.unfinished as f64,
        ),
        ("run_seconds", "Duration of the measurement.", outcome.seconds),
        ("requests_per_second", "Expected responses per second.", outcome.rate()),
        ("error_ratio", "The share of requests that ended in an error.", outcome.error_share()),
        ("generator_cpu_seconds_total", "CPU time of the generator.", outcome.generator.cpu_seconds),
    ];
    let distributions = [
        (
            "duration",
            "Time from when a request was due (open loop) or sent to the last byte of its response.",
            &outcome.latency,
        ),
        (
            "service_duration",
            "Time from when a request was sent to the last byte of its response.",
            &outcome.service,
        ),
        (
            "first_byte",
            "Time from when a request was sent to the first byte of its response.",
            &outcome.first_byte,
        ),
    ];
    let mut text = family("responses_total", "counter", "Complete responses by status.", statuses);
    text += &family("errors_total", "counter", "Errors by kind.", errors);
    text.extend(figures.map(|(name, about, value)| {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        family(name, kind, about, [(String::new(), value)])
    }));
    text.extend(distributions.map(|(what, about, latency)| {
        family(&format!("request_{what}_seconds"), "histogram", about, buckets(latency))
    }));
    text
}

fn family(name: &str, kind: &str, about: &str, samples: impl IntoIterator<Item = (String, f64)>) -> String {
    let sample = |(labels, value)| format!("millstream_bench_{name}{labels} {value}\n");
    let samples: String = samples.into_iter().map(sample).collect();
    format!("# HELP millstream_bench_{name} {about}\n# TYPE millstream_bench_{name} {kind}\n{samples}")
}

fn buckets(latency: &Latency) -> Vec<(String, f64)> {
    let histogram = latency.decoded();
    let count = histogram.len() as f64;
    let bucket = |bound: f64| {
        (format!("_bucket{{le=\"{bound}\"}}"), histogram.count_between(0, (bound * 1e6) as u64) as f64)
    };
    let rest = [("_bucket{le=\"+Inf\"}", count), ("_sum", latency.mean * count / 1e6), ("_count", count)];
    BUCKETS.map(bucket).into_iter().chain(rest.map(|(name, value)| (name.to_owned(), value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn an_interval_log_has_every_latency() {
        let outcome = samples::open();
        let text = interval_log(&outcome);
        let start = format!(
            "{}.{:03}",
            outcome.began_unix_milliseconds / 1000,
            outcome.began_unix_milliseconds % 1000
        );
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("#millstream bench; latencies in microseconds"));
        for name in ["StartTime", "BaseTime"] {
            assert_eq!(lines.next(), Some(&*format!("#[{name}: {start} (seconds since epoch)]")));
        }
        for (tag, latency) in [
            ("", &outcome.latency),
            ("Tag=service,", &outcome.service),
            ("Tag=first_byte,", &outcome.first_byte),
        ] {
            let histogram = latency.decoded();
            let line = lines.next().and_then(|line| line.strip_prefix(tag)).expect("an interval");
            let fields: Vec<&str> = line.split(',').collect();
            let seconds = format!("{:.3}", outcome.seconds);
            assert_eq!(fields[..3], ["0.000", &seconds, &format!("{}.000", histogram.max())]);
            assert_eq!((histogram::decode(fields[3]), fields.len()), (Ok(histogram), 4));
        }
        assert_eq!(lines.next(), None);
    }

    #[test]
    fn percentiles_end_with_all_requests_and_the_longest() {
        let outcome = samples::closed();
        let text = percentiles(&outcome);
        let last = text.lines().rfind(|line| !line.starts_with('#')).expect("there is one");
        let words: Vec<&str> = last.split_ascii_whitespace().collect();
        assert_eq!(words[1..], ["1.000000", &outcome.latency.decoded().len().to_string()], "{text}");
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
        assert!(buckets.is_sorted() && buckets.last() == Some(&(outcome.latency.decoded().len() as f64)));
        assert_eq!(text.matches("# TYPE millstream_bench_request_duration_seconds histogram").count(), 1);
    }
}
