//! What is queued for the files, behind the one lock: senders copy or move bytes in under it and never wait.
//!
//! The writer takes everything at once and writes without the lock, so a ticket is simply the number of sends so far.
//! Next: `thread`, which empties this.

use super::Handle;
use super::named::{Named, NamedLine, Open};
use super::output::{self, Owner};
use super::{FILE_BYTES, QUEUE_BYTES};
use crate::error_line;
use millstream_conf::model::Level;
use rustix::event::{EventfdFlags, eventfd};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

/// Lines are gathered into blocks of this many bytes, the unit that is recycled.
const BLOCK: usize = 32 << 10;

/// Larger buffers are freed rather than kept for reuse.
const SPARE_CAPACITY: usize = 256 << 10;

/// How many empty buffers are kept.
const SPARE_BUFFERS: usize = 32;

/// The slot of standard error, the first that is made.
const STDERR: usize = 0;

/// Everything that senders and the writer thread share.
pub(super) struct Shared {
    state: Mutex<State>,
    /// Wakes the writer, unless it waits at full pipes.
    pub(super) work: Condvar,
    /// Wakes it there.
    pub(super) bell: OwnedFd,
    /// Wakes whoever drains.
    pub(super) progress: Condvar,
    /// Every ticket up to this one is in its file, or waits for a full pipe. Written under the lock, read without.
    pub(super) written: AtomicU64,
}

/// What the writer is doing; see the diagram in `log_writer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Asleep,
    Lingering,
    AtPipes,
    Busy,
}

/// A place in the order of everything that was queued, over all files. The default is before everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Ticket(pub(super) u64);

/// Totals since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogStatistics {
    /// Bytes that reached their files (before compression).
    pub bytes_written: u64,
    /// Bytes given up: the write failed, or too much waited for the file.
    pub bytes_dropped: u64,
    /// Lines that found too much waiting for their file.
    pub lines_dropped: u64,
    /// Writes and reopens that failed.
    pub errors: u64,
}

pub(super) struct State {
    pub(super) slots: Vec<Option<Slot>>,
    /// Bytes queued or being written, over all files.
    pub(super) bytes: usize,
    /// The last ticket given out.
    pub(super) sent: u64,
    pub(super) phase: Phase,
    /// Somebody waits: no lingering.
    pub(super) urgent: bool,
    /// The writer took longer than somebody was willing to wait: until it gets on nobody else waits.
    pub(super) late: bool,
    /// Threads that drain.
    pub(super) draining: usize,
    /// Those who drain have waited for full pipes in vain.
    pub(super) hopeless: bool,
    pub(super) stopping: bool,
    pub(super) stopped: bool,
    /// The writer changes over to files opened anew.
    pub(super) reopening: bool,
    pub(super) waiters: Vec<(Ticket, Waker)>,
    pub(super) spare: Spare,
    pub(super) report_to: Option<usize>,
    pub(super) statistics: LogStatistics,
}

/// What a slot is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Stderr,
    File(PathBuf),
    /// Files whose names come with their lines.
    Group,
}

/// One file, or a group of those whose names come with their lines.
pub(super) struct Slot {
    place: Place,
    pub(super) gzip: Option<u32>,
    pub(super) queue: Queue,
    /// Bytes queued or being written.
    pub(super) bytes: usize,
    /// Lines dropped since the complaint, while there is no room.
    pub(super) dropping: Option<u64>,
    /// What was opened, until the writer takes it.
    pub(super) opened: Option<Open>,
    /// The files of the group are to be opened anew.
    pub(super) renews: bool,
    /// The path opened anew, until what is queued for the old file is written.
    pub(super) next: Option<io::Result<File>>,
    pub(super) flow: Flow,
    handle: Weak<Handle>,
    pub(super) is_closing: bool,
}

/// Whether a file takes what it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Open,
    /// A pipe or terminal that takes no more at present; what it was given last waits with the writer.
    Full,
    /// It was full and takes more now.
    Again,
}

/// What waits for one file, in order.
#[derive(Default)]
pub(super) struct Queue {
    pub(super) blocks: Vec<Vec<u8>>,
    /// What waits for files of a group.
    pub(super) named: Vec<Named>,
}

/// Emptied buffers for reuse.
#[derive(Default)]
pub(super) struct Spare(Vec<Vec<u8>>);

/// What is sent.
pub(super) enum Sent<'a> {
    /// A block of whole lines, taken over.
    Block(Vec<u8>),
    /// A line, copied.
    Line(&'a [u8]),
    /// A line for a file of a group, copied.
    Named(NamedLine<'a>),
}

impl Sent<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Sent::Block(block) => block,
            Sent::Line(line) | Sent::Named(NamedLine { line, .. }) => line,
        }
    }

    /// Bytes that it takes.
    fn charge(&self) -> usize {
        let names = match self {
            Sent::Named(NamedLine { path, root, .. }) => path.as_os_str().len() + root.as_os_str().len(),
            _ => 0,
        };
        self.bytes().len() + names
    }
}

impl Queue {
    fn put(&mut self, sent: Sent<'_>, spare: &mut Spare) {
        let charge = sent.charge();
        match sent {
            Sent::Named(line) => self.append_named(line, charge),
            Sent::Line(line) => self.append(line, spare),
            Sent::Block(block) if block.is_empty() => spare.give(block),
            Sent::Block(block) => self.blocks.push(block),
        }
    }

    fn append_named(&mut self, NamedLine { path, root, follows_links, line }: NamedLine<'_>, charge: usize) {
        match self.named.last_mut() {
            Some(last) if last.path == path && last.root == root && last.follows_links == follows_links => {
                last.lines.extend_from_slice(line);
                last.charge += charge;
            }
            _ => {
                let (path, root, lines) = (path.to_owned(), root.to_owned(), line.to_vec());
                self.named.push(Named { path, root, follows_links, lines, charge });
            }
        }
    }

    /// Appends to the last block while it has room, so that many lines become one write.
    fn append(&mut self, line: &[u8], spare: &mut Spare) {
        match self.blocks.last_mut() {
            Some(last) if last.len() + line.len() <= BLOCK => last.extend_from_slice(line),
            _ => {
                let mut block = spare.take();
                block.extend_from_slice(line);
                self.blocks.push(block);
            }
        }
    }
}

impl Spare {
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_default()
    }

    pub(super) fn give(&mut self, mut buffer: Vec<u8>) {
        if self.0.len() < SPARE_BUFFERS && (1..=SPARE_CAPACITY).contains(&buffer.capacity()) {
            buffer.clear();
            self.0.push(buffer);
        }
    }
}

impl Slot {
    /// Whether there is something for the writer to do.
    pub(super) fn has_work(&self) -> bool {
        let has_lines = match self.flow {
            Flow::Open => !self.queue.blocks.is_empty() || !self.queue.named.is_empty(),
            Flow::Full => false,
            Flow::Again => true,
        };
        has_lines || self.is_closing || self.is_reopening()
    }

    fn is_reopening(&self) -> bool {
        self.next.is_some() || self.renews
    }

    fn has_room(&self, length: usize, total: usize) -> bool {
        self.bytes == 0 || (self.bytes + length <= FILE_BYTES && total + length <= QUEUE_BYTES)
    }

    pub(super) fn name(&self) -> String {
        match &self.place {
            Place::Stderr => "stderr".to_owned(),
            Place::File(path) => path.display().to_string(),
            Place::Group => "access_log with variables".to_owned(),
        }
    }
}

impl State {
    /// The index for a new file; slots of closed ones are used again.
    pub(super) fn free_slot(&mut self) -> usize {
        self.slots.iter().position(Option::is_none).unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        })
    }

    pub(super) fn fill_slot(
        &mut self,
        index: usize,
        place: Place,
        gzip: Option<u32>,
        open: Open,
        handle: Weak<Handle>,
    ) {
        self.slots[index] = Some(Slot {
            place,
            gzip,
            queue: Queue::default(),
            bytes: 0,
            dropping: None,
            opened: Some(open),
            renews: false,
            next: None,
            flow: Flow::Open,
            handle,
            is_closing: false,
        });
    }

    /// The last sink of the file is gone: the writer closes it once its queue is written.
    pub(super) fn close_slot(&mut self, index: usize) {
        if let Some(slot) = &mut self.slots[index] {
            slot.is_closing = true;
        }
        if self.report_to == Some(index) {
            self.report_to = None;
        }
    }

    /// Whether some file takes no more at present.
    pub(super) fn is_any_full(&self) -> bool {
        self.slots.iter().flatten().any(|slot| slot.flow == Flow::Full)
    }

    /// Queues a complaint, unless the log that it would go to is itself in trouble.
    pub(super) fn complain(&mut self, about: usize, line: &[u8]) {
        let target = self.report_to.filter(|&target| target != about).unwrap_or(STDERR);
        if target == about {
            return;
        }
        let State { slots, spare, bytes, sent, .. } = self;
        if let Some(Some(slot)) = slots.get_mut(target)
            && slot.has_room(line.len(), *bytes)
        {
            slot.queue.append(line, spare);
            slot.bytes += line.len();
            *bytes += line.len();
            *sent += 1;
        }
    }

    /// Counts what finds no room, and complains of the first. Whether it did so.
    fn refuse(&mut self, index: usize, bytes: &[u8]) -> bool {
        let lines = bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.statistics.bytes_dropped += bytes.len() as u64;
        self.statistics.lines_dropped += lines;
        let Some(slot) = &mut self.slots[index] else { return false };
        let is_first = slot.dropping.is_none();
        *slot.dropping.get_or_insert(0) += lines;
        if is_first {
            let (name, waiting) = (slot.name(), slot.bytes >> 20);
            let message =
                format_args!("\"{name}\" takes no more: {waiting} MiB wait for it, lines are dropped");
            self.complain(index, &error_line::line(Level::Alert, message));
        }
        is_first
    }
}

impl Shared {
    /// # Errors
    /// Where the system gives no descriptor to be woken by.
    pub(super) fn new() -> io::Result<Self> {
        let state = State {
            slots: Vec::new(),
            bytes: 0,
            sent: 0,
            phase: Phase::Busy,
            urgent: false,
            late: false,
            draining: 0,
            hopeless: false,
            stopping: false,
            stopped: false,
            reopening: false,
            waiters: Vec::new(),
            spare: Spare::default(),
            report_to: None,
            statistics: LogStatistics::default(),
        };
        Ok(Shared {
            state: Mutex::new(state),
            work: Condvar::new(),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            progress: Condvar::new(),
            written: AtomicU64::new(0),
        })
    }

    /// The state; a panic elsewhere never makes logging panic too.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the writer come at once instead of lingering.
    pub(super) fn hurry(&self, state: &mut State) {
        state.urgent = true;
        let phase = std::mem::replace(&mut state.phase, Phase::Busy);
        self.wake(phase);
    }

    /// Wakes the writer out of a phase.
    fn wake(&self, phase: Phase) {
        match phase {
            Phase::Busy => {}
            Phase::Asleep | Phase::Lingering => self.work.notify_one(),
            // Refused where it rings already.
            Phase::AtPipes => _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes()),
        }
    }

    /// Opens every path anew on this thread, then has the writer change over after writing what is queued.
    pub(super) fn reopen(&self, owner: Owner) {
        let places: Vec<(usize, Place)> = {
            let state = self.lock();
            let slots = state.slots.iter().enumerate();
            slots.filter_map(|(index, slot)| Some((index, slot.as_ref()?.place.clone()))).collect()
        };
        for (index, place) in places {
            let next = match &place {
                Place::File(path) => Some(output::open_anew(path, owner)),
                Place::Stderr | Place::Group => None,
            };
            let mut state = self.lock();
            // The slot may be another file's by now.
            if let Some(slot) = state.slots[index].as_mut().filter(|slot| slot.place == place) {
                slot.next = next;
                slot.renews = place == Place::Group;
            }
        }
        self.hurry(&mut self.lock());
    }

    /// The open file of a path, with its compression set anew.
    pub(super) fn find(&self, path: &Path, gzip: Option<u32>) -> Option<Arc<Handle>> {
        let mut state = self.lock();
        for slot in state.slots.iter_mut().flatten() {
            if matches!(&slot.place, Place::File(known) if known == path)
                && let Some(handle) = slot.handle.upgrade()
            {
                slot.gzip = gzip;
                return Some(handle);
            }
        }
        None
    }

    /// Queues lines, or drops and counts them where too much waits.
    pub(super) fn queue(&self, index: usize, sent: Sent<'_>) -> Ticket {
        let length = sent.charge();
        let mut state = self.lock();
        let State { slots, spare, stopped, bytes, .. } = &mut *state;
        let Some(slot) = slots[index].as_mut().filter(|_| !*stopped) else {
            state.statistics.bytes_dropped += length as u64;
            return Ticket::default();
        };
        if !slot.has_room(length, *bytes) {
            if state.refuse(index, sent.bytes()) {
                self.hurry(&mut state);
            }
            return Ticket::default();
        }
        slot.queue.put(sent, spare);
        slot.bytes += length;
        let is_full = slot.flow == Flow::Full;
        state.bytes += length;
        state.sent += 1;
        let ticket = Ticket(state.sent);
        if is_full {
            // It waits for a reader: nothing to wake the writer for, and nothing that anybody could wait for.
            return Ticket::default();
        }
        let wake = match state.phase {
            Phase::Asleep | Phase::AtPipes => true,
            Phase::Lingering => state.bytes > FILE_BYTES / 4,
            Phase::Busy => false,
        };
        if wake {
            let phase = std::mem::replace(&mut state.phase, Phase::Busy);
            drop(state);
            self.wake(phase);
        }
        ticket
    }

    /// Lets everybody go who waits for a line, and nobody wait until the writer has got on.
    pub(super) fn stop_waiting(&self) {
        let mut state = self.lock();
        state.late = true;
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        waiters.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Waits until the writer is past everything queued so far, or has waited for full pipes in vain.
    pub(super) fn drain(&self, wait: Duration) -> bool {
        let mut state = self.lock();
        let target = state.sent;
        state.draining += 1;
        self.hurry(&mut state);
        let is_busy = |state: &State| {
            self.written.load(Ordering::Relaxed) < target
                || state.reopening
                || state.slots.iter().flatten().any(|slot| slot.flow != Flow::Open || slot.is_reopening())
        };
        let waits =
            |state: &mut State| !state.stopped && (state.stopping || (is_busy(state) && !state.hopeless));
        let waited = self.progress.wait_timeout_while(state, wait, waits);
        let (mut state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        state.draining -= 1;
        !timeout.timed_out() && (state.stopped || !is_busy(&state))
    }
}
