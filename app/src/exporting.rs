//! The threads that export spans, and metrics perhaps: one for each queue of spans, as a rule one.
//!
//! A configuration whose exporter says the same as before keeps its thread; else a new one is started, after privileges are dropped, and the old
//! one ends once no request can hand anything over to it. Next: `millstream-traces`'s `exporter`, what it does.

use millstream_admin::snapshot::snapshot;
use millstream_conf::model::Level;
use millstream_net::clock;
use millstream_server::generation::Shared;
use millstream_telemetry::error_log::ErrorLogs;
use millstream_telemetry::log_writer::LogWriter;
use millstream_telemetry::metrics::WorkerMetrics;
use millstream_traces::exporter::{Exporter, FigureSource, Tracing};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::runtime::LocalOptions;

/// Longest wait at the end for queued spans.
const FINISH_WAIT: Duration = Duration::from_secs(2);

pub struct Exporting {
    log_writer: Arc<LogWriter>,
    /// Nanoseconds since 1970.
    since: u64,
    /// The configuration in force, for the metrics of its upstream servers. Weak, because a queue must end
    /// with its configuration.
    in_force: Arc<Mutex<Weak<Shared>>>,
    newest: Weak<Tracing>,
    /// One per thread; closed when the thread ends.
    threads: Vec<Receiver<()>>,
}

impl Exporting {
    pub fn new(log_writer: Arc<LogWriter>) -> Exporting {
        let (newest, threads) = (Weak::new(), Vec::new());
        Exporting { log_writer, since: clock::unix_nanoseconds(), in_force: Arc::default(), newest, threads }
    }

    pub fn take_over(&mut self, shared: &Arc<Shared>) {
        *self.in_force.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(shared);
        self.threads.retain(|thread| !has_ended(thread, Duration::ZERO));
        let Some(tracing) = &shared.tracing else { return };
        if Weak::as_ptr(&self.newest) == Arc::as_ptr(tracing) {
            return;
        }
        self.newest = Arc::downgrade(tracing);
        self.threads.extend(start(tracing.exporter(self.figures()), shared));
    }

    fn figures(&self) -> FigureSource {
        let (in_force, log_writer) = (self.in_force.clone(), self.log_writer.clone());
        let take = move || {
            let shared = in_force.lock().unwrap_or_else(PoisonError::into_inner).upgrade()?;
            Some(snapshot(&shared, log_writer.statistics()))
        };
        FigureSource { since: self.since, take: Box::new(take) }
    }

    /// Exports what is queued, and the last metrics, within [`FINISH_WAIT`].
    pub fn finish(self, shared: &Shared) {
        if let Some(tracing) = &shared.tracing {
            tracing.sink.close();
        }
        let end = clock::now() + FINISH_WAIT;
        let late = |thread: &Receiver<()>| !has_ended(thread, end.saturating_duration_since(clock::now()));
        if self.threads.iter().filter(|thread| late(thread)).count() > 0 {
            shared.logs.main.write(Level::Warn, format_args!("not all spans and metrics were exported"));
        }
    }
}

fn has_ended(thread: &Receiver<()>, within: Duration) -> bool {
    matches!(thread.recv_timeout(within), Err(RecvTimeoutError::Disconnected))
}

fn start(exporter: Exporter, shared: &Shared) -> Option<Receiver<()>> {
    let (done, ended) = channel();
    let (log, metrics) = (shared.logs.main.clone(), shared.registry.worker());
    let serve = move || {
        export(exporter, &metrics, &log, done);
    };
    match std::thread::Builder::new().name("traces".into()).spawn(serve) {
        Ok(_) => Some(ended),
        Err(error) => {
            shared
                .logs
                .main
                .write(Level::Error, format_args!("otel_exporter: cannot start a thread: {error}"));
            None
        }
    }
}

/// Runs to the end of the queue; dropping `_done` signals it.
fn export(exporter: Exporter, metrics: &WorkerMetrics, log: &ErrorLogs, _done: Sender<()>) {
    let mut building = tokio::runtime::Builder::new_current_thread();
    match building.enable_all().build_local(LocalOptions::default()) {
        Ok(runtime) => runtime.block_on(exporter.run(metrics, log)),
        Err(error) => {
            log.write(Level::Error, format_args!("otel_exporter: cannot create an event loop: {error}"))
        }
    }
}
