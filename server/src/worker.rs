//! One worker thread as its connections see it: the current configuration, counters, and whether it is stopping.
//!
//! Everything here is of one thread; nothing is locked. Connections register their waker once, so that a stop or a shortage reaches idle
//! ones by an event. In a shortage connections are asked to close in the order of [`Awaits`], and responses say `Connection: close`, so
//! that a new connection waits for one request at most. Upstream connections have a lower bound than clients, so that slow upstreams keep
//! no client out; if descriptors are short, a higher one, so that every accepted client can be served eventually.

#[cfg(test)]
mod tests;

mod waiting_room;
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
use waiting_room::WaitingRoom;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Running,
    /// Finishes requests in progress and closes idle connections (`QUIT`).
    Draining,
    /// Closes everything now (`TERM`, `INT`, `worker_shutdown_timeout`).
    Stopping,
}

pub struct Worker {
    pub metrics: Arc<WorkerMetrics>,
    pub log_writer: Arc<LogWriter>,
    generation: RefCell<Rc<Generation>>,
    stage: Cell<Stage>,
    connections: RefCell<Slab<ConnectionState>>,
    tunnels: RefCell<Slab<TunnelState>>,
    upstream_connections: Cell<u32>,
    watches: Cell<u32>,
    pub copies: Cell<usize>,
    /// New connections waiting for a slot.
    newcomers: WaitingRoom,
    /// Requests waiting for an upstream connection's slot.
    upstream_seekers: WaitingRoom,
    complained: Cell<Option<Instant>>,
    complained_of_copies: Cell<Option<Instant>>,
    emptied: tokio::sync::Notify,
}

#[derive(Default)]
struct ConnectionState {
    waker: Option<Waker>,
    /// `None` while a request is served.
    awaits: Option<Awaits>,
    /// Whether it was asked to close to make room.
    is_shed: bool,
    number: u64,
    /// Ends it at once, if a reload may (`worker_shutdown_timeout`).
    end: Option<AbortHandle>,
}

/// A connection's slot in its worker, given back on drop.
pub struct ConnectionSlot {
    worker: Rc<Worker>,
    key: usize,
}

/// Interval of looking for connections that have been idle long enough.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

impl Worker {
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
            newcomers: WaitingRoom::default(),
            upstream_seekers: WaitingRoom::default(),
            complained: Cell::new(None),
            complained_of_copies: Cell::new(None),
            emptied: tokio::sync::Notify::new(),
        })
    }

    pub fn generation(&self) -> Rc<Generation> {
        self.generation.borrow().clone()
    }

    pub fn serves_with(&self, generation: &Rc<Generation>) -> bool {
        Rc::ptr_eq(generation, &self.generation.borrow())
    }

    pub fn replace_generation(&self, generation: Rc<Generation>) {
        self.generation.replace(generation);
        self.wake_all();
        self.newcomers.call_all();
    }

    pub fn stage(&self) -> Stage {
        self.stage.get()
    }

    pub fn stop(&self, stage: Stage) {
        self.stage.set(stage);
        self.wake_all();
        self.newcomers.call_all();
    }

    pub fn open_connections(&self) -> usize {
        self.connections.borrow().len()
    }

    pub async fn until_empty(&self) {
        while self.open_connections() > 0 {
            self.emptied.notified().await;
        }
    }

    pub fn try_admit(self: &Rc<Self>) -> Option<ConnectionSlot> {
        // Who waits already comes first.
        if self.is_short() { None } else { self.place() }
    }

    fn place(self: &Rc<Self>) -> Option<ConnectionSlot> {
        if !self.has_room() {
            return None;
        }
        let key = self.connections.borrow_mut().insert(ConnectionState {
            number: self.generation.borrow().shared.edition.number,
            ..ConnectionState::default()
        });
        Some(ConnectionSlot { worker: self.clone(), key })
    }

    fn has_room(&self) -> bool {
        let bounds = self.generation.borrow().shared.bounds;
        // One client at a time is always served, whatever the upstreams hold.
        self.connected() < bounds.clients && self.used() < bounds.descriptors || self.open_connections() == 0
    }

    /// Those to upstreams included.
    fn connected(&self) -> usize {
        self.open_connections() + self.upstream_connections.get() as usize
    }

    /// The same, with other holders of descriptors.
    fn used(&self) -> usize {
        self.connected() + self.watches.get() as usize
    }

    /// Waits while `worker_connections` are in use, after asking idle ones to close.
    pub async fn admit(self: &Rc<Self>) -> ConnectionSlot {
        let _waiting = self.newcomers.enter();
        let mut look_again = Deadline::new();
        loop {
            // Registered before looking, so that room which comes in between is not missed.
            let room = self.newcomers.called();
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

    /// Whether a new connection waits for a slot: then connections close after their present request.
    pub fn is_short(&self) -> bool {
        !self.newcomers.is_empty()
    }

    /// A slot for an upstream connection; `None` if slots or descriptors are short, or other requests wait.
    pub fn try_upstream(self: &Rc<Self>) -> Option<UpstreamPlace> {
        if self.upstream_seekers.is_empty() { self.upstream_place() } else { None }
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

    /// Whether descriptors are short rather than slots.
    pub fn lacks_descriptors(&self) -> bool {
        self.used() >= self.generation.borrow().shared.bounds.descriptors
    }

    /// Waits in line until `deadline`, or until waiting is pointless. Meanwhile upstream connections are not
    /// kept idle, and if slots are short idle clients are asked to close.
    pub async fn upstream(self: &Rc<Self>, deadline: &mut Deadline) -> Option<UpstreamPlace> {
        let _waiting = self.upstream_seekers.enter();
        self.clear_pools();
        let (began, mut look_again) = (clock::now(), Deadline::new());
        loop {
            // Registered before looking, so that room which comes in between is not missed.
            let room = self.upstream_seekers.called();
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

    /// A slot is free: requests being served come before new connections.
    fn tell_of_room(&self) {
        if !self.upstream_seekers.is_empty() && self.has_upstream_room() {
            self.upstream_seekers.call();
        } else {
            self.newcomers.call();
        }
    }

    fn clear_pools(&self) {
        self.generation().upstreams.iter().for_each(|upstream| upstream.pool().clear());
    }

    /// Ends all connections accepted by earlier configurations that allow it.
    pub fn end_those_before(&self, number: u64) {
        for (_, entry) in self.connections.borrow().iter().filter(|(_, entry)| entry.number < number) {
            if let Some(end) = &entry.end {
                end.abort();
            }
        }
    }

    fn wake_all(&self) {
        for (_, entry) in self.connections.borrow().iter() {
            if let Some(waker) = &entry.waker {
                waker.wake_by_ref();
            }
        }
    }
}

impl ConnectionSlot {
    /// `None` unless `worker_shutdown_timeout` lets a later configuration end it.
    pub fn ends_by(&self) -> Option<impl FnOnce(AbortHandle) + use<>> {
        self.worker.generation.borrow().shared.configuration.main.worker_shutdown_timeout?;
        let (worker, key) = (self.worker.clone(), self.key);
        Some(move |end| {
            if let Some(entry) = worker.connections.borrow_mut().get_mut(key) {
                entry.end = Some(end);
            }
        })
    }

    pub fn wait(&self, awaits: Awaits, waker: &Waker) {
        let mut connections = self.worker.connections.borrow_mut();
        let entry = &mut connections[self.key];
        entry.awaits = Some(awaits);
        if !entry.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            entry.waker = Some(waker.clone());
        }
    }

    /// A request arrived, which is served even if the connection was asked to close.
    pub fn set_busy(&self) {
        let mut connections = self.worker.connections.borrow_mut();
        let entry = &mut connections[self.key];
        entry.awaits = None;
        entry.is_shed = false;
    }

    /// Whether it was asked to close for a new connection.
    pub fn is_shed(&self) -> bool {
        self.worker.connections.borrow()[self.key].is_shed
    }

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

    /// A second descriptor of the connection; `None` if there are no more.
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

/// Given back on drop.
pub struct Watch {
    worker: Rc<Worker>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.worker.watches.set(self.worker.watches.get().saturating_sub(1));
        self.worker.tell_of_room();
    }
}

/// Given back on drop.
pub struct UpstreamPlace {
    worker: Rc<Worker>,
}

impl Held for UpstreamPlace {
    fn may_idle(&self) -> bool {
        self.worker.upstream_seekers.is_empty()
    }
}

impl Drop for UpstreamPlace {
    fn drop(&mut self) {
        self.worker.upstream_connections.set(self.worker.upstream_connections.get().saturating_sub(1));
        self.worker.tell_of_room();
    }
}
