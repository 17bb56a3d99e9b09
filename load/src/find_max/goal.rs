//! What must hold at a rate, and why it did not: a judgement of one trial's figures, pure.

use crate::outcome::{KEPT_UP, Outcome};
use crate::plan::Mode;
use crate::report::quantity;
use std::fmt;
use std::time::Duration;

/// What must hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// The most that the 99th percentile of latency may be; none: anything.
    pub p99: Option<Duration>,
    /// The most that the share of errors may be, 0 to 1.
    pub errors: f64,
}

/// Why a rate did not hold.
#[derive(Debug, Clone, PartialEq)]
pub enum Miss {
    /// The server answered this share of what was due.
    FellBehind(f64),
    /// Latency, microseconds at the 99th percentile.
    Slow(u64),
    /// The share of errors; and where the generator sent a request in a hundred later than the next was due, so that several
    /// came at once, by how much, microseconds.
    Errors(f64, Option<u64>),
    /// The generator itself could not send so much, in its own words.
    Generator(String),
}

impl fmt::Display for Miss {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Miss::FellBehind(share) => {
                write!(out, "only {} were answered in time", quantity::percent(*share))
            }
            Miss::Slow(p99) => write!(out, "p99 was {}", quantity::duration(*p99 as f64)),
            Miss::Errors(share, None) => write!(out, "{} were errors", quantity::percent(*share)),
            Miss::Errors(share, Some(late)) => write!(
                out,
                "{} were errors (the generator sent one request in a hundred more than {} late, several at once: a server that \
                 refuses bunches may take more)",
                quantity::percent(*share),
                quantity::duration(*late as f64)
            ),
            Miss::Generator(why) => out.write_str(why),
        }
    }
}

impl Goal {
    /// The most that the 99th percentile of latency may be, microseconds; none: anything.
    pub fn p99_microseconds(&self) -> Option<u64> {
        self.p99.map(|limit| u64::try_from(limit.as_micros()).unwrap_or(u64::MAX))
    }

    /// Whether an open loop held; its outcome says which rate it was.
    pub fn judge(&self, outcome: &Outcome) -> Option<Miss> {
        let errors = outcome.error_share();
        let answered = outcome.due() - outcome.counts.unfinished;
        let kept_up = outcome.kept_up();
        let p99 = outcome.latency.percentile(99.0);
        let limit = self.p99_microseconds().unwrap_or(u64::MAX);
        let miss = if errors > self.errors || answered == 0 {
            Miss::Errors(if answered == 0 { 1.0 } else { errors }, bunched(outcome))
        } else if kept_up < KEPT_UP {
            Miss::FellBehind(kept_up)
        } else if p99 > limit {
            Miss::Slow(p99)
        } else {
            return None;
        };
        // What the generator could not send says nothing about the server; nor does a latency that is its own delay.
        let generator = &outcome.generator;
        let is_its_own = match miss {
            Miss::FellBehind(_) => true,
            Miss::Slow(p99) => generator.is_busy() || p99.saturating_sub(generator.send_lag_p99) <= limit,
            Miss::Errors(..) | Miss::Generator(_) => false,
        };
        match &generator.limits {
            Some(why) if is_its_own => Some(Miss::Generator(why.clone())),
            _ => Some(miss),
        }
    }
}

/// By how much the generator was late, where that is more than the time between two requests.
fn bunched(outcome: &Outcome) -> Option<u64> {
    let Mode::Open { rate, .. } = outcome.mode else { return None };
    let late = outcome.generator.send_lag_p99;
    (late as f64 * rate > 1e6).then_some(late)
}
