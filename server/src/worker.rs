//! One worker thread as its connections see it: the current configuration, counters, and whether it is stopping.
//!
//! Everything here is of one thread; nothing is locked. Connections register their waker once, so that a stop or a
//! shortage of connections reaches idle ones by an event. In a shortage connections are asked to close in the order of
//! [`Awaits`], and answers say `Connection: close`, so that a newcomer waits for one request at the most. Connections to upstreams are
//! made up to a lower bound than clients are let in: what waits for slow upstreams keeps no client out. Where descriptors are short,
//! it is a higher one: whoever was let in can be served, if need be after others.

#[cfg(test)]
mod tests;

mod tunnels;
mod shortage;

pub use shortage::{Awaits, idle_since};
pub use tunnels::TunnelEntry;

use crate::generation::Generation;
use millstream_net::clock;
use millstream_net::timer::{Deadline, with_deadline};
use millstream_telemetry::log_writer::LogWriter;
use millstream_telemetry::metrics::WorkerMetrics;
use millstream_upstream::Held;
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;
use tunnels::TunnelState;

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
    /// Its counters.
    pub metrics: Arc<WorkerMetrics>,
    /// The log thread.
    pub log_writer: Arc<LogWriter>,
    generation: RefCell<Rc<Generation>>,
    stage: Cell<Stage>,
    connections: RefCell<Slab<ConnectionState>>,
    tunnels: RefCell<Slab<TunnelState>>,
    upstream_connections: Cell<u32>,
    /// Second descriptors of client connections.
    watches: Cell<u32>,
    /// Unfinished copies of requests (`mirror`).
    pub copies: Cell<usize>,
    /// Newcomers that wait for a place.
    waiting: Cell<usize>,
    /// Requests that wait for a place for their connection to an upstream.
    waiting_for_upstream: Cell<usize>,
    complained: Cell<Option<Instant>>,
    complained_of_copies: Cell<Option<Instant>>,
    room: tokio::sync::Notify,
    upstream_room: tokio::sync::Notify,
    emptied: tokio::sync::Notify,
}

#[derive(Default)]
struct ConnectionState {
    waker: Option<Waker>,
    /// `None` while a request is served.
    awaits: Option<Awaits>,
    /// Whether it was asked to close to make room.
    is_shed: bool,
    /// The configuration that accepted it.
    number: u64,
    /// What ends it at once, where a reload may (`worker_shutdown_timeout`).
    end: Option<AbortHandle>,
}

/// A connection's place among those of its worker; given back by dropping it.
pub struct ConnectionSlot {
    worker: Rc<Worker>,
    key: usize,
}

/// How often whoever has no place looks for connections that have become idle long enough.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

impl Worker {
    /// A worker that serves with `generation`.
    pub fn new(
        metrics: Arc<WorkerMetrics>,
        log_writer: Arc<LogWriter>,
        generation: Rc<Generation>,
    ) -> Rc<Self> {
        Rc::new(Worker {
            metrics,
            log_writer,
            generation: RefCell::new(generation),
            stage: Cell::new(Stage::Running),
            connections: RefCell::new(Slab::new()),
            tunnels: RefCell::new(Slab::new()),
            upstream_connections: Cell::new(0),
            watches: Cell::new(0),
            copies: Cell::new(0),
            waiting: Cell::new(0),
            waiting_for_upstream: Cell::new(0),
            complained: Cell::new(None),
            complained_of_copies: Cell::new(None),
            room: tokio::sync::Notify::new(),
            upstream_room: tokio::sync::Notify::new(),
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
    pub fn try_admit(self: &Rc<Self>) -> Option<ConnectionSlot> {
        // Who waits already comes first.
        if self.is_short() { None } else { self.place() }
    }

    fn place(self: &Rc<Self>) -> Option<ConnectionSlot> {
        if !self.has_room() {
            return None;
        }
        let key = self.connections.borrow_mut().insert(ConnectionState {
            number: self.generation.borrow().shared.number,
            ..ConnectionState::default()
        });
        Some(ConnectionSlot { worker: self.clone(), key })
    }

    fn has_room(&self) -> bool {
        let bounds = self.generation.borrow().shared.bounds;
        // One client at a time is always served, whatever the upstreams hold.
        self.connected() < bounds.clients && self.used() < bounds.descriptors || self.open_connections() == 0
    }

    /// Connections open now, those to upstreams included.
    fn connected(&self) -> usize {
        self.open_connections() + self.upstream_connections.get() as usize
    }

    /// The same, and what else has a descriptor for one.
    fn used(&self) -> usize {
        self.connected() + self.watches.get() as usize
    }

    /// A place for a new connection. Waits while `worker_connections` are in use, after asking idle ones to close.
    pub async fn admit(self: &Rc<Self>) -> ConnectionSlot {
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

    /// A place for a connection to an upstream, counted for as long as the value lives; `None` where places or descriptors are short, or
    /// others wait already.
    pub fn try_upstream(self: &Rc<Self>) -> Option<UpstreamPlace> {
        if self.waiting_for_upstream.get() > 0 { None } else { self.upstream_place() }
    }

    fn upstream_place(self: &Rc<Self>) -> Option<UpstreamPlace> {
        if !self.has_upstream_room() {
            return None;
        }
        self.upstream_connections.set(self.upstream_connections.get() + 1);
        Some(UpstreamPlace { worker: self.clone() })
    }

    fn has_upstream_room(&self) -> bool {
        let bounds = self.generation.borrow().shared.bounds;
        // One at a time is always made.
        self.upstream_connections.get() == 0
            || self.used() < bounds.descriptors && self.connected() < bounds.upstreams
    }

    /// Whether it is descriptors that are short, and not places.
    pub fn lacks_descriptors(&self) -> bool {
        self.used() >= self.generation.borrow().shared.bounds.descriptors
    }

    /// The same, waiting in line for it until `deadline` has passed, or waiting is of no use. Meanwhile connections to upstreams are not
    /// kept idle, and where places are short idle clients are asked to close.
    pub async fn upstream(self: &Rc<Self>, deadline: &mut Deadline) -> Option<UpstreamPlace> {
        let _waiting = Waiting::new(&self.waiting_for_upstream);
        self.clear_pools();
        let (began, mut look_again) = (clock::now(), Deadline::new());
        loop {
            // Registered before looking, so that room which comes in between is not missed.
            let room = self.upstream_room.notified();
            if let Some(place) = self.upstream_place() {
                return Some(place);
            }
            let now = clock::now();
            let end = deadline.at().unwrap_or(now);
            if now >= end || !self.may_wait_for_upstream(now, now.saturating_duration_since(began)) {
                return None;
            }
            look_again.set(end.min(now + LOOK_AGAIN));
            // Either way the next round looks.
            _ = with_deadline(&mut look_again, room).await;
        }
    }

    /// Somebody's place is free: requests that are being served come before newcomers.
    fn tell_of_room(&self) {
        if self.waiting_for_upstream.get() > 0 && self.has_upstream_room() {
            self.upstream_room.notify_one();
        } else {
            self.room.notify_one();
        }
    }

    fn clear_pools(&self) {
        self.generation().upstreams.iter().for_each(|upstream| upstream.pool().clear());
    }

    /// Ends all connections at once that earlier configurations than this one accepted, where those had said so.
    pub fn end_those_before(&self, number: u64) {
        for (_, entry) in self.connections.borrow().iter().filter(|(_, entry)| entry.number < number) {
            if let Some(end) = &entry.end {
                end.abort();
            }
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

impl ConnectionSlot {
    /// Makes the connection one that a later configuration may end, where the present one says when.
    pub fn ends_by(&self) -> Option<impl FnOnce(AbortHandle) + use<>> {
        self.worker.generation.borrow().shared.configuration.main.worker_shutdown_timeout?;
        let (worker, key) = (self.worker.clone(), self.key);
        Some(move |end| {
            if let Some(entry) = worker.connections.borrow_mut().get_mut(key) {
                entry.end = Some(end);
            }
        })
    }

    /// Says what the connection waits for; `waker` is then told of a stop, and of a shortage.
    pub fn wait(&self, awaits: Awaits, waker: &Waker) {
        let mut connections = self.worker.connections.borrow_mut();
        let entry = &mut connections[self.key];
        entry.awaits = Some(awaits);
        if !entry.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            entry.waker = Some(waker.clone());
        }
    }

    /// Says that a request has come, which is served whatever was asked of the connection before.
    pub fn set_busy(&self) {
        let mut connections = self.worker.connections.borrow_mut();
        let entry = &mut connections[self.key];
        entry.awaits = None;
        entry.is_shed = false;
    }

    /// Whether the connection was asked to close because a newcomer needs its place.
    pub fn is_shed(&self) -> bool {
        self.worker.connections.borrow()[self.key].is_shed
    }

    /// What comes of something that waits for the client; `None` where the place is needed for somebody else first.
    pub async fn unless_shed<F: Future + Unpin>(&self, awaits: Awaits, mut wait: F) -> Option<F::Output> {
        poll_fn(|cx| {
            if let Poll::Ready(output) = Pin::new(&mut wait).poll(cx) {
                return Poll::Ready(Some(output));
            }
            self.wait(awaits, cx.waker());
            if self.is_shed() { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    }

    /// Room for a second descriptor of the connection, for as long as the value lives; `None` where none is left.
    pub fn watch(&self) -> Option<Watch> {
        let worker = &self.worker;
        if worker.used() >= worker.generation.borrow().shared.bounds.descriptors {
            return None;
        }
        worker.watches.set(worker.watches.get() + 1);
        Some(Watch { worker: worker.clone() })
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.worker.connections.borrow_mut().remove(self.key);
        self.worker.tell_of_room();
        if self.worker.open_connections() == 0 {
            self.worker.emptied.notify_one();
        }
    }
}

/// A second descriptor of a client's connection, given back by dropping it.
pub struct Watch {
    worker: Rc<Worker>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.worker.watches.set(self.worker.watches.get().saturating_sub(1));
        self.worker.tell_of_room();
    }
}

/// An upstream connection's place, given back by dropping it.
pub struct UpstreamPlace {
    worker: Rc<Worker>,
}

impl Held for UpstreamPlace {
    fn may_idle(&self) -> bool {
        self.worker.waiting_for_upstream.get() == 0
    }
}

impl Drop for UpstreamPlace {
    fn drop(&mut self) {
        self.worker.upstream_connections.set(self.worker.upstream_connections.get().saturating_sub(1));
        self.worker.tell_of_room();
    }
}
