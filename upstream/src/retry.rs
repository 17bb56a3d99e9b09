//! Whether another server is asked after a failure, as `proxy_next_upstream` says: a pure function.
//!
//! It also maps what happened to the status that the client gets when nobody else is asked: 504 for a timeout,
//! the upstream's own status for an answer, 502 for the rest.
//! Next: `millstream-server`'s `exchange`, which acts on the decision.

use millstream_conf::model::{Exchange, FailureWords, NextUpstream};
use millstream_wire::Method;
use std::time::Duration;

/// What went wrong, in the classes of `proxy_next_upstream`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    Error,
    Timeout,
    InvalidHeader,
    Status(u16),
}

impl Condition {
    /// For the client, if no other server is asked.
    pub fn status(self) -> u16 {
        match self {
            Condition::Timeout => 504,
            Condition::Status(status) => status,
            Condition::Error | Condition::InvalidHeader => 502,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    pub condition: Condition,
    pub method: Method,
    /// If so, the upstream may have acted on it.
    pub request_sent: bool,
    pub body_replayable: bool,
    /// Whether the connection came from the pool and closed before any byte of a response.
    pub stale: bool,
    pub tries_left: u32,
    pub elapsed: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Retry with the same peer on a fresh connection: the pooled one was stale, which is no failure.
    Fresh,
    Next,
    /// Respond with this status (for [`Condition::Status`], with the upstream's response).
    GiveUp(u16),
}

/// Decides what follows a failed attempt.
pub fn decide(conf: &Exchange, attempt: &Attempt) -> Decision {
    let status = attempt.condition.status();
    let next = &conf.next_upstream;
    // RFC 9110 §9.2.2: a request is not repeated automatically where repeating it could have an effect of its own.
    let may_repeat = !attempt.request_sent || is_repeatable(attempt.method) || next.non_idempotent;
    if !may_repeat || !attempt.body_replayable {
        return Decision::GiveUp(status);
    }
    if attempt.stale {
        return Decision::Fresh;
    }
    let timeout = conf.next_upstream_timeout;
    let in_time = timeout.is_zero() || attempt.elapsed < timeout;
    if asked_for(next, attempt.condition) && attempt.tries_left > 0 && in_time {
        Decision::Next
    } else {
        Decision::GiveUp(status)
    }
}

/// nginx counts POST, LOCK and PATCH as not idempotent. LOCK, and whatever else is not in the method table,
/// is unknown here, so only methods known to be idempotent are repeated.
fn is_repeatable(method: Method) -> bool {
    method.is_idempotent()
}

fn asked_for(next: &NextUpstream, condition: Condition) -> bool {
    match condition {
        Condition::Error => next.error,
        Condition::Timeout => next.timeout,
        Condition::InvalidHeader => next.invalid_header,
        Condition::Status(status) => next.has_status(status),
    }
}

/// All that `proxy_next_upstream` names but 403 and 404, which are about the request.
pub fn is_peer_failure(next: &NextUpstream, status: u16) -> bool {
    !matches!(status, 403 | 404) && asked_for(next, Condition::Status(status))
}

#[cfg(test)]
mod tests;
