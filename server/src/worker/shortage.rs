//! A shortage of connections or descriptors: which connections are asked to close, in which order, and since when they wait.
//!
//! Nobody is closed here: a connection that is asked hears it by its waker, and ends when it may.

use super::Worker;
use millstream_telemetry::metrics::Counter;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// A connection idle for less is not closed to make room: a request may be on its way.
const IDLE_GRACE: Duration = Duration::from_millis(200);
/// The same for a head or handshake: it may come over a slow line.
const HEAD_GRACE: Duration = Duration::from_millis(500);
/// The same for a client that may still read the response: a reset could overtake it.
const CLOSE_GRACE: Duration = Duration::from_millis(500);
/// The same for a body: lines that stall for a second go on.
const BODY_GRACE: Duration = Duration::from_secs(2);
/// Waiting time that a byte of a head or body is worth.
const PER_BYTE: Duration = Duration::from_millis(1);
/// Most credit for bytes. Without it a client that sent a lot at once would fall behind one seen a moment
/// later.
const MOST_IN_ADVANCE: Duration = Duration::from_secs(1);
/// How long a request waits for an upstream slot while idle clients are asked to close.
const UPSTREAM_WAIT: Duration = Duration::from_secs(2);
/// How long it waits for a descriptor while new connections wait for slots.
const DESCRIPTOR_WAIT: Duration = Duration::from_secs(5);
/// Pause between two log lines about a shortage.
const COMPLAINT_PAUSE: Duration = Duration::from_secs(10);
const SHED_AT_ONCE: usize = 16;

/// What a connection awaits from its client, and since when. Ordered by who closes first to make room: what
/// no one misses first, what costs the client most last, and then the longest wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaits {
    /// It has its response, or gets none.
    Close(Instant),
    Request(Instant),
    Head(Instant),
    /// Or that the client takes more of the response.
    Body(Instant),
}

impl Awaits {
    fn may_close(self, now: Instant) -> bool {
        let (since, grace) = match self {
            Awaits::Close(since) => (since, CLOSE_GRACE),
            Awaits::Request(since) => (since, IDLE_GRACE),
            Awaits::Head(since) => (since, HEAD_GRACE),
            Awaits::Body(since) => (since, BODY_GRACE),
        };
        now.saturating_duration_since(since) >= grace
    }
}

/// Since when a client counts as silent after this many bytes since `began`. A thousand bytes a second count
/// as no wait at all; reconnecting or an occasional byte gains only what the bytes are worth. At most a
/// second in the future.
pub fn idle_since(began: Instant, bytes: usize, now: Instant) -> Instant {
    let worth = PER_BYTE.saturating_mul(u32::try_from(bytes).unwrap_or(u32::MAX));
    let latest = now + MOST_IN_ADVANCE;
    began.checked_add(worth).map_or(latest, |since| since.min(latest))
}

fn is_due(complained: &Cell<Option<Instant>>, now: Instant) -> bool {
    let due = complained.get().is_none_or(|then| now.saturating_duration_since(then) >= COMPLAINT_PAUSE);
    if due {
        complained.set(Some(now));
    }
    due
}

impl Worker {
    pub fn may_complain(&self, now: Instant) -> bool {
        is_due(&self.complained, now)
    }

    pub fn may_complain_of_copies(&self, now: Instant) -> bool {
        is_due(&self.complained_of_copies, now)
    }

    /// Whether a request goes on waiting for an upstream slot: an idle client will close, or descriptors are
    /// short and no new connection waits for them. Upstreams release theirs at their own pace.
    pub(super) fn may_wait_for_upstream(&self, now: Instant, waited: Duration) -> bool {
        match self.lacks_descriptors() {
            true => !self.is_short() || waited < DESCRIPTOR_WAIT,
            false => self.spare_idle(now) && waited < UPSTREAM_WAIT,
        }
    }

    /// Asks as many clients without a body in progress to close as requests wait for upstream slots, or else
    /// idle tunnels. Returns whether there will be room: a slot for a new connection is none, nor one
    /// reserved for clients.
    fn spare_idle(&self, now: Instant) -> bool {
        let is_idle = |awaits: Awaits| !matches!(awaits, Awaits::Body(_));
        let (mut asked, mut found, mut idle) = (0, Vec::new(), 0);
        for (key, entry) in self.connections.borrow().iter() {
            let Some(awaits) = entry.awaits.filter(|awaits| is_idle(*awaits)) else { continue };
            idle += 1;
            if entry.is_shed {
                asked += 1;
            } else if awaits.may_close(now) {
                found.push((awaits, key));
            }
        }
        let most = self.upstream_seekers.waiting().min(SHED_AT_ONCE);
        let bound = self.generation.borrow().shared.bounds.upstreams;
        if self.connected() + self.newcomers.waiting() >= bound + idle {
            return self.shed_tunnels(most, now);
        }
        self.shed(found, most.saturating_sub(asked));
        true
    }

    /// Asks connections to close for slots or descriptors, in the order of [`Awaits`]. Idle tunnels, and then
    /// bodies, only if nothing else can be closed, and no more than new connections wait.
    pub fn make_room(&self, now: Instant) {
        let mut found: Vec<(Awaits, usize)> = self
            .connections
            .borrow()
            .iter()
            .filter(|(_, entry)| !entry.is_shed)
            .filter_map(|(key, entry)| Some((entry.awaits.filter(|awaits| awaits.may_close(now))?, key)))
            .collect();
        let mut most = SHED_AT_ONCE;
        if found.iter().all(|(awaits, _)| matches!(awaits, Awaits::Body(_))) {
            // Then what the upstream pools keep is what can be spared.
            self.clear_pools();
            if self.is_short() && self.has_room() {
                return;
            }
            most = self.newcomers.waiting().clamp(1, SHED_AT_ONCE);
            if self.shed_tunnels(most, now) || found.is_empty() {
                return;
            }
        } else {
            found.retain(|(awaits, _)| !matches!(awaits, Awaits::Body(_)));
        }
        self.shed(found, most);
    }

    fn shed(&self, mut found: Vec<(Awaits, usize)>, most: usize) {
        if found.len() > most {
            if most > 0 {
                found.select_nth_unstable(most - 1);
            }
            found.truncate(most);
        }
        self.metrics.add(Counter::ConnectionsShed, found.len() as u64);
        let mut connections = self.connections.borrow_mut();
        for (_, key) in found {
            let entry = &mut connections[key];
            entry.is_shed = true;
            if let Some(waker) = &entry.waker {
                waker.wake_by_ref();
            }
        }
    }
}
