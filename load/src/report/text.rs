//! An outcome for a terminal: the answer in the first line, then the shape that users of `wrk` read at once, with what that
//! shape leaves out: which loop it was and what latency means there, every kind of error by name, the generator's own CPU.
//!
//! Plain text, no colours: it is pasted into tickets. Next: `json` for programs, `html` for the picture.

use super::CLOSES;
use super::paragraph::wrapped;
use super::quantity::{bytes, count, duration, percent, percentile, plural, rate, scaled, span};
use crate::histogram;
use crate::outcome::{KEPT_UP, Latency, OfUrl, Outcome};
use crate::plan::{Arrivals, Mode, OPEN_CONNECTIONS, Plan};
use millstream_net::terminal;

/// The most URLs that are named one by one, and the most that have a line of figures.
const NAMED_URLS: usize = 3;
const URL_LINES: usize = 10;

/// What the row of all others is called.
pub(super) const OTHER_URLS: &str = "(all others)";

/// Runs below so many seconds are too short for the kernel to say how busy the machine was: it counts in hundredths.
const SHORTEST: f64 = 0.1;

/// What is said when a run begins.
pub fn running(plan: &Plan) -> String {
    let urls: Vec<&str> = plan.targets.iter().map(|target| target.url.as_str()).collect();
    let time = plan.duration.map(|duration| span(duration.as_secs_f64()));
    let length = match (time, plan.requests) {
        (Some(time), None) => format!("{time} test"),
        (Some(time), Some(most)) => format!("test of {} requests or {time}", count(most)),
        (None, Some(most)) => format!("test of {} requests", count(most)),
        (None, None) => "test".to_owned(),
    };
    let streams = plan.is_http2().then_some(plan.pipeline);
    let mut text = heading(&length, &urls, plan.threads, (plan.connections, streams), plan.mode);
    if !plan.warm_up.is_zero() {
        let warm_up = span(plan.warm_up.as_secs_f64());
        text.push_str(&format!("  the first {warm_up} are a warm-up and not counted\n"));
    }
    text
}

/// What a run came to, without the heading that [`running`] printed when it began.
pub fn results(outcome: &Outcome) -> String {
    let mut lines = vec![answer(outcome)];
    for part in [statistics, distribution, totals, connections, errors, by_url, rates, generator] {
        lines.extend(part(outcome));
    }
    let mut text = lines.join("\n") + "\n";
    if let Some(limit) = &outcome.limit {
        text.push_str(&wrapped(&printable(limit), 0));
    }
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
    let Mode::Open { rate: wanted, arrivals } = mode else {
        return "closed loop: each request follows an answer; latency counts from sending, so a stall shows in few requests"
            .to_owned();
    };
    let arrivals = match arrivals {
        Arrivals::Constant => "constant intervals",
        Arrivals::Poisson => "Poisson arrivals",
    };
    format!(
        "open loop at {} requests/s ({arrivals}); latency counts from when a request was due, so a stall shows in full",
        rate(wanted)
    )
}

/// What a kind of error means, by its name in [`crate::outcome::Errors::kinds`].
pub fn error_meaning(kind: &str) -> &'static str {
    match kind {
        "connect" => "no connection: refused, unreachable, or too slow",
        "tls" => "the TLS handshake failed",
        "timeout" => "no whole answer in time; each counts in the latency with its timeout",
        "closed" => "closed or reset before an answer began",
        "short body" => "the body was shorter than announced",
        "malformed" => "what came is not HTTP",
        "refused" => "the server refused the stream (REFUSED_STREAM), or one connection after the other",
        "reset" => "the server ended the stream (RST_STREAM)",
        "status" => "a whole answer with a status that was not expected",
        "body" => "a whole answer with a body that was not expected",
        _ => "",
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
    let held = match mode {
        Mode::Closed => plural(connections.into(), "connection"),
        Mode::Open { .. } => {
            format!("as many connections as needed, up to {}", count(u64::from(connections)))
        }
    };
    let streams = streams.map(|streams| format!(", HTTP/2 with {} each", plural(streams.into(), "stream")));
    format!(
        "Running {length} @ {}\n  {} and {held}{}\n  {}\n",
        named.join(" "),
        plural(threads.into(), "thread"),
        streams.unwrap_or_default(),
        loop_sentence(mode)
    )
}

/// What a URL may hold must not reach a terminal as a command, nor as a line of ours.
fn printable(text: &str) -> String {
    terminal::visible(text).replace('\n', "\\x0a")
}

/// The first line: how many requests a second, how fast, and what keeps this from being a result.
fn answer(outcome: &Outcome) -> String {
    let latency = |percent| told(&outcome.latency, percent, outcome.latency.percentile(percent));
    let limits = outcome.generator.limits.as_ref();
    let (at_least, name) = match (limits, outcome.mode) {
        (Some(_), Mode::Closed) => ("At least ", "FLOOR"),
        _ => ("", "CEILING"),
    };
    let (rate_told, p50, p99) = (rate(outcome.rate()), latency(50.0), latency(99.0));
    let mut line = match outcome.counts.answers {
        0 => format!("No answers in {}", duration(outcome.seconds * 1e6)),
        _ => format!("{at_least}{rate_told} requests/s, p50 {p50}, p99 {p99}"),
    };
    if let Mode::Open { rate: wanted, .. } = outcome.mode
        && outcome.kept_up() < KEPT_UP
    {
        let wanted = rate(wanted);
        line.push_str(&format!(
            ". NOT REACHED: {wanted} requests/s were asked for: {}",
            not_reached(outcome)
        ));
    }
    if let Some(limits) = limits {
        let limits = printable(limits);
        line.push_str(&format!(". {name}: {}. {}", limits.trim_end_matches('.'), limits_mean(outcome.mode)));
    }
    line
}

/// Why a rate was not reached.
fn not_reached(outcome: &Outcome) -> String {
    let (counts, most) = (&outcome.counts, outcome.connections);
    if outcome.generator.limits.is_some() {
        return "the generator is at its limit".to_owned();
    }
    if counts.errors.connect + counts.errors.tls + counts.errors.closed > counts.answers {
        return "connections fail, see below".to_owned();
    }
    if !counts.ran_out || most >= OPEN_CONNECTIONS {
        return "the server does not keep up".to_owned();
    }
    let busy = format!("all {} connections were busy", count(u64::from(most)));
    if outcome.service.is_empty() {
        return busy + ", which -c bounds";
    }
    let carried = f64::from(most) * f64::from(outcome.pipeline) / (outcome.service.mean / 1e6);
    format!(
        "{busy}, and they carry {} a second at {} per answer; more connections (-c) show whether the server can do more",
        rate(carried),
        duration(outcome.service.mean)
    )
}

/// What it means that the generator was the limit: of a closed loop for the rate, of an open one for the latencies.
pub(super) fn limits_mean(mode: Mode) -> &'static str {
    match mode {
        Mode::Closed => "The server can do at least this; this run does not show how much more.",
        Mode::Open { .. } => {
            "The latencies include the generator's own delay: the server's are no longer than these, and may be shorter."
        }
    }
}

fn statistics(outcome: &Outcome) -> Vec<String> {
    let line = |name: &str, [average, deviation, most]: [String; 3], within: Option<f64>| {
        let within = within.map_or_else(|| "-".to_owned(), |share| format!("{:.2}%", share * 100.0));
        format!("    {name:<10}{average:>9} {deviation:>10} {most:>10} {within:>11}")
    };
    let latency = |name: &str, latency: &Latency| {
        let told = [latency.mean, latency.deviation, latency.max as f64].map(|value| if_any(latency, value));
        line(name, told, within_deviation(latency))
    };
    let mut lines = vec!["  Stats           Avg      Stdev        Max   +/- Stdev".to_owned()];
    lines.push(latency("Latency", &outcome.latency));
    if outcome.mode != Mode::Closed {
        lines.push(latency("From send", &outcome.service));
    }
    lines.push(latency("1st byte", &outcome.first_byte));
    let slices = outcome.slices.iter().filter(|slice| slice.seconds > 0.0);
    let rates: Vec<f64> = slices.map(|slice| slice.answers as f64 / slice.seconds).collect();
    if let Some(most) = rates.iter().copied().reduce(f64::max) {
        let number = rates.len() as f64;
        let mean = rates.iter().sum::<f64>() / number;
        let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
        let deviation = (squares / (number - 1.0).max(1.0)).sqrt();
        let within = rates.iter().filter(|rate| (*rate - mean).abs() <= deviation).count() as f64 / number;
        lines.push(line("Req/Sec", [mean, deviation, most].map(scaled), Some(within)));
    }
    lines
}

/// The share of all values within one standard deviation of the mean; `None` where there is nothing.
fn within_deviation(latency: &Latency) -> Option<f64> {
    let histogram = histogram::decode(&latency.histogram).ok().filter(|histogram| !histogram.is_empty())?;
    let within = latency.mean - latency.deviation..=latency.mean + latency.deviation;
    let steps = histogram.iter_recorded().filter(|step| within.contains(&(step.value_iterated_to() as f64)));
    Some(steps.map(|step| step.count_since_last_iteration()).sum::<u64>() as f64 / histogram.len() as f64)
}

fn distribution(outcome: &Outcome) -> Vec<String> {
    let (latency, service, is_open) = (&outcome.latency, &outcome.service, outcome.mode != Mode::Closed);
    let line = |name: &str, percent: f64, value: u64, sent: u64| match is_open {
        true => {
            format!("  {name:>7} {:>22} {:>11}", told(latency, percent, value), if_any(service, sent as f64))
        }
        false => format!("  {name:>7} {:>10}", told(latency, percent, value)),
    };
    let columns = if is_open { "   from due   from send" } else { "" };
    let mut lines = vec![format!("  Latency Distribution{columns}")];
    lines.extend(
        latency.percentiles.iter().map(|(percent, value)| {
            line(&percentile(*percent), *percent, *value, service.percentile(*percent))
        }),
    );
    lines.push(line("max", 100.0, latency.max, service.max));
    lines
}

/// A percentile in microseconds, and whether it is only known to be so long at least.
fn told(latency: &Latency, percent: f64, value: u64) -> String {
    let at_least = if latency.is_known(percent) { "" } else { "at least " };
    format!("{at_least}{}", if_any(latency, value as f64))
}

/// A figure of a latency, microseconds; there is none where nothing was measured.
pub(super) fn if_any(latency: &Latency, microseconds: f64) -> String {
    if latency.is_empty() { "-".to_owned() } else { duration(microseconds) }
}

/// A latency of one URL, microseconds; there is none without an answer.
pub(super) fn latency_of(of: &OfUrl, microseconds: u64) -> String {
    if of.answers == 0 { "-".to_owned() } else { duration(microseconds as f64) }
}

fn totals(outcome: &Outcome) -> Vec<String> {
    let counts = &outcome.counts;
    let mut lines = vec![format!(
        "  {} answers to {} requests{} in {}, {} read",
        count(counts.answers),
        count(counts.requests),
        on_their_way(outcome),
        duration(outcome.seconds * 1e6),
        bytes(counts.bytes_read as f64)
    )];
    if outcome.interrupted {
        lines.push(
            "  INTERRUPTED: the run was ended early; all figures are of the time until then".to_owned(),
        );
    }
    if counts.unfinished > 0 {
        lines.push(format!(
            "  Unfinished: {} of {} requests due ({}) had no answer at the end; each counts in the latency with its wait so far",
            count(counts.unfinished),
            count(outcome.due()),
            percent(outcome.lost_share() - outcome.error_share())
        ));
    }
    let statuses = counts.statuses.iter().map(|(status, number)| format!("{status}: {}", count(*number)));
    if !counts.statuses.is_empty() {
        lines.push(format!("  Statuses: {}", statuses.collect::<Vec<_>>().join(", ")));
    }
    lines
}

/// Why a closed loop has fewer answers than requests where nothing failed: the last ones had not come when it ended.
fn on_their_way(outcome: &Outcome) -> String {
    let (counts, errors) = (&outcome.counts, &outcome.counts.errors);
    let ended = counts.answers + counts.resent + errors.total() - errors.connect - errors.tls;
    let most = u64::from(outcome.connections) * u64::from(outcome.pipeline);
    match counts.requests.saturating_sub(ended) {
        left @ 1.. if outcome.mode == Mode::Closed && left <= most => {
            format!(" ({} under way at the end)", count(left))
        }
        _ => String::new(),
    }
}

/// How many connections there were, and what became of them; what there is to say of HTTP/2.
fn connections(outcome: &Outcome) -> Vec<String> {
    let counts = &outcome.counts;
    let how = match (outcome.keep_alive, outcome.warm_up > 0.0) {
        (false, _) => " (one for each request: no keep-alive)",
        (true, true) => " (in addition to those that the warm-up opened)",
        (true, false) => "",
    };
    let mut said = vec![format!("Connections opened: {}{how}", count(counts.connections))];
    said.extend(outcome.is_closed_on().then(|| CLOSES.to_owned()));
    said.extend((counts.silent > 0).then(|| format!("Kept waiting: {}", kept_waiting(outcome))));
    if let Some(http2) = &outcome.http2 {
        let ended = http2.going_away;
        said.extend(fewer_streams(outcome));
        said.extend(
            (ended > 0)
                .then(|| format!("Connections that the server wanted to end (GOAWAY): {}", count(ended))),
        );
        let resets =
            http2.resets.iter().map(|(name, number)| format!("{}: {}", printable(name), count(*number)));
        if !http2.resets.is_empty() {
            said.push(format!("Streams that the server ended: {}", resets.collect::<Vec<_>>().join(", ")));
        }
        let broken = http2.broken.iter().map(|broken| printable(broken));
        said.extend(broken.map(|broken| format!("First broken rule of HTTP/2: the server sent {broken}")));
    }
    let why = match outcome.http2 {
        Some(_) => "the server ended connections without an answer to them",
        None => "the server closed connections after an earlier answer",
    };
    let resent = counts.resent;
    said.extend((resent > 0).then(|| format!("Sent again, because {why}: {}", count(resent))));
    let surplus =
        "Closed, because more arrived than was asked for (a body longer than announced, a second answer)";
    said.extend((counts.surplus > 0).then(|| format!("{surplus}: {}", count(counts.surplus))));
    said.into_iter().map(|line| format!("  {line}")).collect()
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

/// What is said where the server allows fewer streams than were asked for.
pub(super) fn fewer_streams(outcome: &Outcome) -> Option<String> {
    let allowed = outcome.http2.as_ref()?.allowed?;
    Some(format!(
        "Streams: the server allows {} of the {} asked for at once (SETTINGS_MAX_CONCURRENT_STREAMS)",
        count(u64::from(allowed)),
        count(u64::from(outcome.pipeline))
    ))
}

fn errors(outcome: &Outcome) -> Vec<String> {
    let errors = &outcome.counts.errors;
    if errors.total() == 0 {
        return vec!["  Errors: none".to_owned()];
    }
    let mut lines = vec![format!("  Errors: {} ({})", count(errors.total()), percent(outcome.error_share()))];
    let kinds = errors.kinds().into_iter().filter(|(_, number)| *number > 0);
    lines.extend(
        kinds.map(|(kind, number)| format!("    {kind:<10} {:>9}   {}", count(number), error_meaning(kind))),
    );
    if outcome.counts.unfinished > 0 {
        let lost = percent(outcome.lost_share());
        lines.push(format!("  Lost: {lost} of the requests due, errors and unfinished ones together"));
    }
    lines
}

/// A line for each URL, where there are several.
fn by_url(outcome: &Outcome) -> Vec<String> {
    let rows = &outcome.by_url;
    if rows.is_empty() {
        return Vec::new();
    }
    let line =
        |answers, errors, rest: String| format!("    {:>9} {:>9} {rest}", count(answers), count(errors));
    let mut lines = ["  By URL, slowest in total first", "      answers    errors        50%        99%"]
        .map(str::to_owned)
        .to_vec();
    lines.extend(rows.iter().take(URL_LINES).map(|row| {
        let url = row.url.as_deref().map_or_else(|| OTHER_URLS.to_owned(), printable);
        let [p50, p99] = [row.p50, row.p99].map(|value| latency_of(row, value));
        line(row.answers, row.errors, format!("{p50:>10} {p99:>10}   {url}"))
    }));
    let left = rows.get(URL_LINES..).unwrap_or_default();
    if !left.is_empty() {
        let [answers, errors] =
            [|row: &OfUrl| row.answers, |row: &OfUrl| row.errors].map(|part| left.iter().map(part).sum());
        lines.push(line(answers, errors, format!("{:>24} {} more, see --json or --html", "", left.len())));
    }
    lines
}

fn rates(outcome: &Outcome) -> Vec<String> {
    let read = bytes(per_second(outcome.counts.bytes_read, outcome.seconds));
    vec![format!("Requests/sec: {:>10.2}", outcome.rate()), format!("Transfer/sec: {read:>10}")]
}

fn generator(outcome: &Outcome) -> Vec<String> {
    let generator = &outcome.generator;
    // Two digits behind the point are all that a CPU clock is good for.
    let cpu = duration((generator.cpu_per_answer * 100.0).round() / 100.0);
    let cpu = if outcome.counts.answers == 0 { String::new() } else { format!(", {cpu} CPU per answer") };
    let machine = format!(", machine {:.0}% busy", generator.machine_busy * 100.0);
    let mut lines = vec![format!(
        "Generator:    {:.2} of {} cores{cpu}, busiest thread {:.0}%{}",
        if outcome.seconds > 0.0 { generator.cpu_seconds / outcome.seconds } else { 0.0 },
        generator.cores,
        generator.busiest_thread * 100.0,
        if outcome.seconds < SHORTEST { "" } else { &machine }
    )];
    if outcome.mode != Mode::Closed {
        let lag = duration(generator.send_lag_p99 as f64);
        lines.push(format!("  the generator itself sent late: {lag} at the 99th percentile"));
    }
    lines
}

#[cfg(test)]
mod tests;
