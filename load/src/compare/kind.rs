//! Where runs are not of one kind, or not good enough to be compared: a sentence for each.

use super::RunFile;
use crate::outcome::Outcome;
use crate::plan::{Arrivals, Mode};
use crate::report::quantity::{count, percent, rate, span};

/// Runs below this many seconds hardly see a moment that is not like the others.
const SHORT: f64 = 5.0;

/// From this share on errors are a matter of their own: a fast refusal makes a fast rate.
const MANY_ERRORS: f64 = 0.01;

/// Everything that whoever reads the comparison must know first; the sides are not empty.
pub(super) fn warnings(a: &[RunFile], b: &[RunFile]) -> Vec<String> {
    let mut warnings = Vec::new();
    for (place, run) in a.iter().chain(b).enumerate() {
        if place > 0 {
            warnings.extend(apart(&a[0], run));
        }
        warnings.extend(weak(run));
    }
    warnings.extend(in_turn(a, b));
    warnings
}

/// In what a run is not of the first one's kind.
fn apart(first: &RunFile, run: &RunFile) -> Vec<String> {
    let (a, b) = (&first.outcome, &run.outcome);
    let mut told = Vec::new();
    let mut differs = |what: &str, one: String, other: String| {
        if one != other {
            told.push(format!("not the same {what}: {} has {one}, {} has {other}", first.name, run.name));
        }
    };
    let yes = |is: bool| if is { "it" } else { "none" }.to_owned();
    differs("loop", mode(a.mode), mode(b.mode));
    differs("URLs", urls(a), urls(b));
    differs("number of connections", count(u64::from(a.connections)), count(u64::from(b.connections)));
    let protocol = |outcome: &Outcome| if outcome.http2.is_some() { "HTTP/2" } else { "HTTP/1.1" };
    differs("protocol", protocol(a).to_owned(), protocol(b).to_owned());
    let at_once = if a.http2.is_some() && b.http2.is_some() { "number of streams" } else { "pipelining" };
    differs(at_once, count(u64::from(a.pipeline)), count(u64::from(b.pipeline)));
    differs("keep-alive", yes(a.keep_alive), yes(b.keep_alive));
    differs("TLS", yes(a.tls), yes(b.tls));
    differs("number of generator threads", count(u64::from(a.threads)), count(u64::from(b.threads)));
    told
}

/// What makes a run worth little.
fn weak(RunFile { name, outcome }: &RunFile) -> Vec<String> {
    let mut told = Vec::new();
    if let Some(limits) = &outcome.generator.limits {
        let limits = limits.trim_end_matches('.');
        told.push(format!(
            "{name} is a floor, not a result ({limits}): the server may be faster than it says"
        ));
    }
    if outcome.seconds < SHORT {
        told.push(format!("{name} is short ({}): slow moments may be missing", span(outcome.seconds)));
    }
    if outcome.interrupted {
        told.push(format!("{name} was ended by the user before its time"));
    }
    let share = outcome.error_share();
    if share >= MANY_ERRORS {
        told.push(format!("{name} has {} errors: its figures are of what was left", percent(share)));
    }
    if outcome.counts.unfinished as f64 >= MANY_ERRORS * outcome.due().max(1) as f64 {
        told.push(format!(
            "{name} had no answer to {} of its requests at the end: its server may not keep up with that rate",
            percent(outcome.lost_share() - share)
        ));
    }
    told
}

/// Whether what changed on the machine meanwhile would look like a difference.
fn in_turn(a: &[RunFile], b: &[RunFile]) -> Option<String> {
    let began = |run: &RunFile| run.outcome.began_unix_milliseconds;
    let all_before =
        |one: &[RunFile], other: &[RunFile]| one.iter().map(began).max() < other.iter().map(began).min();
    let is_in_turn = !all_before(a, b) && !all_before(b, a);
    (!is_in_turn && a.len() + b.len() > 2).then(|| {
        "all runs of one side came before all of the other: what changed on the machine meanwhile looks like a difference. Run them in \
         turns"
            .to_owned()
    })
}

fn mode(mode: Mode) -> String {
    match mode {
        Mode::Closed => "a closed loop".to_owned(),
        Mode::Open { rate: wanted, arrivals: Arrivals::Constant } => {
            format!("an open loop at {}/s", rate(wanted))
        }
        Mode::Open { rate: wanted, arrivals: Arrivals::Poisson } => {
            format!("an open loop at {}/s (Poisson)", rate(wanted))
        }
    }
}

fn urls(outcome: &Outcome) -> String {
    match outcome.urls.as_slice() {
        [] => "none".to_owned(),
        [one] => one.clone(),
        [first, more @ ..] if more.len() < 3 => format!("{first} {}", more.join(" ")),
        // Two long lists that differ further down must not look the same here.
        [first, more @ ..] => {
            let sum = more
                .iter()
                .flat_map(|url| url.bytes())
                .fold(5381u32, |sum, byte| sum.wrapping_mul(33).wrapping_add(u32::from(byte)));
            format!("{first} and {} more (checksum {sum:08x})", more.len())
        }
    }
}
