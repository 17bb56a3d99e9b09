//! `millstream capacity`: what several API servers give alone and behind the proxy, as a table with its reasons.
//!
//! The proxy that is measured is this binary, started anew with a configuration of its own. Everything that is started
//! ends with the command, with Ctrl-C too.

use crate::cli::Capacity as Flags;
use millstream_load::capacity::{self, Capacity, CapacityError, Moment, Row, Setting, Subject};
use millstream_load::progress::Live;
use millstream_load::report::{json, steps};
use millstream_net::cores;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The JSON that `--json` writes.
const CAPACITY: json::Kind = json::Kind { name: "millstream.capacity", version: 1 };
/// The most threads of the generator that are taken without asking.
const THREADS: usize = 4;

/// Measures what the flags say. 0: there is a table; 1: there is none, and why was said.
pub fn run(flags: &Flags) -> ExitCode {
    match carry_out(flags) {
        Ok(text) => {
            // A closed pipe on standard output is the reader's wish.
            _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("millstream: {message}");
            ExitCode::FAILURE
        }
    }
}

fn carry_out(flags: &Flags) -> Result<String, String> {
    let stop = stop_on_signals().map_err(|error| format!("signals cannot be taken: {error}"))?;
    let measured = measured(flags, &stop).map_err(|error| error.to_string())?;
    if let Some(path) = &flags.json {
        write(path, &json::write_versioned(CAPACITY, &measured))?;
    }
    if let Some(path) = &flags.html {
        write(path, &steps::html(&capacity::page(&measured)))?;
    }
    Ok(capacity::table(&measured))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Set by the first Ctrl-C, after which everything is ended in order; the second ends this process at once.
fn stop_on_signals() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

fn measured(flags: &Flags, stop: &AtomicBool) -> Result<Capacity, CapacityError> {
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
fn row(subject: &Subject, setting: &Setting, stop: &AtomicBool) -> Result<Row, CapacityError> {
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
