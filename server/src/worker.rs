//! One worker thread as its connections see it: the current configuration, counters, and whether it is stopping.
//!
//! Everything here is of one thread; nothing is locked. Connections register their waker once, so that a stop or a
//! shortage of connections reaches idle ones by an event. In a shortage the connections that idle longest are asked
//! to close, and answers say `Connection: close`, so that a newcomer waits for one request at the most.

use crate::generation::Generation;
use millstream_net::clock;
use millstream_net::timer::{Deadline, with_deadline};
use millstream_telemetry::log_writer::LogWriter;
use millstream_telemetry::metrics::WorkerMetrics;
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// How a worker goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Serves.
    Running,
    /// Finishes requests in progress, closes idle connections (`QUIT`).
    Draining,
    /// Closes everything now (`TERM`, `INT`, `worker_shutdown_timeout`).
    Stopping,
}

/// A worker thread's state.
pub struct Worker {
    /// Its number, from 0.
    pub index: usize,
    /// Its counters.
    pub metrics: Arc<WorkerMetrics>,
    /// The log thread.
    pub log_writer: Arc<LogWriter>,
    generation: RefCell<Rc<Generation>>,
    stage: Cell<Stage>,
    connections: RefCell<Slab<Entry>>,
    upstream_connections: Cell<u32>,
    /// Newcomers that wait for a place.
    waiting: Cell<usize>,
    complained: Cell<Option<Instant>>,
    room: tokio::sync::Notify,
    emptied: tokio::sync::Notify,
}

#[derive(Default)]
struct Entry {
    waker: Option<Waker>,
    /// When it became idle; `None` while it is not.
    idle_since: Option<Instant>,
    /// Whether it was asked to close to make room.
    is_shed: bool,
}

/// A connection's place among those of its worker; given back by dropping it.
pub struct Place {
    worker: Rc<Worker>,
    key: usize,
}

/// A connection that became idle this recently is not closed to make room: a request may be on its way already.
const IDLE_GRACE: Duration = Duration::from_millis(200);
/// How often a newcomer without a place looks for connections that have become idle long enough.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Idle connections closed at a time to make room for new ones.
const SHED_AT_ONCE: usize = 16;

impl Worker {
    /// A worker that serves with `generation`.
    pub fn new(
        index: usize,
        metrics: Arc<WorkerMetrics>,
        log_writer: Arc<LogWriter>,
        generation: Rc<Generation>,
    ) -> Rc<Self> {
        Rc::new(Worker {
            index,
            metrics,
            log_writer,
            generation: RefCell::new(generation),
            stage: Cell::new(Stage::Running),
            connections: RefCell::new(Slab::new()),
            upstream_connections: Cell::new(0),
            waiting: Cell::new(0),
            complained: Cell::new(None),
            room: tokio::sync::Notify::new(),
            emptied: tokio::sync::Notify::new(),
        })
    }

    /// The configuration for a request that begins now.
    pub fn generation(&self) -> Rc<Generation> {
        self.generation.borrow().clone()
    }

    /// Whether `generation` is the configuration in force.
    pub fn serves_with(&self, generation: &Rc<Generation>) -> bool {
        Rc::ptr_eq(generation, &self.generation.borrow())
    }

    /// New requests are served with `generation` from now on.
    pub fn replace_generation(&self, generation: Rc<Generation>) {
        self.generation.replace(generation);
        self.wake_all();
        self.tell_waiting();
    }

    /// How the worker goes on.
    pub fn stage(&self) -> Stage {
        self.stage.get()
    }

    /// Stops, gracefully or not; every connection hears of it at once.
    pub fn stop(&self, stage: Stage) {
        self.stage.set(stage);
        self.wake_all();
        self.tell_waiting();
    }

    /// Client connections open now.
    pub fn open_connections(&self) -> usize {
        self.connections.borrow().len()
    }

    /// Ready when no client connection is left.
    pub async fn until_empty(&self) {
        while self.open_connections() > 0 {
            self.emptied.notified().await;
        }
    }

    /// A place for a new connection, if there is one now.
    pub fn try_admit(self: &Rc<Self>) -> Option<Place> {
        // Who waits already comes first.
        if self.is_short() { None } else { self.place() }
    }

    fn place(self: &Rc<Self>) -> Option<Place> {
        let limit = self.generation.borrow().shared.configuration.main.worker_connections as usize;
        let used = self.open_connections() + self.upstream_connections.get() as usize;
        // One client at a time is always served, whatever the upstreams hold.
        if used >= limit && self.open_connections() > 0 {
            return None;
        }
        let key = self.connections.borrow_mut().insert(Entry::default());
        Some(Place { worker: self.clone(), key })
    }

    /// A place for a new connection. Waits while `worker_connections` are in use, after asking idle ones to close.
    pub async fn admit(self: &Rc<Self>) -> Place {
        let _waiting = Waiting::new(&self.waiting);
        let mut look_again = Deadline::new();
        loop {
            // Registered before looking, so that room which comes in between is not missed.
            let room = self.room.notified();
            if let Some(place) = self.place() {
                return place;
            }
            let now = clock::now();
            self.make_room(now);
            look_again.set(now + LOOK_AGAIN);
            // Either way the next round looks.
            _ = with_deadline(&mut look_again, room).await;
        }
    }

    /// Whether a new connection waits for a place: then connections end with their present request.
    pub fn is_short(&self) -> bool {
        self.waiting.get() > 0
    }

    /// Whether a complaint about a shortage is due: none was made within `pause`.
    pub fn may_complain(&self, now: Instant, pause: Duration) -> bool {
        let due = self.complained.get().is_none_or(|then| now.saturating_duration_since(then) >= pause);
        if due {
            self.complained.set(Some(now));
        }
        due
    }

    /// Counts a connection to an upstream against `worker_connections` for as long as the value lives.
    pub fn count_upstream(self: &Rc<Self>) -> UpstreamPlace {
        self.upstream_connections.set(self.upstream_connections.get() + 1);
        UpstreamPlace { worker: self.clone() }
    }

    /// Asks the connections that idle longest to close: for want of places, or of descriptors.
    pub fn make_room(&self, now: Instant) {
        let mut connections = self.connections.borrow_mut();
        let idles_long = |since: &Instant| now.saturating_duration_since(*since) >= IDLE_GRACE;
        let mut idle: Vec<(Instant, usize)> = connections
            .iter()
            .filter(|(_, entry)| !entry.is_shed)
            .filter_map(|(key, entry)| Some((entry.idle_since.filter(idles_long)?, key)))
            .collect();
        let nobody_idles = idle.is_empty();
        if idle.len() > SHED_AT_ONCE {
            idle.select_nth_unstable(SHED_AT_ONCE - 1);
        }
        for (_, key) in idle.into_iter().take(SHED_AT_ONCE) {
            let entry = &mut connections[key];
            entry.is_shed = true;
            if let Some(waker) = &entry.waker {
                waker.wake_by_ref();
            }
        }
        drop(connections);
        if nobody_idles {
            // Then what the upstream pools keep is what can be spared.
            self.generation().pools.iter().for_each(|pool| pool.clear());
        }
    }

    /// Wakes one newcomer for good, and the others to look again.
    fn tell_waiting(&self) {
        self.room.notify_waiters();
        self.room.notify_one();
    }

    fn wake_all(&self) {
        for (_, entry) in self.connections.borrow().iter() {
            if let Some(waker) = &entry.waker {
                waker.wake_by_ref();
            }
        }
    }
}

/// Counts a newcomer for as long as it waits.
struct Waiting<'a>(&'a Cell<usize>);

impl<'a> Waiting<'a> {
    fn new(count: &'a Cell<usize>) -> Self {
        count.set(count.get() + 1);
        Waiting(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Place {
    /// Says since when the connection waits for a request, if it does; while it does, `waker` is told of a stop.
    pub fn set_idle(&self, since: Option<Instant>, waker: Option<&Waker>) {
        let mut connections = self.worker.connections.borrow_mut();
        let entry = &mut connections[self.key];
        entry.idle_since = since;
        entry.is_shed &= since.is_some();
        if let Some(waker) = waker
            && !entry.waker.as_ref().is_some_and(|known| known.will_wake(waker))
        {
            entry.waker = Some(waker.clone());
        }
    }

    /// Whether the connection was asked to close because a newcomer needs its place.
    pub fn is_shed(&self) -> bool {
        self.worker.connections.borrow()[self.key].is_shed
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.worker.connections.borrow_mut().remove(self.key);
        self.worker.room.notify_one();
        if self.worker.open_connections() == 0 {
            self.worker.emptied.notify_one();
        }
    }
}

/// An upstream connection's place, given back by dropping it.
pub struct UpstreamPlace {
    worker: Rc<Worker>,
}

impl Drop for UpstreamPlace {
    fn drop(&mut self) {
        self.worker.upstream_connections.set(self.worker.upstream_connections.get().saturating_sub(1));
        self.worker.room.notify_one();
    }
}
