//! The process's few threads for work that blocks: disk, compressing large bodies, names asked of the system.
//!
//! One small pool for all workers (a runtime's own pool would be one per worker), with a bound on what is
//! queued: past it a caller waits its turn without blocking its loop. Names have threads of their own, so
//! that a dead name server cannot hold up the disk. Never used for work that waits for other work of the same
//! pool.

use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};

#[cfg(test)]
mod tests;

/// Threads without a call of [`start`].
const THREADS: usize = 4;
/// Jobs queued or running at a time; further callers wait.
const JOBS: usize = 1024;
/// Threads for name look-ups, which may hang for seconds.
const NAME_THREADS: usize = 2;

static WORK: Pool = Pool::new("blocking", THREADS);
static NAMES: Pool = Pool::new("names", NAME_THREADS);

/// Starts the pool's threads, once per process and after privileges are dropped; later calls do nothing.
/// Otherwise the first [`run`] starts four. Fails if the system gives no thread.
pub fn start(threads: usize) -> io::Result<()> {
    WORK.start(threads.max(1))
}

/// Runs `work` on a thread of the pool. A panic in it continues in the caller. Once queued, the work is done
/// even if the future is dropped; before that it is dropped too. Works from any tokio runtime.
pub async fn run<T, F>(work: F) -> T
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    WORK.run(work).await
}

pub(crate) async fn run_name<T, F>(work: F) -> T
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    NAMES.run(work).await
}

type Job = Box<dyn FnOnce() + Send>;

struct Pool {
    name: &'static str,
    threads: usize,
    started: AtomicBool,
    queue: Mutex<VecDeque<Job>>,
    arrived: Condvar,
    places: Semaphore,
}

impl Pool {
    const fn new(name: &'static str, threads: usize) -> Self {
        Pool {
            name,
            threads,
            started: AtomicBool::new(false),
            queue: Mutex::new(VecDeque::new()),
            arrived: Condvar::new(),
            places: Semaphore::const_new(JOBS),
        }
    }

    fn start(&'static self, threads: usize) -> io::Result<()> {
        if self.started.load(Ordering::Acquire) {
            return Ok(());
        }
        let _queue = self.lock();
        if self.started.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut running = 0;
        for index in 0..threads {
            let thread = thread::Builder::new().name(format!("{}-{index}", self.name));
            match thread.spawn(|| self.work()) {
                Ok(_) => running += 1,
                Err(error) if running == 0 => return Err(error),
                // Fewer threads than asked for still do the work.
                Err(_) => break,
            }
        }
        self.started.store(true, Ordering::Release);
        Ok(())
    }

    async fn run<T, F>(&'static self, work: F) -> T
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        if self.start(self.threads).is_err() {
            // No thread to be had: the work done late on the loop is better than not done.
            return work();
        }
        let place: SemaphorePermit<'static> =
            self.places.acquire().await.expect("the semaphore of a pool is never closed");
        let (sender, receiver) = oneshot::channel::<Result<T, Box<dyn Any + Send>>>();
        let job: Job = Box::new(move || {
            let result = catch_unwind(AssertUnwindSafe(work));
            drop(place);
            // The caller may have gone away; then nobody wants the result.
            let _ = sender.send(result);
        });
        self.lock().push_back(job);
        self.arrived.notify_one();
        match receiver.await.expect("a job sends its result, also when it panics") {
            Ok(output) => output,
            Err(panic) => resume_unwind(panic),
        }
    }

    fn work(&self) {
        let mut queue = self.lock();
        loop {
            match queue.pop_front() {
                Some(job) => {
                    drop(queue);
                    job();
                    queue = self.lock();
                }
                None => queue = self.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// No job runs under the lock, so a poisoned one guards a consistent queue.
    fn lock(&self) -> MutexGuard<'_, VecDeque<Job>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
