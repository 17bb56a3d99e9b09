//! The start, in the order that scripts written for nginx expect: configuration checked, listeners open, into the
//! background, then the process itself.

use super::{Process, SIGNALS, complain, tells_stderr};
use crate::accepting;
use crate::account;
use crate::check;
use crate::descriptors;
use crate::reload::{LoadAgain, log_findings};
use millstream_conf::diagnostics::Severity;
use millstream_conf::load::Loaded;
use millstream_conf::model::{ListenAddress, Main};
use millstream_net::Address;
use millstream_net::daemon::{self, Detached};
use millstream_net::listener::{self, Inherited, Listening, OpenError};
use millstream_net::{clock, privileges};
use millstream_server::generation::Shared;
use millstream_telemetry::local_time::{self, LocalTime};
use millstream_telemetry::log_writer::LogWriter;
use signal_hook::iterator::Signals;
use std::io::{Read, Write};
use std::process::ExitCode;
use std::sync::Arc;

/// Starts a process and runs it to its end; `hint` says what is needed where addresses cannot be listened on, `ready` is called once all that it
/// listens on is open.
pub(super) fn start(
    again: LoadAgain,
    mut loaded: Loaded,
    hint: impl Fn(&[OpenError]) -> Option<String>,
    ready: impl FnOnce(&Shared, &[Arc<Listening>]),
) -> ExitCode {
    // The next process at an upgrade has been that user from its beginning.
    let is_next = std::env::var_os(listener::ENVIRONMENT).is_some();
    account::warn_of_idle_user(&mut loaded, is_next || rustix::process::geteuid().is_root());
    check::report(&loaded, Severity::Warning);
    let Loaded { configuration: Some(configuration), sources, diagnostics, .. } = loaded.to_serve() else {
        return ExitCode::FAILURE;
    };
    local_time::set_clock(local_now);
    descriptors::allow(&configuration, |complaint| eprintln!("millstream: [warn] {complaint}"));
    let inherited = Inherited::from_environment();
    let upgraded = !inherited.is_empty();
    let sockets = accepting::workers(&configuration.main);
    let listenings = match listener::open(&configuration.http.listeners, sockets, inherited, &[]) {
        Ok(opened) => {
            for error in &opened.missing {
                let what = match &configuration.http.listeners[error.index].optional {
                    true => "there is no dashboard",
                    false => "millstream purge and explain will not reach this process",
                };
                eprintln!("millstream: [warn] {error}; {what}");
            }
            opened.listenings
        }
        Err(errors) => {
            tell_refused(&configuration.main, &errors, hint);
            return ExitCode::FAILURE;
        }
    };
    // Before anybody can learn of this process: a signal from then on means what it says.
    let signals = match Signals::new(SIGNALS) {
        Ok(signals) => signals,
        Err(error) => return complain(&format!("signals: {error}")),
    };
    let waiting = match into_background(configuration.main.daemon && !upgraded) {
        Ok(Side::Foreground(code)) => {
            // They belong to the process in the background now: dropping them here would remove unix sockets' files.
            std::mem::forget(listenings);
            return code;
        }
        Ok(Side::Background(waiting)) => waiting,
        Err(error) => return complain(&format!("daemon: {error}")),
    };
    let process = match Process::open(configuration, listenings, again) {
        Ok(process) => process,
        Err(failed) => {
            for finding in failed.sorted() {
                eprint!("{}", finding.render(&sources));
            }
            return ExitCode::FAILURE;
        }
    };
    if !tells_stderr(&process.shared.configuration.main) {
        log_findings(&diagnostics, &sources, &process.shared.main_log, Severity::Warning);
    }
    ready(&process.shared, &process.listenings);
    if let Some(mut waiting) = waiting {
        process.take_stderr();
        // The terminal's process may have been killed; the daemon goes on.
        _ = waiting.write_all(b"\0");
    }
    process.run(signals)
}

/// Says which addresses cannot be had, and what is needed.
fn tell_refused(main: &Main, errors: &[OpenError], hint: impl Fn(&[OpenError]) -> Option<String>) {
    for error in errors {
        eprintln!("millstream: [emerg] {error}{}", pid_hint(main, error).unwrap_or_default());
    }
    if let Some(hint) = hint(errors) {
        eprintln!("millstream: [emerg] {hint}");
    }
}

/// Two files that name no pid file have the same one, and the control socket beside it.
fn pid_hint(main: &Main, error: &OpenError) -> Option<String> {
    let control = Address::from(&ListenAddress::Unix(main.control_socket.clone()?));
    let is_taken = error.address == control && error.error.kind() == std::io::ErrorKind::AddrInUse;
    is_taken.then(|| {
        format!(
            ". That is its control socket, beside its pid file {}: it runs this configuration already, or both need a pid \
             file of their own. Write \"pid /another/file.pid;\" at the top of this one, or start it with another -p",
            main.pid.display()
        )
    })
}

/// Which process this is, and what the other one waits for.
enum Side {
    Foreground(ExitCode),
    Background(Option<std::io::PipeWriter>),
}

/// With `daemon on`, goes on in the background; the process at the terminal ends when the other is ready, or has failed.
fn into_background(wanted: bool) -> std::io::Result<Side> {
    if !wanted {
        return Ok(Side::Background(None));
    }
    let (mut reader, writer) = std::io::pipe()?;
    match daemon::detach()? {
        Detached::Background => Ok(Side::Background(Some(writer))),
        Detached::Foreground => {
            drop(writer);
            let started = reader.read(&mut [0]).is_ok_and(|count| count == 1);
            Ok(Side::Foreground(if started { ExitCode::SUCCESS } else { ExitCode::FAILURE }))
        }
    }
}

/// Starts the log thread from one that gave up its rights: after an upgrade this one has some, and passes them on.
pub(super) fn start_log_writer() -> std::io::Result<Arc<LogWriter>> {
    let starting = std::thread::Builder::new().spawn(|| {
        privileges::renounce().map_err(std::io::Error::other)?;
        LogWriter::start()
    })?;
    starting.join().unwrap_or_else(|_| Err(std::io::Error::other("starting it panicked")))
}

fn local_now() -> LocalTime {
    let wall = clock::wall();
    let utc_offset = clock::utc_offset(wall.seconds);
    LocalTime { seconds: wall.seconds, milliseconds: wall.milliseconds, utc_offset }
}
