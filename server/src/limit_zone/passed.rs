//! What the limits made of one request.
//!
//! A request is counted once; what counts it as under way goes with it. Before: `connections`; next: `request`, which has it.

use super::connections::UnderWay;
use millstream_telemetry::metrics::LimitOutcome;
use smallvec::SmallVec;

/// `$limit_req_status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestLimited {
    Passed,
    Delayed,
    Rejected,
    DelayedDryRun,
    RejectedDryRun,
}

/// `$limit_conn_status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionLimited {
    Passed,
    Rejected,
    RejectedDryRun,
}

#[derive(Debug, Default)]
pub struct Passed {
    pub requests: Option<RequestLimited>,
    pub connections: Option<ConnectionLimited>,
    pub under_way: SmallVec<[UnderWay; 1]>,
}

impl RequestLimited {
    pub fn outcome(self) -> LimitOutcome {
        match self {
            RequestLimited::Passed => LimitOutcome::Passed,
            RequestLimited::Delayed => LimitOutcome::Delayed,
            RequestLimited::Rejected => LimitOutcome::Rejected,
            RequestLimited::DelayedDryRun => LimitOutcome::DelayedDryRun,
            RequestLimited::RejectedDryRun => LimitOutcome::RejectedDryRun,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            RequestLimited::Passed => "PASSED",
            RequestLimited::Delayed => "DELAYED",
            RequestLimited::Rejected => "REJECTED",
            RequestLimited::DelayedDryRun => "DELAYED_DRY_RUN",
            RequestLimited::RejectedDryRun => "REJECTED_DRY_RUN",
        }
    }
}

impl ConnectionLimited {
    pub fn outcome(self) -> LimitOutcome {
        match self {
            ConnectionLimited::Passed => LimitOutcome::Passed,
            ConnectionLimited::Rejected => LimitOutcome::Rejected,
            ConnectionLimited::RejectedDryRun => LimitOutcome::RejectedDryRun,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            ConnectionLimited::Passed => "PASSED",
            ConnectionLimited::Rejected => "REJECTED",
            ConnectionLimited::RejectedDryRun => "REJECTED_DRY_RUN",
        }
    }
}
