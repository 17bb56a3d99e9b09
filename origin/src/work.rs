//! The pool of workers: N requests at a time, each taking the service time, the others waiting their turn.
//!
//! Like Gunicorn's synchronous workers it has no more than that to give, which is what a cache in front is for.

use millstream_net::clock;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::hint::black_box;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How a worker spends its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Hashing, as if rendering a page.
    Cpu,
    /// Sleeping, as if for a database.
    Wait,
}

const ROUND: [u8; 1024] = [0x5a; 1024];

const CALIBRATION: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(super) struct Workers {
    state: Mutex<WorkState>,
    /// A worker was handed over, or all is over.
    handed_over: Condvar,
    stopped: Condvar,
    service_time: Duration,
    /// Rounds of hashing in a millisecond of an idle core; `None`: sleep instead.
    rounds_per_millisecond: Option<u64>,
}

#[derive(Debug, Default)]
struct WorkState {
    /// Idle workers; 0 while a request waits.
    free: usize,
    waiting: usize,
    /// Workers handed to waiting requests but not taken yet, so that a newcomer cannot take them.
    handed_over: usize,
    served: u64,
    is_stopping: bool,
}

#[derive(Debug)]
struct Busy<'a>(&'a Workers);

impl Workers {
    pub(super) fn new(workers: usize, service_time: Duration, work: Work) -> Self {
        Workers {
            state: Mutex::new(WorkState { free: workers.max(1), ..WorkState::default() }),
            handed_over: Condvar::new(),
            stopped: Condvar::new(),
            service_time,
            rounds_per_millisecond: (work == Work::Cpu).then(calibrate),
        }
    }

    /// Returns the number of this request, from 1; `None` when stopped.
    pub(super) fn work(&self, times: u32) -> Option<u64> {
        let busy = self.take()?;
        let time = self.service_time * times;
        let went_on = match self.rounds_per_millisecond {
            Some(rounds) => self.hash(time, rounds),
            None => self.wait(time),
        };
        drop(busy);
        let mut state = self.lock();
        state.served += u64::from(went_on);
        went_on.then_some(state.served)
    }

    pub(super) fn served(&self) -> u64 {
        self.lock().served
    }

    pub(super) fn stop(&self) {
        self.lock().is_stopping = true;
        self.handed_over.notify_all();
        self.stopped.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, WorkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Busy<'_>> {
        let mut state = self.lock();
        if state.free > 0 && !state.is_stopping {
            state.free -= 1;
            return Some(Busy(self));
        }
        state.waiting += 1;
        let must_wait = |state: &mut WorkState| !state.is_stopping && state.handed_over == 0;
        state = self.handed_over.wait_while(state, must_wait).unwrap_or_else(PoisonError::into_inner);
        if state.is_stopping {
            return None;
        }
        state.handed_over -= 1;
        Some(Busy(self))
    }

    fn wait(&self, time: Duration) -> bool {
        let waited = self.stopped.wait_timeout_while(self.lock(), time, |state| !state.is_stopping);
        waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Hashes as much as an idle core does in `time`: a shared core takes longer, as with real work. False
    /// when stopped.
    fn hash(&self, time: Duration, per_millisecond: u64) -> bool {
        let microseconds = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let mut left = (per_millisecond.saturating_mul(microseconds) / 1000).max(1);
        while left > 0 && !self.lock().is_stopping {
            let now = left.min(per_millisecond);
            hash_rounds(now);
            left -= now;
        }
        left == 0
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if state.waiting == 0 {
            state.free += 1;
            return;
        }
        state.waiting -= 1;
        state.handed_over += 1;
        drop(state);
        self.0.handed_over.notify_one();
    }
}

fn hash_rounds(rounds: u64) {
    let mut hasher = RandomState::new().build_hasher();
    for _ in 0..rounds {
        hasher.write(black_box(&ROUND));
    }
    black_box(hasher.finish());
}

/// Rounds in a millisecond, at least one; the best of a few tries, so that a busy moment does not make the
/// API fast.
fn calibrate() -> u64 {
    const ROUNDS: u64 = 64;
    let start = clock::now();
    let mut best = Duration::from_millis(1);
    while clock::now().duration_since(start) < CALIBRATION {
        let before = clock::now();
        hash_rounds(ROUNDS);
        best = best.min(clock::now().duration_since(before).max(Duration::from_nanos(1)));
    }
    (ROUNDS * 1_000_000 / best.as_nanos() as u64).max(1)
}
