//! `millstream bench`: loads what the user names, and says what came of it.
//!
//! Flags become a plan (`plan`), the plan an outcome, the outcome text, JSON and a page. Before the load each server is
//! asked once, so that a mistake ends in a sentence. Exit status: 0 measured, 1 nothing could be, 2 every answer an error.

mod plan;
mod find_max;

use crate::cli::{Bench, BenchVerb, Load};
use millstream_load::outcome::Outcome;
use millstream_load::plan::Plan;
use millstream_load::probe::{self, ProbeError};
use millstream_load::progress::Live;
use millstream_load::{compare, drive, report};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Bytes of a body without an announced length, after which it has no end.
const ENDLESS: usize = 64 << 20;
/// The longest wait for the answer to the first request; a load may be told to wait longer.
const FIRST_ANSWER: Duration = Duration::from_secs(30);
/// What a shell says of a program that was interrupted is 130; with nothing measured that is what it was.
const INTERRUPTED: u8 = 130;
/// Every answer was an error.
const ALL_ERRORS: u8 = 2;

/// How the command ends without figures.
#[derive(Debug)]
enum End {
    /// In one sentence.
    Wrong(String),
    /// By the user, before anything was measured.
    Stopped,
}

impl From<String> for End {
    fn from(why: String) -> End {
        End::Wrong(why)
    }
}

/// The whole command.
pub fn run(bench: &Bench) -> ExitCode {
    let done = match &bench.what {
        Some(BenchVerb::Compare { before, after }) => compared(before, after),
        None => load(&bench.load),
    };
    done.unwrap_or_else(|end| match end {
        End::Wrong(why) => {
            eprintln!("millstream: {why}");
            ExitCode::FAILURE
        }
        End::Stopped => {
            eprintln!("millstream: stopped before anything was measured");
            ExitCode::from(INTERRUPTED)
        }
    })
}

fn load(flags: &Load) -> Result<ExitCode, End> {
    let plan = plan::plan(flags)?;
    plan.check().map_err(|error| error.to_string())?;
    ask_once(&plan)?;
    let stop = stop_flag()?;
    let outcome =
        if flags.find_max { find_max::search(flags, &plan, &stop)? } else { once(flags, &plan, &stop)? };
    let Some(outcome) = outcome else { return Err(End::Stopped) };
    write(flags.json.as_deref(), flags.html.as_deref(), &outcome)?;
    ended(&outcome)
}

/// One run with its report.
fn once(flags: &Load, plan: &Plan, stop: &AtomicBool) -> Result<Option<Outcome>, End> {
    put(&report::text::running(plan));
    let mut live = (!flags.quiet).then(Live::to_stderr);
    let outcome = drive::run(plan, stop, &mut |progress| {
        if let Some(live) = &mut live {
            live.show(progress);
        }
    });
    drop(live);
    let outcome = outcome.map_err(|error| error.to_string())?;
    if outcome.seconds <= 0.0 {
        return Ok(None);
    }
    put(&report::text::results(&outcome));
    Ok(Some(outcome))
}

/// Whether there was anything but errors.
fn ended(outcome: &Outcome) -> Result<ExitCode, End> {
    if outcome.counts.answers > 0 {
        return Ok(ExitCode::SUCCESS);
    }
    if outcome.counts.errors.total() == 0 {
        let so_long = report::quantity::span(outcome.seconds);
        return Err(format!(
            "no answer came within {so_long}: measure for longer, or with fewer connections"
        )
        .into());
    }
    eprintln!("millstream: every answer was an error: {}", told(outcome));
    Ok(ExitCode::from(ALL_ERRORS))
}

/// The errors in a few words, statuses by number.
fn told(outcome: &Outcome) -> String {
    let counts = &outcome.counts;
    let mut told: Vec<String> = Vec::new();
    if counts.errors.status > 0 {
        let statuses: Vec<String> =
            counts.statuses.iter().map(|(status, count)| format!("status {status} {count} times")).collect();
        told.push(statuses.join(", "));
    }
    let others = counts.errors.kinds().into_iter().filter(|(kind, count)| *kind != "status" && *count > 0);
    told.extend(others.map(|(kind, count)| format!("{kind} {count} times")));
    told.join(", ")
}

/// Asks each server once.
fn ask_once(plan: &Plan) -> Result<(), End> {
    for places in plan.origins() {
        let target = &plan.targets[places[0] as usize];
        match probe::once(target, plan.timeout.min(FIRST_ANSWER), ENDLESS) {
            Ok(answer) => {
                let expected =
                    target.expect.status.map_or(answer.status < 400, |status| status == answer.status);
                if !expected {
                    eprintln!(
                        "millstream: {} answers with status {}, which counts as an error",
                        target.url, answer.status
                    );
                }
            }
            // It says how long it is, so it has an end.
            Err(ProbeError::Large(..)) => {}
            Err(error) => return Err(error.to_string().into()),
        }
    }
    Ok(())
}

/// Set by Ctrl-C, TERM and HUP: the run ends with what there is.
fn stop_flag() -> Result<Arc<AtomicBool>, End> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|error| format!("signals cannot be taken: {error}"))?;
    }
    Ok(stop)
}

/// The files that were asked for.
fn write(json: Option<&Path>, html: Option<&Path>, outcome: &Outcome) -> Result<(), End> {
    let texts = [(json, report::json::write as fn(&Outcome) -> String), (html, report::html::html)];
    for (file, text) in texts {
        if let Some(file) = file {
            std::fs::write(file, text(outcome))
                .map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
        }
    }
    Ok(())
}

/// `bench compare`.
fn compared(before: &Path, after: &Path) -> Result<ExitCode, End> {
    put(&compare::files(before, after).map_err(|error| error.to_string())?);
    Ok(ExitCode::SUCCESS)
}

/// Text on standard output.
fn put(text: &str) {
    // A closed pipe on standard output is the reader's wish.
    _ = io::stdout().write_all(text.as_bytes());
    _ = io::stdout().flush();
}
