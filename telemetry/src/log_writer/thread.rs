//! The writer thread: takes everything that is queued, writes it without the lock, books it, and waits for more.
//!
//! It alone has the open files. A pipe or terminal that is full is left aside until it takes more; the other files do not
//! wait for it. Next: `output`, which writes to one file.

use super::named::{Named, Open};
use super::output::{Outcome, Output};
use super::queue::{Phase, Shared, State};
use super::slot::{Flow, Queue};
use super::{FILE_BYTES, PIPE_WAIT};
use crate::about::About;
use crate::error_line::Telling;
use millstream_conf::model::Level;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

#[derive(Default)]
struct Files(Vec<Option<Open>>);

struct Batch {
    slot: usize,
    gzip: Option<u32>,
    blocks: Vec<Vec<u8>>,
    named: Vec<Named>,
    opened: Option<Open>,
    renews: bool,
    next: Option<io::Result<File>>,
    /// The last batch: the slot may belong to another file already.
    closes: bool,
}

struct Done {
    slot: usize,
    /// Bytes of lines that need no more room.
    released: usize,
    is_full: bool,
    closes: bool,
}

impl Shared {
    /// Runs until it is told to stop and nothing writable is left.
    pub(super) fn run(&self, linger: Duration) {
        let mut files = Files::default();
        let mut state = self.lock();
        loop {
            let idle = !state.slots.iter().flatten().any(|slot| slot.has_work());
            let full = state.is_any_full();
            if idle && state.stopping && (!full || state.hopeless) {
                return self.stop(state, files);
            }
            state = match (idle, full) {
                (true, false) => {
                    state.phase = Phase::Asleep;
                    self.wait_while(state, Phase::Asleep)
                }
                (true, true) => self.wait_at_pipes(state, &files),
                (false, true) => self.look_at_pipes(state, &files),
                (false, false) => state,
            };
            state.phase = Phase::Busy;
            state.urgent = false;
            let batches = take_batches(&mut state);
            let through = state.sent;
            drop(state);

            let mut outcome = Outcome::default();
            let done = batches.into_iter().map(|batch| files.write(batch, &mut outcome)).collect();
            state = self.settle(done, through, outcome);

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

    /// Waits until a full pipe accepts more or work arrives; a bounded time if drainers wait.
    fn wait_at_pipes<'a>(&'a self, mut state: MutexGuard<'a, State>, files: &Files) -> MutexGuard<'a, State> {
        let is_awaited = state.draining > 0 || state.stopping;
        let bounded = is_awaited && !state.hopeless;
        state.phase = Phase::AtPipes;
        drop(state);
        let ready = files.ready(self, bounded.then_some(PIPE_WAIT));
        let mut state = self.lock();
        if ready.as_ref().is_some_and(Vec::is_empty) {
            state.hopeless = true;
            self.progress.notify_all();
        }
        reopen_slots(&mut state, ready.unwrap_or_default());
        state
    }

    fn look_at_pipes<'a>(&'a self, state: MutexGuard<'a, State>, files: &Files) -> MutexGuard<'a, State> {
        drop(state);
        let ready = files.ready(self, Some(Duration::ZERO));
        let mut state = self.lock();
        reopen_slots(&mut state, ready.unwrap_or_default());
        state
    }

    /// Publishes progress: advances the mark, recycles buffers, and wakes waiters.
    fn settle(&self, done: Vec<Done>, through: u64, outcome: Outcome) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        for Done { slot, released, is_full, closes } in done {
            state.bytes -= released;
            if closes {
                continue;
            }
            if let Some(slot) = &mut state.slots[slot] {
                slot.bytes -= released;
                slot.flow = if is_full { Flow::Full } else { Flow::Open };
            }
            state.hopeless &= released == 0;
            tell_of_room(&mut state, slot);
        }
        for buffer in outcome.emptied {
            state.spare.give(buffer);
        }
        for (about, told) in &outcome.complaints {
            state.complain(*about, told);
        }
        state.statistics.bytes_written += outcome.bytes_written;
        state.statistics.bytes_dropped += outcome.bytes_dropped;
        state.statistics.errors += outcome.errors;
        state.reopening = false;
        state.late = false;
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

    /// What full pipes have not accepted is counted as lost.
    fn stop(&self, mut state: MutexGuard<'_, State>, mut files: Files) {
        let mut outcome = Outcome::default();
        for open in files.0.iter_mut().flatten() {
            if let Open::File(output) = open {
                output.give_up(&mut outcome);
            }
        }
        let queues = state.slots.iter().flatten().map(|slot| &slot.queue);
        let queued =
            queues.flat_map(|queue| queue.blocks.iter().chain(queue.named.iter().map(|one| &one.lines)));
        let unwritten = queued.map(|lines| lines.len() as u64).sum::<u64>() + outcome.bytes_dropped;
        state.statistics.bytes_dropped += unwritten;
        state.stopped = true;
        self.progress.notify_all();
    }
}

/// Of every file that is not full. Slots whose sinks are gone end with their last batch.
fn take_batches(state: &mut State) -> Vec<Batch> {
    let mut batches = Vec::new();
    for (slot, entry) in state.slots.iter_mut().enumerate() {
        let Some(found) = entry.as_mut().filter(|slot| slot.has_work()) else { continue };
        let Queue { blocks, named } = std::mem::take(&mut found.queue);
        let (opened, next) = (found.opened.take(), found.next.take());
        let (renews, closes) = (std::mem::take(&mut found.renews), found.is_closing);
        state.reopening |= next.is_some() || renews;
        batches.push(Batch { slot, gzip: found.gzip, blocks, named, opened, renews, next, closes });
        if closes {
            *entry = None;
        }
    }
    batches
}

fn reopen_slots(state: &mut State, ready: Vec<usize>) {
    for slot in ready {
        state.hopeless = false;
        if let Some(slot) = &mut state.slots[slot] {
            slot.flow = Flow::Again;
        }
    }
}

/// Reports the end of dropping, once half of the allowance is free again.
fn tell_of_room(state: &mut State, about: usize) {
    let Some(slot) = &mut state.slots[about] else { return };
    if slot.bytes > FILE_BYTES / 2 {
        return;
    }
    let Some(lines) = slot.dropping.take() else { return };
    let name = slot.name();
    let message = format_args!("\"{name}\" keeps up again, {lines} lines were dropped");
    state.complain(about, &Telling::new(Level::Warn, message, About::default()));
}

impl Files {
    fn write(&mut self, batch: Batch, outcome: &mut Outcome) -> Done {
        let Batch { slot, gzip, blocks, named, opened, renews, next, closes } = batch;
        if self.0.len() <= slot {
            self.0.resize_with(slot + 1, || None);
        }
        let place = &mut self.0[slot];
        if opened.is_some() {
            *place = opened;
        }
        let mut done = Done { slot, released: 0, is_full: false, closes };
        let output = match place {
            Some(Open::File(output)) => output,
            Some(Open::Group(files)) => {
                done.released = files.write(slot, named, outcome);
                if renews {
                    files.forget();
                }
                if closes {
                    *place = None;
                }
                return done;
            }
            None => return done,
        };
        done.released += output.write(slot, blocks, gzip, outcome);
        if let Some(next) = next {
            done.released += output.change_over(slot, next, outcome);
        }
        done.is_full = output.is_full();
        if closes {
            // Nobody would look after what waits any more.
            done.released += output.give_up(outcome);
            *place = None;
        }
        done
    }

    /// Waits for a full pipe to accept more, or for the bell; `None` if the bell rang.
    fn ready(&self, shared: &Shared, wait: Option<Duration>) -> Option<Vec<usize>> {
        let stderr = io::stderr();
        let full: Vec<(usize, &Output)> = self
            .0
            .iter()
            .enumerate()
            .filter_map(|(slot, open)| Some((slot, open.as_ref()?.file().filter(|output| output.is_full())?)))
            .collect();
        let mut polled: Vec<PollFd<'_>> = full
            .iter()
            .map(|(_, output)| PollFd::from_borrowed_fd(output.descriptor(&stderr), PollFlags::OUT))
            .collect();
        polled.push(PollFd::new(&shared.bell, PollFlags::IN));
        let timeout = wait.and_then(|wait| Timespec::try_from(wait).ok());
        if poll(&mut polled, timeout.as_ref()).is_err() {
            // Interrupted, which is as good as a bell.
            return None;
        }
        let rang = polled.pop().is_some_and(|bell| !bell.revents().is_empty());
        if rang {
            _ = rustix::io::read(&shared.bell, &mut [0_u8; 8]);
        }
        let slots = full.iter().zip(&polled).filter(|(_, polled)| !polled.revents().is_empty());
        let slots: Vec<usize> = slots.map(|((slot, _), _)| *slot).collect();
        (!slots.is_empty() || !rang).then_some(slots)
    }
}
