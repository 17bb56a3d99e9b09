//! The idle connections of one worker to one upstream group.
//!
//! The one that idled least is taken first, so that the others run out of time when fewer are needed. All idle
//! connections report readability to one task ([`Pool::tend`]): an idle connection has nothing to say, so one that does
//! was closed or sent what nobody asked for, and is dropped at once. One whose last record is still to come (FastCGI) waits among
//! them for it, and is not taken before. The same task closes those whose time is
//! over, with one timer. A worker spawns that task; without it the same happens when connections are taken and put.
//! Next: `exchange/connection`, whose connections these are.

use crate::dial::Dial;
use crate::error::ExchangeError;
use crate::exchange::connection::Connection;
use crate::h2::Links;
use crate::lease::Lease;
use crate::peer::Peer;
use millstream_conf::model::{KeepaliveSize, UpstreamKeepalive};
use millstream_net::clock;
use millstream_net::timer::Deadline;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// The most idle connections that `keepalive auto` keeps.
const AUTO_MOST: usize = 1024;
/// The fewest, so that the first requests after a pause find one.
const AUTO_LEAST: usize = 2;
/// How far back it looks for the number of busy connections.
const AUTO_WINDOW: Duration = Duration::from_secs(60);

/// Idle connections of one worker.
#[derive(Debug)]
pub struct Pool {
    keepalive: UpstreamKeepalive,
    /// The longest idle first.
    idle: RefCell<VecDeque<Idle>>,
    links: Links,
    /// Written by this thread only, read by others.
    count: Arc<AtomicUsize>,
    busy: Rc<Cell<usize>>,
    peak: Cell<Peak>,
    watcher: RefCell<Option<Waker>>,
    /// Whether that task has no timer set because nothing idled when it last looked.
    asleep: Cell<bool>,
}

#[derive(Debug)]
struct Idle {
    connection: Box<Connection>,
    since: Instant,
}

/// The most connections busy at once in this minute and in the one before.
#[derive(Debug, Clone, Copy, Default)]
struct Peak {
    started: Option<Instant>,
    now: usize,
    before: usize,
}

impl Pool {
    pub fn new(keepalive: &UpstreamKeepalive) -> Pool {
        Pool {
            keepalive: *keepalive,
            idle: RefCell::new(VecDeque::new()),
            links: Links::new(keepalive, AUTO_MOST),
            count: Arc::default(),
            busy: Rc::new(Cell::new(0)),
            peak: Cell::new(Peak::default()),
            watcher: RefCell::new(None),
            asleep: Cell::new(false),
        }
    }

    /// The most recently used idle connection to the peer that was made the same way, for a request with
    /// `body` octets (`u64::MAX` if unknown). No system call.
    pub fn take(&self, peer: &Peer, dial: &Dial, body: u64, now: Instant) -> Option<Box<Connection>> {
        if dial.http2 {
            let call = self.links.take(peer, dial, body, now)?;
            return Some(self.leased(Connection::call(call, peer, dial, true), now));
        }
        let mut idle = self.idle.borrow_mut();
        let taken = self.take_of(&mut idle, peer, dial, now);
        self.tell(&idle);
        taken
    }

    fn take_of(
        &self,
        idle: &mut VecDeque<Idle>,
        peer: &Peer,
        dial: &Dial,
        now: Instant,
    ) -> Option<Box<Connection>> {
        loop {
            let place = idle
                .iter()
                .rposition(|idle| is_of(&idle.connection, peer, dial) && idle.connection.reusable())?;
            let Idle { mut connection, since } = idle.remove(place)?;
            if self.idled_too_long(since, now) || !connection.is_quiet() {
                continue;
            }
            connection.lease = Some(self.lease(now));
            return Some(connection);
        }
    }

    pub async fn connect(
        &self,
        peer: &Peer,
        dial: &Dial,
        body: u64,
        timeout: Duration,
    ) -> Result<Box<Connection>, ExchangeError> {
        if dial.http2 {
            let call = self.links.join(peer, dial, body, timeout).await?;
            return Ok(self.leased(Connection::call(call, peer, dial, false), clock::now()));
        }
        let lease = self.lease(clock::now());
        let mut connection = Box::new(Connection::open(peer, dial, timeout).await?);
        connection.lease = Some(lease);
        Ok(connection)
    }

    fn leased(&self, connection: Connection, now: Instant) -> Box<Connection> {
        let mut connection = Box::new(connection);
        connection.lease = Some(self.lease(now));
        connection
    }

    /// Closes it if it cannot or may not be reused.
    pub fn put(&self, mut connection: Box<Connection>, now: Instant) {
        connection.lease = None;
        if !connection.reusable() && !connection.awaits_end() || self.is_worn(&connection, now) {
            return;
        }
        let size = self.size(now);
        if size == 0 || !self.watch(&mut connection) {
            return;
        }
        if connection.reusable() {
            connection.rest();
        }
        let mut idle = self.idle.borrow_mut();
        while idle.len() >= size {
            idle.pop_front();
        }
        idle.push_back(Idle { connection, since: now });
        self.tell(&idle);
        drop(idle);
        if self.asleep.replace(false)
            && let Some(watcher) = &*self.watcher.borrow()
        {
            watcher.wake_by_ref();
        }
    }

    pub(crate) fn count(&self) -> &Arc<AtomicUsize> {
        &self.count
    }

    fn tell(&self, idle: &VecDeque<Idle>) {
        self.count.store(idle.len(), Ordering::Relaxed);
    }

    pub fn len(&self) -> usize {
        self.idle.borrow().len()
    }

    /// Whether no exchange could start at once.
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.links.is_empty()
    }

    pub fn busy(&self) -> usize {
        self.busy.get()
    }

    /// For a configuration that no longer serves.
    pub fn clear(&self) {
        let mut idle = self.idle.borrow_mut();
        idle.clear();
        self.links.keep_only(|_| false);
        self.tell(&idle);
    }

    /// `keeps` gets ids of peers.
    pub fn keep_only(&self, keeps: impl Fn(u64) -> bool) {
        let mut idle = self.idle.borrow_mut();
        idle.retain(|idle| keeps(idle.connection.peer()));
        self.links.keep_only(keeps);
        self.tell(&idle);
    }

    /// Runs until the pool is dropped elsewhere.
    pub async fn tend(pool: Weak<Pool>) {
        let mut deadline = Deadline::new();
        poll_fn(|context| match pool.upgrade() {
            Some(pool) => pool.poll_tend(&mut deadline, context),
            None => Poll::Ready(()),
        })
        .await;
    }

    fn poll_tend(&self, deadline: &mut Deadline, context: &mut Context<'_>) -> Poll<()> {
        let mut watcher = self.watcher.borrow_mut();
        if !watcher.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
            *watcher = Some(context.waker().clone());
        }
        drop(watcher);
        loop {
            let now = clock::now();
            let mut idle = self.idle.borrow_mut();
            idle.retain_mut(|idle| {
                !self.idled_too_long(idle.since, now) && idle.connection.poll_useless(context).is_pending()
            });
            self.tell(&idle);
            // The next look is when the longest idle one runs out of idle time.
            let Some(first) = idle.front() else {
                deadline.clear();
                self.asleep.set(true);
                return Poll::Pending;
            };
            deadline.set(first.since + self.keepalive.timeout + Duration::from_millis(1));
            drop(idle);
            if deadline.poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// `false` if the connection is unusable already.
    fn watch(&self, connection: &mut Connection) -> bool {
        match &*self.watcher.borrow() {
            Some(watcher) => connection.poll_useless(&mut Context::from_waker(watcher)).is_pending(),
            None => connection.reusable() && connection.is_quiet(),
        }
    }

    /// Whether it has reached its maximum age; checked after a request has ended, as in nginx.
    fn is_worn(&self, connection: &Connection, now: Instant) -> bool {
        connection.requests() >= self.keepalive.requests
            || now.saturating_duration_since(connection.opened()) >= self.keepalive.time
    }

    fn idled_too_long(&self, since: Instant, now: Instant) -> bool {
        now.saturating_duration_since(since) > self.keepalive.timeout
    }

    fn lease(&self, now: Instant) -> Lease {
        if self.keepalive.size == KeepaliveSize::Auto {
            let mut peak = self.peak.get();
            peak.note(self.busy.get() + 1, now);
            self.peak.set(peak);
        }
        Lease::count(&self.busy)
    }

    fn size(&self, now: Instant) -> usize {
        match self.keepalive.size {
            KeepaliveSize::Fixed(size) => size,
            KeepaliveSize::Auto => {
                let mut peak = self.peak.get();
                peak.note(self.busy.get(), now);
                self.peak.set(peak);
                peak.now.max(peak.before).clamp(AUTO_LEAST, AUTO_MOST)
            }
        }
    }
}

fn is_of(connection: &Connection, peer: &Peer, dial: &Dial) -> bool {
    connection.peer() == peer.id && connection.dial() == dial
}

impl Drop for Pool {
    fn drop(&mut self) {
        // The watching task ends once it looks for the pool in vain.
        if let Some(watcher) = self.watcher.borrow_mut().take() {
            watcher.wake();
        }
    }
}

impl Peak {
    fn note(&mut self, busy: usize, now: Instant) {
        let started = *self.started.get_or_insert(now);
        let age = now.saturating_duration_since(started);
        if age >= AUTO_WINDOW {
            // A pause of two windows leaves nothing to remember.
            self.before = if age < AUTO_WINDOW * 2 { self.now } else { 0 };
            self.now = 0;
            self.started = Some(now);
        }
        self.now = self.now.max(busy);
    }
}

#[cfg(test)]
pub(crate) mod tests;
