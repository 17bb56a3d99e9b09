//! The door to a zone's cluster for requests: whether this node is cut off, giving orders, and waiting until they are in force.
//!
//! Nothing here blocks or touches the network: orders go into a queue, which the cluster's thread takes from. Next: `member`.

use crate::account::Account;
use crate::breaker::Breaker;
use crate::key_print::KeyPrint;
use crate::order::{How, Issuer, What};
use crate::peers::Peer;
use crate::settings::{Guard, Settings};
use crate::standing::Standing;
use millstream_net::clock;
use millstream_net::timer::{Deadline, with_deadline, within};
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot, watch};

/// Orders that wait to be numbered. Past that all of them become one for everything.
const MOST_QUEUED: usize = 65_536;

/// What stands in a report for nodes that this one has not seen since the engine lost its list of them.
const UNSEEN: &str = "other nodes";

/// One zone's door.
pub struct Door {
    pub(crate) zone: String,
    pub(crate) node: String,
    pub(crate) standing: Standing,
    pub(crate) wake: Notify,
    pub(crate) view: watch::Sender<View>,
    queue: Mutex<Vec<Given>>,
    awaiting: AtomicUsize,
    breaker: Breaker,
    account: Account,
    /// A [`KeyPrint`]; a reload may change it.
    keys: AtomicU64,
    timeout: Duration,
    /// Only tests take it out.
    cuts_off: bool,
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Door({})", self.zone)
    }
}

/// An order on its way to the journal.
pub(crate) struct Given {
    pub(crate) what: What,
    pub(crate) how: How,
    /// Milliseconds since 1970.
    pub(crate) at: i64,
    pub(crate) awaited: bool,
    pub(crate) placed: Vec<oneshot::Sender<Placed>>,
}

/// An order that is in the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed {
    pub(crate) issuer: Issuer,
    pub(crate) number: u64,
    /// It was in the log by then.
    pub(crate) at: Instant,
}

/// The cluster as this node knows it.
#[derive(Debug, Clone, Default)]
pub(crate) struct View {
    /// When the engine was asked for it; `None` before the first time.
    pub(crate) at: Option<Instant>,
    pub(crate) epoch: u64,
    pub(crate) head: u64,
    pub(crate) sequence: u64,
    pub(crate) peers: Vec<(Issuer, Peer)>,
    /// Why the engine is not reached.
    pub(crate) failure: Option<String>,
    /// Since when this node is not confirmed; `None` while it is.
    pub(crate) cut_off_since: Option<Instant>,
    pub(crate) is_replaying: bool,
    /// Until then there may be nodes that serve and that this one has not seen.
    pub(crate) unsure_until: Option<Instant>,
    /// Given here and in no log yet.
    pub(crate) unpublished: usize,
}

/// A node as an order reached it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReport {
    pub name: String,
    pub state: NodeState,
}

/// How far an order came at a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeState {
    InForce,
    /// It has not confirmed it yet.
    Waiting,
    /// It confirms every response with the upstream until it is back and has carried the order out.
    CutOff(Duration),
    /// Its keys or tags are made in another way, so it may have stored what the order names under another one.
    DifferentKeys,
}

/// How far an order came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    /// Whether it is in the log. Otherwise this node publishes it when the engine is back.
    pub is_published: bool,
    /// This node first, the others by name.
    pub nodes: Vec<NodeReport>,
    /// Whether the nodes were looked at after it was in the log: one that came back before had to read it.
    is_current: bool,
}

impl Reached {
    /// Whether no node serves what it is about any more.
    pub fn is_everywhere(&self) -> bool {
        self.is_final() && self.nodes.iter().all(|node| node.state != NodeState::DifferentKeys)
    }

    /// Whether there is nothing to wait for.
    fn is_final(&self) -> bool {
        self.is_published && self.is_current && self.nodes.iter().all(|node| node.state != NodeState::Waiting)
    }
}

impl Door {
    pub(crate) fn new(settings: &Settings, zone: &str) -> Arc<Door> {
        Arc::new(Door {
            zone: zone.to_owned(),
            node: settings.node.clone(),
            standing: Standing::new(settings.cut_off),
            wake: Notify::new(),
            view: watch::Sender::new(View { cut_off_since: Some(clock::now()), ..View::default() }),
            queue: Mutex::default(),
            awaiting: AtomicUsize::new(0),
            breaker: Breaker::new(),
            account: Account::new(),
            keys: AtomicU64::new(0),
            timeout: settings.timeout,
            cuts_off: settings.has(Guard::CutOff),
        })
    }

    pub fn zone(&self) -> &str {
        &self.zone
    }

    /// Whether what is stored must be confirmed before it is served. `now` is in milliseconds since 1970. One
    /// read of memory that is written about once a second.
    #[inline]
    pub fn is_cut_off(&self, now: i64) -> bool {
        self.cuts_off && self.standing.is_cut_off(now)
    }

    /// Gives an order that is in force here already. `awaited` if someone waits until it is in force
    /// everywhere. It travels even if the result is dropped.
    pub fn publish(self: &Arc<Self>, what: What, how: How, awaited: bool) -> Publication {
        let (placed, receiver) = oneshot::channel();
        // Counted before the order can be published: whoever publishes it then looks for the other nodes at once.
        let waiting = Waiting::new(self, awaited);
        let at = clock::wall().unix_milliseconds();
        let by_name = what != What::All;
        let mut queue = self.lock();
        let (mut what, mut how, mut all) = (what.bounded(), how, vec![placed]);
        if queue.len() >= MOST_QUEUED {
            all.extend(queue.drain(..).flat_map(|given| given.placed));
            (what, how) = (What::All, How::Hard);
        }
        queue.push(Given { what, how, at, awaited, placed: all });
        drop(queue);
        self.wake.notify_one();
        Publication { receiver, waiting, by_name }
    }

    /// What the zone's keys are made of on this node.
    pub fn set_keys(&self, print: KeyPrint) {
        self.keys.store(print.0, Ordering::Relaxed);
    }

    pub(crate) fn keys(&self) -> KeyPrint {
        KeyPrint(self.keys.load(Ordering::Relaxed))
    }

    pub(crate) fn take(&self) -> Vec<Given> {
        std::mem::take(&mut self.lock())
    }

    /// Whether someone waits for other nodes.
    pub(crate) fn is_awaited(&self) -> bool {
        self.awaiting.load(Ordering::Relaxed) > 0
    }

    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Times that requests stopped waiting for the engine.
    pub fn breaker_opened(&self) -> u64 {
        self.breaker.opened()
    }

    /// The nodes as this one knows them now.
    pub fn shown(&self) -> Shown {
        let view = self.view.borrow().clone();
        let now = clock::now();
        let shown = |(issuer, peer): &(Issuer, Peer)| ShownNode {
            name: peer.beat.name.clone(),
            id: issuer.to_string(),
            lag: view.head.saturating_sub(peer.beat.sequence),
            sequence: peer.beat.sequence,
            cut_off: view.at.and_then(|at| peer.cut_off(at)),
            has_different_keys: peer.beat.keys != self.keys(),
            silent: peer.silent(now),
        };
        let mut nodes: Vec<ShownNode> = view.peers.iter().map(shown).collect();
        nodes.sort_by(|one, other| one.name.cmp(&other.name));
        Shown {
            zone: self.zone.clone(),
            node: self.node.clone(),
            epoch: view.epoch,
            head: view.head,
            sequence: view.sequence,
            cut_off: view.cut_off_since.map(|since| now.saturating_duration_since(since)),
            is_replaying: view.is_replaying,
            unpublished: view.unpublished,
            carried_out: self.account.carried_out(),
            breaker_opened: self.breaker.opened(),
            failure: view.failure,
            nodes,
        }
    }

    /// Nothing panics half-way through a change of the queue.
    fn lock(&self) -> MutexGuard<'_, Vec<Given>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A zone's cluster, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    pub zone: String,
    /// Name of this node.
    pub node: String,
    pub epoch: u64,
    /// Number of the log's last entry, as far as known.
    pub head: u64,
    /// Number of the last one that this node has carried out.
    pub sequence: u64,
    /// For how long this node has been cut off; `None` if it is not.
    pub cut_off: Option<Duration>,
    pub is_replaying: bool,
    /// Orders of this node that no other knows yet.
    pub unpublished: usize,
    /// Orders of other nodes that this one has carried out.
    pub carried_out: u64,
    pub breaker_opened: u64,
    /// Why the engine is not reached.
    pub failure: Option<String>,
    /// The other nodes.
    pub nodes: Vec<ShownNode>,
}

/// Another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownNode {
    pub name: String,
    pub id: String,
    pub sequence: u64,
    /// Entries that it has not carried out yet.
    pub lag: u64,
    pub cut_off: Option<Duration>,
    /// Its keys or tags are made in another way: see [`NodeState::DifferentKeys`].
    pub has_different_keys: bool,
    pub silent: Duration,
}

/// Counts those who wait for other nodes.
struct Waiting {
    door: Arc<Door>,
    counts: bool,
}

impl Waiting {
    fn new(door: &Arc<Door>, counts: bool) -> Waiting {
        if counts {
            door.awaiting.fetch_add(1, Ordering::Relaxed);
        }
        Waiting { door: door.clone(), counts }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.counts {
            self.door.awaiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// An order that was given. Dropped, it travels all the same.
pub struct Publication {
    receiver: oneshot::Receiver<Placed>,
    waiting: Waiting,
    /// Of a key, a prefix or a tag.
    by_name: bool,
}

impl Publication {
    /// Waits until the order is in the log, at most `timeout`, and not at all while the engine does not
    /// respond.
    pub async fn sent(self) {
        let Publication { receiver, waiting, .. } = self;
        let door = &waiting.door;
        let now = clock::now();
        if door.breaker.is_open(now) {
            return;
        }
        match within(door.timeout, receiver).await {
            Ok(_) => door.breaker.succeeded(),
            Err(_) => door.breaker.timed_out(clock::now()),
        }
    }

    /// Waits until no node serves what the order is about, at most `longest`.
    pub async fn reached(self, longest: Duration) -> Reached {
        let Publication { receiver, waiting, by_name } = self;
        let door = &waiting.door;
        let mut deadline = Deadline::new();
        deadline.set(clock::now() + longest);
        let placed = match with_deadline(&mut deadline, receiver).await {
            Ok(Ok(placed)) => placed,
            _ => return door.report(None, by_name),
        };
        let mut view = door.view.subscribe();
        loop {
            let reached = door.report(Some(placed), by_name);
            if reached.is_final() || with_deadline(&mut deadline, view.changed()).await.is_err() {
                return reached;
            }
        }
    }
}

impl Door {
    /// Without a place the order is in no log.
    fn report(&self, placed: Option<Placed>, by_name: bool) -> Reached {
        let view = self.view.borrow();
        let is_current = placed.is_none_or(|placed| view.at.is_some_and(|at| at >= placed.at));
        let state = |peer: &Peer| match placed {
            _ if by_name && peer.beat.keys != self.keys() => NodeState::DifferentKeys,
            Some(placed) if peer.beat.has(placed.issuer, placed.number) => NodeState::InForce,
            _ if !is_current => NodeState::Waiting,
            _ => view.at.and_then(|at| peer.cut_off(at)).map_or(NodeState::Waiting, NodeState::CutOff),
        };
        let report =
            |(_, peer): &(Issuer, Peer)| NodeReport { name: peer.beat.name.clone(), state: state(peer) };
        let mut nodes: Vec<NodeReport> = view.peers.iter().map(report).collect();
        nodes.sort_by(|one, other| one.name.cmp(&other.name));
        if view.unsure_until.is_some_and(|until| clock::now() < until) {
            nodes.push(NodeReport { name: UNSEEN.to_owned(), state: NodeState::Waiting });
        }
        nodes.insert(0, NodeReport { name: self.node.clone(), state: NodeState::InForce });
        Reached { is_published: placed.is_some(), nodes, is_current }
    }
}
