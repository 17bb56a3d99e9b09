//! The start, in the order that scripts written for nginx expect: configuration checked, listeners open, into the
//! background, then the process itself.

use super::{Process, SIGNALS, complain};
use crate::accepting;
use crate::account;
use crate::check;
use crate::descriptors;
use crate::keeper::Keeper;
use crate::logs;
use crate::office::{LoadAgain, Office, tells_stderr};
use crate::opener::{self, Opener, Outcome, SplitOff};
use crate::reload::log_findings;
use millstream_conf::diagnostics::Severity;
use millstream_conf::load::Loaded;
use millstream_conf::model::{Configuration, Level, ListenAddress, Main};
use millstream_net::Address;
use millstream_net::daemon::{self, Detached};
use millstream_net::listener::{self, Inherited, Listening, OpenError, Opened};
use millstream_net::{clock, privileges};
use millstream_server::content::api;
use millstream_server::generation::Shared;
use millstream_telemetry::local_time::{self, LocalTime};
use signal_hook::iterator::Signals;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::process::ExitCode;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(50);

/// Starts a process and runs it to its end; `hint` explains addresses that cannot be opened, `ready` is
/// called once all sockets are open. `may_end`: whether it also ends without a signal from outside.
pub(super) fn start(
    again: LoadAgain,
    mut loaded: Loaded,
    hint: impl Fn(&[OpenError]) -> Option<String>,
    may_end: bool,
    ready: impl FnOnce(&Shared, &[Arc<Listening>]),
) -> ExitCode {
    // One that was not root's at the start is that user still at an upgrade.
    let is_next = std::env::var_os(listener::ENVIRONMENT).is_some();
    account::warn_of_idle_user(&mut loaded, is_next || rustix::process::geteuid().is_root());
    logs::warn_of_folders(&mut loaded);
    check::report(&loaded, Severity::Warning);
    let Loaded { configuration: Some(configuration), sources, diagnostics, .. } = loaded.to_serve() else {
        return ExitCode::FAILURE;
    };
    local_time::set_clock(local_now);
    api::set(millstream_admin::answer);
    descriptors::allow(&configuration, |complaint| eprintln!("millstream: [warn] {complaint}"));
    let inherited = Inherited::from_environment();
    let upgraded = !inherited.is_empty();
    let Some(listenings) = listen_or_tell(&configuration, inherited, hint) else {
        return ExitCode::FAILURE;
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
    let begun = match begin(Office::new(again, listenings), configuration, waiting, may_end) {
        Ok(Ok(begun)) => begun,
        Ok(Err(code)) => return code,
        Err(error) => return complain(&error.to_string()),
    };
    let Begun { configuration, listenings, keeper, opener_signals, waiting, note } = *begun;
    // Before anybody can learn of this process: a signal from then on means what it says.
    let signals = match Signals::new(SIGNALS) {
        Ok(signals) => signals,
        Err(error) => return complain(&format!("signals: {error}")),
    };
    if let Some(Err(error)) = opener_signals.map(opener::take_signals) {
        return complain(&format!("signals: {error}"));
    }
    let process = match Process::open(configuration, listenings, keeper) {
        Ok(process) => process,
        Err(failed) => {
            for finding in failed.sorted() {
                eprint!("{}", finding.render(&sources));
            }
            return ExitCode::FAILURE;
        }
    };
    if let Some(note) = note {
        process.shared.logs.main.write(Level::Alert, format_args!("{note}"));
    }
    if !tells_stderr(&process.shared.configuration.main) {
        log_findings(&diagnostics, &sources, &process.shared.logs.main, Severity::Warning);
    }
    ready(&process.shared, &process.listenings);
    if let Some(mut waiting) = waiting {
        process.take_stderr();
        // The terminal's process may have been killed; the daemon goes on.
        _ = waiting.write_all(b"\0");
    }
    process.run(signals)
}

/// Warns for each optional socket that failed; `None`, with an error printed, if a required one did.
fn listen_or_tell(
    configuration: &Configuration,
    inherited: Inherited,
    hint: impl Fn(&[OpenError]) -> Option<String>,
) -> Option<Vec<Arc<Listening>>> {
    match listen(configuration, inherited) {
        Ok(opened) => {
            for error in &opened.missing {
                let what = match &configuration.http.listeners[error.index].optional {
                    true => "the dashboard is not available",
                    false => "millstream purge and explain cannot reach this process",
                };
                let hint = hint(slice::from_ref(error)).map(|hint| format!(": {hint}"));
                eprintln!("millstream: [warn] {error}; {what}{}", hint.unwrap_or_default());
            }
            Some(opened.listenings)
        }
        Err(errors) => {
            tell_refused(&configuration.main, &errors, hint);
            None
        }
    }
}

/// After an opener was killed, its serving process ends a moment later; so with an opener, a held address is
/// tried again for a while, as in nginx.
fn listen(configuration: &Configuration, inherited: Inherited) -> Result<Opened, Vec<OpenError>> {
    let workers = accepting::workers(&configuration.main);
    let open = |inherited| listener::open(&configuration.http.listeners, workers, inherited, &[]);
    let may_wait = inherited.is_empty() && privileges::has_rights_to_give_up();
    let mut opened = open(inherited);
    let is_taken = |error: &OpenError| error.error.kind() == io::ErrorKind::AddrInUse;
    for _ in 0..TRIES {
        match &opened {
            Err(errors) if may_wait && errors.iter().all(is_taken) => std::thread::park_timeout(PAUSE),
            _ => break,
        }
        opened = open(Inherited::none());
    }
    opened
}

struct Begun {
    configuration: Configuration,
    listenings: Vec<Arc<Listening>>,
    keeper: Keeper,
    opener_signals: Option<PipeReader>,
    waiting: Option<PipeWriter>,
    note: Option<String>,
}

/// Continues as the serving process: this one, or a split-off one without rights. In the opener it returns
/// when that has ended.
fn begin(
    office: Office,
    configuration: Configuration,
    waiting: Option<PipeWriter>,
    may_end: bool,
) -> io::Result<Result<Box<Begun>, ExitCode>> {
    let name = configuration.main.user.as_ref().map_or_else(String::new, |user| user.name.clone());
    let account =
        opener::account(&configuration).map_err(|error| io::Error::other(format!("user {name}: {error}")))?;
    let Some(account) = account else {
        let listenings = office.listenings().to_vec();
        let keeper = Keeper::Own(Box::new(office));
        let (opener_signals, note) = (None, None);
        return Ok(Ok(Box::new(Begun { configuration, listenings, keeper, opener_signals, waiting, note })));
    };
    match Opener::new(office, configuration, account, waiting)?.that_may_end(may_end).run()? {
        Outcome::Serving(split) => {
            let SplitOff { configuration, listenings, line, again, signals, waiting, note } = *split;
            let keeper = Keeper::Opener(line, again);
            let opener_signals = Some(signals);
            Ok(Ok(Box::new(Begun { configuration, listenings, keeper, opener_signals, waiting, note })))
        }
        Outcome::Ended(code) => Ok(Err(code)),
    }
}

fn tell_refused(main: &Main, errors: &[OpenError], hint: impl Fn(&[OpenError]) -> Option<String>) {
    for error in errors {
        eprintln!("millstream: [emerg] {error}{}", pid_hint(main, error).unwrap_or_default());
    }
    if let Some(hint) = hint(errors) {
        eprintln!("millstream: [emerg] {hint}");
    }
}

/// Two configurations that name no pid file share one, and the control socket beside it.
fn pid_hint(main: &Main, error: &OpenError) -> Option<String> {
    if main.pid.as_os_str().is_empty() {
        // `serve` has no such file, and the name of its socket is chosen where nobody listens.
        return None;
    }
    let control = Address::from(&ListenAddress::Unix(main.control_socket.clone()?));
    let is_taken = error.address == control && error.error.kind() == io::ErrorKind::AddrInUse;
    is_taken.then(|| {
        format!(
            ". This is the control socket of that process, next to its pid file {}: either it already runs this \
            configuration, or the two configurations use the same pid file. In the second case, write \"pid \
            /another/file.pid;\" at the top of this one, or start it with another -p",
            main.pid.display()
        )
    })
}

/// Which process this is, and what the other one waits for.
enum Side {
    Foreground(ExitCode),
    Background(Option<PipeWriter>),
}

/// Goes into the background with `daemon on`; the process at the terminal ends when this one is ready or has
/// failed.
fn into_background(wanted: bool) -> io::Result<Side> {
    if !wanted {
        return Ok(Side::Background(None));
    }
    let (mut reader, writer) = io::pipe()?;
    match daemon::detach()? {
        Detached::Background => Ok(Side::Background(Some(writer))),
        Detached::Foreground => {
            drop(writer);
            let started = reader.read(&mut [0]).is_ok_and(|count| count == 1);
            Ok(Side::Foreground(if started { ExitCode::SUCCESS } else { ExitCode::FAILURE }))
        }
    }
}

fn local_now() -> LocalTime {
    let wall = clock::wall();
    let utc_offset = clock::utc_offset(wall.seconds);
    LocalTime { seconds: wall.seconds, milliseconds: wall.milliseconds, utc_offset }
}
