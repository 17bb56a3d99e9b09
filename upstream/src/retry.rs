//! Whether another server is asked after a failure, as `proxy_next_upstream` says: a pure function.
//!
//! It also maps what happened to the status that the client gets when nobody else is asked: 504 for a timeout,
//! the upstream's own status for an answer, 502 for the rest.
//! Next: `millstream-server`'s `gateway`, which acts on the decision.

use millstream_conf::model::{Exchange, FailureWords, NextUpstream};
use millstream_wire::Method;
use std::time::Duration;

/// What went wrong, in the classes of `proxy_next_upstream`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Connecting, writing or reading failed.
    Error,
    /// One of the three timeouts.
    Timeout,
    /// The answer's head could not be understood.
    InvalidHeader,
    /// An answer came whole, with this status.
    Status(u16),
}

impl Condition {
    /// The status of an answer to the client where nobody else is asked.
    pub fn status(self) -> u16 {
        match self {
            Condition::Timeout => 504,
            Condition::Status(status) => status,
            Condition::Error | Condition::InvalidHeader => 502,
        }
    }
}

/// One failed attempt.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    /// What went wrong.
    pub condition: Condition,
    /// The request's method as it was sent.
    pub method: Method,
    /// Whether any of the request had been sent, so that the upstream may have acted on it.
    pub request_sent: bool,
    /// Whether the request's body can be sent once more: there is none, or it is kept.
    pub body_replayable: bool,
    /// Whether the connection came from the pool and closed before any byte of an answer.
    pub stale: bool,
    /// Peers that may still be asked.
    pub tries_left: u32,
    /// Since the first attempt started.
    pub elapsed: Duration,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Once more with the same peer, on a fresh connection: the pooled one was stale, which is nobody's failure.
    Fresh,
    /// Ask the next peer.
    Next,
    /// Answer with this status (for [`Condition::Status`], with the upstream's answer).
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

/// nginx counts POST, LOCK and PATCH as not idempotent. LOCK, and whatever else is not in the method table, is
/// unknown here, so only methods known to be idempotent are repeated.
fn is_repeatable(method: Method) -> bool {
    method.is_idempotent()
}

/// Whether `proxy_next_upstream` names the condition.
fn asked_for(next: &NextUpstream, condition: Condition) -> bool {
    match condition {
        Condition::Error => next.error,
        Condition::Timeout => next.timeout,
        Condition::InvalidHeader => next.invalid_header,
        Condition::Status(status) => next.has_status(status),
    }
}

/// Whether an answer of this status counts as its server's failure: all that `proxy_next_upstream` names but 403 and
/// 404, which say something about the request.
pub fn is_peer_failure(next: &NextUpstream, status: u16) -> bool {
    !matches!(status, 403 | 404) && asked_for(next, Condition::Status(status))
}

#[cfg(test)]
mod tests;
