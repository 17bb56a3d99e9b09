//! The one thread that writes every log: workers queue bytes, it writes them in batches, one call per file.
//!
//! ```text
//!            send, nobody else will wake it
//!   Asleep ───────────────────────────────▶ Busy ──batch written──▶ Lingering (1 ms, or until urgent)
//!     ▲      AtPipes (some pipe is full) ───▶ ▲                          │
//!     └──────────┴── nothing queued ─────────┴───── something queued ───┘
//! ```
//!
//! So an idle server's line is written at once, and a busy one's workers pay no system call per line. Nobody waits for
//! a log: where a reader or a disk is too slow, lines past a bound are dropped and counted.
//! It must never lose a queued line to a stop or a reopen while its file takes lines, and never hold the lock while writing.
//! Next: `queue` (state behind the lock), `slot` (what waits for one file), `thread` (the loop), `output` (one file), `named` (files that requests name), `written` (waiting for a line).

mod datagrams;
mod output;
mod named;
mod slot;
mod queue;
mod thread;
mod written;
#[cfg(test)]
mod tests;

use crate::syslog::LogService;
use millstream_conf::model::{ErrorForm, KeptLogs};
use named::{NamedFiles, Open};
use output::Output;
use queue::{Phase, Shared};
use slot::{Place, Sent};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

pub use named::NamedLine;
pub use queue::{LogStatistics, Ticket};
pub use written::Written;

/// Bytes that may wait for one file; further lines are dropped and counted.
pub const FILE_BYTES: usize = 16 << 20;

/// Bytes that may wait over all files. Two blocked files leave room for the others.
pub const QUEUE_BYTES: usize = 4 * FILE_BYTES;

pub const DRAIN_WAIT: Duration = Duration::from_secs(5);

/// The longest that it waits for a full pipe to accept anything.
const PIPE_WAIT: Duration = Duration::from_secs(1);

/// How long the writer waits for more lines after a batch. Bounds the age of an unbuffered line.
const LINGER: Duration = Duration::from_millis(1);

/// The writer thread's owner. One per process, started after any fork; it survives reloads. Dropping it
/// writes what is queued and ends the thread; sinks that outlive it drop and count what they are sent.
pub struct LogWriter {
    shared: Arc<Shared>,
    stderr: LogSink,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// One log file, or standard error. Clones share it; it is closed when the last one is gone and all is
/// written.
#[derive(Clone)]
pub struct LogSink {
    handle: Arc<Handle>,
}

/// Shared by a sink's clones; its drop closes the sink.
struct Handle {
    shared: Arc<Shared>,
    index: usize,
    is_gzip: AtomicBool,
}

impl LogWriter {
    pub fn start() -> io::Result<Arc<LogWriter>> {
        let shared = Arc::new(Shared::new()?);
        let stderr = LogSink::insert(&shared, Place::Stderr, None, Open::File(Output::stderr()));
        let thread = std::thread::Builder::new().name("log".into()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.run(LINGER)
        })?;
        Ok(Arc::new(LogWriter { shared, stderr, thread: Mutex::new(Some(thread)) }))
    }

    /// Opens a file for appending, created with mode 0644. A path that is open already is shared, and takes
    /// over the `gzip` level (1–9) given last.
    pub fn open(&self, path: &Path, gzip: Option<u32>) -> io::Result<LogSink> {
        let place = Place::File(path.to_owned());
        if let Some(handle) = self.shared.find(&place, gzip) {
            handle.is_gzip.store(gzip.is_some(), Ordering::Relaxed);
            return Ok(LogSink { handle });
        }
        let output = Output::open(path)?;
        Ok(LogSink::insert(&self.shared, place, gzip, Open::File(output)))
    }

    /// A datagram per line. Senders begin lines with a [`Header`](crate::syslog::Header). A service in use is
    /// shared. Its presence is not checked: lines to a missing one are lost and counted.
    pub fn service(&self, service: &LogService) -> io::Result<LogSink> {
        let place = Place::Service(service.clone());
        if let Some(handle) = self.shared.find(&place, None) {
            return Ok(LogSink { handle });
        }
        Ok(LogSink::insert(&self.shared, place, None, Open::File(Output::service(service)?)))
    }

    /// Files whose names come with their lines; `kept` says which stay open. The writer opens them, with the
    /// rights of the serving process, and senders never wait for it.
    pub fn group(&self, kept: Option<KeptLogs>) -> LogSink {
        LogSink::insert(&self.shared, Place::Group, None, Open::Group(NamedFiles::new(kept)))
    }

    pub fn stderr(&self) -> LogSink {
        self.stderr.clone()
    }

    /// Where complaints about an unwritable log go (normally the main error log), instead of standard error,
    /// and in which form. A complaint about that very file still goes to standard error.
    pub fn report_to(&self, sink: Option<&LogSink>, form: ErrorForm) {
        let mut state = self.shared.lock();
        state.report_to = sink.map(|sink| sink.handle.index);
        state.report_form = form;
    }

    /// `USR1`: closes and reopens every path after writing what is queued. A path that cannot be opened keeps
    /// its old file, with a complaint. Files are opened on the calling thread; [`LogWriter::drain`] waits for
    /// the change.
    pub fn reopen(&self) {
        self.shared.reopen();
    }

    /// Blocks until everything queued is written and a requested reopen is done, at most [`DRAIN_WAIT`], and
    /// for a full pipe a second since its last progress. Returns whether that was reached. Call it at every
    /// kind of stop.
    pub fn drain(&self) -> bool {
        self.shared.drain(DRAIN_WAIT)
    }

    /// Resolves when the ticket's bytes are in their file (or were dropped and counted, or wait for a full
    /// pipe). If so already, it costs one load. Works in any runtime. A disk may block the writer forever, so
    /// bound the wait, then call [`LogWriter::stop_waiting`].
    pub fn written(&self, ticket: Ticket) -> Written<'_> {
        Written::new(&self.shared, ticket)
    }

    /// The writer is too slow: all waiters are released, and no one waits until it has made progress.
    pub fn stop_waiting(&self) {
        self.shared.stop_waiting();
    }

    pub fn statistics(&self) -> LogStatistics {
        self.shared.lock().statistics
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        {
            let mut state = self.shared.lock();
            state.stopping = true;
            self.shared.hurry(&mut state);
        }
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && self.drain()
        {
            let _ = thread.join();
        }
    }
}

impl LogSink {
    fn insert(shared: &Arc<Shared>, place: Place, gzip: Option<u32>, open: Open) -> LogSink {
        let is_gzip = AtomicBool::new(gzip.is_some());
        let mut state = shared.lock();
        let index = state.free_slot();
        let handle = Arc::new(Handle { shared: Arc::clone(shared), index, is_gzip });
        state.fill_slot(index, place, gzip, open, Arc::downgrade(&handle));
        LogSink { handle }
    }

    /// Queues a block of whole lines. Drops and counts it if [`FILE_BYTES`] wait for the file.
    pub fn send(&self, bytes: Vec<u8>) -> Ticket {
        self.handle.shared.queue(self.handle.index, Sent::Block(bytes))
    }

    /// Queues a copy, cheaper than [`LogSink::send`] for few bytes. Drops it likewise.
    pub fn append(&self, line: &[u8]) -> Ticket {
        self.handle.shared.queue(self.handle.index, Sent::Line(line))
    }

    /// For a group. Drops it likewise, by what waits for the whole group.
    pub fn append_to(&self, line: NamedLine<'_>) -> Ticket {
        self.handle.shared.queue(self.handle.index, Sent::Named(line))
    }

    /// Empty, with the capacity of an earlier one if available.
    pub fn take_buffer(&self) -> Vec<u8> {
        self.handle.shared.lock().spare.take()
    }

    /// If so, each block becomes one gzip member: senders then collect blocks worth compressing.
    pub fn is_gzip(&self) -> bool {
        self.handle.is_gzip.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for LogSink {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LogSink").field("index", &self.handle.index).finish_non_exhaustive()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.close_slot(self.index);
        if matches!(state.phase, Phase::Asleep | Phase::AtPipes) {
            self.shared.hurry(&mut state);
        }
    }
}
