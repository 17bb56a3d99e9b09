//! How long a peer was not used, by its failures and by the checks of its health.
//!
//! It decides nothing. Next: `standing`, which notes; `account`, which tells.

use std::time::{Duration, Instant};

/// The absences of a peer under one configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Downtime {
    /// `None` while it is used. A peer that was `unavail` is used again with the attempt that brings its
    /// first success.
    pub since: Option<Instant>,
    /// The current absence included.
    pub total: Duration,
}

impl Downtime {
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

    pub(crate) fn until(&self, now: Instant) -> Downtime {
        let going_on = self.since.map(|since| now.saturating_duration_since(since)).unwrap_or_default();
        Downtime { total: self.total + going_on, ..*self }
    }
}
