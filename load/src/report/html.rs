//! One outcome as a page: what it came to, the distribution of its latencies, how it went over time, and the figures.
//!
//! Pictures say nothing that the tables below do not. Next: `steps`, for several measurements beside each other.

mod over_time;

use super::CLOSES;
use super::axis::{Percentiles, Scale};
use super::page::{folded, page, paragraphs, table, tiles, warning};
use super::plot::{Curve, Plot};
use super::quantity::{bytes, count, duration, moment, percent, percentile, plural, rate, span};
use super::text::{
    OTHER_URLS, error_meaning, fewer_streams, if_any, kept_waiting, latency_of, limits_mean, loop_sentence,
    per_second,
};
use crate::histogram;
use crate::outcome::{Latency, Outcome, SearchOutcome};
use crate::plan::Mode;
use over_time::over_time;

/// How finely the distribution is gone through: steps for each halving of what is left.
const STEPS_PER_HALF: u32 = 8;

/// The page of a run.
pub fn html(outcome: &Outcome) -> String {
    let first = outcome.urls.first().map_or("no URL", String::as_str);
    let target = match outcome.urls.len() {
        0 | 1 => first.to_owned(),
        more => format!("{first} and {} more", more - 1),
    };
    let mut body = String::new();
    if let Some(limits) = &outcome.generator.limits {
        let what = match outcome.mode {
            Mode::Closed => "The rate is a floor, not a result",
            Mode::Open { .. } => "The latencies are a ceiling, not a result",
        };
        let limits = limits.trim_end_matches('.');
        body.push_str(&warning(&format!("{what}: {limits}. {}", limits_mean(outcome.mode))));
    }
    body.push_str(&paragraphs(
        outcome.limit.as_deref().into_iter().chain(outcome.is_closed_on().then_some(CLOSES)),
    ));
    body.push_str(&outcome.search.as_ref().map_or_else(String::new, search));
    for part in [figures, distribution, over_time, tables] {
        body.push_str(&part(outcome));
    }
    let what_was_done = format!(
        "{}, {} over {}; {}.",
        moment(outcome.began_unix_milliseconds),
        span(outcome.seconds),
        connections(outcome),
        loop_sentence(outcome.mode)
    );
    page(&format!("{}/s: {target}", rate(outcome.rate())), &target, &what_was_done, &body)
}

/// In an open loop the number of connections is a bound.
fn connections(outcome: &Outcome) -> String {
    let at_most = if outcome.mode == Mode::Closed { "" } else { "at most " };
    at_most.to_owned() + &plural(outcome.connections.into(), "connection")
}

/// What was searched for and found, and each rate that was tried.
fn search(search: &SearchOutcome) -> String {
    let errors = format!("at most {} errors", percent(search.errors));
    let goal = match search.p99 {
        Some(p99) => format!("99 % within {} and {errors}", duration(p99 as f64)),
        None => format!("the server keeps up, with {errors}"),
    };
    let rows: Vec<Vec<String>> = search
        .trials
        .iter()
        .map(|trial| {
            let held = trial.miss.as_deref().unwrap_or("held");
            let p99 = duration(trial.p99 as f64);
            row(&rate(trial.rate), [rate(trial.answered), p99, percent(trial.error_share), held.to_owned()])
        })
        .collect();
    let head = ["Asked for/s", "Answered/s", "99%", "Errors", "What came of it"];
    let told = format!("{}. Searched for: {goal}. Below is the run at that rate.", search.found);
    let table = table("Rates in the order in which they were tried", &head, &rows, &[4]);
    paragraphs([told.as_str()]) + &folded("Every rate that was tried", &table)
}

fn figures(outcome: &Outcome) -> String {
    let (counts, latency) = (&outcome.counts, &outcome.latency);
    let is_floor = outcome.generator.limits.is_some() && outcome.mode == Mode::Closed;
    let at_least = |is: bool| if is { "≥ " } else { "" };
    let told = |percent: f64, value: f64| {
        format!("{}{}", at_least(!latency.is_known(percent)), if_any(latency, value))
    };
    let tile = |percent: f64| told(percent, latency.percentile(percent) as f64);
    let lost = match counts.unfinished {
        0 => percent(outcome.error_share()),
        unfinished => {
            format!("{} unfinished, {} lost in all", count(unfinished), percent(outcome.lost_share()))
        }
    };
    tiles(&[
        (
            "Requests/s",
            format!("{}{}", at_least(is_floor), rate(outcome.rate())),
            plural(counts.answers, "answer"),
        ),
        ("Median latency", tile(50.0), format!("mean {}", if_any(latency, latency.mean.round()))),
        ("99th percentile", tile(99.0), format!("99.9%: {}", tile(99.9))),
        ("Longest", told(100.0, latency.max as f64), String::new()),
        ("Errors", count(counts.errors.total()), lost),
        (
            "Transfer/s",
            bytes(per_second(counts.bytes_read, outcome.seconds)),
            format!("{} in all", bytes(counts.bytes_read as f64)),
        ),
    ])
}

/// A distribution as shares and values, in order: from the histogram, or from the percentiles where it cannot be read.
fn shares(latency: &Latency) -> (u64, Vec<(f64, f64)>) {
    match histogram::decode(&latency.histogram) {
        Ok(histogram) if histogram.is_empty() => (0, Vec::new()),
        Ok(histogram) => {
            let most = histogram.max();
            let steps = histogram.iter_quantiles(STEPS_PER_HALF);
            let share =
                steps.map(|step| (step.quantile_iterated_to(), step.value_iterated_to().min(most) as f64));
            (histogram.len(), share.collect())
        }
        Err(_) => {
            let told = latency.percentiles.iter().map(|(percent, value)| (percent / 100.0, *value as f64));
            (100_000, told.collect())
        }
    }
}

fn distribution(outcome: &Outcome) -> String {
    let (values, latency) = shares(&outcome.latency);
    if latency.is_empty() {
        return "<h2>Latency by percentile</h2><p>No answer came, so there is no latency.</p>".to_owned();
    }
    let sent = shares(&outcome.service).1;
    let mut told = vec![("from when it was sent", "first", &latency)];
    if outcome.mode != Mode::Closed {
        told = vec![
            ("from when it should have started", "first", &latency),
            ("from when it was sent", "second", &sent),
        ];
    }
    let axis = Percentiles::of(values);
    let scale = Scale::fitting(told.iter().flat_map(|(_, _, shares)| shares.iter().map(|(_, value)| *value)));
    let curve = |(name, class, shares): (&'static str, &'static str, &Vec<(f64, f64)>)| {
        let points = shares.iter().map(|(share, value)| (axis.place(*share), scale.place(*value))).collect();
        Curve { name, class, points }
    };
    let [p50, p99, p999] =
        [50.0, 99.0, 99.9].map(|percent| duration(outcome.latency.percentile(percent) as f64));
    let last = duration(outcome.latency.max as f64);
    let remark = scale_remark(scale);
    let plot = Plot {
        id: "distribution",
        caption: "Latency by percentile",
        description: &format!(
            "Half of the answers came within {p50}, 99% within {p99}, 99.9% within {p999}, the last after {last}. Each nine is as \
             wide as the one before{remark}."
        ),
        across: axis.ticks(),
        upwards: scale.ticks(|value| span(value / 1e6)),
        curves: told.into_iter().map(curve).collect(),
    };
    plot.figure(&percentiles(outcome))
}

fn scale_remark(scale: Scale) -> &'static str {
    if scale.is_logarithmic() { "; upwards, equal distances are equal ratios" } else { "" }
}

fn percentiles(outcome: &Outcome) -> String {
    let columns = [&outcome.latency, &outcome.service, &outcome.first_byte];
    let told = |name: &str, value: &dyn Fn(&Latency) -> f64| {
        row(name, columns.map(|latency| if_any(latency, value(latency).round())))
    };
    let mut rows = vec![told("min", &|latency| latency.min as f64)];
    rows.extend(
        outcome
            .latency
            .percentiles
            .iter()
            .map(|(percent, _)| told(&percentile(*percent), &|latency| latency.percentile(*percent) as f64)),
    );
    rows.push(told("max", &|latency| latency.max as f64));
    rows.push(told("mean", &|latency| latency.mean));
    rows.push(told("deviation", &|latency| latency.deviation));
    let head = ["Percentile", "Latency", "From when it was sent", "To its first byte"];
    folded("The same in figures", &table("Latency by percentile", &head, &rows, &[]))
}

fn row(name: &str, cells: impl IntoIterator<Item = String>) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(cells).collect()
}

fn tables(outcome: &Outcome) -> String {
    let counts = &outcome.counts;
    let statuses: Vec<Vec<String>> =
        counts.statuses.iter().map(|(status, number)| row(&status.to_string(), [count(*number)])).collect();
    let urls = outcome.by_url.iter().map(|of| {
        let times = [of.p50, of.p99, of.max].map(|microseconds| latency_of(of, microseconds));
        let name = of.url.as_deref().unwrap_or(OTHER_URLS);
        row(name, [count(of.answers), count(of.errors)].into_iter().chain(times))
    });
    let urls: Vec<Vec<String>> = urls.collect();
    let errors = counts.errors.kinds().into_iter().filter(|(_, number)| *number > 0);
    let errors: Vec<Vec<String>> =
        errors.map(|(kind, number)| row(kind, [count(number), error_meaning(kind).to_owned()])).collect();
    let none = match counts.unfinished {
        _ if !errors.is_empty() => "",
        0 => "<p>No errors.</p>",
        _ => "<p>No errors, but requests that had no answer at the end: see below.</p>",
    };
    let head = ["URL", "Answers", "Errors", "Median", "99%", "Longest"];
    [
        "<h2>Answers and errors</h2>",
        &table("Answers by status", &["Status", "Answers"], &statuses, &[]),
        &table("By URL, slowest in total first", &head, &urls, &[]),
        none,
        &table("Errors by kind", &["Kind", "Requests", "Meaning"], &errors, &[2]),
        "<h2>How it was measured</h2>",
        &table("The run", &["What", "Value"], &setup(outcome), &[1]),
    ]
    .concat()
}

fn setup(outcome: &Outcome) -> Vec<Vec<String>> {
    /// The most URLs that are listed.
    const LISTED: usize = 20;
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let (counts, generator) = (&outcome.counts, &outcome.generator);
    let mut rows: Vec<(&str, String)> =
        outcome.urls.iter().take(LISTED).map(|url| ("URL", url.clone())).collect();
    if outcome.urls.len() > LISTED {
        rows.push(("URL", format!("and {} more", outcome.urls.len() - LISTED)));
    }
    let protocol = match (&outcome.http2, fewer_streams(outcome)) {
        (None, _) => "HTTP/1.1".to_owned(),
        (Some(_), None) => "HTTP/2".to_owned(),
        (Some(_), Some(words)) => format!("HTTP/2. {words}"),
    };
    let [read, bodies, written] =
        [counts.bytes_read, counts.bytes_body, counts.bytes_written].map(|number| bytes(number as f64));
    rows.extend([
        ("Loop", loop_sentence(outcome.mode)),
        ("Connections", format!("{}, {} opened", connections(outcome), count(counts.connections))),
        ("Used again (keep-alive)", yes(outcome.keep_alive)),
        ("Protocol", protocol),
        ("Requests on their way on one connection", count(u64::from(outcome.pipeline))),
        ("TLS", yes(outcome.tls)),
        ("Began", moment(outcome.began_unix_milliseconds)),
        ("Measured", duration(outcome.seconds * 1e6)),
        ("Requests sent", count(counts.requests)),
        ("Bytes", format!("{read} read, {bodies} of them bodies; {written} written")),
        (
            "Generator",
            format!(
                "{}, {:.2} CPU seconds, {} per answer, busiest thread {}",
                plural(outcome.threads.into(), "thread"),
                generator.cpu_seconds,
                duration((generator.cpu_per_answer * 100.0).round() / 100.0),
                percent(generator.busiest_thread)
            ),
        ),
        ("Machine", format!("{} cores, {} busy", generator.cores, percent(generator.machine_busy))),
    ]);
    // What is told only where there is something to tell.
    if counts.unfinished > 0 {
        let (unfinished, lost) = (count(counts.unfinished), percent(outcome.lost_share()));
        rows.push((
            "Unfinished",
            format!("{unfinished} requests were due and had no answer at the end; with the errors {lost} of all came to nothing"),
        ));
    }
    if counts.silent > 0 {
        rows.push(("Kept waiting", kept_waiting(outcome)));
    }
    if outcome.interrupted {
        rows.push(("Interrupted", "it was ended early; all this is of the time until then".to_owned()));
    }
    if outcome.mode != Mode::Closed {
        let lag = duration(generator.send_lag_p99 as f64);
        rows.push(("Sent late by the generator's own fault", format!("{lag} at the 99th percentile")));
    }
    rows.into_iter().map(|(name, value)| row(name, [value])).collect()
}
