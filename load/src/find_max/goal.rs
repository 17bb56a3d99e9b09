//! What must hold at a rate, and why it did not: a judgement of one trial's figures, pure.

use crate::outcome::{Goal, KEPT_UP, Outcome};
use crate::report::quantity::{Share, Time};
use std::fmt;

/// Why a rate did not hold.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Miss {
    /// In words.
    pub(super) why: String,
    /// Whether the generator could not send so much: that says nothing about the server.
    pub(super) is_generators: bool,
}

impl fmt::Display for Goal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.p99 {
            Some(p99) => write!(out, "p99 at most {}", Time(p99 as f64))?,
            None => write!(out, "the server keeps up")?,
        }
        write!(out, ", at most {} errors", Share(self.errors))
    }
}

impl Goal {
    /// Whether an open loop held; its outcome says which rate it was.
    pub(super) fn judge(&self, outcome: &Outcome) -> Option<Miss> {
        let generator = &outcome.generator;
        let (errors, kept_up) = (outcome.error_share(), outcome.kept_up());
        let is_answered = outcome.due() > outcome.counts.unfinished;
        let (p99, limit) = (outcome.latency.percentile(99.0), self.p99.unwrap_or(u64::MAX));
        // What the generator could not send is its own; so is a latency that is its own delay.
        let (why, is_its_own) = if errors > self.errors || !is_answered {
            let share = Share(if is_answered { errors } else { 1.0 });
            // A late generator sends several at once, which a server may refuse, and one without ports cannot connect.
            (format!("{share} were errors"), is_answered && !generator.is_busy())
        } else if kept_up < KEPT_UP {
            (format!("only {} were answered in time", Share(kept_up)), true)
        } else if p99 > limit {
            let is_its_own = generator.is_busy() || p99.saturating_sub(generator.send_lag_p99) <= limit;
            (format!("p99 was {}", Time(p99 as f64)), is_its_own)
        } else {
            return None;
        };
        Some(match &generator.limits {
            Some(limits) if is_its_own => Miss { why: limits.clone(), is_generators: true },
            _ => Miss { why, is_generators: false },
        })
    }
}
