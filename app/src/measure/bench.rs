//! `millstream bench`: loads what the user names, and says what came of it.
//!
//! Flags become a plan (`plan`), the plan an outcome, the outcome text, JSON and a page. Before the load each server is
//! asked once (`first`), so that a mistake ends in a sentence. Exit status: 0 measured, 1 nothing could be, 2 every answer an error,
//! 6 a bound was not kept, 130 stopped by the user, with the figures until then.

mod replay;
mod rows;
mod plan;
mod first;
mod limit;
mod find_max;
mod comparing;

use super::end::{self, End};
use super::output::Output;
use super::stop;
use crate::cli::{Bench, BenchVerb, Load};
use first::Single;
use limit::Watch;
use millstream_load::outcome::{Kept, Outcome};
use millstream_load::plan::Plan;
use millstream_load::progress::Live;
use millstream_load::report::quantity::{plural, seconds};
use millstream_load::stop::Stop;
use millstream_load::{drive, export, report};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

const ALL_ERRORS: u8 = 2;
/// A bound was exceeded, or it is unknown whether it was. `compare` uses 3 to 5.
const MISSED: u8 = 6;

pub fn run(bench: &Bench) -> ExitCode {
    end::status(match &bench.what {
        Some(BenchVerb::Compare(flags)) => comparing::compare(flags),
        None => load(&bench.load),
    })
}

fn load(flags: &Load) -> Result<ExitCode, End> {
    let mut plan = plan::plan(flags)?;
    drive::check(&plan).map_err(|error| error.to_string())?;
    let mut output = Output::open(flags.json.as_deref(), flags.html.as_deref())?;
    output.export(flags.export_hdr.as_deref())?;
    output.export(flags.export_prometheus.as_deref())?;
    let stop = stop::on_signals(stop::SECOND)?;
    let single = first::ask(&mut plan, flags.same_body, &stop)?;
    let measured = if flags.find_max {
        find_max::search(flags, &plan, stop.flag(), &output)?
    } else {
        once(flags, &plan, single, &stop, &output)?
    };
    let outcome = measured.ok_or(End::Stopped(" before anything was measured"))?;
    output.write(|| report::json::write(&outcome), || report::html::html(&outcome))?;
    let hdr = flags.export_hdr.as_ref().map(|file| match file.extension() {
        Some(ending) if ending == "hgrm" => export::percentiles(&outcome),
        _ => export::interval_log(&outcome),
    });
    let prometheus = flags.export_prometheus.as_ref().map(|_| export::prometheus(&outcome));
    output.write_exports(hdr.into_iter().chain(prometheus))?;
    ended(&outcome, stop.flag().load(Ordering::Relaxed))
}

fn once(
    flags: &Load,
    plan: &Plan,
    single: Single,
    stop: &Stop,
    output: &Output,
) -> Result<Option<Outcome>, End> {
    output.put(&report::text::running(plan));
    let mut watch = Watch::of(plan, single.once);
    let mut live = Live::unless(flags.quiet);
    let outcome = drive::run(plan, stop.flag(), &mut |progress| {
        if let Some(watch) = &mut watch {
            watch.look(progress);
        }
        live.show(progress);
    });
    drop(live);
    let mut outcome = outcome.map_err(|error| error.to_string())?;
    let note = single.note.unwrap_or_default();
    let limit = match watch {
        Some(watch) => watch.sentences(&outcome),
        None => (outcome.counts.answers > 0).then(|| limit::unwatched(plan, &outcome)),
    };
    outcome.limit = limit.map(|said| said + &note);
    if outcome.seconds <= 0.0 {
        return Ok(None);
    }
    outcome.thresholds = flags.fail.iter().map(|bound| bound.judge(&outcome)).collect();
    output.put(&report::text::results(&outcome, output.columns()));
    Ok(Some(outcome))
}

fn ended(outcome: &Outcome, is_stopped: bool) -> Result<ExitCode, End> {
    if is_stopped {
        return Err(End::Stopped("; the figures cover the time until then"));
    }
    let missed = outcome.thresholds.iter().filter(|judged| judged.verdict != Kept::Passed);
    let missed: Vec<String> = missed.map(report::sentence).collect();
    if outcome.counts.answers > 0 && !missed.is_empty() {
        missed.iter().for_each(|sentence| end::tell(sentence));
        return Ok(ExitCode::from(MISSED));
    }
    if outcome.counts.answers > 0 {
        return Ok(ExitCode::SUCCESS);
    }
    if outcome.counts.errors.total() == 0 {
        let so_long = seconds(outcome.seconds);
        return Err(
            format!("no response within {so_long}: measure for longer, or with fewer connections").into()
        );
    }
    end::tell(&format!("all responses were errors: {}", told(outcome)));
    Ok(ExitCode::from(ALL_ERRORS))
}

fn told(outcome: &Outcome) -> String {
    let counts = &outcome.counts;
    let statuses = counts
        .statuses
        .iter()
        .map(|(status, count)| format!("status {status} {}", plural(*count, "time")))
        .collect();
    let mut told: Vec<String> = if counts.errors.status > 0 { statuses } else { Vec::new() };
    let others = counts.errors.found().filter(|(kind, ..)| *kind != "status");
    told.extend(others.map(|(kind, count, _)| format!("{kind} {}", plural(count, "time"))));
    told.join(", ")
}
