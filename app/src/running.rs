//! The process from its listeners to its end: start, signals, stop.
//!
//! Order of a start, as scripts written for nginx expect it: configuration checked, listeners open, into the background,
//! logs and caches open, privileges dropped, pid file written, workers running. The main thread then waits for signals
//! and serves nothing itself.

use crate::assemble::assemble;
use crate::check;
use crate::cli::ServeUrl;
use crate::pid_file::PidFile;
use crate::reload::{self, log_findings};
use crate::serve_url;
use crate::upgrade::Program;
use crate::worker::{self, Handle, Order, Spread};
use millstream_conf::diagnostics::Severity;
use millstream_conf::load::{Loaded, Options, load};
use millstream_conf::model::{Configuration, Level, Main, User, WorkerProcesses};
use millstream_load::origin::{self, DemoOptions};
use millstream_net::daemon::{self, Detached};
use millstream_net::listener::{self, Inherited, Listening};
use millstream_net::{blocking, clock, cores, limits, privileges};
use millstream_server::generation::Shared;
use millstream_telemetry::local_time::{self, LocalTime};
use millstream_telemetry::log_writer::LogWriter;
use millstream_telemetry::metrics::Registry;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::Signals;
use std::io::{Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Reads the configuration again, for a reload.
pub type LoadAgain = Box<dyn Fn() -> Loaded>;

/// Threads for work that blocks.
const BLOCKING_THREADS: usize = 4;

/// Runs an nginx.conf.
pub fn run(options: &Options) -> ExitCode {
    let again = options.clone();
    start(Box::new(move || load(&again)), load(options), |_, _| {})
}

/// Runs `serve URL`, with an embedded demo API where no URL was given.
pub fn serve_url(serve: &ServeUrl) -> ExitCode {
    let mut urls = serve.urls.clone();
    let mut demo = None;
    if urls.is_empty() {
        match origin::start(&DemoOptions::default()) {
            Ok(started) => {
                urls.push(format!("http://{}", started.address));
                demo = Some(started);
            }
            Err(error) => return complain(&format!("the demo API cannot be started: {error}")),
        }
    }
    let loaded = match serve_url::configuration(serve, &urls) {
        Ok(loaded) => loaded,
        Err(message) => return complain(&message),
    };
    let (flags, for_again) = (serve.clone(), urls.clone());
    let again = move || match serve_url::configuration(&flags, &for_again) {
        Ok(loaded) => loaded,
        Err(_) => Loaded { configuration: None, sources: Default::default(), diagnostics: Default::default() },
    };
    let microcache = serve.microcache.clone();
    let simulated = demo.is_some();
    let code = start(Box::new(again), loaded, move |shared, listenings| {
        greet(shared, listenings, &urls, microcache.as_deref(), simulated);
    });
    drop(demo);
    code
}

/// Where it listens, what it fronts, what it will cache.
fn greet(shared: &Shared, listenings: &[Arc<Listening>], urls: &[String], microcache: Option<&str>, demo: bool) {
    let at: Vec<String> = listenings.iter().map(|listening| listening.local().to_string()).collect();
    let memory = shared.configuration.http.cache_zones.first().map_or(0, |zone| zone.memory >> 20);
    let front = if demo { format!("an embedded demo API (simulated, {})", urls.join(", ")) } else { urls.join(", ") };
    let also = microcache.map_or_else(
        || "add --microcache 1s to cache what they do not forbid".to_owned(),
        |time| format!("and GET and HEAD without cookies and credentials for {time}"),
    );
    eprintln!(
        "millstream {} on http://{} in front of {front}\n\
         caches in memory ({memory} MiB) what the API's Cache-Control and Expires allow; {also}\n\
         try: curl -i http://{}/   (X-Cache-Status says HIT or MISS; Ctrl-C ends)",
        env!("CARGO_PKG_VERSION"),
        at.join(", "),
        at.first().map_or("", String::as_str),
    );
}

fn start(again: LoadAgain, loaded: Loaded, ready: impl FnOnce(&Shared, &[Arc<Listening>])) -> ExitCode {
    check::report(&loaded, Severity::Warning);
    let Loaded { configuration: Some(configuration), sources, diagnostics } = loaded else {
        return ExitCode::FAILURE;
    };
    local_time::set_clock(local_now);
    if let Some(files) = configuration.main.worker_rlimit_nofile
        && let Err(error) = limits::set_nofile(files)
    {
        eprintln!("millstream: [warn] worker_rlimit_nofile {files}: {error}");
    }
    let inherited = Inherited::from_environment();
    let upgraded = !inherited.is_empty();
    let sockets = socket_count(&configuration.main);
    let listenings = match listener::open(&configuration.http.listeners, sockets, inherited, &[]) {
        Ok(listenings) => listenings,
        Err(errors) => {
            for error in &errors {
                eprintln!("millstream: [emerg] {error}");
            }
            return ExitCode::FAILURE;
        }
    };
    let waiting = match into_background(configuration.main.daemon && !upgraded) {
        Ok(Side::Foreground(code)) => return code,
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
    log_findings(&diagnostics, &sources, &process.shared.main_log, Severity::Warning);
    ready(&process.shared, &process.listenings);
    if let Some(mut waiting) = waiting {
        // The terminal's process may have been killed; the daemon goes on.
        _ = waiting.write_all(b"\0");
    }
    process.run()
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

/// The running process.
struct Process {
    shared: Arc<Shared>,
    listenings: Vec<Arc<Listening>>,
    again: LoadAgain,
    log_writer: Arc<LogWriter>,
    registry: Registry,
    workers: Vec<Handle>,
    leaving: Vec<Handle>,
    alive: Arc<AtomicUsize>,
    pid_file: PidFile,
    program: Program,
    log_owner: Option<(u32, u32)>,
}

type Failed = millstream_conf::diagnostics::Diagnostics;

impl Process {
    fn open(configuration: Configuration, listenings: Vec<Arc<Listening>>, again: LoadAgain) -> Result<Self, Failed> {
        let log_writer = LogWriter::start().map_err(|error| failed(format!("the log thread: {error}")))?;
        let main = configuration.main.clone();
        let shared = assemble(configuration, 1, &log_writer, None)?;
        let pid_file = PidFile::write(&main.pid)
            .map_err(|error| failed(format!("the pid file {}: {error}", main.pid.display())))?;
        let log_owner = drop_privileges(main.user.as_ref())?;
        blocking::start(BLOCKING_THREADS).map_err(|error| failed(format!("threads: {error}")))?;
        let mut process = Process {
            shared,
            listenings,
            again,
            log_writer,
            registry: Registry::new(),
            workers: Vec::new(),
            leaving: Vec::new(),
            alive: Arc::new(AtomicUsize::new(0)),
            pid_file,
            program: Program::of_this_process(),
            log_owner,
        };
        process.spread_workers().map_err(|error| failed(format!("a worker cannot be started: {error}")))?;
        Ok(process)
    }

    /// Brings the workers to the number that is configured and tells all of the configuration in force.
    fn spread_workers(&mut self) -> std::io::Result<()> {
        let wanted = worker_count(&self.shared.configuration.main);
        let listenings: Arc<[Arc<Listening>]> = self.listenings.clone().into();
        for handle in self.workers.split_off(wanted.min(self.workers.len())) {
            _ = handle.orders.send(Order::Drain);
            self.leaving.push(handle);
        }
        for (index, handle) in self.workers.iter().enumerate() {
            let spread = Spread { index, workers: wanted };
            _ = handle.orders.send(Order::Serve(self.shared.clone(), listenings.clone(), spread));
        }
        for index in self.workers.len()..wanted {
            self.alive.fetch_add(1, Ordering::SeqCst);
            let alive = self.alive.clone();
            self.workers.push(worker::start(worker::Start {
                shared: self.shared.clone(),
                listenings: listenings.clone(),
                spread: Spread { index, workers: wanted },
                metrics: self.registry.worker(),
                log_writer: self.log_writer.clone(),
                ended: Box::new(move || {
                    if alive.fetch_sub(1, Ordering::SeqCst) == 1 {
                        // The main thread waits for signals only: this one says that the last worker is gone.
                        _ = signal_hook::low_level::raise(SIGWINCH);
                    }
                }),
            })?);
        }
        Ok(())
    }

    fn run(mut self) -> ExitCode {
        let wanted = [SIGHUP, SIGQUIT, SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGCHLD, SIGWINCH];
        let mut signals = match Signals::new(wanted) {
            Ok(signals) => signals,
            Err(error) => return complain(&format!("signals: {error}")),
        };
        let mut quitting = false;
        for signal in signals.forever() {
            match signal {
                SIGHUP if !quitting => self.reload(),
                SIGUSR1 => self.log_writer.reopen(self.log_owner),
                SIGUSR2 if !quitting => self.upgrade(),
                SIGCHLD => self.reap(),
                SIGQUIT if !quitting => {
                    quitting = true;
                    self.order_all(|| Order::Drain);
                    self.stop_after_timeout();
                }
                SIGTERM | SIGINT => break,
                _ => {}
            }
            if quitting && self.alive.load(Ordering::SeqCst) == 0 {
                break;
            }
        }
        self.end()
    }

    fn reload(&mut self) {
        let log = self.shared.main_log.clone();
        log.write(Level::Notice, format_args!("signal HUP received, reconfiguring"));
        let Some(reloaded) = reload::reload(&self.again, &self.log_writer, &self.shared, &self.listenings) else {
            return;
        };
        self.shared = reloaded.shared;
        self.listenings = reloaded.listenings;
        if let Err(error) = self.spread_workers() {
            log.write(Level::Alert, format_args!("a worker cannot be started: {error}"));
        }
        log.write(Level::Notice, format_args!("configuration {} is in force", self.shared.number));
    }

    fn upgrade(&mut self) {
        let log = self.shared.main_log.clone();
        match self.program.start_next(&self.listenings, &mut self.pid_file) {
            Ok(id) => log.write(Level::Notice, format_args!("signal USR2 received, started new process {id}")),
            Err(error) => log.write(Level::Alert, format_args!("the new process cannot be started: {error}")),
        }
    }

    fn reap(&mut self) {
        if let Some(what) = self.program.reap(&self.listenings, &mut self.pid_file) {
            self.shared.main_log.write(Level::Notice, format_args!("{what}"));
        }
    }

    /// `worker_shutdown_timeout`: what has not finished by then is cut.
    fn stop_after_timeout(&self) {
        let Some(timeout) = self.shared.configuration.main.worker_shutdown_timeout else { return };
        let orders: Vec<_> = self.workers.iter().chain(&self.leaving).map(|handle| handle.orders.clone()).collect();
        let timer = std::thread::Builder::new().name("shutdown timeout".into()).spawn(move || {
            std::thread::park_timeout(timeout);
            for order in orders {
                _ = order.send(Order::Stop);
            }
        });
        if let Err(error) = timer {
            self.shared.main_log.write(Level::Alert, format_args!("worker_shutdown_timeout: {error}"));
        }
    }

    fn order_all(&self, order: impl Fn() -> Order) {
        for handle in self.workers.iter().chain(&self.leaving) {
            _ = handle.orders.send(order());
        }
    }

    fn end(mut self) -> ExitCode {
        self.order_all(|| Order::Stop);
        for handle in self.workers.drain(..).chain(self.leaving.drain(..)) {
            if handle.thread.join().is_err() {
                self.shared.main_log.write(Level::Alert, format_args!("a worker thread panicked"));
            }
        }
        self.shared.main_log.write(Level::Notice, format_args!("exit"));
        self.log_writer.drain();
        ExitCode::SUCCESS
    }
}

/// Becomes `user`; without one, root becomes nobody, as in nginx. The ids own the log files from then on.
fn drop_privileges(user: Option<&User>) -> Result<Option<(u32, u32)>, Failed> {
    let Some(user) = user else { return Ok(None) };
    match privileges::drop_to(user) {
        Ok(privileges::Dropped::To(account)) => Ok(Some((account.uid, account.gid))),
        Ok(privileges::Dropped::NotRoot) => {
            eprintln!("millstream: [warn] the \"user\" directive has an effect only when started as root");
            Ok(None)
        }
        Err(error) => Err(failed(format!("user {}: {error}", user.name))),
    }
}

fn failed(message: String) -> Failed {
    let mut findings = Failed::default();
    findings.error_nowhere(message);
    findings
}

fn worker_count(main: &Main) -> usize {
    match main.worker_processes {
        WorkerProcesses::Number(number) => number.max(1) as usize,
        WorkerProcesses::Auto => cores::usable(),
    }
}

/// Listening sockets per address: one for each worker.
pub fn socket_count(main: &Main) -> usize {
    worker_count(main)
}

fn local_now() -> LocalTime {
    let wall = clock::wall();
    LocalTime { seconds: wall.seconds, utc_offset: clock::utc_offset(wall.seconds) }
}

fn complain(message: &str) -> ExitCode {
    eprintln!("millstream: [emerg] {message}");
    ExitCode::FAILURE
}
