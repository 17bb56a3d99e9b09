//! One `upstream` block at work: its peers and whose turn it is, shared by all workers.
//!
//! The state sits behind one small mutex that is held for a loop over the peers; a group with a single peer and no
//! `max_conns` has no state and takes no lock. A [`Turn`] is the right to talk to one peer and is used up by
//! saying how that went.
//! Next: `balance/round_robin`, which decides; `pool`, which has the connections.

use crate::balance::round_robin::RoundRobin;
use crate::peer::{Parameters, Peer};
use millstream_conf::model::{Upstream, UpstreamKeepalive};
use millstream_net::address::Address;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A group of upstream servers.
#[derive(Debug)]
pub struct Group {
    name: Arc<str>,
    /// The servers proper, then the backups.
    peers: Box<[Peer]>,
    /// How many of `peers` are no backups.
    primary: usize,
    /// Servers that one request may try: those not `down`.
    tries: u32,
    keepalive: UpstreamKeepalive,
    state: State,
}

#[derive(Debug)]
enum State {
    /// One peer without a bound on its connections: always its turn.
    Free,
    /// One peer with `max_conns`.
    One(Mutex<RoundRobin>),
    /// The servers proper and the backups, each with its own turns.
    Many(Mutex<[RoundRobin; 2]>),
    /// One peer that is `down`, or none at all.
    Dead,
}

/// No live server: nginx's `no live upstreams`, answered with 502.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPeer;

/// The peers that one request has asked, and how many more it may ask.
#[derive(Debug, Clone)]
pub struct Tried {
    mask: u64,
    /// Peers from the 65th on.
    more: Vec<u64>,
    /// Only backups are left.
    backup: bool,
    left: u32,
}

impl Tried {
    /// How many more peers the request may ask.
    pub fn left(&self) -> u32 {
        self.left
    }

    fn has(&self, index: usize) -> bool {
        if index < 64 {
            return self.mask & (1 << index) != 0;
        }
        self.more.get(index / 64 - 1).is_some_and(|word| word & (1 << (index % 64)) != 0)
    }

    fn add(&mut self, index: usize) {
        if index < 64 {
            self.mask |= 1 << index;
            return;
        }
        let word = index / 64 - 1;
        if self.more.len() <= word {
            self.more.resize(word + 1, 0);
        }
        self.more[word] |= 1 << (index % 64);
    }
}

/// The right to talk to one peer, counted as active while it exists. Dropping it says nothing about the peer.
#[must_use = "a turn counts as an active connection until it is used up"]
#[derive(Debug)]
pub struct Turn<'g> {
    group: &'g Group,
    index: usize,
}

impl Group {
    /// The group of an `upstream` block. `addresses` holds for each of its servers what it resolved to; the servers
    /// of a name with several addresses share its parameters. A server without addresses is left out.
    pub fn open(conf: &Upstream, addresses: &[Vec<Address>]) -> Arc<Group> {
        let mut chosen: Vec<(Peer, Parameters, bool)> = Vec::new();
        for backup in [false, true] {
            let servers = conf.servers.iter().zip(addresses).filter(|(server, _)| server.backup == backup);
            for (server, addresses) in servers {
                for address in addresses {
                    let peer = Peer {
                        index: chosen.len() as u32,
                        address: address.clone(),
                        name: address.to_string().into(),
                    };
                    let parameters = Parameters {
                        weight: i64::from(server.weight.max(1)),
                        max_fails: server.max_fails,
                        fail_timeout: server.fail_timeout,
                        down: server.down,
                        max_conns: server.max_conns,
                    };
                    chosen.push((peer, parameters, backup));
                }
            }
        }
        let primary = chosen.iter().filter(|(_, _, backup)| !backup).count();
        let parameters: Vec<Parameters> = chosen.iter().map(|(_, parameters, _)| *parameters).collect();
        Arc::new(Group {
            name: conf.name.as_str().into(),
            primary,
            tries: parameters.iter().filter(|parameters| !parameters.down).count() as u32,
            keepalive: conf.keepalive,
            state: State::of(&parameters, primary),
            peers: chosen.into_iter().map(|(peer, ..)| peer).collect(),
        })
    }

    /// The group's name, as nginx's messages and metrics have it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its peers, servers proper first.
    pub fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// How idle connections to it are kept.
    pub fn keepalive(&self) -> &UpstreamKeepalive {
        &self.keepalive
    }

    /// A request's record of the peers it asked. `limit` is `proxy_next_upstream_tries`, 0 for none but the number
    /// of servers.
    pub fn tried(&self, limit: u32) -> Tried {
        let left = if limit == 0 { self.tries } else { self.tries.min(limit) };
        Tried { mask: 0, more: Vec::new(), backup: false, left }
    }

    /// The next peer for a request: one it has not asked, that is live and not full; a backup where no other is
    /// left.
    ///
    /// # Errors
    /// [`NoPeer`] where nobody can be asked.
    pub fn choose(&self, tried: &mut Tried, now: Instant) -> Result<Turn<'_>, NoPeer> {
        let index = match &self.state {
            State::Free => 0,
            State::Dead => return Err(NoPeer),
            State::One(state) => lock(state).choose_only().ok_or(NoPeer)?,
            State::Many(state) => self.choose_of_many(&mut lock(state), tried, now).ok_or(NoPeer)?,
        };
        tried.left = tried.left.saturating_sub(1);
        Ok(Turn { group: self, index })
    }

    fn choose_of_many(&self, sets: &mut [RoundRobin; 2], tried: &mut Tried, now: Instant) -> Option<usize> {
        if !tried.backup {
            if let Some(index) = sets[0].choose(|index| tried.has(index), now) {
                tried.add(index);
                return Some(index);
            }
            tried.backup = true;
        }
        let index = self.primary + sets[1].choose(|index| tried.has(self.primary + index), now)?;
        tried.add(index);
        Some(index)
    }

    /// Requests on a peer at this moment; 0 where nothing needs the count.
    pub fn active(&self, peer: &Peer) -> u32 {
        let index = peer.index as usize;
        match &self.state {
            State::Free | State::Dead => 0,
            State::One(state) => lock(state).active(index),
            State::Many(state) => {
                let (set, index) = self.place(index);
                lock(state)[set].active(index)
            }
        }
    }

    fn succeeded(&self, index: usize) {
        if let State::Many(state) = &self.state {
            let (set, index) = self.place(index);
            lock(state)[set].succeeded(index);
        }
    }

    fn release(&self, index: usize) {
        match &self.state {
            State::Free | State::Dead => {}
            State::One(state) => lock(state).release(index),
            State::Many(state) => {
                let (set, index) = self.place(index);
                lock(state)[set].release(index);
            }
        }
    }

    /// The set that a peer belongs to, and its place there.
    fn place(&self, index: usize) -> (usize, usize) {
        if index < self.primary { (0, index) } else { (1, index - self.primary) }
    }
}

impl State {
    fn of(parameters: &[Parameters], primary: usize) -> State {
        match parameters {
            [] => State::Dead,
            [only] if only.down => State::Dead,
            [only] if only.max_conns == 0 => State::Free,
            [only] => State::One(Mutex::new(RoundRobin::new([*only]))),
            all => State::Many(Mutex::new([
                RoundRobin::new(all[..primary].iter().copied()),
                RoundRobin::new(all[primary..].iter().copied()),
            ])),
        }
    }
}

/// The state stays consistent whatever happens between its single steps, so a poisoned lock is taken as it is.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'g> Turn<'g> {
    /// Whose turn it is.
    pub fn peer(&self) -> &'g Peer {
        &self.group.peers[self.index]
    }

    /// The exchange went well.
    pub fn succeeded(self) {
        self.group.succeeded(self.index);
    }

    /// The same turn for an exchange that may outlive its request; `group` is the turn's own.
    pub fn shared(self, group: Arc<Group>) -> SharedTurn {
        debug_assert!(std::ptr::eq(self.group, &*group));
        let index = self.index;
        // It goes on in the other; giving it back is that one's to do.
        std::mem::forget(self);
        SharedTurn { group, index }
    }

    /// The exchange failed. Returns whether the peer is taken out by this, which deserves a warning.
    pub fn failed(self, now: Instant) -> bool {
        match &self.group.state {
            State::Many(state) => {
                let (set, index) = self.group.place(self.index);
                lock(state)[set].failed(index, now)
            }
            State::Free | State::One(_) | State::Dead => false,
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.group.release(self.index);
    }
}

/// A turn of an exchange that may outlive its request. Dropping it without [`SharedTurn::succeeded`] gives it back, as of a
/// [`Turn`].
#[derive(Debug)]
pub struct SharedTurn {
    group: Arc<Group>,
    index: usize,
}

impl SharedTurn {
    /// The exchange went well.
    pub fn succeeded(self) {
        self.group.succeeded(self.index);
    }
}

impl Drop for SharedTurn {
    fn drop(&mut self) {
        self.group.release(self.index);
    }
}

#[cfg(test)]
mod tests;
