//! What there is to say of a run: the same facts and doubts in a terminal and on a page.
//!
//! A fact is a name and words. Nothing here knows how either looks. Before: `figures`, its tables; next: `text` and `html`, which show it; `compare`,
//! which asks whether two runs have the same setup.

use super::CLOSES;
use super::figures::told;
use super::quantity::{Bytes, Count, Number, Rate, Share, Time, moment, numbered, plural, seconds};
use crate::outcome::{Cause, Http2Outcome, Judged, Kept, Outcome, SHORTEST, ScheduleOutcome};
use crate::plan::{Arrivals, Mode};
use std::collections::BTreeMap;
use std::fmt::Display;

pub(crate) type Named = (&'static str, String);

/// The most URLs that are told apart from other lists of so many; longer ones by their sum.
const LISTED: usize = 20;
/// From this share on errors are a matter of their own: a fast refusal makes a fast rate.
const MANY_ERRORS: f64 = 0.01;

pub(super) fn named(urls: &[String], most: usize) -> String {
    let named = urls.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(" ");
    match urls.len().saturating_sub(most) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

fn loop_name(mode: Mode, schedule: Option<&ScheduleOutcome>) -> String {
    let Mode::Open { rate, arrivals } = mode else { return "closed loop".to_owned() };
    let each = numbered(Number(rate), "request");
    let arrivals = match arrivals {
        Arrivals::Constant => "constant intervals",
        Arrivals::Poisson => "Poisson arrivals",
    };
    match schedule {
        None => format!("open loop at {each}/s ({arrivals})"),
        Some(ScheduleOutcome::Log { speed }) => {
            format!("open loop at {} times the log's own pace ({each}/s on average)", Number(*speed))
        }
        Some(ScheduleOutcome::Stages(stages)) => {
            let before = std::iter::once(0.0).chain(stages.iter().map(|stage| stage.rate));
            let told = before.zip(stages).map(|(before, stage)| {
                let (time, from, to) = (seconds(stage.seconds), Number(before), Rate(stage.rate));
                match stage.seconds > 0.0 {
                    true if before == stage.rate => format!("{time} at {to}"),
                    true => format!("{time} from {from} to {to}"),
                    false => format!("a jump to {to}"),
                }
            });
            let told = told.collect::<Vec<_>>().join(", then ");
            format!("open loop in stages: {told} ({each}/s on average, {arrivals})")
        }
    }
}

pub(super) fn loop_sentence(mode: Mode, schedule: Option<&ScheduleOutcome>) -> String {
    let means = match mode {
        Mode::Closed => {
            ": each request follows a response; latency counts from sending, so a stall shows in few requests"
        }
        Mode::Open { .. } => "; latency counts from when a request was due, so a stall shows in full",
    };
    loop_name(mode, schedule) + means
}

/// How it was measured: runs that differ in any of this are not of one kind.
pub(crate) fn setup(outcome: &Outcome) -> Vec<Named> {
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let count = |number: u32| Count(number.into()).to_string();
    let mut urls = named(&outcome.urls, LISTED);
    // Two long lists that differ further down must not look the same.
    if let more @ [_, ..] = outcome.urls.get(LISTED..).unwrap_or_default() {
        let bytes = more.iter().flat_map(|url| url.bytes());
        let sum = bytes.fold(5381u32, |sum, byte| sum.wrapping_mul(33).wrapping_add(u32::from(byte)));
        urls += &format!(" (checksum {sum:08x})");
    }
    vec![
        ("URL", urls),
        ("Loop", loop_name(outcome.mode, outcome.schedule.as_ref())),
        ("Number of connections", count(outcome.connections)),
        ("Keep-alive", yes(outcome.keep_alive)),
        ("Protocol", if outcome.http2.is_some() { "HTTP/2" } else { "HTTP/1.1" }.to_owned()),
        ("Number of requests at once on a connection", count(outcome.pipeline)),
        ("TLS", yes(outcome.tls)),
        ("Number of generator threads", count(outcome.threads)),
    ]
}

type MaybeFacts<const N: usize> = [(bool, &'static str, String); N];

fn those_that_are(
    maybe: impl IntoIterator<Item = (bool, &'static str, String)>,
) -> impl Iterator<Item = Named> {
    maybe.into_iter().filter(|(is_so, ..)| *is_so).map(|(_, name, words)| (name, words))
}

pub(super) fn facts(outcome: &Outcome) -> Vec<Named> {
    let maybe = counted(outcome).into_iter().chain(connections(outcome)).chain(lost(outcome));
    let thresholds = outcome.thresholds.iter().map(kept);
    those_that_are(maybe).chain(generator(outcome)).chain(thresholds).collect()
}

fn counted(outcome: &Outcome) -> MaybeFacts<3> {
    let counts = &outcome.counts;
    let (whole, requests) = (plural(counts.whole(), "response"), plural(counts.requests, "request"));
    let expected = match counts.whole() == counts.answers {
        true => String::new(),
        false => format!(", {} of them as expected,", Count(counts.answers)),
    };
    let [unfinished, due] = [counts.unfinished, outcome.due()].map(Count);
    let (under_way, took) = (under_way(outcome), seconds(outcome.seconds));
    let [read, bodies, written] =
        [counts.bytes_read, counts.bytes_body, counts.bytes_written].map(|bytes| Bytes(bytes as f64));
    let each_second = Bytes(outcome.per_second(counts.bytes_read));
    let share = Share(outcome.lost_share() - outcome.error_share());
    let late = format!(
        "{unfinished} of {due} due requests ({share}) had no response at the end; each counts in the latency with its \
         waiting time"
    );
    [
        (true, "Requests", format!("{whole}{expected} to {requests}{under_way} in {took}")),
        (
            true,
            "Bytes",
            format!("{read} read ({each_second} a second), {bodies} in bodies; {written} written"),
        ),
        (counts.unfinished > 0, "Unfinished", late),
    ]
}

fn connections(outcome: &Outcome) -> MaybeFacts<11> {
    let counts = &outcome.counts;
    let Http2Outcome { allowed, going_away, resets, broken } = outcome.http2.clone().unwrap_or_default();
    let (most, asked) = (allowed.unwrap_or_default(), outcome.pipeline);
    let streams = format!(
        "the server allows {most} of the {asked} asked for at once (SETTINGS_MAX_CONCURRENT_STREAMS)"
    );
    let [opened, redirects, silent, resent, all] =
        [counts.connections, counts.redirects, counts.silent, counts.resent, outcome.connections.into()]
            .map(Count);
    let how = match (outcome.keep_alive, outcome.warm_up > 0.0) {
        (false, _) => " (one for each request: no keep-alive)",
        (true, true) => " (in addition to those that the warm-up opened)",
        (true, false) => "",
    };
    let why = match outcome.http2 {
        Some(_) => "the server ended connections without a response to them",
        None => "the server closed connections after an earlier response",
    };
    let waiting = format!(
        "{silent} of {all} connections had no response during the whole run (the server accepted more than it serves \
        at once); the latency does not include their waiting time"
    );
    let surplus = format!(
        "{}, because more arrived than was requested (a body longer than announced, a second response)",
        plural(counts.surplus, "connection")
    );
    [
        (!counts.statuses.is_empty(), "Statuses", each(&counts.statuses)),
        (true, "Connections opened", format!("{opened}{how}")),
        (counts.redirects > 0, "Redirects", format!("{redirects}, each counted as a separate request")),
        (outcome.is_closed_on(), "Connections closed", CLOSES.to_owned()),
        (counts.silent > 0, "Kept waiting", waiting),
        (counts.resent > 0, "Sent again", format!("{resent}, because {why}")),
        (counts.surplus > 0, "Closed by the generator", surplus),
        (allowed.is_some(), "Streams", streams),
        (going_away > 0, "Connections that the server wanted to end (GOAWAY)", Count(going_away).to_string()),
        (!resets.is_empty(), "Streams that the server ended", each(&resets)),
        (
            broken.is_some(),
            "First broken rule of HTTP/2",
            format!("the server sent {}", broken.unwrap_or_default()),
        ),
    ]
}

fn lost(outcome: &Outcome) -> MaybeFacts<3> {
    let errors = outcome.counts.errors.total();
    let (share, all) = (Share(outcome.error_share()), Share(outcome.lost_share()));
    let both = format!("{all} of the requests due, errors and unfinished ones together");
    [
        (errors == 0, "Errors", "none".to_owned()),
        (errors > 0, "Errors", format!("{} ({share})", Count(errors))),
        (errors > 0 && outcome.counts.unfinished > 0, "Lost", both),
    ]
}

fn generator(outcome: &Outcome) -> impl Iterator<Item = Named> + use<> {
    let generator = &outcome.generator;
    let cores_used = if outcome.seconds > 0.0 { generator.cpu_seconds / outcome.seconds } else { 0.0 };
    let mut used = format!("{} of {} cores", Number(cores_used), generator.cores);
    if outcome.counts.answers > 0 {
        used += &format!(", {} CPU per response", Time(generator.cpu_per_answer));
    }
    used += &format!(", busiest thread {}", Share(generator.busiest_thread));
    if outcome.seconds >= SHORTEST {
        used += &format!(", machine {} busy", Share(generator.machine_busy));
    }
    let lag = format!("{} at the 99th percentile", Time(generator.send_lag_p99 as f64));
    let late = (outcome.mode != Mode::Closed).then_some(("Sent late by the generator itself", lag));
    [("Generator", used)].into_iter().chain(late)
}

fn each(numbers: &BTreeMap<impl Display, u64>) -> String {
    let each = numbers.iter().map(|(name, number)| format!("{name}: {}", Count(*number)));
    each.collect::<Vec<_>>().join(", ")
}

/// Why a closed loop has fewer answers than requests where nothing failed: the last ones had not come when it ended.
fn under_way(outcome: &Outcome) -> String {
    let (counts, errors) = (&outcome.counts, &outcome.counts.errors);
    let ended = counts.answers + counts.resent + errors.total() - errors.connect - errors.tls;
    let most = u64::from(outcome.connections) * u64::from(outcome.pipeline);
    match counts.requests.saturating_sub(ended) {
        left @ 1.. if outcome.mode == Mode::Closed && left <= most => {
            format!(" ({} under way at the end)", Count(left))
        }
        _ => String::new(),
    }
}

/// What became of a bound: `FAILED`, `p99 was 60.2ms (--fail 'p99>50ms')`.
fn kept(judged: &Judged) -> Named {
    let verdict = match judged.verdict {
        Kept::Passed => "did not fail",
        Kept::Failed => "FAILED",
        Kept::Unknown => "UNKNOWN",
    };
    (verdict, format!("{} (--fail '{}')", judged.found, judged.expression))
}

pub fn sentence(judged: &Judged) -> String {
    let (verdict, words) = kept(judged);
    format!("{verdict}: {words}")
}

/// What stands beside the answer: bounds that were not kept, and [`doubts`].
pub(super) fn remarks(outcome: &Outcome) -> impl Iterator<Item = Named> {
    let missed = outcome.thresholds.iter().filter(|judged| judged.verdict != Kept::Passed);
    missed.map(kept).chain(doubts(outcome))
}

/// What keeps the figures from being a result: a rate that was not reached, a generator that was the limit, an end before its time,
/// many errors.
pub(crate) fn doubts(outcome: &Outcome) -> Vec<Named> {
    let missed = outcome.not_reached().map(|missed| {
        let (asked, why) = (Number(missed.asked), why_missed(outcome, missed.cause));
        ("NOT REACHED", format!("{asked} requests/s were requested: {why}"))
    });
    let limits = outcome.generator.limits.as_ref().map(|limits| {
        let (name, means) = match outcome.mode {
            Mode::Closed => {
                ("FLOOR", "The server can do at least this; this run does not show how much more.")
            }
            Mode::Open { .. } => (
                "CEILING",
                "The latencies include the generator's own delay: the server's are no longer than these, and may be shorter.",
            ),
        };
        (name, format!("{}. {means}", limits.trim_end_matches('.')))
    });
    let errors = outcome.error_share();
    let (counts, longest) = (&outcome.counts, Time(outcome.latency.max as f64));
    let waiting = format!(
        "{} had no response at the end, after up to {longest}, which is longer than any response took",
        plural(counts.unfinished, "request")
    );
    let early = "the run ended early; all figures are of the time until then".to_owned();
    let left = match (counts.answers, counts.errors.status) {
        (0, 0) => String::new(),
        (0, _) => {
            let statuses: Vec<String> = counts.statuses.keys().map(u16::to_string).collect();
            format!(". To measure these responses, expect them: --status {}", statuses.join(","))
        }
        _ => "; the figures are of what was left".to_owned(),
    };
    let many = format!("{} of the requests failed{left}", Share(errors));
    let others = those_that_are([
        (outcome.mode == Mode::Closed && counts.unfinished > 0, "UNFINISHED", waiting),
        (outcome.interrupted, "INTERRUPTED", early),
        (errors >= MANY_ERRORS, "ERRORS", many),
    ]);
    missed.into_iter().chain(limits).chain(others).collect()
}

fn why_missed(outcome: &Outcome, cause: Cause) -> String {
    let busy = format!("all {} connections were busy", Count(outcome.connections.into()));
    match cause {
        Cause::Generator => "the generator is at its limit".to_owned(),
        Cause::Connections => "connections failed, see below".to_owned(),
        Cause::Server => "the server does not keep up".to_owned(),
        Cause::Bound => {
            let each = outcome.service.mean;
            let carried = f64::from(outcome.connections) * f64::from(outcome.pipeline) / (each / 1e6);
            // What all answers took is not what they took while all connections were busy, where that is more than was asked for.
            match matches!(outcome.mode, Mode::Open { rate, .. } if carried < rate) {
                true => format!(
                    "{busy}, and they carry {} at {} per response; more connections (-c) show whether the server can do more",
                    Rate(carried),
                    Time(each)
                ),
                false => busy + " for a time; -c sets their number",
            }
        }
    }
}

pub(super) fn answer(outcome: &Outcome) -> String {
    let latency = &outcome.latency;
    let last = if latency.tells(99.0) { ("p99", 99.0) } else { ("max", 100.0) };
    let shown = [("p50", 50.0), last].into_iter().filter(|(_, percent)| latency.tells(*percent));
    let shown: String = shown.map(|(name, percent)| format!(", {name} {}", told(latency, percent))).collect();
    let is_floor = outcome.generator.limits.is_some() && outcome.mode == Mode::Closed;
    let at_least = if is_floor { "At least " } else { "" };
    match outcome.counts.answers {
        0 => none(outcome),
        _ => format!("{at_least}{} requests/s{shown}", Number(outcome.rate())),
    }
}

fn none(outcome: &Outcome) -> String {
    let (counts, time) = (&outcome.counts, seconds(outcome.seconds));
    let whole = counts.whole();
    if whole == 0 {
        return format!("No response in {time}");
    }
    let by_status: Vec<String> = match counts.statuses.iter().collect::<Vec<_>>()[..] {
        [(status, _)] => vec![status.to_string()],
        ref several => {
            several.iter().map(|(status, count)| format!("{status} ({})", Count(**count))).collect()
        }
    };
    let rate = Number(outcome.per_second(whole));
    format!(
        "No response as expected in {time}: {} with status {}, {rate} a second",
        plural(whole, "response"),
        by_status.join(", ")
    )
}

pub(super) fn subject(outcome: &Outcome) -> String {
    // In an open loop the number of connections is a bound.
    let at_most = if outcome.mode == Mode::Closed { "" } else { "at most " };
    let (urls, began) = (named(&outcome.urls, 1), moment(outcome.began_unix_milliseconds));
    let (took, connections) = (seconds(outcome.seconds), plural(outcome.connections.into(), "connection"));
    let how = loop_sentence(outcome.mode, outcome.schedule.as_ref());
    format!("{urls}: {began}, {took} over {at_most}{connections}; {how}")
}
