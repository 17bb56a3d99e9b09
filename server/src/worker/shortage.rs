//! A shortage of connections or descriptors: which connections are asked to close, in which order, and since when they wait.
//!
//! Nobody is closed here: a connection that is asked hears it by its waker, and ends when it may.

use super::Worker;
use millstream_telemetry::metrics::Counter;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// A connection that became idle this recently is not closed to make room: a request may be on its way already.
const IDLE_GRACE: Duration = Duration::from_millis(200);
/// The same for one whose head or handshake began this recently: it may come over a slow line.
const HEAD_GRACE: Duration = Duration::from_millis(500);
/// The same for one whose client may still be reading the answer: a reset could overtake it.
const CLOSE_GRACE: Duration = Duration::from_millis(500);
/// The same for a body: lines that stall for a second go on.
const BODY_GRACE: Duration = Duration::from_secs(2);
/// What a byte of a head or body is worth of waiting.
const PER_BYTE: Duration = Duration::from_millis(1);
/// What bytes may be worth in advance. Without it whoever sent a lot at once would be behind whoever was seen a moment later.
const MOST_IN_ADVANCE: Duration = Duration::from_secs(1);
/// How long a request waits for a place for its connection to an upstream while idle clients are asked to close.
const UPSTREAM_WAIT: Duration = Duration::from_secs(2);
/// How long it waits for a descriptor while newcomers wait for places.
const DESCRIPTOR_WAIT: Duration = Duration::from_secs(5);
/// Between two lines about a shortage of connections or descriptors.
const COMPLAINT_PAUSE: Duration = Duration::from_secs(10);
/// Connections closed at a time to make room for new ones.
const SHED_AT_ONCE: usize = 16;

/// What a connection waits for from its client, and since when. The order is that in which they close to make room: what
/// nobody misses first, what would cost its client most last, and within that the longest wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaits {
    /// The client's close: it has its answer, or gets none.
    Close(Instant),
    /// The first byte of a request.
    Request(Instant),
    /// The rest of a head, or of a handshake.
    Head(Instant),
    /// The rest of a body, or that the client takes more of the response.
    Body(Instant),
}

impl Awaits {
    /// Whether it has waited long enough to be asked to close.
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

/// Since when a client may be said to have sent nothing, having sent so many bytes since `began`. Whoever sends more than
/// a thousand bytes a second waits for nothing, however long it takes; whoever renews its connections or sends a byte now and
/// then gains no more than its bytes are worth. It may lie ahead by a second at most.
pub fn idle_since(began: Instant, bytes: usize, now: Instant) -> Instant {
    let worth = PER_BYTE.saturating_mul(u32::try_from(bytes).unwrap_or(u32::MAX));
    let latest = now + MOST_IN_ADVANCE;
    began.checked_add(worth).map_or(latest, |since| since.min(latest))
}

/// Whether the last complaint is long enough ago for one now.
fn is_due(complained: &Cell<Option<Instant>>, now: Instant) -> bool {
    let due = complained.get().is_none_or(|then| now.saturating_duration_since(then) >= COMPLAINT_PAUSE);
    if due {
        complained.set(Some(now));
    }
    due
}

impl Worker {
    /// Whether a complaint about a shortage is due.
    pub fn may_complain(&self, now: Instant) -> bool {
        is_due(&self.complained, now)
    }

    /// The same about copies of requests, which are dropped.
    pub fn may_complain_of_copies(&self, now: Instant) -> bool {
        is_due(&self.complained_of_copies, now)
    }

    /// Whether a request that has waited so long for a place for its connection to an upstream goes on waiting: some client is idle and
    /// will close, or descriptors are short and no newcomer waits for them too. What upstreams hold is given back at their pace.
    pub(super) fn may_wait_for_upstream(&self, now: Instant, waited: Duration) -> bool {
        match self.lacks_descriptors() {
            true => !self.is_short() || waited < DESCRIPTOR_WAIT,
            false => self.spare_idle(now) && waited < UPSTREAM_WAIT,
        }
    }

    /// Asks as many clients that send no body to close as requests wait for a place for their connections to upstreams, or, if that is of no
    /// use, as many tunnels that idle. Whether there will be room: a place that a newcomer takes is none, nor one of those kept for clients.
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
        let most = self.waiting_for_upstream.get().min(SHED_AT_ONCE);
        let bound = self.generation.borrow().shared.bounds.upstreams;
        if self.connected() + self.waiting.get() >= bound + idle {
            return self.shed_tunnels(most, now);
        }
        self.shed(found, most.saturating_sub(asked));
        true
    }

    /// Asks connections to close, for want of places or of descriptors, in the order of [`Awaits`]. Tunnels that idle, and then bodies, only
    /// where nothing else can be spared, and no more of them than newcomers wait.
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
            most = self.waiting.get().clamp(1, SHED_AT_ONCE);
            if self.shed_tunnels(most, now) || found.is_empty() {
                return;
            }
        } else {
            found.retain(|(awaits, _)| !matches!(awaits, Awaits::Body(_)));
        }
        self.shed(found, most);
    }

    /// Asks so many of these at the most, in their order.
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
