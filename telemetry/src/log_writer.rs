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

/// Bytes that may wait for one file; lines past it are dropped and counted.
pub const FILE_BYTES: usize = 16 << 20;

/// Bytes that may wait over all files. Two files that take nothing leave room for the others.
pub const QUEUE_BYTES: usize = 4 * FILE_BYTES;

/// The longest that [`LogWriter::drain`] waits.
pub const DRAIN_WAIT: Duration = Duration::from_secs(5);

/// The longest that it waits for a full pipe to take anything.
const PIPE_WAIT: Duration = Duration::from_secs(1);

/// How long the writer waits for more lines after a batch before it sleeps. Bounds the age of an unbuffered line.
const LINGER: Duration = Duration::from_millis(1);

/// The writer thread's owner. One per process, started after any fork; it survives reloads.
///
/// Dropping it writes what is queued and ends the thread; sinks that outlive it drop and count what they are sent.
pub struct LogWriter {
    shared: Arc<Shared>,
    stderr: LogSink,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// One log file, or standard error. Clones share it; it is closed when the last one is gone and all is written.
#[derive(Clone)]
pub struct LogSink {
    handle: Arc<Handle>,
}

/// What the clones of a sink share. Its drop is the sink's end.
struct Handle {
    shared: Arc<Shared>,
    index: usize,
    is_gzip: AtomicBool,
}

impl LogWriter {
    /// Starts the thread. Fails where the system refuses one.
    pub fn start() -> io::Result<Arc<LogWriter>> {
        let shared = Arc::new(Shared::new()?);
        let stderr = LogSink::insert(&shared, Place::Stderr, None, Open::File(Output::stderr()));
        let thread = std::thread::Builder::new().name("log".into()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.run(LINGER)
        })?;
        Ok(Arc::new(LogWriter { shared, stderr, thread: Mutex::new(Some(thread)) }))
    }

    /// Opens a file for appending, created with mode 0644 where missing. A path that is open already is shared,
    /// and takes over the `gzip` level (1–9) given last.
    ///
    /// # Errors
    /// Those of opening the file.
    pub fn open(&self, path: &Path, gzip: Option<u32>) -> io::Result<LogSink> {
        let place = Place::File(path.to_owned());
        if let Some(handle) = self.shared.find(&place, gzip) {
            handle.is_gzip.store(gzip.is_some(), Ordering::Relaxed);
            return Ok(LogSink { handle });
        }
        let output = Output::open(path)?;
        Ok(LogSink::insert(&self.shared, place, gzip, Open::File(output)))
    }

    /// A log service, which gets a datagram for each line. Its senders begin lines with a [`Header`](crate::syslog::Header). One that
    /// is used already is shared. Whether it is there is not asked: lines to one that is away are lost and counted.
    ///
    /// # Errors
    /// The system has no socket for it.
    pub fn service(&self, service: &LogService) -> io::Result<LogSink> {
        let place = Place::Service(service.clone());
        if let Some(handle) = self.shared.find(&place, None) {
            return Ok(LogSink { handle });
        }
        Ok(LogSink::insert(&self.shared, place, None, Open::File(Output::service(service)?)))
    }

    /// A group of files whose names come with their lines; `kept` says which of them stay open. They are opened by the writer, so with
    /// the rights of those who serve, and never waited for by those who send.
    pub fn group(&self, kept: Option<KeptLogs>) -> LogSink {
        LogSink::insert(&self.shared, Place::Group, None, Open::Group(NamedFiles::new(kept)))
    }

    /// The standard error stream as a sink.
    pub fn stderr(&self) -> LogSink {
        self.stderr.clone()
    }

    /// Where complaints about a log that cannot be written go (normally the main error log), instead of standard
    /// error, and in which form. A complaint about that very file still goes to standard error.
    pub fn report_to(&self, sink: Option<&LogSink>, form: ErrorForm) {
        let mut state = self.shared.lock();
        state.report_to = sink.map(|sink| sink.handle.index);
        state.report_form = form;
    }

    /// `USR1`: closes and reopens every path after writing what is queued. A path that cannot be opened keeps its old file, with a complaint.
    /// The files are opened on the calling thread; [`LogWriter::drain`] waits for the change.
    pub fn reopen(&self) {
        self.shared.reopen();
    }

    /// Blocks until everything queued is in the files and a requested reopen is done, at most [`DRAIN_WAIT`], and for a
    /// full pipe a second from when it last took something. Returns whether that was reached. Belongs on the way out of every kind of stop.
    pub fn drain(&self) -> bool {
        self.shared.drain(DRAIN_WAIT)
    }

    /// Resolves when the ticket's bytes are in their file (or were given up and counted, or wait for a full pipe). Ready
    /// at the first poll where that is so already, at the price of one load. Any runtime will do: it is woken by the
    /// writer. A disk may hold the writer up for ever, so whoever waits bounds that, and then calls
    /// [`LogWriter::stop_waiting`].
    pub fn written(&self, ticket: Ticket) -> Written<'_> {
        Written::new(&self.shared, ticket)
    }

    /// The writer is too late for somebody: all who wait are let go, and until it has got on nobody waits.
    pub fn stop_waiting(&self) {
        self.shared.stop_waiting();
    }

    /// What was written and lost since the start.
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

    /// Queues a block of whole lines, taking it over. Drops and counts it where [`FILE_BYTES`] wait for the file.
    pub fn send(&self, bytes: Vec<u8>) -> Ticket {
        self.handle.shared.queue(self.handle.index, Sent::Block(bytes))
    }

    /// Queues a copy of a line, which is cheaper than [`LogSink::send`] for few bytes. Drops it likewise.
    pub fn append(&self, line: &[u8]) -> Ticket {
        self.handle.shared.queue(self.handle.index, Sent::Line(line))
    }

    /// Queues a copy of a line for a file of a group. Drops it likewise, by what waits for the whole group.
    pub fn append_to(&self, line: NamedLine<'_>) -> Ticket {
        self.handle.shared.queue(self.handle.index, Sent::Named(line))
    }

    /// An empty buffer, with the capacity of one that was written before where there is one.
    pub fn take_buffer(&self) -> Vec<u8> {
        self.handle.shared.lock().spare.take()
    }

    /// Whether what is sent becomes gzip, one member a block: senders then save up blocks worth compressing.
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
