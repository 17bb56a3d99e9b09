//! One worker thread as its connections see it: the current configuration, counters, and whether it is stopping.
//!
//! Everything here is of one thread; nothing is locked. Connections register their waker once, so that a stop or a
//! shortage of connections reaches idle ones by an event.

use crate::generation::Generation;
use crate::request::Request;
use millstream_telemetry::log_writer::LogWriter;
use millstream_telemetry::metrics::WorkerMetrics;
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

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
    to_shed: Cell<u32>,
    room: tokio::sync::Notify,
    emptied: tokio::sync::Notify,
    spare: RefCell<Vec<Box<Request>>>,
}

struct Entry {
    waker: Option<Waker>,
    idle: bool,
}

/// A connection's place among those of its worker; given back by dropping it.
pub struct Place {
    worker: Rc<Worker>,
    key: usize,
}

/// Requests kept for reuse by each worker.
const SPARE_REQUESTS: usize = 64;
/// Idle connections closed at a time to make room for new ones.
const SHED_AT_ONCE: u32 = 16;

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
            to_shed: Cell::new(0),
            room: tokio::sync::Notify::new(),
            emptied: tokio::sync::Notify::new(),
            spare: RefCell::new(Vec::new()),
        })
    }

    /// The configuration for a request that begins now.
    pub fn generation(&self) -> Rc<Generation> {
        self.generation.borrow().clone()
    }

    /// New requests are served with `generation` from now on.
    pub fn replace_generation(&self, generation: Rc<Generation>) {
        self.spare.borrow_mut().clear();
        self.generation.replace(generation);
        self.wake_all();
        self.room.notify_one();
    }

    /// How the worker goes on.
    pub fn stage(&self) -> Stage {
        self.stage.get()
    }

    /// Stops, gracefully or not; every connection hears of it at once.
    pub fn stop(&self, stage: Stage) {
        self.stage.set(stage);
        self.spare.borrow_mut().clear();
        self.wake_all();
        self.room.notify_one();
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

    /// A place for a new connection. Waits while `worker_connections` are in use, after asking idle ones to close.
    pub async fn admit(self: &Rc<Self>) -> Place {
        loop {
            let limit = self.generation.borrow().shared.configuration.main.worker_connections as usize;
            let used = self.open_connections() + self.upstream_connections.get() as usize;
            if used < limit.max(1) {
                let key = self.connections.borrow_mut().insert(Entry { waker: None, idle: false });
                return Place { worker: self.clone(), key };
            }
            self.shed();
            self.room.notified().await;
        }
    }

    /// Counts a connection to an upstream against `worker_connections` for as long as the value lives.
    pub fn count_upstream(self: &Rc<Self>) -> UpstreamPlace {
        self.upstream_connections.set(self.upstream_connections.get() + 1);
        UpstreamPlace { worker: self.clone() }
    }

    /// A request to fill in, recycled where one is at hand.
    pub fn spare_request(&self) -> Option<Box<Request>> {
        self.spare.borrow_mut().pop()
    }

    /// Takes a finished request back for reuse.
    pub fn recycle(&self, request: Box<Request>) {
        let mut spare = self.spare.borrow_mut();
        let current = Rc::ptr_eq(&request.generation, &self.generation.borrow());
        if current && self.stage.get() == Stage::Running && spare.len() < SPARE_REQUESTS {
            spare.push(request);
        }
    }

    fn shed(&self) {
        let connections = self.connections.borrow();
        let idle = connections.iter().filter(|(_, entry)| entry.idle);
        let mut asked = 0;
        for (_, entry) in idle.take(SHED_AT_ONCE as usize) {
            if let Some(waker) = &entry.waker {
                asked += 1;
                waker.wake_by_ref();
            }
        }
        self.to_shed.set(asked);
    }

    fn wake_all(&self) {
        for (_, entry) in self.connections.borrow().iter() {
            if let Some(waker) = &entry.waker {
                waker.wake_by_ref();
            }
        }
    }
}

impl Place {
    /// Says whether the connection waits for a request; while it does, `waker` is told of a stop.
    pub fn set_idle(&self, idle: bool, waker: Option<&Waker>) {
        let mut connections = self.worker.connections.borrow_mut();
        let entry = &mut connections[self.key];
        entry.idle = idle;
        if let Some(waker) = waker
            && !entry.waker.as_ref().is_some_and(|known| known.will_wake(waker))
        {
            entry.waker = Some(waker.clone());
        }
    }

    /// Whether an idle connection should close now: the worker stops, or needs the place.
    pub fn asked_to_close(&self) -> bool {
        if self.worker.stage.get() != Stage::Running {
            return true;
        }
        let to_shed = self.worker.to_shed.get();
        if to_shed > 0 {
            self.worker.to_shed.set(to_shed - 1);
        }
        to_shed > 0
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
