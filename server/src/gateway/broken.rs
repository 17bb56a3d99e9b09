//! How an attempt with one server failed.

use crate::client::ClientFailure;
use millstream_upstream::{Connection, ExchangeError};

/// How one attempt failed.
pub(super) enum AttemptFailure {
    Client(ClientFailure),
    Exchange(ExchangeFailure),
}

/// A failed exchange.
pub(super) struct ExchangeFailure {
    pub(super) error: ExchangeError,
    /// What was being done, in nginx's words.
    pub(super) doing: &'static str,
    /// The connection was merely stale.
    pub(super) stale: bool,
    /// Some of the request had been sent.
    pub(super) sent: bool,
}

/// An exchange that failed, and whether its connection was merely stale.
pub(super) fn broken(connection: &Connection, error: ExchangeError, doing: &'static str) -> AttemptFailure {
    let (received, sent) = connection.traffic();
    let is_untouched = error.is_untouched();
    let stale = is_untouched || connection.is_pooled() && received == 0 && error.is_stale();
    AttemptFailure::Exchange(ExchangeFailure { error, doing, stale, sent: sent > 0 && !is_untouched })
}
