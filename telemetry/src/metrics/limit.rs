//! What is counted of the zones of `limit_req` and `limit_conn`.

use super::{add, add_all};
use std::sync::atomic::AtomicU64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum LimitOutcome {
    Passed,
    Delayed,
    Rejected,
    DelayedDryRun,
    RejectedDryRun,
}

const OUTCOMES: usize = LimitOutcome::ALL.len();

impl LimitOutcome {
    /// In the order of their numbers.
    pub const ALL: [LimitOutcome; 5] = [
        LimitOutcome::Passed,
        LimitOutcome::Delayed,
        LimitOutcome::Rejected,
        LimitOutcome::DelayedDryRun,
        LimitOutcome::RejectedDryRun,
    ];

    /// For `limit_conn`: connections are never delayed.
    pub const OF_CONNECTIONS: [LimitOutcome; 3] =
        [LimitOutcome::Passed, LimitOutcome::Rejected, LimitOutcome::RejectedDryRun];

    pub fn name(self) -> &'static str {
        match self {
            LimitOutcome::Passed => "passed",
            LimitOutcome::Delayed => "delayed",
            LimitOutcome::Rejected => "rejected",
            LimitOutcome::DelayedDryRun => "delayed_dry_run",
            LimitOutcome::RejectedDryRun => "rejected_dry_run",
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct LimitCells([AtomicU64; OUTCOMES]);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitSnapshot([u64; OUTCOMES]);

impl LimitCells {
    pub(super) fn count(&self, outcome: LimitOutcome) {
        add(&self.0[outcome as usize], 1);
    }

    pub(super) fn add_to(&self, sum: &mut LimitSnapshot) {
        add_all(&mut sum.0, &self.0);
    }
}

impl LimitSnapshot {
    pub fn count(&self, outcome: LimitOutcome) -> u64 {
        self.0[outcome as usize]
    }
}
