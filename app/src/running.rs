//! The process from its listeners to its end: start, signals, stop.
//!
//! Order of a start, as scripts written for nginx expect it: configuration checked, listeners open, into the background,
//! the serving process split off from the opener, logs and caches open, pid file written, workers running. The main thread then waits for signals
//! and serves nothing itself.

mod start;
mod in_front;

use crate::accepting::{self, Spread};
use crate::account::with_default_user;
use crate::assemble::assemble;
use crate::cli::ServeUrl;
use crate::clusters;
use crate::exporting::Exporting;
use crate::health::Checker;
use crate::issuing::Issuing;
use crate::keeper::Keeper;
use crate::recording::Recording;
use crate::reload;
use crate::renewing::Renewing;
use crate::watchdog::Watchdog;
use crate::worker::{self, Handle, Order};
use crate::{logs, names, office, opener, panic_log};
pub use in_front::in_front;
use millstream_conf::files;
use millstream_conf::load::{Options, load};
use millstream_conf::model::{Configuration, Level};
use millstream_net::listener::Listening;
use millstream_net::systemd::Word;
use millstream_net::{blocking, clock, privileges, systemd};
use millstream_server::generation::Shared;
use millstream_telemetry::log_writer::LogWriter;
use millstream_telemetry::metrics::Registry;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::Signals;
use start::start;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// nginx's, with `CHLD` for the next process at an upgrade, and `WINCH` by which a worker reports its end.
const SIGNALS: [i32; 8] = [SIGHUP, SIGQUIT, SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGCHLD, SIGWINCH];
const WORKER_RESTART_PAUSE: Duration = Duration::from_secs(1);
/// Longest wait of a log reopening for the workers' buffers.
const FLUSH_WAIT: Duration = Duration::from_millis(500);
/// Longest wait of a reload for the workers to close removed sockets.
const CLOSE_WAIT: Duration = Duration::from_millis(500);
/// Longest wait at the end for responses to be written from memory to disk.
const CACHE_WAIT: Duration = Duration::from_secs(5);
/// The same on a fast stop.
const FAST_CACHE_WAIT: Duration = Duration::from_secs(1);
/// Threads for blocking work without `thread_pool default`: writing and purging take two each.
const BLOCKING_THREADS: u32 = 6;

pub fn run(options: &Options) -> ExitCode {
    opener::prepare();
    let again = options.clone();
    let changes = privileges::may_change_user();
    let loaded = with_default_user(load(options), changes);
    start(Box::new(move || with_default_user(load(&again), changes)), loaded, |_| None, false, |_, _| {})
}

/// `serve`: with the embedded demo API if no URL was given.
pub fn serve_url(serve: &ServeUrl) -> ExitCode {
    in_front(&serve.front, Some(&serve.caching), false, |_| {})
}

struct Process {
    shared: Arc<Shared>,
    listenings: Vec<Arc<Listening>>,
    keeper: Keeper,
    log_writer: Arc<LogWriter>,
    registry: Arc<Registry>,
    workers: Vec<Handle>,
    leaving: Vec<Handle>,
    alive: Arc<AtomicUsize>,
    checker: Checker,
    issuing: Issuing,
    renewing: Renewing,
    recording: Recording,
    exporting: Exporting,
    watchdog: Watchdog,
}

type Failed = millstream_conf::diagnostics::Diagnostics;

impl Process {
    fn open(
        configuration: Configuration,
        listenings: Vec<Arc<Listening>>,
        mut keeper: Keeper,
    ) -> Result<Self, Failed> {
        let log_writer =
            LogWriter::start().map_err(|error| failed(format!("cannot start the log thread: {error}")))?;
        let registry = Arc::new(Registry::new());
        panic_log::install(&registry);
        let shared = assemble(configuration, 1, &log_writer, &registry, None)?.commit(None);
        logs::report_to_main(&shared.configuration.main, &log_writer);
        panic_log::tell(&shared.logs.main);
        let main = &shared.configuration.main;
        keeper.enter(&shared.configuration).map_err(|error| {
            failed(format!(
                "the pid file {} cannot be written: {error}; specify a writable file with the pid directive, or a \
                 directory with -p",
                main.pid.display()
            ))
        })?;
        let threads = shared.configuration.main.blocking_threads.unwrap_or(BLOCKING_THREADS);
        blocking::start(threads as usize)
            .map_err(|error| failed(format!("cannot start threads: {error}")))?;
        clusters::start(&shared.clusters, &shared.logs.main);
        let exporting = Exporting::new(log_writer.clone());
        let mut process = Process {
            shared,
            listenings,
            keeper,
            log_writer,
            registry,
            workers: Vec::new(),
            leaving: Vec::new(),
            alive: Arc::new(AtomicUsize::new(0)),
            checker: Checker::default(),
            issuing: Issuing::default(),
            renewing: Renewing::default(),
            recording: Recording::default(),
            exporting,
            watchdog: Watchdog::start()
                .map_err(|error| failed(format!("cannot start the watchdog: {error}")))?,
        };
        process.tell_threads();
        process.spread_workers().map_err(|error| failed(format!("cannot start a worker: {error}")))?;
        Ok(process)
    }

    /// Passes the configuration in force to the threads besides the workers.
    fn tell_threads(&mut self) {
        names::follow(&self.shared);
        self.checker.take_over(&self.shared, &self.log_writer, &self.registry);
        self.issuing.take_over(&self.shared, self.renewing.renewed());
        self.renewing.take_over(&self.shared);
        self.recording.take_over(&self.shared);
        self.exporting.take_over(&self.shared);
    }

    /// Starts or ends workers up to the configured number, and passes the configuration to all. The receiver
    /// closes when all have closed the removed sockets.
    fn spread_workers(&mut self) -> std::io::Result<Receiver<()>> {
        let (done, closed) = channel();
        let wanted = accepting::workers(&self.shared.configuration.main);
        let listenings: Arc<[Arc<Listening>]> = self.listenings.clone().into();
        for handle in self.workers.split_off(wanted.min(self.workers.len())) {
            _ = handle.orders.send(Order::Drain(done.clone()));
            self.leaving.push(handle);
        }
        for (index, handle) in self.workers.iter().enumerate() {
            let spread = Spread { index, workers: wanted };
            let (shared, listenings) = (self.shared.clone(), listenings.clone());
            _ = handle.orders.send(Order::Serve(shared, listenings, spread, done.clone()));
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
                    alive.fetch_sub(1, Ordering::SeqCst);
                    // The main thread waits for signals only: this one says that a worker is gone.
                    _ = signal_hook::low_level::raise(SIGWINCH);
                }),
            })?);
        }
        self.watchdog.watch(&self.workers, &self.shared.logs.main);
        Ok(closed)
    }

    fn run(mut self, mut signals: Signals) -> ExitCode {
        let mut quitting = false;
        systemd::say(Word::Ready);
        for signal in signals.forever() {
            match signal {
                SIGHUP if !quitting => self.reload(),
                SIGUSR1 => self.reopen(),
                SIGUSR2 if !quitting => self.upgrade(),
                SIGCHLD => self.reap(),
                SIGQUIT if !quitting => {
                    quitting = true;
                    self.issuing.stop();
                    self.tell_stopping();
                    self.shared
                        .logs
                        .main
                        .write(Level::Notice, format_args!("signal QUIT received, shutting down"));
                    let (done, _) = channel();
                    self.order_all(|| Order::Drain(done.clone()));
                    // With those that the workers close, these were the last.
                    self.listenings.clear();
                    self.keeper.leave();
                    self.stop_after_timeout(self.workers.iter().chain(&self.leaving));
                }
                SIGTERM | SIGINT => break,
                SIGWINCH if !quitting => self.replace_dead_workers(),
                _ => {}
            }
            if quitting && self.alive.load(Ordering::SeqCst) == 0 {
                break;
            }
        }
        self.tell_stopping();
        self.end(if quitting { CACHE_WAIT } else { FAST_CACHE_WAIT })
    }

    /// Notifies the service manager, unless the next process takes over.
    fn tell_stopping(&self) {
        if !self.keeper.has_next() {
            systemd::say(Word::Stopping);
        }
    }

    /// Serves on whatever the result.
    fn reload(&mut self) {
        systemd::say(Word::Reloading);
        self.take_over();
        systemd::say(Word::Ready);
    }

    fn take_over(&mut self) {
        let log = self.shared.logs.main.clone();
        log.write(Level::Notice, format_args!("signal HUP received, reconfiguring"));
        let reloaded = reload::reload(&mut self.keeper, &self.log_writer, &self.registry, &self.shared);
        self.registry.reloaded(reloaded.is_some());
        let Some(reloaded) = reloaded else {
            log.write(Level::Error, format_args!("the previous configuration stays in force"));
            self.note(false, "reload failed, the previous configuration stays in force: see the error log");
            return;
        };
        self.shared = reloaded.shared;
        self.tell_threads();
        self.listenings = reloaded.listenings;
        let main = &self.shared.configuration.main;
        logs::report_to_main(main, &self.log_writer);
        panic_log::tell(&self.shared.logs.main);
        if let Err(error) = self.keeper.enter(&self.shared.configuration) {
            log.write(
                Level::Alert,
                format_args!("the pid file {} cannot be written: {error}", main.pid.display()),
            );
        }
        match self.spread_workers() {
            // Otherwise the next reload might find an address in use that this one has removed.
            Ok(closed) if reloaded.has_left => _ = closed.recv_timeout(CLOSE_WAIT),
            Ok(_) => {}
            Err(error) => log.write(Level::Alert, format_args!("cannot start a worker: {error}")),
        }
        self.leaving.retain(|handle| !handle.thread.is_finished());
        self.stop_after_timeout(self.leaving.iter());
        log.write(Level::Notice, format_args!("configuration {} is in force", self.shared.edition.number));
        self.note(true, &format!("reloaded: configuration {} is in force", self.shared.edition.number));
    }

    fn note(&self, went_well: bool, text: &str) {
        self.shared.recorder.note(clock::wall().unix_milliseconds(), went_well, text);
    }

    fn take_stderr(&self) {
        let open = |path: &std::path::Path| files::append(path, 0o644);
        if let Err(error) = office::take_stderr(&self.shared.configuration.main, open) {
            self.shared
                .logs
                .main
                .write(Level::Warn, format_args!("standard error cannot be redirected: {error}"));
        }
    }

    fn reopen(&self) {
        self.shared.logs.main.write(Level::Notice, format_args!("signal USR1 received, reopening logs"));
        // What happened before the rotation belongs into the old files.
        let (done, flushed) = channel();
        self.order_all(|| Order::Flush(done.clone()));
        drop(done);
        // An error says that all workers have dropped their senders, or that one is too busy: its lines come later.
        _ = flushed.recv_timeout(FLUSH_WAIT);
        self.log_writer.reopen();
    }

    /// Replaces a worker whose thread ended by a panic outside a connection.
    fn replace_dead_workers(&mut self) {
        let before = self.workers.len();
        self.workers.retain(|handle| !handle.thread.is_finished());
        self.leaving.retain(|handle| !handle.thread.is_finished());
        if self.workers.len() == before {
            return;
        }
        let log = self.shared.logs.main.clone();
        (self.workers.len()..before).for_each(|_| self.registry.respawn());
        self.note(false, "a worker thread exited unexpectedly and was restarted");
        log.write(Level::Alert, format_args!("a worker thread exited unexpectedly, restarting it"));
        // Where the reason stays (no descriptors), this keeps the restarts from becoming a busy loop.
        std::thread::park_timeout(WORKER_RESTART_PAUSE);
        if let Err(error) = self.spread_workers() {
            log.write(Level::Alert, format_args!("cannot start a worker: {error}"));
        }
    }

    fn upgrade(&mut self) {
        let log = self.shared.logs.main.clone();
        match self.keeper.upgrade() {
            Ok(id) => {
                log.write(Level::Notice, format_args!("signal USR2 received, started new process {id}"))
            }
            Err(error) => log.write(Level::Alert, format_args!("cannot start the new process: {error}")),
        }
    }

    fn reap(&mut self) {
        if let Some(what) = self.keeper.reap() {
            self.shared.logs.main.write(Level::Notice, format_args!("{what}"));
            systemd::say(Word::Ready);
        }
    }

    /// `worker_shutdown_timeout`: cuts what has not finished by then.
    fn stop_after_timeout<'a>(&self, workers: impl Iterator<Item = &'a Handle>) {
        let Some(timeout) = self.shared.configuration.main.worker_shutdown_timeout else { return };
        let orders: Vec<_> = workers.map(|handle| handle.orders.clone()).collect();
        if orders.is_empty() {
            return;
        }
        let timer = std::thread::Builder::new().name("shutdown timeout".into()).spawn(move || {
            std::thread::park_timeout(timeout);
            for order in orders {
                _ = order.send(Order::Stop);
            }
        });
        if let Err(error) = timer {
            self.shared.logs.main.write(Level::Alert, format_args!("worker_shutdown_timeout: {error}"));
        }
    }

    fn order_all(&self, order: impl Fn() -> Order) {
        for handle in self.workers.iter().chain(&self.leaving) {
            _ = handle.orders.send(order());
        }
    }

    fn end(mut self, cache_wait: Duration) -> ExitCode {
        self.order_all(|| Order::Stop);
        for handle in self.workers.drain(..).chain(self.leaving.drain(..)) {
            if handle.thread.join().is_err() {
                self.shared.logs.main.write(Level::Alert, format_args!("a worker thread panicked"));
            }
        }
        self.shared.clusters.stop();
        finish_caches(&self.shared, cache_wait);
        self.exporting.finish(&self.shared);
        self.shared.logs.main.write(Level::Notice, format_args!("exit"));
        self.log_writer.drain();
        ExitCode::SUCCESS
    }
}

/// Writes what waits for cache directories, within this time.
fn finish_caches(shared: &Shared, within: Duration) {
    let end = clock::now() + within;
    for store in &shared.zones.stores {
        if !store.flush(end.saturating_duration_since(clock::now())) {
            shared.logs.main.write(
                Level::Warn,
                format_args!("cache zone \"{}\": not all responses were written to disk", store.name()),
            );
        }
    }
}

fn failed(message: String) -> Failed {
    let mut findings = Failed::default();
    findings.error_nowhere(message);
    findings
}

fn complain(message: &str) -> ExitCode {
    eprintln!("millstream: [emerg] {message}");
    ExitCode::FAILURE
}
