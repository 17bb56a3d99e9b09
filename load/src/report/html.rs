//! One outcome as a page: what it came to, the distribution of its latencies, how it went over time, and the figures.
//!
//! Pictures say nothing that the tables below do not. Next: `steps`, for several measurements beside each other.

mod over_time;

use super::CLOSES;
use super::axis::{Percentiles, Scale, duration_ticks};
use super::page::{folded, page, table, tiles, warning};
use super::plot::{Curve, Plot};
use super::quantity::{bytes, count, duration, moment, percent, percentile, rate, span};
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
/// Ticks of a vertical axis, about.
const TICKS: usize = 5;

/// The page of a run.
pub fn html(outcome: &Outcome) -> String {
    let target = target(outcome);
    let mut body = format!(
        "<header><h1>{}</h1><p class=\"soft\">{}</p></header>",
        super::drawing::escape(&target),
        super::drawing::escape(&what_was_done(outcome))
    );
    if let Some(limits) = &outcome.generator.limits {
        let what = match outcome.mode {
            Mode::Closed => "The rate is a floor, not a result",
            Mode::Open { .. } => "The latencies are a ceiling, not a result",
        };
        let limits = limits.trim_end_matches('.');
        body.push_str(&warning(&format!("{what}: {limits}. {}", limits_mean(outcome.mode))));
    }
    for remark in [outcome.limit.as_deref(), outcome.is_closed_on().then_some(CLOSES)].into_iter().flatten() {
        body.push_str(&format!("<p>{}</p>", super::drawing::escape(remark)));
    }
    body.push_str(&outcome.search.as_ref().map_or_else(String::new, search));
    body.push_str(&figures(outcome));
    body.push_str(&distribution(outcome));
    body.push_str(&over_time(outcome));
    body.push_str(&tables(outcome));
    page(&format!("{}/s: {target}", rate(outcome.rate())), &body)
}

/// What was searched for and found, and each rate that was tried.
fn search(search: &SearchOutcome) -> String {
    let goal = match search.p99 {
        Some(p99) => {
            format!("99 % within {} and at most {} errors", duration(p99 as f64), percent(search.errors))
        }
        None => format!("the server keeps up, with at most {} errors", percent(search.errors)),
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
    format!(
        "<p><strong>{}.</strong> Searched for: {goal}. Below is the run at that rate.</p>{}",
        super::drawing::escape(&search.found),
        folded(
            "Every rate that was tried",
            &table("Rates in the order in which they were tried", &head, &rows, &[4])
        )
    )
}

fn target(outcome: &Outcome) -> String {
    let first = outcome.urls.first().map_or("no URL", String::as_str);
    match outcome.urls.len() {
        0 | 1 => first.to_owned(),
        more => format!("{first} and {} more", more - 1),
    }
}

fn what_was_done(outcome: &Outcome) -> String {
    format!(
        "{}, {} over {}{} connection{}; {}.",
        moment(outcome.began_unix_milliseconds),
        span(outcome.seconds),
        at_most(outcome),
        count(u64::from(outcome.connections)),
        if outcome.connections == 1 { "" } else { "s" },
        loop_sentence(outcome.mode)
    )
}

/// In an open loop the number of connections is a bound.
fn at_most(outcome: &Outcome) -> &'static str {
    if outcome.mode == Mode::Closed { "" } else { "at most " }
}

fn figures(outcome: &Outcome) -> String {
    let errors = outcome.counts.errors.total();
    let is_floor = outcome.generator.limits.is_some() && matches!(outcome.mode, Mode::Closed);
    let at_least = if is_floor { "≥ " } else { "" };
    let known = |percent: f64| if outcome.latency.is_known(percent) { "" } else { "≥ " };
    let latency = |value: f64| if_any(&outcome.latency, value);
    let tile =
        |percent: f64| format!("{}{}", known(percent), latency(outcome.latency.percentile(percent) as f64));
    tiles(&[
        (
            "Requests/s",
            format!("{at_least}{}", rate(outcome.rate())),
            format!("{} answers", count(outcome.counts.answers)),
        ),
        ("Median latency", tile(50.0), format!("mean {}", latency(outcome.latency.mean.round()))),
        ("99th percentile", tile(99.0), format!("99.9%: {}", tile(99.9))),
        ("Longest", format!("{}{}", known(100.0), latency(outcome.latency.max as f64)), String::new()),
        ("Errors", count(errors), came_to_nothing(outcome)),
        (
            "Transfer/s",
            bytes(per_second(outcome.counts.bytes_read, outcome.seconds)),
            format!("{} in all", bytes(outcome.counts.bytes_read as f64)),
        ),
    ])
}

/// The share of errors, and where requests were left over, of what came to nothing.
fn came_to_nothing(outcome: &Outcome) -> String {
    match outcome.counts.unfinished {
        0 => percent(outcome.error_share()),
        unfinished => {
            format!("{} unfinished, {} lost in all", count(unfinished), percent(outcome.lost_share()))
        }
    }
}

/// A distribution as shares and values, in order: from the histogram, or from the percentiles where it cannot be read.
fn shares(latency: &Latency) -> (u64, Vec<(f64, f64)>) {
    match histogram::decode(&latency.histogram) {
        Ok(histogram) if !histogram.is_empty() => {
            let steps = histogram.iter_quantiles(STEPS_PER_HALF);
            let most = histogram.max();
            let shares = steps
                .map(|step| (step.quantile_iterated_to(), step.value_iterated_to().min(most) as f64))
                .collect();
            (histogram.len(), shares)
        }
        Ok(_) => (0, Vec::new()),
        Err(_) => (
            100_000,
            latency.percentiles.iter().map(|(percent, value)| (percent / 100.0, *value as f64)).collect(),
        ),
    }
}

fn distribution(outcome: &Outcome) -> String {
    let is_open = matches!(outcome.mode, Mode::Open { .. });
    let (values, latency) = shares(&outcome.latency);
    if latency.is_empty() {
        return "<h2>Latency by percentile</h2><p>No answer came, so there is no latency.</p>".to_owned();
    }
    let sent = if is_open { shares(&outcome.service).1 } else { Vec::new() };
    let axis = Percentiles::of(values);
    let scale = Scale::fitting(latency.iter().chain(&sent).map(|(_, value)| *value), TICKS);
    let points = |shares: &[(f64, f64)]| {
        shares.iter().map(|(share, value)| (axis.place(*share), scale.place(*value))).collect::<Vec<_>>()
    };
    let mut curves = vec![Curve {
        name: if is_open { "from when it should have started" } else { "from when it was sent" },
        class: "first",
        points: points(&latency),
    }];
    if is_open {
        curves.push(Curve { name: "from when it was sent", class: "second", points: points(&sent) });
    }
    let description = format!(
        "Half of the answers came within {}, 99% within {}, 99.9% within {}, the last after {}. Each nine is as wide \
         as the one \
         before{}.",
        duration(outcome.latency.percentile(50.0) as f64),
        duration(outcome.latency.percentile(99.0) as f64),
        duration(outcome.latency.percentile(99.9) as f64),
        duration(outcome.latency.max as f64),
        scale_remark(scale)
    );
    let plot = Plot {
        id: "distribution",
        caption: "Latency by percentile",
        description: &description,
        across: axis.ticks(),
        upwards: duration_ticks(scale, TICKS),
        curves,
    };
    plot.figure(&percentiles(outcome))
}

fn scale_remark(scale: Scale) -> &'static str {
    if scale.is_logarithmic() { "; upwards, equal distances are equal ratios" } else { "" }
}

fn percentiles(outcome: &Outcome) -> String {
    let columns: [&Latency; 3] = [&outcome.latency, &outcome.service, &outcome.first_byte];
    let value = |latency: &Latency, value: u64| if_any(latency, value as f64);
    let mut rows: Vec<Vec<String>> = vec![row("min", columns.map(|latency| value(latency, latency.min)))];
    rows.extend(outcome.latency.percentiles.iter().map(|(percent, _)| {
        row(&percentile(*percent), columns.map(|latency| value(latency, latency.percentile(*percent))))
    }));
    rows.push(row("max", columns.map(|latency| value(latency, latency.max))));
    rows.push(row("mean", columns.map(|latency| if_any(latency, latency.mean.round()))));
    rows.push(row("deviation", columns.map(|latency| if_any(latency, latency.deviation.round()))));
    let head = ["Percentile", "Latency", "From when it was sent", "To its first byte"];
    folded("The same in figures", &table("Latency by percentile", &head, &rows, &[]))
}

fn row<const COLUMNS: usize>(name: &str, cells: [String; COLUMNS]) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(cells).collect()
}

/// Each URL apart, where there are several.
fn by_url(outcome: &Outcome) -> String {
    let rows: Vec<Vec<String>> = outcome
        .by_url
        .iter()
        .map(|of| {
            let told = |microseconds| latency_of(of, microseconds);
            let name = of.url.as_deref().unwrap_or(OTHER_URLS);
            row(name, [count(of.answers), count(of.errors), told(of.p50), told(of.p99), told(of.max)])
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let head = ["URL", "Answers", "Errors", "Median", "99%", "Longest"];
    table("By URL, slowest in total first", &head, &rows, &[])
}

fn tables(outcome: &Outcome) -> String {
    let counts = &outcome.counts;
    let mut html = String::from("<h2>Answers and errors</h2>");
    let statuses: Vec<Vec<String>> =
        counts.statuses.iter().map(|(status, number)| row(&status.to_string(), [count(*number)])).collect();
    if !statuses.is_empty() {
        html.push_str(&table("Answers by status", &["Status", "Answers"], &statuses, &[]));
    }
    html.push_str(&by_url(outcome));
    let errors: Vec<Vec<String>> = counts
        .errors
        .kinds()
        .into_iter()
        .filter(|(_, number)| *number > 0)
        .map(|(kind, number)| row(kind, [count(number), error_meaning(kind).to_owned()]))
        .collect();
    if errors.is_empty() && outcome.counts.unfinished > 0 {
        html.push_str("<p>No errors, but requests that had no answer at the end: see below.</p>");
    } else if errors.is_empty() {
        html.push_str("<p>No errors.</p>");
    } else {
        html.push_str(&table("Errors by kind", &["Kind", "Requests", "Meaning"], &errors, &[2]));
    }
    html.push_str("<h2>How it was measured</h2>");
    html.push_str(&table("The run", &["What", "Value"], &setup(outcome), &[1]));
    html
}

fn setup(outcome: &Outcome) -> Vec<Vec<String>> {
    /// The most URLs that are listed.
    const LISTED: usize = 20;
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let generator = &outcome.generator;
    let mut rows: Vec<Vec<String>> =
        outcome.urls.iter().take(LISTED).map(|url| row("URL", [url.clone()])).collect();
    if outcome.urls.len() > LISTED {
        rows.push(row("URL", [format!("and {} more", outcome.urls.len() - LISTED)]));
    }
    rows.extend([
        row("Loop", [loop_sentence(outcome.mode)]),
        row(
            "Connections",
            [format!(
                "{}{}, {} opened",
                at_most(outcome),
                count(u64::from(outcome.connections)),
                count(outcome.counts.connections)
            )],
        ),
        row("Used again (keep-alive)", [yes(outcome.keep_alive)]),
        row("Protocol", [protocol(outcome)]),
        row("Requests on their way on one connection", [count(u64::from(outcome.pipeline))]),
        row("TLS", [yes(outcome.tls)]),
        row("Began", [moment(outcome.began_unix_milliseconds)]),
        row("Measured", [duration(outcome.seconds * 1e6)]),
        row("Requests sent", [count(outcome.counts.requests)]),
        row(
            "Bytes",
            [format!(
                "{} read, {} of them bodies; {} written",
                bytes(outcome.counts.bytes_read as f64),
                bytes(outcome.counts.bytes_body as f64),
                bytes(outcome.counts.bytes_written as f64)
            )],
        ),
        row(
            "Generator",
            [format!(
                "{} thread{}, {:.2} CPU seconds, {} per answer, busiest thread {}",
                outcome.threads,
                if outcome.threads == 1 { "" } else { "s" },
                generator.cpu_seconds,
                duration((generator.cpu_per_answer * 100.0).round() / 100.0),
                percent(generator.busiest_thread)
            )],
        ),
        row("Machine", [format!("{} cores, {} busy", generator.cores, percent(generator.machine_busy))]),
    ]);
    rows.extend(how_it_went(outcome));
    rows
}

fn protocol(outcome: &Outcome) -> String {
    match (&outcome.http2, fewer_streams(outcome)) {
        (None, _) => "HTTP/1.1".to_owned(),
        (Some(_), None) => "HTTP/2".to_owned(),
        (Some(_), Some(words)) => format!("HTTP/2. {words}"),
    }
}

/// What is told only where there is something to tell.
fn how_it_went(outcome: &Outcome) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    if outcome.counts.unfinished > 0 {
        let unfinished = count(outcome.counts.unfinished);
        rows.push(row(
            "Unfinished",
            [format!(
                "{unfinished} requests were due and had no answer at the end; with the errors {} of all that were \
                 due came \
                 to nothing",
                percent(outcome.lost_share())
            )],
        ));
    }
    if outcome.counts.silent > 0 {
        rows.push(row("Kept waiting", [kept_waiting(outcome)]));
    }
    if outcome.interrupted {
        rows.push(row(
            "Interrupted",
            ["it was ended before its time; all this is of the time until then".to_owned()],
        ));
    }
    if matches!(outcome.mode, Mode::Open { .. }) {
        let lag = duration(outcome.generator.send_lag_p99 as f64);
        rows.push(row("Sent late by the generator's own fault", [format!("{lag} at the 99th percentile")]));
    }
    rows
}
