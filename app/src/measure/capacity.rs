//! `millstream capacity`: what several API servers give alone and behind the proxy, as a table with its reasons.
//!
//! The proxy that is measured is this binary, started anew with a configuration of its own. Everything that is started
//! ends with the command, with Ctrl-C too.

use super::end::{self, End};
use super::output::Output;
use super::stop;
use crate::cli::Capacity as Flags;
use millstream_load::capacity::{self, Capacity, CapacityError, Moment, Row, Setting, Subject};
use millstream_load::party;
use millstream_load::progress::Live;
use millstream_load::report::{json, steps};
use millstream_load::stop::Stop;
use millstream_net::cores;
use std::process::ExitCode;

/// The JSON that `--json` writes.
const CAPACITY: json::Kind = json::Kind { name: "millstream.capacity", version: 1 };
/// The most threads of the generator that are taken without asking.
const THREADS: usize = 4;

/// The whole command.
pub fn run(flags: &Flags) -> ExitCode {
    end::status(carry_out(flags))
}

fn carry_out(flags: &Flags) -> Result<ExitCode, End> {
    let mut output = Output::open(flags.json.as_deref(), flags.html.as_deref())?;
    let stop = stop::on_signals(stop::THIRD)?;
    party::clear_away();
    let measured = measured(flags, &stop).map_err(|error| match error {
        CapacityError::Stopped => End::Stopped("; what was started for it has ended"),
        error => End::Wrong(error.to_string()),
    })?;
    output.put(&capacity::table(&measured));
    output
        .write(|| json::write_versioned(CAPACITY, &measured), || steps::html(&capacity::page(&measured)))?;
    Ok(ExitCode::SUCCESS)
}

fn measured(flags: &Flags, stop: &Stop) -> Result<Capacity, CapacityError> {
    let mut rows = Vec::new();
    let mut urls = flags.urls.clone();
    for &connections in &flags.connections {
        let setting = setting(flags, connections)?;
        if flags.sleep.is_empty() {
            let name = format!("{connections} connections");
            let subject = Subject { name, urls: flags.urls.clone(), service: None };
            rows.push(row(&subject, &setting, stop)?);
        }
        for &service in &flags.sleep {
            let (subject, origins) =
                capacity::sleeping(service, usize::from(flags.servers), usize::from(flags.at_once))?;
            rows.push(row(&subject, &setting, stop)?);
            urls = subject.urls;
            drop(origins);
        }
    }
    Ok(Capacity {
        is_simulated: !flags.sleep.is_empty(),
        urls,
        cores: u32::try_from(cores::usable()).unwrap_or(u32::MAX),
        workers: flags.workers.clone(),
        rows,
    })
}

fn setting(flags: &Flags, connections: u32) -> Result<Setting, CapacityError> {
    Ok(Setting {
        connections,
        threads: flags.threads.unwrap_or(cores::usable().min(THREADS) as u32),
        duration: flags.duration,
        warm_up: flags.warm_up,
        rounds: flags.rounds,
        workers: flags.workers.clone(),
        fields: flags.header.clone(),
        public: flags.yes,
        proxy: std::env::current_exe()?,
    })
}

/// One row, its runs shown as they go on.
fn row(subject: &Subject, setting: &Setting, stop: &Stop) -> Result<Row, CapacityError> {
    let mut live = Live::to_stderr();
    let mut label = String::new();
    capacity::measure(subject, setting, stop, &mut |moment: &Moment<'_>| {
        let now = format!("{} of {}, {}", moment.done + 1, moment.of, moment.what);
        if label != now {
            live.label(&now);
            label = now;
        }
        live.show(moment.progress);
    })
}
