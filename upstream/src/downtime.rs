//! How long a peer was not used, by its failures and by the checks of its health.
//!
//! It decides nothing. Next: `standing`, which notes; `account`, which tells.

use std::time::{Duration, Instant};

/// The absences of a peer, for as long as the configuration that has it is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Downtime {
    /// Since when it is not used (`unavail`, `checking`, `unhealthy`, `ejected`); nothing while it is. One that was `unavail` is used again
    /// with the try that brings its first success.
    pub since: Option<Instant>,
    /// For how long altogether, what is going on included.
    pub total: Duration,
}

impl Downtime {
    /// From now on it is out, or not.
    pub(crate) fn note(&mut self, out: bool, now: Instant) {
        match self.since {
            None if out => self.since = Some(now),
            Some(since) if !out => {
                self.total += now.saturating_duration_since(since);
                self.since = None;
            }
            _ => {}
        }
    }

    /// As it is told now.
    pub(crate) fn until(&self, now: Instant) -> Downtime {
        let going_on = self.since.map(|since| now.saturating_duration_since(since)).unwrap_or_default();
        Downtime { total: self.total + going_on, ..*self }
    }
}
