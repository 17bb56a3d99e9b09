//! An outcome for a terminal, in the shape that users of `wrk` read at once, with what that shape leaves out: which loop
//! it was and what latency means there, every kind of error by name, the generator's own CPU, and whether the figure
//! is a result or only a floor.
//!
//! Plain text, no colours: it is pasted into tickets. Next: `json` for programs, `html` for the picture.

mod by_url;
mod demand;
mod http2;

pub use demand::sentence;
pub(super) use http2::fewer_streams;

use super::CLOSES;
use super::paragraph::wrapped;
use super::quantity::{bytes, count, duration, percent, percentile, rate, scaled, span};
use crate::histogram;
pub use crate::outcome::error_meaning;
use crate::outcome::{Latency, OfUrl, Outcome};
use crate::plan::{Arrivals, Mode, Plan};
use millstream_net::terminal;
use std::fmt::Write as _;

/// The most URLs that are named one by one.
const NAMED_URLS: usize = 3;

/// What the row of all others is called.
pub(super) const OTHER_URLS: &str = "(all others)";

/// Runs below so many seconds are too short for the kernel to say how busy the machine was.
const SHORTEST: f64 = 0.1;

/// What is said when a run begins.
pub fn running(plan: &Plan) -> String {
    let urls: Vec<&str> = plan.targets.iter().map(|target| target.url.as_str()).collect();
    let length = match (plan.duration, plan.requests) {
        (Some(duration), None) => format!("{} test", span(duration.as_secs_f64())),
        (Some(duration), Some(most)) => {
            format!("test of {} requests or {}", count(most), span(duration.as_secs_f64()))
        }
        (None, Some(most)) => format!("test of {} requests", count(most)),
        (None, None) => "test".to_owned(),
    };
    let streams = plan.is_http2().then_some(plan.pipeline);
    let mut text = heading(&length, &urls, plan.threads, (plan.connections, streams), plan.mode);
    demand::announced(&mut text, plan);
    text
}

/// What a run came to, without the heading that [`running`] printed when it began.
pub fn results(outcome: &Outcome) -> String {
    let mut text = String::new();
    statistics(&mut text, outcome);
    distribution(&mut text, outcome);
    totals(&mut text, outcome);
    errors(&mut text, outcome);
    demand::stages(&mut text, outcome);
    by_url::lines(&mut text, &outcome.by_url);
    let _ = writeln!(text, "Requests/sec: {:>10.2}{}", outcome.rate(), floor_mark(outcome));
    let _ =
        writeln!(text, "Transfer/sec: {:>10}", bytes(per_second(outcome.counts.bytes_read, outcome.seconds)));
    generator(&mut text, outcome);
    demand::thresholds(&mut text, outcome);
    text
}

/// The whole report of a run that is over, heading included.
pub fn report(outcome: &Outcome) -> String {
    let urls: Vec<&str> = outcome.urls.iter().map(String::as_str).collect();
    let length = format!("{} test", span(outcome.seconds));
    let streams = outcome.http2.as_ref().map(|_| outcome.pipeline);
    heading(&length, &urls, outcome.threads, (outcome.connections, streams), outcome.mode) + &results(outcome)
}

/// Which loop it was, and what latency means in it: one sentence.
pub fn loop_sentence(mode: Mode) -> String {
    match mode {
        Mode::Closed => {
            "closed loop: each request follows an answer; latency counts from sending, so a stall shows \
         in few \
                         requests"
                .to_owned()
        }
        Mode::Open { rate: wanted, arrivals } => format!(
            "open loop at {} requests/s ({}); latency counts from when a request was due, so a stall shows in full",
            rate(wanted),
            match arrivals {
                Arrivals::Constant => "constant intervals",
                Arrivals::Poisson => "Poisson arrivals",
            }
        ),
    }
}

/// `value` per second of a run; 0 for a run without a duration.
pub(super) fn per_second(value: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { value as f64 / seconds } else { 0.0 }
}

fn heading(length: &str, urls: &[&str], threads: u32, held: (u32, Option<u32>), mode: Mode) -> String {
    let (connections, streams) = held;
    let mut named: Vec<String> = urls.iter().take(NAMED_URLS).map(|url| printable(url)).collect();
    if urls.len() > NAMED_URLS {
        named.push(format!("and {} more", urls.len() - NAMED_URLS));
    }
    let plural = |number: u32| if number == 1 { "" } else { "s" };
    let number = count(u64::from(connections));
    let held = match mode {
        Mode::Closed => format!("{number} connection{}", plural(connections)),
        Mode::Open { .. } => format!("as many connections as needed, up to {number}"),
    };
    let held = match streams {
        None => held,
        Some(streams) => {
            format!("{held}, HTTP/2 with {} stream{} each", count(u64::from(streams)), plural(streams))
        }
    };
    format!(
        "Running {length} @ {}\n  {} thread{} and {held}\n  {}\n",
        named.join(" "),
        count(u64::from(threads)),
        plural(threads),
        loop_sentence(mode)
    )
}

/// What a URL may hold must not reach a terminal as a command, nor as a line of ours.
fn printable(text: &str) -> String {
    terminal::visible(text).replace('\n', "\\x0a")
}

fn statistics(text: &mut String, outcome: &Outcome) {
    let _ = writeln!(text, "  Stats           Avg      Stdev        Max   +/- Stdev");
    let mut line = |name: &str, average: String, deviation: String, most: String, within: Option<f64>| {
        let within = within.map_or_else(|| "-".to_owned(), |share| format!("{:.2}%", share * 100.0));
        let _ = writeln!(text, "    {name:<10}{average:>9} {deviation:>10} {most:>10} {within:>11}");
    };
    let is_open = matches!(outcome.mode, Mode::Open { .. });
    let mut latency = |name: &str, latency: &Latency| {
        let within = within_deviation(latency);
        let told = |value| if_any(latency, value);
        line(name, told(latency.mean), told(latency.deviation), told(latency.max as f64), within);
    };
    latency("Latency", &outcome.latency);
    if is_open {
        latency("From send", &outcome.service);
    }
    latency("1st byte", &outcome.first_byte);
    let rates: Vec<f64> = outcome
        .slices
        .iter()
        .filter(|slice| slice.seconds > 0.0)
        .map(|slice| slice.answers as f64 / slice.seconds)
        .collect();
    if let Some((mean, deviation, most, within)) = moments(&rates) {
        line("Req/Sec", scaled(mean), scaled(deviation), scaled(most), Some(within));
    }
}

/// Mean, standard deviation, largest, and the share within one deviation of the mean; `None` of nothing.
fn moments(values: &[f64]) -> Option<(f64, f64, f64, f64)> {
    let number = values.len() as f64;
    let most = values.iter().copied().reduce(f64::max)?;
    let mean = values.iter().sum::<f64>() / number;
    let deviation = if values.len() < 2 {
        0.0
    } else {
        (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (number - 1.0)).sqrt()
    };
    let within = values.iter().filter(|value| (*value - mean).abs() <= deviation).count() as f64 / number;
    Some((mean, deviation, most, within))
}

/// The share of all values within one standard deviation of the mean; `None` where there is nothing.
fn within_deviation(latency: &Latency) -> Option<f64> {
    let histogram = histogram::decode(&latency.histogram).ok().filter(|histogram| !histogram.is_empty())?;
    let (low, high) = (latency.mean - latency.deviation, latency.mean + latency.deviation);
    let within: u64 = histogram
        .iter_recorded()
        .filter(|step| (low..=high).contains(&(step.value_iterated_to() as f64)))
        .map(|step| step.count_since_last_iteration())
        .sum();
    Some(within as f64 / histogram.len() as f64)
}

fn distribution(text: &mut String, outcome: &Outcome) {
    let is_open = matches!(outcome.mode, Mode::Open { .. });
    if is_open {
        let _ = writeln!(text, "  Latency Distribution   from due   from send");
    } else {
        let _ = writeln!(text, "  Latency Distribution");
    }
    let mut line = |name: &str, percent: f64, latency: u64, service: u64| {
        let at_least = if outcome.latency.is_known(percent) { "" } else { "at least " };
        let latency = format!("{at_least}{}", if_any(&outcome.latency, latency as f64));
        let _ = if is_open {
            writeln!(text, "  {name:>7} {latency:>22} {:>11}", if_any(&outcome.service, service as f64))
        } else {
            writeln!(text, "  {name:>7} {latency:>10}")
        };
    };
    for (percent, value) in &outcome.latency.percentiles {
        line(&percentile(*percent), *percent, *value, outcome.service.percentile(*percent));
    }
    line("max", 100.0, outcome.latency.max, outcome.service.max);
}

/// What is said of connections that had no answer.
pub(super) fn kept_waiting(outcome: &Outcome) -> String {
    format!(
        "{} of {} connections had no answer in all that time (the server accepted more than it serves at once); the \
         latency does not include their wait",
        count(outcome.counts.silent),
        count(u64::from(outcome.connections))
    )
}

/// Why a closed loop has fewer answers than requests where nothing failed: the last ones had not come when it ended.
fn on_their_way(outcome: &Outcome) -> String {
    let (counts, errors) = (&outcome.counts, &outcome.counts.errors);
    let ended = counts.answers + counts.resent + errors.total() - errors.connect - errors.tls;
    let most = u64::from(outcome.connections) * u64::from(outcome.pipeline);
    match counts.requests.saturating_sub(ended) {
        on_their_way @ 1.. if outcome.mode == Mode::Closed && on_their_way <= most => {
            format!(" ({} under way at the end)", count(on_their_way))
        }
        _ => String::new(),
    }
}

fn totals(text: &mut String, outcome: &Outcome) {
    let counts = &outcome.counts;
    let _ = writeln!(
        text,
        "  {} answers to {} requests{} in {}, {} read",
        count(counts.answers),
        count(counts.requests),
        on_their_way(outcome),
        duration(outcome.seconds * 1e6),
        bytes(counts.bytes_read as f64)
    );
    if let Some(found) = outcome.not_reached() {
        demand::not_reached(text, outcome, found);
    }
    if outcome.interrupted {
        let _ =
            writeln!(text, "  INTERRUPTED: the run was ended early; all figures are of the time until then");
    }
    if counts.unfinished > 0 {
        let _ = writeln!(
            text,
            "  Unfinished: {} of {} requests due ({}) had no answer at the end; each counts in the latency with its \
             wait so far",
            count(counts.unfinished),
            count(outcome.due()),
            percent(outcome.lost_share() - outcome.error_share())
        );
    }
    if !counts.statuses.is_empty() {
        let statuses: Vec<String> =
            counts.statuses.iter().map(|(status, number)| format!("{status}: {}", count(*number))).collect();
        let _ = writeln!(text, "  Statuses: {}", statuses.join(", "));
    }
    connections(text, outcome);
}

/// How many there were, and what became of them.
fn connections(text: &mut String, outcome: &Outcome) {
    let counts = &outcome.counts;
    let how = match (outcome.keep_alive, outcome.warm_up > 0.0) {
        (false, _) => " (one for each request: no keep-alive)",
        (true, true) => " (in addition to those that the warm-up opened)",
        (true, false) => "",
    };
    let _ = writeln!(text, "  Connections opened: {}{how}", count(counts.connections));
    if counts.redirects > 0 {
        let _ = writeln!(text, "  Redirects: {}, each a request of its own", count(counts.redirects));
    }
    if outcome.is_closed_on() {
        let _ = writeln!(text, "  {CLOSES}");
    }
    if counts.silent > 0 {
        let _ = writeln!(text, "  Kept waiting: {}", kept_waiting(outcome));
    }
    http2::lines(text, outcome);
    if counts.resent > 0 && outcome.http2.is_some() {
        let _ = writeln!(
            text,
            "  Sent again, because the server ended connections without an answer to them: {}",
            count(counts.resent)
        );
    } else if counts.resent > 0 {
        let _ = writeln!(
            text,
            "  Sent again, because the server closed connections after an earlier answer: {}",
            count(counts.resent)
        );
    }
    if counts.surplus > 0 {
        let _ = writeln!(
            text,
            "  Closed, because more arrived than was asked for (a body longer than announced, a second answer): {}",
            count(counts.surplus)
        );
    }
}

fn errors(text: &mut String, outcome: &Outcome) {
    let (errors, unfinished) = (&outcome.counts.errors, outcome.counts.unfinished);
    if errors.total() == 0 {
        let _ = writeln!(text, "  Errors: none");
    } else {
        let _ = writeln!(text, "  Errors: {} ({})", count(errors.total()), percent(outcome.error_share()));
    }
    for (kind, number) in errors.kinds().into_iter().filter(|(_, number)| *number > 0) {
        let _ = writeln!(text, "    {kind:<10} {:>9}   {}", count(number), error_meaning(kind));
    }
    if errors.total() > 0 && unfinished > 0 {
        let _ = writeln!(
            text,
            "  Lost: {} of the requests due, errors and unfinished ones together",
            percent(outcome.lost_share())
        );
    }
}

/// A figure of a latency, microseconds; there is none where nothing was measured.
pub(super) fn if_any(latency: &Latency, microseconds: f64) -> String {
    if latency.is_empty() { "-".to_owned() } else { duration(microseconds) }
}

/// A latency of one URL, microseconds; there is none without an answer.
pub(super) fn latency_of(of: &OfUrl, microseconds: u64) -> String {
    if of.answers == 0 { "-".to_owned() } else { duration(microseconds as f64) }
}

fn floor_mark(outcome: &Outcome) -> &'static str {
    match (&outcome.generator.limits, outcome.mode) {
        (None, _) => "",
        (Some(_), Mode::Closed) => "   (a floor, not a result: see below)",
        (Some(_), Mode::Open { .. }) => "   (with a generator at its limit: see below)",
    }
}

/// What it means that the generator was the limit: of a closed loop for the rate, of an open one for the latencies.
pub(super) fn limits_mean(mode: Mode) -> &'static str {
    match mode {
        Mode::Closed => "The server can do at least this; this run does not show how much more.",
        Mode::Open { .. } => {
            "The latencies include the generator's own delay: the server's are no longer than these, and may be \
             shorter."
        }
    }
}

fn generator(text: &mut String, outcome: &Outcome) {
    let generator = &outcome.generator;
    let cpu = match outcome.counts.answers {
        0 => String::new(),
        _ => format!(", {} CPU per answer", duration(hundredths(generator.cpu_per_answer))),
    };
    let cores = if outcome.seconds > 0.0 { generator.cpu_seconds / outcome.seconds } else { 0.0 };
    let _ = writeln!(
        text,
        "Generator:    {cores:.2} of {} cores{cpu}, busiest thread {:.0}%{}",
        generator.cores,
        generator.busiest_thread * 100.0,
        // The kernel counts it in hundredths of a second.
        if outcome.seconds < SHORTEST {
            String::new()
        } else {
            format!(", machine {:.0}% busy", generator.machine_busy * 100.0)
        }
    );
    if matches!(outcome.mode, Mode::Open { .. }) {
        let lag = duration(generator.send_lag_p99 as f64);
        let _ = writeln!(text, "  the generator itself sent late: {lag} at the 99th percentile");
    }
    if let Some(limits) = &generator.limits {
        let name = if matches!(outcome.mode, Mode::Closed) { "FLOOR" } else { "CEILING" };
        let limits = printable(limits);
        let _ = writeln!(text, "{name}: {}. {}", limits.trim_end_matches('.'), limits_mean(outcome.mode));
    }
    if let Some(limit) = &outcome.limit {
        text.push_str(&wrapped(&printable(limit), 0));
    }
}

/// Two digits behind the point are all that a CPU clock is good for.
fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests;
