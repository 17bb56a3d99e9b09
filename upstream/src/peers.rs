//! One version of a group: who its peers are, and whose turn it is.
//!
//! A version never changes; what moves (loads, failures, turns) is shared with the versions before and after. A worker
//! holds on to the version in force ([`Version`]), and a request to the one that it began with. A [`Turn`] is the right to
//! talk to one peer and is used up by saying how that went. Next: `balance`, which decides; `group`, which makes versions.

use crate::balance::{Ask, Balance, Set};
use crate::peer::{Member, Peer};
use crate::tried::Tried;
use millstream_conf::model::BalanceMethod;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// No live server: nginx's `no live upstreams`, answered with 502.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPeer;

/// The peers of a group, as long as nobody changes them.
#[derive(Debug)]
pub struct Peers {
    pub(crate) group: Arc<str>,
    /// Counts the versions of a group.
    pub(crate) number: u64,
    /// The servers proper, then the backups.
    pub(crate) members: Box<[Member]>,
    /// How many of `members` are no backups.
    proper: usize,
    /// Servers that one request may try: those not `down`.
    tries: u32,
    turns: Turns,
}

/// How turns are given.
#[derive(Debug)]
enum Turns {
    /// One peer that is `down`, or none at all.
    Dead,
    /// One peer: always its turn, whatever it did, unless it has `max_conns` and is full.
    Only { counts: bool },
    Many {
        balance: Balance,
        /// Whether somebody wants to know how many requests each peer has.
        counts: bool,
        /// Taken to compare all peers; the same in all versions.
        lock: Arc<Mutex<()>>,
    },
}

/// A worker's hold on a version: counted without touching what other threads read.
#[derive(Debug, Clone)]
#[expect(
    clippy::redundant_allocation,
    reason = "the inner count is all workers', the outer one this worker's own"
)]
pub struct Version(Rc<Arc<Peers>>);

/// The right to talk to one peer, counted as active while it exists. Dropping it says nothing about the peer.
#[must_use = "a turn counts as an active connection until it is used up"]
#[derive(Debug)]
pub struct Turn {
    version: Version,
    index: usize,
}

impl Peers {
    /// A version of a group. The first `proper` members are no backups.
    pub(crate) fn new(
        (group, number): (Arc<str>, u64),
        method: BalanceMethod,
        members: Vec<Member>,
        proper: usize,
        lock: &Arc<Mutex<()>>,
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
        let tries = members.iter().filter(|member| !member.parameters.down).count() as u32;
        Peers { group, number, members: members.into(), proper, tries, turns }
    }

    /// The group's name, as nginx's messages and metrics have it.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The peers, servers proper first.
    pub fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.members.iter().map(|member| &member.peer)
    }

    /// Whether a peer of this number is among them.
    pub fn has(&self, id: u64) -> bool {
        self.iter().any(|peer| peer.id == id)
    }

    /// A request's record of the peers it asked. `limit` is `proxy_next_upstream_tries`, 0 for none but the number
    /// of servers.
    pub fn tried(&self, limit: u32) -> Tried {
        Tried::new(if limit == 0 { self.tries } else { self.tries.min(limit) })
    }

    /// Requests on a peer at this moment; 0 where nothing needs the count.
    pub fn active(&self, peer: &Peer) -> u32 {
        self.members
            .iter()
            .find(|member| member.peer.id == peer.id)
            .map_or(0, |member| member.standing.active())
    }

    fn choose(&self, ask: &mut Ask<'_>) -> Option<usize> {
        let (balance, lock, counts) = match &self.turns {
            Turns::Dead => return None,
            Turns::Only { counts } => {
                let only = &self.members[0];
                return (!counts || only.standing.enter(&only.parameters)).then_some(0);
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

    fn counts(&self) -> bool {
        matches!(self.turns, Turns::Only { counts: true } | Turns::Many { counts: true, .. })
    }
}

impl Version {
    /// A hold on a version.
    pub fn of(peers: Arc<Peers>) -> Version {
        Version(Rc::new(peers))
    }

    /// The next peer for a request: one it has not asked, that is live and not full; a backup where no other is
    /// left.
    ///
    /// # Errors
    /// [`NoPeer`] where nobody can be asked.
    pub fn choose(&self, mut ask: Ask<'_>) -> Result<Turn, NoPeer> {
        let index = self.0.choose(&mut ask).ok_or(NoPeer)?;
        ask.tried.left = ask.tried.left.saturating_sub(1);
        Ok(Turn { version: self.clone(), index })
    }
}

impl Deref for Version {
    type Target = Peers;

    fn deref(&self) -> &Peers {
        &self.0
    }
}

impl Turn {
    /// Whose turn it is.
    pub fn peer(&self) -> &Peer {
        &self.member().peer
    }

    /// The exchange went well.
    pub fn succeeded(self) {
        if let Turns::Many { .. } = self.version.turns {
            self.member().standing.succeeded();
        }
    }

    /// The exchange failed. Returns whether the peer is taken out by this, which deserves a warning.
    pub fn failed(self, now: Instant) -> bool {
        let member = self.member();
        match self.version.turns {
            Turns::Many { .. } => member.standing.failed(&member.parameters, now),
            Turns::Only { .. } | Turns::Dead => false,
        }
    }

    fn member(&self) -> &Member {
        &self.version.members[self.index]
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.version.counts() {
            self.member().standing.leave();
        }
    }
}
