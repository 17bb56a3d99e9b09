//! What is queued for the files, behind the one lock: senders copy or move bytes in under it and never wait.
//!
//! The writer takes everything at once and writes without the lock, so a ticket is simply the number of sends so far.
//! Next: `thread`, which empties this.

use super::FILE_BYTES;
use super::Handle;
use super::named::Open;
use super::output;
use super::slot::{Flow, Place, Sent, Slot, Spare};
use crate::about::About;
use crate::error_line::Telling;
use millstream_conf::model::{ErrorForm, Level};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

/// The first slot that is made.
const STDERR: usize = 0;

pub(super) struct Shared {
    state: Mutex<State>,
    /// Wakes the writer, unless it waits at full pipes.
    pub(super) work: Condvar,
    pub(super) bell: OwnedFd,
    pub(super) progress: Condvar,
    /// Every ticket up to this one is in its file, or waits for a full pipe. Written under the lock, read
    /// without.
    pub(super) written: AtomicU64,
}

/// See the diagram in `log_writer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Asleep,
    Lingering,
    AtPipes,
    Busy,
}

/// A place in the order of everything queued, over all files. The default is before everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Ticket(pub(super) u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogStatistics {
    /// Before compression.
    pub bytes_written: u64,
    /// The write failed, or too much waited for the file.
    pub bytes_dropped: u64,
    /// Lines that found too much waiting for their file.
    pub lines_dropped: u64,
    pub errors: u64,
}

pub(super) struct State {
    pub(super) slots: Vec<Option<Slot>>,
    /// Queued or being written, over all files.
    pub(super) bytes: usize,
    pub(super) sent: u64,
    pub(super) phase: Phase,
    /// A waiter exists: no lingering.
    pub(super) urgent: bool,
    /// The writer took longer than a waiter allowed: until it makes progress no one waits.
    pub(super) late: bool,
    pub(super) draining: usize,
    /// Drainers have waited for full pipes without success.
    pub(super) hopeless: bool,
    pub(super) stopping: bool,
    pub(super) stopped: bool,
    pub(super) reopening: bool,
    pub(super) waiters: Vec<(Ticket, Waker)>,
    pub(super) spare: Spare,
    pub(super) report_to: Option<usize>,
    pub(super) report_form: ErrorForm,
    pub(super) statistics: LogStatistics,
}

impl State {
    /// Slots of closed files are reused.
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
        self.slots[index] = Some(Slot::new(place, gzip, open, handle));
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

    pub(super) fn is_any_full(&self) -> bool {
        self.slots.iter().flatten().any(|slot| slot.flow == Flow::Full)
    }

    /// Unless the log that it would go to has a problem itself.
    pub(super) fn complain(&mut self, about: usize, told: &Telling) {
        let line = told.line(self.report_form);
        let target = self.report_to.filter(|&target| target != about).unwrap_or(STDERR);
        if target == about {
            return;
        }
        let State { slots, spare, bytes, sent, .. } = self;
        if let Some(Some(slot)) = slots.get_mut(target)
            && slot.has_room(line.len(), *bytes)
        {
            slot.queue.append(&line, spare);
            slot.bytes += line.len();
            *bytes += line.len();
            *sent += 1;
        }
    }

    /// Counts dropped lines, and complains of the first. Returns whether it did.
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
                format_args!("\"{name}\" does not keep up: {waiting} MiB are queued, lines are dropped");
            let told = Telling::new(Level::Alert, message, About::default());
            self.complain(index, &told);
        }
        is_first
    }
}

impl Shared {
    /// Fails if the system gives no descriptor for waking.
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
            report_form: ErrorForm::Text,
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

    /// A panic elsewhere never makes logging panic too.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hurry(&self, state: &mut State) {
        state.urgent = true;
        let phase = std::mem::replace(&mut state.phase, Phase::Busy);
        self.wake(phase);
    }

    fn wake(&self, phase: Phase) {
        match phase {
            Phase::Busy => {}
            Phase::Asleep | Phase::Lingering => self.work.notify_one(),
            // Refused where it rings already.
            Phase::AtPipes => _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes()),
        }
    }

    /// Reopens every path on this thread, then has the writer change over after writing what is queued.
    pub(super) fn reopen(&self) {
        let places: Vec<(usize, Place)> = {
            let state = self.lock();
            let slots = state.slots.iter().enumerate();
            slots.filter_map(|(index, slot)| Some((index, slot.as_ref()?.place.clone()))).collect()
        };
        for (index, place) in places {
            let next = match &place {
                Place::File(path) => Some(output::open_anew(path)),
                Place::Stderr | Place::Service(_) | Place::Group => None,
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

    /// An already open place, with its compression updated.
    pub(super) fn find(&self, place: &Place, gzip: Option<u32>) -> Option<Arc<Handle>> {
        let mut state = self.lock();
        for slot in state.slots.iter_mut().flatten() {
            if slot.place == *place
                && let Some(handle) = slot.handle.upgrade()
            {
                slot.gzip = gzip;
                return Some(handle);
            }
        }
        None
    }

    /// Drops and counts lines if too much waits.
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

    pub(super) fn stop_waiting(&self) {
        let mut state = self.lock();
        state.late = true;
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        waiters.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Until the writer is past everything queued so far, or full pipes make no progress.
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
