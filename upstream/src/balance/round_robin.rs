//! Smooth weighted round robin with nginx's failure marks, as a pure state machine under a clock that is handed in.
//!
//! Each choice adds every live peer's effective weight to its current weight, takes the highest (the first of
//! equals) and takes the sum off it again; so weights 5, 1, 1 give a a b a c a a. A failure takes
//! `weight / max_fails` off the effective weight, each later choice gives one back.
//! Next: `group`, which shares one of these between threads.

use crate::peer::Parameters;
use std::time::Instant;

/// Load and health of one peer.
#[derive(Debug, Clone)]
struct State {
    parameters: Parameters,
    current_weight: i64,
    effective_weight: i64,
    fails: u32,
    active: u32,
    /// When the last failure was.
    failed_at: Option<Instant>,
    /// Start of the window that failures are counted in, or of the try that tests a peer after its pause.
    checked_at: Option<Instant>,
}

/// The peers of one set (the servers proper, or the backups) and whose turn it is.
#[derive(Debug, Clone)]
pub struct RoundRobin {
    peers: Vec<State>,
}

impl RoundRobin {
    /// A fresh state.
    pub fn new(parameters: impl IntoIterator<Item = Parameters>) -> Self {
        let peers = parameters.into_iter().map(|parameters| State {
            parameters,
            current_weight: 0,
            effective_weight: parameters.weight,
            fails: 0,
            active: 0,
            failed_at: None,
            checked_at: None,
        });
        Self { peers: peers.collect() }
    }

    /// The next peer among those that `tried` does not name and that are live; `None` where there is none. It counts
    /// as active until [`RoundRobin::release`].
    pub fn choose(&mut self, tried: impl Fn(usize) -> bool, now: Instant) -> Option<usize> {
        let mut best: Option<usize> = None;
        let mut total = 0;
        for index in 0..self.peers.len() {
            if tried(index) || !self.peers[index].is_live(now) {
                continue;
            }
            let peer = &mut self.peers[index];
            peer.current_weight += peer.effective_weight;
            total += peer.effective_weight;
            if peer.effective_weight < peer.parameters.weight {
                peer.effective_weight += 1;
            }
            let weight = peer.current_weight;
            if best.is_none_or(|best| weight > self.peers[best].current_weight) {
                best = Some(index);
            }
        }
        let chosen = best?;
        let peer = &mut self.peers[chosen];
        peer.current_weight -= total;
        peer.open_window(now);
        peer.active += 1;
        Some(chosen)
    }

    /// The only peer of a group of one: never taken out for failures, since there is nobody else to ask.
    pub fn choose_only(&mut self) -> Option<usize> {
        let peer = self.peers.first_mut()?;
        if peer.parameters.down || peer.is_full() {
            return None;
        }
        peer.active += 1;
        Some(0)
    }

    /// One request less on a peer.
    pub fn release(&mut self, index: usize) {
        let active = &mut self.peers[index].active;
        *active = active.saturating_sub(1);
    }

    /// A request on a peer went well: it is live again if this request tested it after its pause.
    pub fn succeeded(&mut self, index: usize) {
        let peer = &mut self.peers[index];
        if peer.fails > 0 && peer.failed_at < peer.checked_at {
            peer.fails = 0;
        }
    }

    /// A request on a peer failed. Returns whether the peer is out from now on.
    pub fn failed(&mut self, index: usize, now: Instant) -> bool {
        let peer = &mut self.peers[index];
        peer.fails = peer.fails.saturating_add(1);
        peer.failed_at = Some(now);
        peer.checked_at = Some(now);
        let max_fails = peer.parameters.max_fails;
        if max_fails == 0 {
            return false;
        }
        peer.effective_weight =
            (peer.effective_weight - peer.parameters.weight / i64::from(max_fails)).max(0);
        peer.fails >= max_fails
    }

    /// Requests on a peer at this moment.
    pub fn active(&self, index: usize) -> u32 {
        self.peers[index].active
    }
}

impl State {
    fn is_full(&self) -> bool {
        self.parameters.max_conns > 0 && self.active >= self.parameters.max_conns
    }

    fn is_live(&self, now: Instant) -> bool {
        if self.parameters.down || self.is_full() {
            return false;
        }
        let out = self.parameters.max_fails > 0 && self.fails >= self.parameters.max_fails;
        !(out
            && self
                .checked_at
                .is_some_and(|at| now.saturating_duration_since(at) <= self.parameters.fail_timeout))
    }

    /// A new window starts with the first choice after the last one ran out; a success in it clears the failures.
    fn open_window(&mut self, now: Instant) {
        let over =
            self.checked_at.is_none_or(|at| now.saturating_duration_since(at) > self.parameters.fail_timeout);
        if over {
            self.checked_at = Some(now);
        }
    }
}

#[cfg(test)]
mod tests;
