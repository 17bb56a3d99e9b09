//! Tunnels in which nothing moves, and which of them end to make room: each holds a client's place and an upstream's.
//!
//! Only marks are set here. Before: `shortage`, which decides when; next: `exchange/tunnel`, which ends them.

use super::{Worker, idle_since};
use millstream_net::clock;
use millstream_telemetry::metrics::Counter;
use std::rc::Rc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// A tunnel active this recently is not closed to make room.
const TUNNEL_GRACE: Duration = Duration::from_secs(2);

pub(super) struct TunnelState {
    waker: Option<Waker>,
    idle_since: Instant,
    is_shed: bool,
}

pub struct TunnelEntry {
    worker: Rc<Worker>,
    key: usize,
}

impl Worker {
    pub fn enter_tunnel(self: &Rc<Self>) -> TunnelEntry {
        let state = TunnelState { waker: None, idle_since: clock::now(), is_shed: false };
        TunnelEntry { worker: self.clone(), key: self.tunnels.borrow_mut().insert(state) }
    }

    /// Asks the tunnels idle longest to close, at most `most` with those asked before. Returns whether there
    /// are any.
    pub(super) fn shed_tunnels(&self, most: usize, now: Instant) -> bool {
        let mut tunnels = self.tunnels.borrow_mut();
        let asked = tunnels.iter().filter(|(_, tunnel)| tunnel.is_shed).count();
        let mut idle: Vec<(Instant, usize)> = tunnels
            .iter()
            .filter(|(_, tunnel)| !tunnel.is_shed)
            .filter(|(_, tunnel)| now.saturating_duration_since(tunnel.idle_since) >= TUNNEL_GRACE)
            .map(|(key, tunnel)| (tunnel.idle_since, key))
            .collect();
        idle.sort_unstable();
        idle.truncate(most.saturating_sub(asked));
        self.metrics.add(Counter::ConnectionsShed, idle.len() as u64);
        for (_, key) in &idle {
            let tunnel = &mut tunnels[*key];
            tunnel.is_shed = true;
            if let Some(waker) = &tunnel.waker {
                waker.wake_by_ref();
            }
        }
        asked + idle.len() > 0
    }
}

impl TunnelEntry {
    pub fn moved(&self, bytes: usize) {
        let mut tunnels = self.worker.tunnels.borrow_mut();
        let tunnel = &mut tunnels[self.key];
        tunnel.idle_since = idle_since(tunnel.idle_since, bytes, clock::now());
        tunnel.is_shed = false;
    }

    /// Nothing moves: `waker` hears of a request to close.
    pub fn wait(&self, waker: &Waker) {
        let tunnel = &mut self.worker.tunnels.borrow_mut()[self.key];
        if !tunnel.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            tunnel.waker = Some(waker.clone());
        }
    }

    pub fn is_shed(&self) -> bool {
        self.worker.tunnels.borrow()[self.key].is_shed
    }
}

impl Drop for TunnelEntry {
    fn drop(&mut self) {
        self.worker.tunnels.borrow_mut().remove(self.key);
    }
}
