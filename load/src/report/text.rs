//! An outcome for a terminal: the answer in the first line, then the shape that users of `wrk` read at once, with what that
//! shape leaves out: which loop it was and what latency means there, every kind of error by name, the generator's own CPU.
//!
//! Plain text, no colours: it is pasted into tickets. Next: `run` for what is said.

use super::quantity::{Bytes, Count, Quantity, plural};
use super::table::printable;
use super::{figures, run};
use crate::outcome::{Outcome, ScheduleOutcome};
use crate::plan::{Mode, Plan};

/// The most URLs that are named one by one, and the most that have a line of figures.
const NAMED_URLS: usize = 3;
const URL_LINES: usize = 10;

pub fn running(plan: &Plan) -> String {
    let urls: Vec<String> = plan.targets.iter().map(|target| target.url.clone()).collect();
    let requests = plan.requests.map(|most| plural(most, "request"));
    let length = match (plan.duration.map(Quantity::from), requests) {
        (Some(time), None) => format!("{time} test"),
        (Some(time), Some(most)) => format!("test of {most} or {time}"),
        (None, Some(most)) => format!("test of {most}"),
        (None, None) => "test".to_owned(),
    };
    let connections = match plan.mode {
        Mode::Closed => plural(plan.connections.into(), "connection"),
        Mode::Open { .. } => {
            format!("as many connections as needed, up to {}", Count(plan.connections.into()))
        }
    };
    let streams = match plan.is_http2() {
        true => format!(", HTTP/2 with {} each", plural(plan.pipeline.into(), "stream")),
        false => String::new(),
    };
    let (urls, threads) = (printable(&run::named(&urls, NAMED_URLS)), plural(plan.threads.into(), "thread"));
    let schedule = plan.schedule.as_ref().map(|schedule| ScheduleOutcome::of(schedule, &[]));
    let how = run::loop_sentence(plan.mode, schedule.as_ref());
    let way = match Quantity::from(plan.warm_up) {
        _ if plan.warm_up.is_zero() => {
            "no warm-up: the first latencies include the time to open connections".to_owned()
        }
        warm_up => format!("the first {warm_up} are a warm-up and not counted (--warm-up 0 counts all)"),
    };
    format!("Running {length} @ {urls}\n  {threads} and {connections}{streams}\n  {how}\n  {way}\n")
}

/// What a run came to: the answer first, and what keeps it from being a result. Tables have at most so many `columns`.
pub fn results(outcome: &Outcome, columns: usize) -> String {
    let mut text = run::answer(outcome);
    for (name, why) in run::remarks(outcome) {
        text += if text.ends_with('.') { " " } else { ". " };
        text += &format!("{name}: {}", printable(&why));
    }
    text.push('\n');
    text += &figures::statistics(outcome).text(2, columns);
    text += &figures::percentiles(outcome).text(2, columns);
    text.extend(
        run::facts(outcome).into_iter().map(|(name, words)| format!("  {name}: {}\n", printable(&words))),
    );
    for table in [figures::errors(outcome), figures::stages(outcome), figures::by_url(outcome, URL_LINES)] {
        text += &table.text(2, columns);
    }
    let transfer = Bytes(outcome.per_second(outcome.counts.bytes_read)).to_string();
    let whole = outcome.per_second(outcome.counts.whole());
    // As wrk counts; an error's response is one, too.
    let expected = match outcome.counts.whole() == outcome.counts.answers {
        true => String::new(),
        false => format!(" ({:.2} as expected)", outcome.rate()),
    };
    text += &format!("Requests/sec: {whole:>10.2}{expected}\nTransfer/sec: {transfer:>10}\n");
    text.extend(outcome.limit.iter().map(|limit| printable(limit) + "\n"));
    text
}

/// The same of a run that was not announced by [`running`].
pub fn report(outcome: &Outcome, columns: usize) -> String {
    printable(&run::subject(outcome)) + "\n" + &results(outcome, columns)
}

#[cfg(test)]
mod tests;
