//! The door to a limit's zone for requests: what to count, what other nodes have counted, and asking the engine.
//!
//! Without an engine it has the number of nodes, of which each then allows its share. Nothing here blocks or touches the network: calls go into a
//! queue, which the cluster's thread takes from. Next: `ledger` and `limiter`.

use crate::breaker::Breaker;
use crate::secret::{KeyHash, KeyHasher, hexadecimal};
use crate::settings::Settings;
use crate::tally::{Others, Unsent};
use crate::zone::LimitKind;
use millstream_net::clock;
use millstream_net::timer::within;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// Between two exchanges of a zone.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);
/// A node that has exchanged nothing for as long allows its share.
const SILENT: Duration = Duration::from_millis(500);
/// Calls that wait to be sent.
const MOST_CALLS: usize = 1024;

/// What the limits of one cluster share.
pub(crate) struct Board {
    calls: mpsc::Sender<Call>,
    breaker: Breaker,
    timeout: Duration,
    is_connected: AtomicBool,
}

impl Board {
    pub(crate) fn new(timeout: Duration) -> (Arc<Board>, mpsc::Receiver<Call>) {
        let (calls, receiver) = mpsc::channel(MOST_CALLS);
        let board = Board { calls, breaker: Breaker::new(), timeout, is_connected: AtomicBool::new(false) };
        (Arc::new(board), receiver)
    }

    pub(crate) fn connected(&self, is_connected: bool) {
        self.is_connected.store(is_connected, Ordering::Relaxed);
    }

    /// `None` if the engine does not respond in time, or is not asked because it did not before.
    async fn call<T>(&self, call: impl FnOnce(oneshot::Sender<T>) -> Call) -> Option<T> {
        if !self.is_connected.load(Ordering::Relaxed) || self.breaker.is_open(clock::now()) {
            return None;
        }
        let (reply, receiver) = oneshot::channel();
        self.calls.try_send(call(reply)).ok()?;
        match within(self.timeout, receiver).await {
            Ok(reply) => {
                let reply = reply.ok()?;
                self.breaker.succeeded();
                Some(reply)
            }
            Err(_) => {
                self.breaker.timed_out(clock::now());
                None
            }
        }
    }
}

/// What the engine is to do.
pub(crate) enum Call {
    Ask { asked: Vec<(String, u64, u64)>, reply: oneshot::Sender<RequestVerdict> },
    Begin { key: String, most: u32, reply: oneshot::Sender<bool> },
    End { key: String },
}

/// What the engine has decided about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestVerdict {
    /// Counted in all zones, with the excess of each in thousandths of a request.
    Counted(Vec<i64>),
    /// Counted in none, because of that one.
    TooMuch { at: usize, excess: i64 },
}

/// A zone's part in a question about a request.
#[derive(Debug)]
pub struct ExactRequest<'d> {
    pub door: &'d LimitDoor,
    pub key: KeyHash,
    /// Thousandths of a request a second.
    pub rate: u64,
    /// Thousandths.
    pub burst: u64,
}

/// One zone's door.
pub struct LimitDoor {
    pub(crate) kind: LimitKind,
    pub(crate) zone: String,
    is_exact: bool,
    place: String,
    hasher: KeyHasher,
    board: Arc<Board>,
    start: Instant,
    /// Milliseconds after `start`, when the last exchange began; 0 before the first.
    exchanged: AtomicU64,
    nodes: AtomicU32,
    unsent: Mutex<Unsent>,
    pub(crate) others: Mutex<Others>,
}

impl fmt::Debug for LimitDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LimitDoor({})", self.zone)
    }
}

impl LimitDoor {
    pub(crate) fn new(
        settings: &Settings,
        board: &Arc<Board>,
        (kind, zone, is_exact): (LimitKind, &str, bool),
    ) -> Arc<LimitDoor> {
        let name = sealed_name(kind, zone);
        let derived = "a key is as long as the algorithm wants";
        Arc::new(LimitDoor {
            kind,
            zone: zone.to_owned(),
            is_exact,
            place: settings.secret.place(&settings.cluster, &name).expect(derived),
            hasher: settings.secret.hasher(&settings.cluster, &name).expect(derived),
            board: board.clone(),
            start: clock::now(),
            exchanged: AtomicU64::new(0),
            nodes: AtomicU32::new(1),
            unsent: Mutex::default(),
            others: Mutex::default(),
        })
    }

    pub fn kind(&self) -> LimitKind {
        self.kind
    }

    pub fn zone(&self) -> &str {
        &self.zone
    }

    /// Whether the engine decides about each request.
    #[inline]
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Whether one call can ask about both.
    pub fn is_beside(&self, other: &LimitDoor) -> bool {
        Arc::ptr_eq(&self.board, &other.board)
    }

    pub fn hash(&self, key: &[u8]) -> KeyHash {
        self.hasher.hash(key)
    }

    /// By how many nodes a limit is to be divided that this node decides about now: 1 while what they count is exchanged. One with
    /// `sync=exact` is decided about here only if the engine does not respond.
    pub fn divisor(&self, now: Instant) -> u32 {
        if self.is_exact || self.is_alone(now) { self.nodes() } else { 1 }
    }

    /// Whether nothing has been exchanged for a while, or yet.
    pub fn is_alone(&self, now: Instant) -> bool {
        match self.exchanged.load(Ordering::Relaxed) {
            0 => true,
            after => now.saturating_duration_since(self.start + Duration::from_millis(after)) >= SILENT,
        }
    }

    /// As last known, this one included.
    pub fn nodes(&self) -> u32 {
        self.nodes.load(Ordering::Relaxed)
    }

    /// This node has let a request in.
    pub fn let_in(&self, key: KeyHash) {
        self.unsent(|unsent| unsent.change(key, |count| *count = count.saturating_add(1)));
    }

    /// So many are under way on this node now.
    pub fn under_way(&self, key: KeyHash, count: u32) {
        self.unsent(|unsent| unsent.change(key, |known| *known = count));
    }

    /// Requests under way on other nodes.
    pub fn elsewhere(&self, key: &KeyHash, now: Instant) -> u32 {
        self.others(|others| others.of(key, now))
    }

    /// Counts that other nodes were not given, or that were not kept of them, for want of room.
    pub fn left_out(&self) -> u64 {
        self.unsent(|unsent| unsent.left_out) + self.others(|others| others.left_out)
    }

    pub(crate) fn unsent<T>(&self, with: impl FnOnce(&mut Unsent) -> T) -> T {
        // Nothing panics half-way through a change.
        with(&mut self.unsent.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn others<T>(&self, with: impl FnOnce(&mut Others) -> T) -> T {
        with(&mut self.others.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// An exchange that began then has ended; `nodes` take part.
    pub(crate) fn exchanged(&self, at: Instant, nodes: u32) {
        let after = at.saturating_duration_since(self.start).as_millis() as u64;
        self.exchanged.store(after.max(1), Ordering::Relaxed);
        self.nodes.store(nodes, Ordering::Relaxed);
    }

    /// Asks the engine whether a request may be let in by zones of one cluster. `None`: it does not respond; at most `timeout` has passed.
    pub async fn ask(&self, asked: &[ExactRequest<'_>]) -> Option<RequestVerdict> {
        let asked = asked.iter().map(|one| (one.door.exact_key(&one.key), one.rate, one.burst)).collect();
        self.board.call(|reply| Call::Ask { asked, reply }).await
    }

    /// Asks the engine whether one more may be under way, and counts it. `None` as for [`LimitDoor::ask`].
    pub async fn begin(&self, key: &KeyHash, most: u32) -> Option<bool> {
        self.board.call(|reply| Call::Begin { key: self.exact_key(key), most, reply }).await
    }

    /// One that the engine has counted has ended. If the engine does not hear of it, it forgets it.
    pub fn end(&self, key: &KeyHash) {
        if self.board.is_connected.load(Ordering::Relaxed) {
            _ = self.board.calls.try_send(Call::End { key: self.exact_key(key) });
        }
    }

    pub(crate) fn exact_key(&self, key: &KeyHash) -> String {
        format!("{}{}", self.place, hexadecimal(key))
    }

    pub(crate) fn stream(&self) -> String {
        format!("{}usage", self.place)
    }
}

/// Under which a zone of a limit is sealed: no zone of a cache has such a name.
pub(crate) fn sealed_name(kind: LimitKind, zone: &str) -> String {
    match kind {
        LimitKind::Requests => format!("limit_req\n{zone}"),
        LimitKind::Connections => format!("limit_conn\n{zone}"),
    }
}
