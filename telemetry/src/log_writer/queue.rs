//! What is queued for the files, behind the one lock, and the loop of the thread that empties it.
//!
//! Senders copy or move bytes in under the lock; the loop takes everything at once and writes without it, so a
//! ticket is simply the number of sends so far. Next: `output`, which writes a batch.

use super::Handle;
use super::output::{Outcome, Output, Owner};
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

/// Everything that senders and the writer thread share.
pub(super) struct Shared {
    state: Mutex<State>,
    /// Wakes the writer.
    work: Condvar,
    /// Wakes senders without room, and whoever drains.
    progress: Condvar,
    /// Every ticket up to this one is in its file. Written under the lock, read without.
    pub(super) written: AtomicU64,
}

/// What the writer is doing; see the diagram in `log_writer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Asleep,
    Lingering,
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
    /// Bytes given up: the write failed, or the queue stayed full.
    pub bytes_dropped: u64,
    /// Writes and reopens that failed.
    pub errors: u64,
}

pub(super) struct State {
    slots: Vec<Option<Slot>>,
    /// Bytes queued or being written.
    bytes: usize,
    /// The last ticket given out.
    sent: u64,
    pub(super) phase: Phase,
    /// Somebody waits: no lingering.
    urgent: bool,
    /// The last sender waited in vain; until the writer gets anywhere nobody else waits.
    stalled: bool,
    pub(super) stopping: bool,
    stopped: bool,
    /// Files were opened anew, and are to be changed over to.
    pub(super) reopen: bool,
    /// The writer is at one.
    reopening: bool,
    pub(super) waiters: Vec<(Ticket, Waker)>,
    pub(super) spare: Spare,
    pub(super) report_to: Option<usize>,
    pub(super) statistics: LogStatistics,
}

/// One file.
struct Slot {
    /// `None` for standard error.
    path: Option<PathBuf>,
    gzip: Option<u32>,
    queue: Queue,
    /// Locked by the writer thread, and by whoever opens it anew; never under the state's lock.
    output: Arc<Mutex<Output>>,
    handle: Weak<Handle>,
    is_closing: bool,
}

/// Blocks waiting for one file, in order.
#[derive(Default)]
pub(super) struct Queue {
    blocks: Vec<Vec<u8>>,
}

/// Emptied buffers for reuse.
#[derive(Default)]
pub(super) struct Spare(Vec<Vec<u8>>);

/// What the writer took for one file.
struct Batch {
    slot: usize,
    gzip: Option<u32>,
    output: Arc<Mutex<Output>>,
    blocks: Vec<Vec<u8>>,
}

impl Queue {
    /// Appends to the last block while it has room, so that many lines become one write.
    pub(super) fn append(&mut self, line: &[u8], spare: &mut Spare) {
        match self.blocks.last_mut() {
            Some(last) if last.len() + line.len() <= BLOCK => last.extend_from_slice(line),
            _ => {
                let mut block = spare.take();
                block.extend_from_slice(line);
                self.blocks.push(block);
            }
        }
    }

    /// Queues a whole block as it is.
    pub(super) fn push(&mut self, block: Vec<u8>, spare: &mut Spare) {
        match block.len() {
            0 => spare.give(block),
            _ => self.blocks.push(block),
        }
    }
}

impl Spare {
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_default()
    }

    fn give(&mut self, mut buffer: Vec<u8>) {
        if self.0.len() < SPARE_BUFFERS && (1..=SPARE_CAPACITY).contains(&buffer.capacity()) {
            buffer.clear();
            self.0.push(buffer);
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
        path: Option<PathBuf>,
        gzip: Option<u32>,
        output: Output,
        handle: Weak<Handle>,
    ) {
        let output = Arc::new(Mutex::new(output));
        let queue = Queue::default();
        self.slots[index] = Some(Slot { path, gzip, queue, output, handle, is_closing: false });
    }

    /// The last sink of the file is gone: the writer closes it once its queue is empty.
    pub(super) fn close_slot(&mut self, index: usize) {
        if let Some(slot) = &mut self.slots[index] {
            slot.is_closing = true;
        }
        if self.report_to == Some(index) {
            self.report_to = None;
        }
    }

    /// Bytes that are not in their files yet.
    #[cfg(test)]
    pub(super) fn queued(&self) -> usize {
        self.bytes
    }

    fn has_work(&self) -> bool {
        self.reopen
            || self.slots.iter().flatten().any(|slot| slot.is_closing || !slot.queue.blocks.is_empty())
    }

    /// Takes every queue, of every file where all are to be reopened. Slots whose sinks are gone go with their
    /// last batch.
    fn take_batches(&mut self, batches: &mut Vec<Batch>) -> bool {
        let reopen = std::mem::take(&mut self.reopen);
        self.reopening = reopen;
        for (slot, entry) in self.slots.iter_mut().enumerate() {
            let Some(Slot { queue, output, gzip, is_closing, .. }) = entry else { continue };
            if reopen || !queue.blocks.is_empty() {
                let blocks = std::mem::take(&mut queue.blocks);
                batches.push(Batch { slot, gzip: *gzip, output: Arc::clone(output), blocks });
            }
            if *is_closing {
                *entry = None;
            }
        }
        reopen
    }

    /// Queues a complaint without asking for room, since the writer itself is the only one to make some.
    fn complain(&mut self, about: usize, line: &[u8]) {
        const STDERR: usize = 0;
        let target = self.report_to.filter(|&target| target != about).unwrap_or(STDERR);
        if target == about {
            return;
        }
        let State { slots, spare, bytes, sent, .. } = self;
        if let Some(Some(slot)) = slots.get_mut(target) {
            slot.queue.append(line, spare);
            *bytes += line.len();
            *sent += 1;
        }
    }
}

impl Shared {
    pub(super) fn new() -> Self {
        let state = State {
            slots: Vec::new(),
            bytes: 0,
            sent: 0,
            phase: Phase::Busy,
            urgent: false,
            stalled: false,
            stopping: false,
            stopped: false,
            reopen: false,
            reopening: false,
            waiters: Vec::new(),
            spare: Spare::default(),
            report_to: None,
            statistics: LogStatistics::default(),
        };
        Shared {
            state: Mutex::new(state),
            work: Condvar::new(),
            progress: Condvar::new(),
            written: AtomicU64::new(0),
        }
    }

    /// The state; a panic elsewhere never makes logging panic too.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the writer come at once instead of lingering.
    pub(super) fn hurry(&self, state: &mut State) {
        state.urgent = true;
        if state.phase != Phase::Busy {
            state.phase = Phase::Busy;
            self.work.notify_one();
        }
    }

    /// Opens every path anew on this thread, then has the writer change over after writing what is queued.
    pub(super) fn reopen(&self, owner: Owner) {
        let outputs: Vec<Arc<Mutex<Output>>> =
            self.lock().slots.iter().flatten().map(|slot| Arc::clone(&slot.output)).collect();
        for output in outputs {
            output.lock().unwrap_or_else(PoisonError::into_inner).open_anew(owner);
        }
        let mut state = self.lock();
        state.reopen = true;
        self.hurry(&mut state);
    }

    /// The open file of a path, with its compression set anew.
    pub(super) fn find(&self, path: &Path, gzip: Option<u32>) -> Option<Arc<Handle>> {
        let mut state = self.lock();
        for slot in state.slots.iter_mut().flatten() {
            if slot.path.as_deref() == Some(path)
                && let Some(handle) = slot.handle.upgrade()
            {
                slot.gzip = gzip;
                return Some(handle);
            }
        }
        None
    }

    /// Queues `length` bytes through `put`, after waiting for room where there is none.
    pub(super) fn queue(
        &self,
        index: usize,
        length: usize,
        wait: Duration,
        put: impl FnOnce(&mut Queue, &mut Spare),
    ) -> Ticket {
        let mut state = self.lock();
        if state.bytes + length > super::QUEUE_BYTES && state.bytes > 0 {
            state = self.wait_for_room(state, length, wait);
            if state.bytes + length > super::QUEUE_BYTES && state.bytes > 0 {
                state.stalled = true;
                state.statistics.bytes_dropped += length as u64;
                return Ticket::default();
            }
        }
        let State { slots, spare, stopped, .. } = &mut *state;
        let Some(slot) = slots[index].as_mut().filter(|_| !*stopped) else {
            state.statistics.bytes_dropped += length as u64;
            return Ticket::default();
        };
        put(&mut slot.queue, spare);
        state.bytes += length;
        state.sent += 1;
        let ticket = Ticket(state.sent);
        let wake = state.phase == Phase::Asleep
            || (state.phase == Phase::Lingering && state.bytes > super::QUEUE_BYTES / 4);
        if wake {
            state.phase = Phase::Busy;
        }
        drop(state);
        if wake {
            self.work.notify_one();
        }
        ticket
    }

    fn wait_for_room<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        length: usize,
        wait: Duration,
    ) -> MutexGuard<'a, State> {
        if state.stalled {
            return state;
        }
        self.hurry(&mut state);
        self.progress
            .wait_timeout_while(state, wait, |state| {
                state.bytes > 0 && state.bytes + length > super::QUEUE_BYTES && !state.stalled
            })
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }

    /// Waits until the writer is past everything queued so far.
    pub(super) fn drain(&self, wait: Duration) -> bool {
        let mut state = self.lock();
        let target = state.sent;
        self.hurry(&mut state);
        let busy = |state: &mut State| {
            !state.stopped
                && (self.written.load(Ordering::Relaxed) < target
                    || state.reopen
                    || state.reopening
                    || state.stopping)
        };
        let waited = self.progress.wait_timeout_while(state, wait, busy);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// The writer thread: batches until it is told to stop and nothing is left.
    pub(super) fn run(&self, linger: Duration) {
        let mut batches: Vec<Batch> = Vec::new();
        let mut state = self.lock();
        loop {
            if !state.has_work() {
                if state.stopping {
                    state.stopped = true;
                    self.progress.notify_all();
                    return;
                }
                state.phase = Phase::Asleep;
                state = self.wait_while(state, Phase::Asleep);
            }
            state.phase = Phase::Busy;
            state.urgent = false;
            let reopen = state.take_batches(&mut batches);
            let through = state.sent;
            drop(state);

            let outcome = write(&mut batches, reopen);
            state = self.settle(&mut batches, through, outcome);

            if !state.urgent && !state.stopping {
                state.phase = Phase::Lingering;
                let waited =
                    self.work.wait_timeout_while(state, linger, |state| state.phase == Phase::Lingering);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    fn wait_while<'a>(&'a self, state: MutexGuard<'a, State>, phase: Phase) -> MutexGuard<'a, State> {
        self.work.wait_while(state, |state| state.phase == phase).unwrap_or_else(PoisonError::into_inner)
    }

    /// Books a written batch: the mark moves, buffers go back, and whoever waits for either is woken.
    fn settle(&self, batches: &mut Vec<Batch>, through: u64, outcome: Outcome) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        for batch in batches.drain(..) {
            for block in batch.blocks {
                state.bytes -= block.len();
                state.spare.give(block);
            }
        }
        for (about, line) in &outcome.complaints {
            state.complain(*about, line);
        }
        state.statistics.bytes_written += outcome.bytes_written;
        state.statistics.bytes_dropped += outcome.bytes_dropped;
        state.statistics.errors += outcome.errors;
        state.stalled = false;
        state.reopening = false;
        self.written.store(through, Ordering::Release);
        self.progress.notify_all();
        if state.waiters.is_empty() {
            return state;
        }
        let mut ready = Vec::new();
        state.waiters.retain_mut(|(ticket, waker)| {
            let is_written = ticket.0 <= through;
            if is_written {
                ready.push(std::mem::replace(waker, Waker::noop().clone()));
            }
            !is_written
        });
        state.urgent |= !state.waiters.is_empty();
        // A waker is somebody else's code: it runs without our lock.
        drop(state);
        ready.into_iter().for_each(Waker::wake);
        self.lock()
    }
}

/// Writes what was taken, one call per file, and changes over to files opened anew afterwards.
fn write(batches: &mut [Batch], reopen: bool) -> Outcome {
    let mut outcome = Outcome::default();
    for batch in batches {
        let mut output = batch.output.lock().unwrap_or_else(PoisonError::into_inner);
        if !batch.blocks.is_empty() {
            output.write(batch.slot, &batch.blocks, batch.gzip, &mut outcome);
        }
        if reopen {
            output.change_over(batch.slot, &mut outcome);
        }
    }
    outcome
}
