//! How long work in the background goes on before it pauses (`loader_*`, `manager_*`, `purger_*`).
//!
//! Pure but for one look at the clock per file. Next: `keeper`, whose thread pauses.

use millstream_conf::model::Pace;
use millstream_net::clock;
use std::time::Instant;

#[derive(Debug)]
pub(super) struct Round {
    left: u32,
    until: Instant,
}

impl Round {
    pub(super) fn begin(pace: Pace) -> Round {
        let now = clock::now();
        Round { left: pace.files.max(1), until: now.checked_add(pace.threshold).unwrap_or(now) }
    }

    /// Counts a file; returns whether there is time for another.
    pub(super) fn takes(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.goes_on()
    }

    pub(super) fn goes_on(&self) -> bool {
        self.left > 0 && clock::now() < self.until
    }

    pub(super) fn left(&self) -> usize {
        self.left as usize
    }
}
