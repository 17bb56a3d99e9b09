//! One version of a group: who its peers are, and whose turn it is.
//!
//! A version never changes; what moves (loads, failures, turns) is shared with the versions before and after. A worker
//! holds on to the version in force ([`Version`]), and a request to the one that it began with. A [`Turn`] is the right to
//! talk to one peer and is used up by saying how that went. Next: `balance`, which decides; `group`, which makes versions.

use crate::account::PeerAccount;
use crate::balance::{Ask, Balance, Set};
use crate::health::Change;
use crate::outlier::Outliers;
use crate::peer::{Member, Peer};
use crate::queue::Queue;
use crate::sessions::{Lesson, SessionKey, Sessions};
use crate::times::{Times, Timing};
use crate::tried::Tried;
use millstream_conf::model::{BalanceMethod, HealthTerms, TimeTo};
use millstream_net::address::Address;
use millstream_net::clock;
use millstream_telemetry::metrics::PeerCells;
use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

mod outliers;

/// No live server: nginx's `no live upstreams`, which becomes 502.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPeer;

/// An immutable version of the peers of a group.
#[derive(Debug)]
pub struct Peers {
    pub(crate) group: Arc<str>,
    pub(crate) number: u64,
    /// Primary servers, then backups.
    pub(crate) members: Box<[Member]>,
    pub(crate) proper: usize,
    /// Servers that one request may try: those not `down`.
    tries: u32,
    turns: Turns,
    queue: Option<Arc<Queue>>,
    outliers: Option<Arc<Outliers>>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct CommonParts<'g> {
    pub(crate) lock: &'g Arc<Mutex<()>>,
    pub(crate) queue: Option<&'g Arc<Queue>>,
    pub(crate) outliers: Option<&'g Arc<Outliers>>,
}

#[derive(Debug)]
enum Turns {
    Dead,
    /// One peer: always its turn, unless it is full (`max_conns`) or a health check keeps it out.
    Only {
        counts: bool,
    },
    Many {
        balance: Balance,
        /// Whether the number of each peer's requests is needed.
        counts: bool,
        /// Taken to compare all peers; the same in all versions.
        lock: Arc<Mutex<()>>,
    },
}

/// A worker's reference to a version, counted without touching what other threads read.
#[derive(Debug, Clone)]
pub struct Version(Rc<Hold>);

/// A version with the worker's part of each member's counts.
#[derive(Debug)]
struct Hold {
    peers: Arc<Peers>,
    counts: Box<[Arc<PeerCells>]>,
}

/// The right to use one peer, counted as active while it exists. Dropping it says nothing about the peer.
#[must_use = "a turn counts as an active connection until it is used up"]
#[derive(Debug)]
pub struct Turn {
    version: Version,
    index: usize,
    /// Present if the balancing method needs times.
    timed: Option<Box<Timed>>,
    lesson: Option<Box<Lesson>>,
}

#[derive(Debug)]
struct Timed {
    timing: Timing,
    began: Instant,
    head: Cell<Option<Duration>>,
    underway: Cell<bool>,
}

impl Peers {
    /// The first `proper` members are primary.
    pub(crate) fn new(
        (group, number): (Arc<str>, u64),
        method: BalanceMethod,
        members: Vec<Member>,
        proper: usize,
        CommonParts { lock, queue, outliers }: CommonParts<'_>,
    ) -> Peers {
        let limited = members.iter().any(|member| member.parameters.max_conns > 0);
        let turns = match &*members {
            [] => Turns::Dead,
            [only] if only.parameters.down => Turns::Dead,
            [_] => Turns::Only { counts: limited },
            all => {
                let balance = Balance::new(method, &all[..proper]);
                Turns::Many { counts: limited || balance.counts(), balance, lock: lock.clone() }
            }
        };
        let is_tried = |member: &&Member| !member.parameters.down && !member.parameters.drain;
        let tries = members.iter().filter(is_tried).count() as u32;
        let (queue, outliers) = (queue.cloned(), outliers.cloned());
        Peers { group, number, members: members.into(), proper, tries, turns, queue, outliers }
    }

    pub fn group(&self) -> &str {
        &self.group
    }

    pub fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.members.iter().map(|member| &member.peer)
    }

    pub fn has(&self, id: u64) -> bool {
        self.iter().any(|peer| peer.id == id)
    }

    /// `limit` is `proxy_next_upstream_tries`, 0 for the number of servers.
    pub fn tried(&self, limit: u32) -> Tried {
        Tried::new(if limit == 0 { self.tries } else { self.tries.min(limit) })
    }

    /// 0 if the count is not needed.
    pub fn active(&self, peer: &Peer) -> u32 {
        self.members
            .iter()
            .find(|member| member.peer.id == peer.id)
            .map_or(0, |member| member.standing.active())
    }

    pub fn checked_peers(&self) -> impl Iterator<Item = &Peer> {
        let is_used =
            |member: &&Member| !member.parameters.down && member.peer.address != Address::Unix(None);
        self.members.iter().filter(is_used).map(|member| &member.peer)
    }

    /// Records a result of the group's check of that index. Returns a change, which applies to all workers
    /// from their next choice on.
    pub fn checked(
        &self,
        peer: &Peer,
        check: (usize, &HealthTerms),
        passed: bool,
        now: Instant,
    ) -> Option<Change> {
        let member = self.members.iter().find(|member| member.peer.id == peer.id)?;
        let change = member.standing.checked(&member.parameters, check, passed, now);
        if let (Some(Change::Healthy), Some(queue)) = (change, &self.queue) {
            queue.call();
        }
        change
    }

    pub fn queue(&self) -> Option<&Arc<Queue>> {
        self.queue.as_ref()
    }

    /// When the next peer kept out by failures is tried again.
    pub fn next_return(&self) -> Option<Instant> {
        let returns = self.members.iter().filter(|member| !member.parameters.down);
        returns.filter_map(|member| member.standing.returns_at(&member.parameters)).min()
    }

    pub fn accounts(&self, now: Instant) -> impl Iterator<Item = PeerAccount> {
        let all = self.members.iter().enumerate();
        all.map(move |(index, member)| PeerAccount::of(member, index >= self.proper, now))
    }

    fn choose(&self, ask: &mut Ask<'_>) -> Option<usize> {
        let (balance, lock, counts) = match &self.turns {
            Turns::Dead => return None,
            Turns::Only { counts } => {
                let only = &self.members[0];
                let is_own = || ask.session == Some(only.session_name.as_bytes());
                if only.parameters.drain && !is_own() {
                    return None;
                }
                if !only.standing.health().is_well() || *counts && !only.standing.enter(&only.parameters) {
                    return None;
                }
                only.standing.select(ask.now);
                return Some(0);
            }
            Turns::Many { balance, lock, counts } => (balance, lock, *counts),
        };
        // One that fills up between the look and the step is looked at no more, so this ends.
        for _ in 0..=self.members.len() {
            let index = self.choose_of_many(balance, lock, ask)?;
            let member = &self.members[index];
            if counts && !member.standing.enter(&member.parameters) {
                continue;
            }
            member.standing.open_window(&member.parameters, ask.now);
            member.standing.select(ask.now);
            ask.tried.add(index);
            return Some(index);
        }
        None
    }

    fn choose_of_many(&self, balance: &Balance, lock: &Mutex<()>, ask: &mut Ask<'_>) -> Option<usize> {
        if !ask.tried.backup {
            let proper = Set::new(&self.members[..self.proper], 0, lock);
            if let Some(index) = balance.choose(proper, ask) {
                return Some(index);
            }
            ask.tried.backup = true;
        }
        balance.choose_backup(Set::new(&self.members[self.proper..], self.proper, lock), ask)
    }

    fn timing(&self) -> Option<Timing> {
        match &self.turns {
            Turns::Many { balance, .. } => balance.timing(),
            Turns::Only { .. } | Turns::Dead => None,
        }
    }

    fn counts(&self) -> bool {
        matches!(self.turns, Turns::Only { counts: true } | Turns::Many { counts: true, .. })
    }
}

impl Version {
    pub fn of(peers: Arc<Peers>) -> Version {
        let counts = peers.members.iter().map(|member| member.counts.part()).collect();
        Version(Rc::new(Hold { peers, counts }))
    }

    /// The next live peer that the request has not tried and that is not full; a backup if no other is left.
    /// Errors: [`NoPeer`], also if others wait in the group's queue.
    pub fn choose(&self, ask: Ask<'_>) -> Result<Turn, NoPeer> {
        match &self.queue {
            Some(queue) if queue.is_waited_in() => Err(NoPeer),
            _ => self.choose_waiting(ask),
        }
    }

    /// The same for a request that waits in the queue, or need not.
    pub fn choose_waiting(&self, mut ask: Ask<'_>) -> Result<Turn, NoPeer> {
        let mut index = self.0.peers.choose(&mut ask);
        if index.is_none() && self.needs_outliers(ask.now) && self.recall(ask.now) {
            ask.tried.forget_search();
            index = self.0.peers.choose(&mut ask);
        }
        let Some(index) = index else {
            ask.tried.forget_search();
            return Err(NoPeer);
        };
        ask.tried.left = ask.tried.left.saturating_sub(1);
        self.0.counts[index].enter();
        let timed = self.timing().map(|timing| Box::new(Timed::new(timing, ask.now)));
        let turn = Turn { version: self.clone(), index, timed, lesson: None };
        if let Some(timed) = &turn.timed {
            turn.times().enter(turn.member().parameters.fail_timeout, timed.timing.inflight, ask.now);
        }
        Ok(turn)
    }
}

impl Deref for Version {
    type Target = Peers;

    fn deref(&self) -> &Peers {
        &self.0.peers
    }
}

impl Turn {
    pub fn peer(&self) -> &Peer {
        &self.member().peer
    }

    pub fn session_name(&self) -> &str {
        &self.member().session_name
    }

    /// Learns a session for its peer: at once, or when the exchange succeeds. `creates`: it may begin by
    /// this.
    pub fn learn(&mut self, sessions: &Arc<Sessions>, name: &[u8], creates: bool, at_once: Option<Instant>) {
        let lesson = Lesson { sessions: sessions.clone(), key: SessionKey::of(name), creates };
        match at_once {
            Some(now) => self.teach(&lesson, now),
            None => self.lesson = Some(Box::new(lesson)),
        }
    }

    fn teach(&self, lesson: &Lesson, now: Instant) {
        lesson.sessions.learn(lesson.key, lesson.creates, &self.member().session_name, now);
    }

    pub fn answered(&self, at: Instant) {
        let Some(timed) = &self.timed else { return };
        let time = at.saturating_duration_since(timed.began);
        timed.head.set(Some(time));
        // What counts while it is under way counts at once; else nothing counts before all of it has gone well.
        if timed.timing == (Timing { to: TimeTo::Header, inflight: true }) {
            self.times().head(time);
            timed.leave(self.times(), at);
        }
    }

    /// The outcome for outlier detection: the status, or `None` if the exchange failed.
    pub fn judged(&self, status: Option<u16>) {
        let Some(outliers) = &self.version.outliers else { return };
        let is_error = status.is_none_or(|status| outliers.terms.is_error(status));
        self.counts().judged(is_error);
        let in_a_row = self.member().standing.judged(is_error);
        if is_error {
            outliers.note(in_a_row);
        }
    }

    pub fn succeeded(mut self, at: Instant) {
        if let Turns::Many { .. } = self.version.turns {
            self.member().standing.succeeded(&self.member().parameters);
        }
        if let Some(lesson) = self.lesson.take() {
            self.teach(&lesson, at);
        }
        let Some(timed) = &self.timed else { return };
        timed.leave(self.times(), at);
        if let Some(head) = timed.head.get() {
            self.times().whole(at.saturating_duration_since(timed.began));
            if timed.timing != (Timing { to: TimeTo::Header, inflight: true }) {
                self.times().head(head);
            }
        }
    }

    /// Returns whether this takes the peer out, which deserves a warning.
    pub fn failed(self, now: Instant) -> bool {
        let member = self.member();
        let is_out = match self.version.turns {
            Turns::Many { .. } => member.standing.failed(&member.parameters, now),
            Turns::Only { .. } | Turns::Dead => false,
        };
        self.counts().failed(is_out);
        if self.timed.is_some() {
            self.times().failed(now);
        }
        is_out
    }

    pub fn counts(&self) -> &Arc<PeerCells> {
        &self.version.0.counts[self.index]
    }

    fn member(&self) -> &Member {
        &self.version.members[self.index]
    }

    fn times(&self) -> &Times {
        self.member().standing.times()
    }
}

impl Timed {
    fn new(timing: Timing, began: Instant) -> Timed {
        Timed { timing, began, head: Cell::new(None), underway: Cell::new(timing.inflight) }
    }

    fn leave(&self, times: &Times, now: Instant) {
        if self.underway.take() {
            times.leave(now.saturating_duration_since(self.began), now);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.counts().leave();
        if let Some(timed) = self.timed.as_ref().filter(|timed| timed.underway.get()) {
            timed.leave(self.times(), clock::now());
        }
        if self.version.counts() {
            self.member().standing.leave();
        }
        if let Some(queue) = &self.version.queue
            && queue.is_waited_in()
        {
            queue.call();
        }
    }
}
