//! Work on the disk that hardly anybody waits for: a queue of the store's own, so that none of it is lost when a worker ends.
//!
//! A zone has one for what is to be written and one for purges, which wait for the disk each: two of the process's threads
//! for blocking work take from one at a time, which leaves the others to reads. What bounds the first is the bytes that
//! [`super::Tier`] lets wait, the second those who wait for their purges. When the process ends, [`Behind::finish`] does the rest. Next: `store`.

use millstream_net::{blocking, clock};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const WRITERS: usize = 2;

type Work = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub(in crate::store) struct Behind {
    queue: Mutex<Queue>,
    idle: Condvar,
}

#[derive(Default)]
struct Queue {
    works: VecDeque<Work>,
    turns: usize,
}

impl fmt::Debug for Behind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Behind({})", self.lock().works.len())
    }
}

impl Behind {
    /// Without a runtime it is done at once.
    pub(in crate::store) fn push(self: &Arc<Self>, work: impl FnOnce() + Send + 'static) {
        self.add(Box::new(work), VecDeque::push_back);
    }

    /// Before all pending work: someone waits for this.
    pub(super) fn push_first(self: &Arc<Self>, work: impl FnOnce() + Send + 'static) {
        self.add(Box::new(work), VecDeque::push_front);
    }

    /// Before all pending work, for [`Behind::finish`] or a thread already at work.
    pub(super) fn leave_first(&self, work: impl FnOnce() + Send + 'static) {
        self.lock().works.push_front(Box::new(work));
    }

    fn add(self: &Arc<Self>, work: Work, place: fn(&mut VecDeque<Work>, Work)) {
        let mut queue = self.lock();
        place(&mut queue.works, work);
        if queue.turns == WRITERS {
            return;
        }
        queue.turns += 1;
        drop(queue);
        let turn = Shift { behind: self.clone(), over: false };
        match tokio::runtime::Handle::try_current() {
            // Where the runtime ends first, the turn is given back by being dropped and the work stays in the queue.
            Ok(runtime) => _ = runtime.spawn(blocking::run(move || turn.take())),
            Err(_) => turn.take(),
        }
    }

    /// On this thread, beginning nothing new after `within`. Returns whether all is done.
    pub(super) fn finish(&self, within: Duration) -> bool {
        let end = clock::now().checked_add(within);
        let mut queue = self.lock();
        loop {
            let left = end.map_or(within, |end| end.saturating_duration_since(clock::now()));
            if left.is_zero() {
                return queue.works.is_empty() && queue.turns == 0;
            }
            match queue.works.pop_front() {
                Some(work) => {
                    drop(queue);
                    work();
                    queue = self.lock();
                }
                None if queue.turns == 0 => return true,
                None => {
                    queue = self.idle.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }

    /// No work is done under the lock, so a poisoned one guards a consistent queue.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One thread's turn; over when the queue is empty, or when it is dropped.
struct Shift {
    behind: Arc<Behind>,
    over: bool,
}

impl Shift {
    fn take(mut self) {
        loop {
            let mut queue = self.behind.lock();
            let Some(work) = queue.works.pop_front() else {
                // Under the same lock, so that whoever adds work knows whether somebody will take it.
                queue.turns -= 1;
                self.over = true;
                break;
            };
            drop(queue);
            work();
        }
        self.behind.idle.notify_all();
    }
}

impl Drop for Shift {
    fn drop(&mut self) {
        if !self.over {
            self.behind.lock().turns -= 1;
            self.behind.idle.notify_all();
        }
    }
}
